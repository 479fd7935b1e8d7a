"""`bayplan defrag`: finds the fewest and cheapest moves that free whole domains, or a place for a gang."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable

from planner.cluster.snapshot import Snapshot
from planner.model.errors import InputError, Where
from planner.model.podgroup import PodGroup
from planner.model.topology import Topology
from planner.model.words import counted
from planner.planning.defragmentation.free_domains import free_domains
from planner.planning.defragmentation.gang_place import gang_place
from planner.planning.defragmentation.result import Defragmentation, NoMoves
from planner.planning.plan import plan
from planner.request.levels import level_key
from webhook.cli.clusters.carry_out import Work, carry_out
from webhook.cli.common import inputs
from webhook.cli.common.parsers import Subparsers, count, duration, subcommand
from webhook.cli.common.standing_words import add_installation, in_files, quiet
from webhook.files.reader import objects
from webhook.kube.cluster_objects import MAKES_PODS, ClusterObjects, ObjectsLookout, cluster_objects
from webhook.kube.moving.mover import WAIT_SECONDS, Mover
from webhook.placement.moving.movables import movables
from webhook.report import terminal
from webhook.report.documents import document
from webhook.report.moves import aim, figures_json, lines, refusal
from webhook.workloads import read

EPILOG = """examples:
  bayplan defrag --free 2 --level rack -c cluster/
  bayplan defrag --for research/Job/train
  bayplan defrag -f job.yaml -c cluster/ -o json
  bayplan defrag --free 1 --apply

Without --apply, nothing is moved. --apply cordons and marks the nodes to free, evicts one gang after the
other with the eviction API, waits until each gang is on nodes again, and uncordons the nodes. It stops if
anything unexpected happens. Then --resume continues, from any machine, and --undo uncordons. Ctrl-C stops it
between two steps.

A pod can be moved if it has a controller, its PodDisruptionBudget allows the eviction, and it is restartable:
it or its workload has the label bayplan.dev/restartable: "true", or it is preemptible for KAI.
Domains that are already free count for --free.

exit status: 0 moves were found or done, or none are needed; 1 no moves reach the goal, or --apply stopped;
2 bad input or usage
"""


def add_parser(subparsers: Subparsers) -> None:
    """Adds `defrag`."""
    parser = subcommand(
        subparsers,
        "defrag",
        description="Find the fewest and cheapest moves that free whole domains, or a place for a gang.",
        epilog=EPILOG,
    )
    goal = parser.add_mutually_exclusive_group(required=True)
    goal.add_argument("--free", type=count, metavar="N", help="free this number of whole domains of --level")
    goal.add_argument("--for", dest="gang", metavar="NAMESPACE/KIND/NAME", help="free a place for this gang")
    goal.add_argument("-f", "--filename", metavar="MANIFEST", help="free a place for the gang in this file")
    goal.add_argument("--resume", action="store_true", help="continue an interrupted --apply")
    goal.add_argument("--undo", action="store_true", help="uncordon the nodes that --apply cordoned")
    parser.add_argument("--apply", action="store_true", help="carry out the moves")
    parser.add_argument(
        "--level",
        help="label of the level, or its alias or last word (default: what gangs reserve)",
    )
    inputs.add_cluster(parser, required=False)
    inputs.add_topology(parser)
    add_installation(parser)
    parser.add_argument(
        "--restart-all", action="store_true", help="treat all pods as restartable unless their label says no"
    )
    parser.add_argument(
        "--timeout", type=duration, metavar="SECONDS", default=WAIT_SECONDS,
        help="how long --apply waits for reservations and pods at each step (default: %(default)g)",
    )  # fmt: skip
    parser.add_argument("-o", "--output", choices=("table", "json", "yaml"), default="table")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the moves, and carries them out with `--apply`; or continues or undoes an earlier `--apply`.
    Returns 1 if no moves reach the aim, or if carrying them out stopped.

    Raises `InputError` for a cluster that cannot be read, an unknown name, or options that exclude each
    other.
    """
    _check(args)
    if args.resume:
        return _carry_out(args, lambda mover, _: _status(mover.resume()))
    if args.undo:
        return _carry_out(args, lambda mover, _: _status(mover.undo()))
    if args.apply:
        return _carry_out(args, lambda mover, lookout: _apply(args, mover, lookout))
    seen = _seen(args)
    return _show(args, _result(args, seen))


