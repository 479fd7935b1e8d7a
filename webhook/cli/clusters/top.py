"""`bayplan top`: lists the racks, or domains of another level, with their GPUs and gangs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial

from rich.text import Text

from planner.cluster.census.domains import Count, census
from planner.cluster.snapshot import Snapshot
from planner.model.errors import InputError, Where
from planner.model.topology import Topology
from planner.model.words import listed
from webhook.cli.common import inputs
from webhook.cli.common.parsers import Subparsers, subcommand
from webhook.cli.common.standing_words import add_options, look_at_snapshot, print_document
from webhook.report import terminal
from webhook.report.printable import printable_name

EPILOG = """examples:
  bayplan top
  bayplan top --level topology.kubernetes.io/zone --watch
  bayplan top -c cluster.yaml -o wide

exit status: 0 done, 2 bad input or usage
"""


BAR = 16
"""The width of the bar of used GPUs in characters. For a rack with 16 GPUs, each character is one GPU."""


HOLDERS = 3
"""The maximum number of gangs that are named for each domain; `-o wide` names all."""


def add_parser(subparsers: Subparsers) -> None:
    """Adds `top`."""
    parser = subcommand(
        subparsers,
        "top",
        description="List racks with free and used GPUs, and the gangs in them.",
        epilog=EPILOG,
    )
    inputs.add_cluster(parser, required=False)
    inputs.add_topology(parser)
    parser.add_argument(
        "--level", metavar="KEY", help="label of the topology level (default: the level that gangs reserve)"
    )
    add_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the domains. Raises `InputError` for a cluster that cannot be read, or an unknown topology or
    level.
    """
    return look_at_snapshot(args, partial(_show, args))


def _show(args: argparse.Namespace, snapshot: Snapshot) -> int:
    rows = [
        (topology, count)
        for topology in inputs.topologies(snapshot, args.topology)
        for count in _of_level(census(snapshot, topology.name), _level(topology, args.level))
    ]
    if args.output in ("json", "yaml"):
        items = [{"topology": topology.name, **_flat(count)} for topology, count in rows]
        return print_document(args.output, items)
    out = terminal.console()
    if args.output == "name":
        for _, count in rows:
            out.print(_path(count))
        return 0
    columns = ("domain", "nodes", "GPUs", "free", "", "gangs")
    out.print(terminal.table(columns, [_row(count, wide=args.output == "wide") for _, count in rows]))
    return 0


def _level(topology: Topology, level: str | None) -> str:
    """Returns the label of the level to show: `level`, or the reservable level of the topology if it is None.

    Raises `InputError` if the topology does not have the level.
    """
    if level is None:
        return topology.levels[topology.reservable_index]
    if level not in topology.levels:
        levels = ", ".join(topology.levels)
        raise InputError(f"{topology.title} has no level {level!r}; it has {levels}", Where("--level"))
    return level


def _of_level(count: Count, level: str) -> Iterator[Count]:
    """Yields the domains of a level in tree order."""
    if count.level == level:
        yield count
        return
    for domain in count.domains:
        yield from _of_level(domain, level)


def _row(count: Count, *, wide: bool) -> tuple[str | Text, ...]:
    used = round(BAR * (count.gpus - count.free) / count.gpus) if count.gpus else 0
    unusable = f" ({count.unusable} unusable)" if count.unusable else ""
    return (
        _path(count),
        f"{count.nodes}{unusable}",
        str(count.gpus),
        Text(str(count.free), "green" if count.free else "dim"),
        "█" * used + "░" * (BAR - used),
        ", ".join(count.holders) if wide else listed(count.holders, HOLDERS),
    )


def _path(count: Count) -> str:
    return printable_name("/".join(filter(None, count.path))) or "(without labels)"


def _flat(count: Count) -> dict[str, object]:
    return {key: value for key, value in count.to_json().items() if key != "domains"}
