"""`bayplan queue`: lists the waiting gangs of a cluster in queue order, and what each waits for."""

from __future__ import annotations

import argparse
from functools import partial

from planner.model.names import namespace_of
from webhook.cli.common.parsers import Subparsers, subcommand
from webhook.cli.common.standing_words import add_options, age, look, print_document
from webhook.kube.gang_standing import ClusterStanding, GangStanding
from webhook.kube.standing import Lookout
from webhook.report import terminal

EPILOG = """examples:
  bayplan queue
  bayplan queue -n research --watch
  bayplan queue -o json --kubeconfig admin.conf

The queue is ordered by priority, then by the share of GPUs that the namespace would hold with the gang, then
by age. One place is kept free for the first waiting gang.

exit status: 0 done, 2 bad input or usage
"""


def add_parser(subparsers: Subparsers) -> None:
    """Adds `queue`."""
    parser = subcommand(
        subparsers,
        "queue",
        description="List the gangs that wait for a place in a cluster, and what they wait for.",
        epilog=EPILOG,
    )
    parser.add_argument("-n", "--namespace", default="", help="only gangs of this namespace")
    add_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the queue. Raises `InputError` for a cluster that cannot be read."""
    return look(args, partial(_show, args))


async def _show(args: argparse.Namespace, seen: ClusterStanding, _: Lookout) -> int:
    gangs = [gang for gang in seen.queue if args.namespace in ("", namespace_of(gang.name))]
    if args.output in ("json", "yaml"):
        return print_document(args.output, [gang.to_json() for gang in gangs])
    out = terminal.console()
    if args.output == "name":
        for gang in gangs:
            out.print(gang.name)
        return 0
    if not gangs:
        out.print(f"no gang waits{f' in {args.namespace}' if args.namespace else ''}")
        return 0
    columns = ("#", "gang", "pods", "GPUs", "priority", "since", "namespace would have", "waits for")
    out.print(terminal.table(columns, [_row(gang, seen, wide=args.output == "wide") for gang in gangs]))
    if not seen.leader:
        out.print("no replica leads: no waiting gang is admitted until one does (`bayplan doctor` says more)")
    return 0


def _row(gang: GangStanding, seen: ClusterStanding, *, wide: bool) -> tuple[str, ...]:
    return (
        str(gang.position),
        gang.name,
        str(gang.pods),
        str(gang.gpus),
        str(gang.priority),
        age(gang.created, seen.now),
        gang.place.would_have if gang.place is not None else "",
        gang.waits_for(wide=wide),
    )
