"""The shared parts of commands that inspect a live cluster: options, reading the cluster, documents and
ages.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Sequence

from planner.cluster.snapshot import Snapshot
from planner.model.errors import InputError
from webhook.admission.environment import NAMESPACE
from webhook.cli.common import inputs
from webhook.kube.gang_standing import ClusterStanding
from webhook.kube.standing import Lookout, standing_of
from webhook.report import terminal
from webhook.report.documents import as_list, document
from webhook.workloads.kinds import kind_named

OUTPUTS = ("table", "wide", "json", "yaml", "name")

Show = Callable[[ClusterStanding, Lookout], Awaitable[int]]
"""The type of a function that prints the standing of a cluster (the state of its gangs), and returns the exit
status. It may read more objects through the `Lookout`.
"""


def add_options(parser: argparse.ArgumentParser, *, outputs: Sequence[str] = OUTPUTS) -> None:
    """Adds `--kubeconfig`, `--installation`, `-o` and `--watch`."""
    add_installation(parser)
    parser.add_argument("-o", "--output", choices=outputs, default="table")
    parser.add_argument("-w", "--watch", action="store_true", help="again after each change, until Ctrl-C")


def add_installation(parser: argparse.ArgumentParser) -> None:
    """Adds `--kubeconfig` and `--installation`."""
    add_kubeconfig(parser)
    parser.add_argument(
        "--installation",
        metavar="NAMESPACE",
        default=NAMESPACE,
        help="where Bayplan runs (default: %(default)s)",
    )


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Adds `-c`, `--kubeconfig` and `--installation`, for commands that call `look_at_snapshot`."""
    inputs.add_cluster(parser, required=False)
    add_installation(parser)
    parser.set_defaults(watch=False)


def add_kubeconfig(parser: argparse.ArgumentParser) -> None:
    """Adds `--kubeconfig`."""
    parser.add_argument("--kubeconfig", metavar="FILE", help="default: $KUBECONFIG, else ~/.kube/config")


def add_workload(parser: argparse.ArgumentParser) -> None:
    """Adds the argument NAMESPACE/KIND/NAME, whose KIND may have any form that kubectl accepts."""
    parser.add_argument("name", metavar="NAMESPACE/KIND/NAME", type=_workload)


def _workload(text: str) -> str:
    namespace, slash, rest = text.partition("/")
    kind, separator, name = rest.partition("/")
    return f"{namespace}{slash}{kind_named(kind)}{separator}{name}"


def in_files(args: argparse.Namespace) -> bool:
    """Reports whether the cluster is to be read from files (`-c`). Raises `InputError` if `--kubeconfig`
    is given as well.
    """
    if args.cluster and args.kubeconfig:
        raise InputError("-c is a cluster in files; --kubeconfig reads the cluster itself: leave one out")
    return bool(args.cluster)


def look_at_snapshot(args: argparse.Namespace, show: Callable[[Snapshot], int]) -> int:
    """Calls `show` with the snapshot of the files of `-c`, or else of the live cluster, and returns its
    exit status.

    Raises `InputError` for a cluster that cannot be read.
    """
    if in_files(args):
        return show(inputs.cluster(args.cluster))

    async def show_snapshot(seen: ClusterStanding, _: Lookout) -> int:
        return show(seen.snapshot)

    return look(args, show_snapshot)


def quiet() -> None:
    """Turns off logging to standard error. Commands report what could not be read with
    `inputs.note_unread`.
    """
    logging.getLogger("bayplan").addHandler(logging.NullHandler())


def look(args: argparse.Namespace, show: Show) -> int:
    """Reads the live cluster and calls `show`; with `--watch`, again after each change. Returns the exit
    status.

    Raises `InputError` for a cluster that cannot be read.
    """
    quiet()
    return asyncio.run(_look(args, show))


async def _look(args: argparse.Namespace, show: Show) -> int:
    async with standing_of(args.kubeconfig, args.installation) as lookout:
        inputs.note_unread(lookout.unread)
        while True:
            seen = await lookout.standing()
            if args.watch and sys.stdout.isatty():
                terminal.console().clear()
            status = await show(seen, lookout)
            if not args.watch:
                return status
            sys.stdout.flush()
            await lookout.news()


def print_document(output: str, items: Sequence[object]) -> int:
    """Prints the items as a List in JSON or YAML. Returns 0, the exit status."""
    sys.stdout.write(document(output, as_list(items)))
    return 0


def age(since: float, now: float) -> str:
    """Returns the time from `since` to `now` (both in seconds since the epoch) in kubectl's format, such
    as `5m`; "" if `since` is 0, which means unknown.
    """
    if not since:
        return ""
    seconds = max(0, int(now - since))
    if seconds < 120:
        return f"{seconds}s"
    for unit, size, until in (("m", 60, 180), ("h", 3600, 48)):
        if seconds < size * until:
            return f"{seconds // size}{unit}"
    return f"{seconds // 86400}d"
