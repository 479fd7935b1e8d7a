"""`bayplan why`: explains the state of a workload's gangs in a cluster."""

from __future__ import annotations

import argparse
from functools import partial

from rich.console import Console

from planner.explain.obstacles import by_object
from planner.model.names import namespace_of
from planner.model.words import counted, listed
from webhook.cli.common.parsers import Subparsers, subcommand
from webhook.cli.common.standing_words import add_options, add_workload, age, look, print_document
from webhook.kube.gang_standing import ClusterStanding, GangStanding, held_nodes, holding
from webhook.kube.standing import Lookout
from webhook.placement.fair_order import why_before
from webhook.report import terminal
from webhook.report.in_cluster import NAME, exemptions_in

EPILOG = """examples:
  bayplan why research/Job/train
  bayplan why research/JobSet/pretrain --watch

exit status: 0 all its gangs have a place, 1 a gang waits or is unknown, 2 bad input or usage
"""


AHEAD = 5
"""The maximum number of gangs ahead in the queue that are named; `bayplan queue` shows all."""


def add_parser(subparsers: Subparsers) -> None:
    """Adds `why`."""
    parser = subcommand(
        subparsers,
        "why",
        description="Explain where the gangs of a workload are placed, or why they wait.",
        epilog=EPILOG,
    )
    add_workload(parser)
    add_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the state of the workload's gangs and the reasons. Returns 1 if one of them waits, or if there
    are none. Raises `InputError` for a cluster that cannot be read.
    """
    return look(args, partial(_show, args))


async def _show(args: argparse.Namespace, seen: ClusterStanding, lookout: Lookout) -> int:
    workloads = await lookout.kueue_workloads(args.name)
    report = await lookout.report(NAME, namespace_of(args.name))
    exemptions = exemptions_in(report or {}, args.name)
    by_kueue = {workload.gang for workload in workloads}
    gangs = [
        gang
        for gang in seen.gangs
        if gang.name == args.name or gang.name.startswith(args.name + "/") or gang.name in by_kueue
    ]
    waits = not gangs or any(gang.state in ("waiting", "stuck") for gang in gangs)
    if args.output in ("json", "yaml"):
        exempt = {"exemptions": list(exemptions)} if exemptions else {}
        print_document(args.output, [{**gang.to_json(), **exempt} for gang in gangs])
        return int(waits)
    out = terminal.console()
    if args.output == "name":
        for gang in gangs:
            out.print(gang.name)
        return int(waits)
    if not gangs:
        out.print(f"{args.name}: {lookout.absence(args.name, workloads)}")
    for gang in gangs:
        _tell(out, gang, seen, await lookout.unbound_words(gang), wide=args.output == "wide")
        if gang.name in by_kueue:
            out.print(f"  Kueue has assigned its nodes, for {args.name}")
    for row in exemptions:
        out.print(row["message"])
    holders = {gang.name for gang in gangs}
    for workload in workloads if gangs else ():
        if workload.why and workload.gang not in holders:  # a replica that waits while others have a place
            out.print(f"Kueue says of its Workload {workload.name}: {workload.why}")
    return int(waits)


def _tell(out: Console, gang: GangStanding, seen: ClusterStanding, unbound: str, *, wide: bool) -> None:
    """Prints the gang's state and the reasons.

    `unbound`: why pods of it are on no node. `wide`: names all its nodes, and all gangs ahead in the queue.
    """
    since = f", for {age(gang.created, seen.now)}" if gang.created else ""
    asked = f"{counted(gang.pods, 'pod')}, {counted(gang.gpus, 'GPU')}, priority {gang.priority}"
    match gang.state:
        case "waiting":
            number = f"{gang.position} of {len(seen.queue)} in the queue"
            turn = number if gang.position else "at the gate, before its scheduler may evict others for it"
            out.print(f"{gang.name} waits: {turn}{since} ({asked})")
        case "admitted":
            out.print(f"{gang.name} is admitted now ({asked})")
        case "stuck":
            out.print(f"{gang.name} lost its place, and has no other now ({asked})")
        case _:
            assert gang.reservation is not None, "a gang in any other state holds a reservation"
            out.print(f"{gang.name} holds {holding(gang.reservation)}{since} ({asked})")
            nodes = held_nodes(gang.reservation)
            out.print(f"  for its pods: {listed(nodes, len(nodes) if wide else 4)}")
            surplus = f", {gang.surplus} more than it has" if gang.surplus else ""
            gated = f", {gang.gated} at the gate" if gang.gated else ""
            out.print(f"  {gang.bound} of {gang.pods} pods are on nodes{surplus}{gated}")
            if unbound:
                out.print(f"  {unbound}")
    if gang.answer is not None and gang.state != "admitted":
        _reasons(out, gang)
    if gang.place is not None:
        out.print(
            f"  {gang.place.namespace} would have {gang.place.would_have} with it and its gangs before it"
        )
    ahead = [_ahead(other, gang) for other in seen.queue if other.position < gang.position]
    if ahead:
        out.print(f"  ahead of it: {listed(ahead, len(ahead) if wide else AHEAD)}")
    if gang.state == "waiting" and not seen.leader:
        out.print(
            "  no replica leads: no waiting gang is admitted until one does (`bayplan doctor` says more)"
        )


def _ahead(other: GangStanding, gang: GangStanding) -> str:
    """Returns the name of `other`, which is ahead of `gang` in the queue, and why it is."""
    assert other.place is not None, "a gang in the queue has a place"
    assert gang.place is not None, "a gang in the queue has a place"
    return f"{other.name} ({other.gpus} GPUs; {why_before(other.place, gang.place)})"


def _reasons(out: Console, gang: GangStanding) -> None:
    answer = gang.answer
    assert answer is not None, "checked by the caller"
    out.print(f"  {answer.reason}: {answer.message}")
    rows = [
        (f"  {attempt.level or 'the whole cluster'}", f"{attempt.fits} of {attempt.wanted} pods fit")
        for attempt in answer.attempts
    ]
    if rows:
        out.print(terminal.table(("  level", "in its best domain now"), rows))
    for cause, nodes in by_object(answer.obstacles, gang.name).items():
        out.print(f"  {counted(nodes, 'node')}: {cause}")
