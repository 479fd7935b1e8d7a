"""`bayplan defrag`: the fewest and cheapest moves that free whole domains, or a waiting gang's place."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import time

from planner.cluster.snapshot import Snapshot
from planner.model.errors import InputError, Where
from planner.model.podgroup import PodGroup
from planner.model.topology import Topology
from planner.planning.defragmentation.free_domains import free_domains
from planner.planning.defragmentation.gang_place import gang_place
from planner.planning.defragmentation.movable import Movable
from planner.planning.defragmentation.result import Defragmentation, NoMoves
from planner.request.levels import resolve
from webhook.cli import inputs
from webhook.cli.parsers import Subparsers, subcommand
from webhook.files.reader import objects
from webhook.kube.moves import MovableCluster, movable_cluster
from webhook.placement.movables import movables
from webhook.report import terminal
from webhook.report.documents import document
from webhook.report.moves import figures_json, lines, refusal
from webhook.workloads import read

EPILOG = """examples:
  bayplan defrag --free 2 --level rack -c cluster/
  bayplan defrag --for research/Job/train
  bayplan defrag -f job.yaml -c cluster/ -o json

Nothing is moved. A pod may be moved where it has a controller, its PodDisruptionBudget allows it, and it has
agreed: by the label bayplan.dev/restartable: "true" on it or its workload, or by being preemptible for KAI.
Domains that are free already count for --free.

exit status: 0 there are moves, or none are needed, 1 nothing reaches the aim, 2 bad input or usage
"""


def add_parser(subparsers: Subparsers) -> None:
    """Add `defrag`."""
    parser = subcommand(
        subparsers,
        "defrag",
        description="Find the fewest and cheapest moves that free whole domains, or a waiting gang's place.",
        epilog=EPILOG,
    )
    aim = parser.add_mutually_exclusive_group(required=True)
    aim.add_argument("--free", type=_count, metavar="N", help="so many whole domains of --level")
    aim.add_argument("--for", dest="gang", metavar="NAMESPACE/KIND/NAME", help="the place of this gang")
    aim.add_argument("-f", "--filename", metavar="MANIFEST", help="the place of the gang in this file")
    parser.add_argument("--level", help="the level's label, alias or last word (default: what gangs reserve)")
    inputs.add_cluster(parser, required=False)
    inputs.add_topology(parser)
    parser.add_argument("--kubeconfig", metavar="FILE", help="default: $KUBECONFIG, else ~/.kube/config")
    parser.add_argument(
        "--restart-all", action="store_true", help="pods count as having agreed unless their label says no"
    )
    parser.add_argument("-o", "--output", choices=("table", "json", "yaml"), default="table")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the moves. Raises `InputError` for a cluster that cannot be read, or an unknown name."""
    seen = _from_files(args) if args.cluster else asyncio.run(_from_cluster(args))
    may_move = movables(seen.objects, seen.snapshot, seen.now, all_restartable=args.restart_all)
    return _show(args, _result(args, seen, may_move))


def _result(args: argparse.Namespace, seen: MovableCluster, may_move: tuple[Movable, ...]) -> _Result:
    if args.free is None:
        return gang_place(seen.snapshot, may_move, _gang(args, seen))
    topology, level = _level(seen.snapshot, args.topology, args.level)
    return free_domains(seen.snapshot, may_move, topology, level, args.free)


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


def _from_files(args: argparse.Namespace) -> MovableCluster:
    snapshot = inputs.cluster(args.cluster)
    assert snapshot is not None, "there are files"
    return MovableCluster(snapshot, [item.value for item in objects(args.cluster)], {}, time.time())


async def _from_cluster(args: argparse.Namespace) -> MovableCluster:
    logging.getLogger("bayplan").addHandler(logging.NullHandler())  # what is not read is told below
    async with movable_cluster(args.kubeconfig) as cluster:
        seen = await cluster.look(time.time())
        for unread in dict.fromkeys(cluster.unread):
            inputs.note(f"not read, for want of the right to list it: {unread}")
        return seen


def _gang(args: argparse.Namespace, seen: MovableCluster) -> PodGroup:
    """The gang of `--for` or `-f`. Raises `InputError` for an unknown name, or for no gang or several."""
    if args.gang:
        if args.gang in seen.waiting:
            return seen.waiting[args.gang]
        gangs = [group for obj in seen.objects for group in read(obj).gangs if group.name == args.gang]
        where = Where("--for")
    else:
        gangs = [group for item in inputs.manifests([args.filename]) for group in read(item.value).gangs]
        where = Where(args.filename)
    if len(gangs) != 1:
        asked = f"no gang {args.gang!r} waits in this cluster" if args.gang else f"{len(gangs)} gangs in it"
        raise InputError(f"{asked}; give one gang, as NAMESPACE/KIND/NAME or in a file of its own", where)
    return gangs[0]


def _level(snapshot: Snapshot, name: str | None, level: str | None) -> tuple[Topology, str]:
    """The topology and the label of a level. Raises `InputError` where there are none, or several serve."""
    serving = []
    for topology in inputs.topologies(snapshot, name):
        key = resolve(topology, level) if level else topology.levels[topology.reservable_index]
        if key:
            serving.append((topology, key))
    if len(serving) == 1:
        return serving[0]
    if not serving:
        levels = ", ".join(dict.fromkeys(key for topology in snapshot.topologies for key in topology.levels))
        raise InputError(f"no topology has a level {level!r}; there are {levels}", Where("--level"))
    titles = ", ".join(topology.title for topology, _ in serving)
    raise InputError(f"several topologies have this level: {titles}; choose one", Where("--topology"))


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("a number from 1 on")
    return number