def _check(args: argparse.Namespace) -> None:
    """Raises `InputError` for options that exclude each other."""
    acts = "--apply" if args.apply else "--resume" if args.resume else "--undo" if args.undo else ""
    if acts and args.cluster:
        raise InputError(f"files can only be looked at: leave it away with {acts}", Where("-c"))
    if args.apply and (args.resume or args.undo):
        raise InputError("is there already in --resume, and is the opposite of --undo", Where("--apply"))
    for option, value in (("--level", args.level), ("--topology", args.topology)):
        if value and args.free is None:
            why = "" if args.resume or args.undo else ": where a gang goes is said by its own keys"
            raise InputError(f"is for --free{why}", Where(option))


def _carry_out(args: argparse.Namespace, work: Work) -> int:
    out = sys.stdout if args.output == "table" else sys.stderr
    return carry_out(
        args.kubeconfig,
        args.installation,
        work,
        restart_all=args.restart_all,
        seconds=args.timeout,
        out=out,
    )


async def _status(work: Awaitable[None]) -> int:
    await work
    return 0


async def _apply(args: argparse.Namespace, mover: Mover, lookout: ObjectsLookout) -> int:
    await mover.refuse_second()
    result = _result(args, await lookout.look())
    status = _show(args, result)
    if isinstance(result, Defragmentation) and result.moves:
        movers = [move.movable.name for move in result.moves]
        await mover.apply(result.nodes, movers, aim(result), args.gang or "")
    return status


def _result(args: argparse.Namespace, seen: ClusterObjects) -> _Result:
    may_move = movables(seen.objects, seen.snapshot, seen.now, all_restartable=args.restart_all)
    if args.free is None:
        return gang_place(seen.snapshot, may_move, _gang(args, seen), plan, whole_nodes=args.apply)
    topology, level = _level(seen.snapshot, args.topology, args.level)
    return free_domains(seen.snapshot, may_move, topology, level, args.free, plan)


_Result = Defragmentation | NoMoves


def _show(args: argparse.Namespace, result: _Result) -> int:
    status = int(isinstance(result, NoMoves))
    if args.output != "table":
        figures = {} if isinstance(result, NoMoves) else {"figures": figures_json(result)}
        sys.stdout.write(document(args.output, {**result.to_json(), **figures}))
        return status
    out = terminal.console()
    width = terminal.width(out)
    for line in refusal(result, width) if isinstance(result, NoMoves) else lines(result, width):
        out.print(line)
    return status


def _seen(args: argparse.Namespace) -> ClusterObjects:
    """Returns the cluster of `-c`, or else the live one. Raises `InputError` if it cannot be read."""
    if in_files(args):
        return ClusterObjects(inputs.cluster(args.cluster), [item.value for item in objects(args.cluster)])
    quiet()
    seen = asyncio.run(cluster_objects(args.kubeconfig, MAKES_PODS, args.installation))
    inputs.note_unread(seen.unread)
    return seen


def _gang(args: argparse.Namespace, seen: ClusterObjects) -> PodGroup:
    """Returns the gang of `--for` or `-f`. Raises `InputError` for an unknown name, or if the file does
    not contain exactly one gang.
    """
    if args.gang:
        if args.gang in seen.waiting:
            return seen.waiting[args.gang]
        gangs = [group for obj in seen.objects for group in read(obj).gangs if group.name == args.gang]
        where = Where("--for")
    else:
        gangs = inputs.gangs([args.filename])
        where = Where(args.filename)
    if len(gangs) != 1:
        asked = (
            f"no gang {args.gang!r} waits in this cluster"
            if args.gang
            else f"{counted(len(gangs), 'gang')} in it"
        )
        raise InputError(f"{asked}; give one gang, as NAMESPACE/KIND/NAME or in a file of its own", where)
    return gangs[0]


def _level(snapshot: Snapshot, name: str | None, level: str | None) -> tuple[Topology, str]:
    """Returns the topology that has the level, and the level's label. If `level` is None, it is the
    topology's reservable level.

    `name`: only this topology is considered. Raises `InputError` if no topology or several have the level.
    """
    serving = []
    for topology in inputs.topologies(snapshot, name):
        key = level_key(topology, level) if level else topology.levels[topology.reservable_index]
        if key:
            serving.append((topology, key))
    if len(serving) == 1:
        return serving[0]
    if not serving:
        levels = ", ".join(dict.fromkeys(key for topology in snapshot.topologies for key in topology.levels))
        raise InputError(f"no topology has a level {level!r}; there are {levels}", Where("--level"))
    titles = ", ".join(topology.title for topology, _ in serving)
    raise InputError(f"several topologies have this level: {titles}; choose one", Where("--topology"))
