"""What `queue`, `why` and `top` share: their options, the look at the cluster, JSON and ages."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import time
from collections.abc import Callable, Sequence

from webhook.admission.environment import NAMESPACE
from webhook.cli import inputs
from webhook.kube.standing import ClusterStanding, Lookout, standing_of
from webhook.report import terminal
from webhook.report.documents import as_list, document

OUTPUTS = ("table", "wide", "json", "yaml", "name")

Show = Callable[[ClusterStanding, Lookout], int]
"""Prints what was seen, and gives the exit status."""


def add_options(parser: argparse.ArgumentParser, *, outputs: Sequence[str] = OUTPUTS) -> None:
    """`--kubeconfig`, `--installation`, `-o` and `--watch`."""
    parser.add_argument("--kubeconfig", metavar="FILE", help="default: $KUBECONFIG, else ~/.kube/config")
    parser.add_argument(
        "--installation",
        metavar="NAMESPACE",
        default=NAMESPACE,
        help="where Bayplan runs (default: %(default)s)",
    )
    parser.add_argument("-o", "--output", choices=outputs, default="table")
    parser.add_argument("-w", "--watch", action="store_true", help="again after each change, until Ctrl-C")


def look(args: argparse.Namespace, show: Show) -> int:
    """Read the cluster and show it, with `--watch` again after each change. Raises `InputError`."""
    logging.getLogger("bayplan").addHandler(logging.NullHandler())  # what is not read is told below
    return asyncio.run(_look(args, show))


async def _look(args: argparse.Namespace, show: Show) -> int:
    async with standing_of(args.kubeconfig, args.installation) as lookout:
        for unread in lookout.unread:
            inputs.note(f"not read, for want of the right to list it: {unread}")
        while True:
            seen = await lookout.standing(time.time())
            if args.watch and sys.stdout.isatty():
                terminal.console().clear()
            status = show(seen, lookout)
            if not args.watch:
                return status
            sys.stdout.flush()
            await lookout.news()


def print_document(output: str, items: Sequence[object]) -> int:
    """A list as JSON or YAML."""
    sys.stdout.write(document(output, as_list(items)))
    return 0


def age(since: float, now: float) -> str:
    """How long ago, as kubectl shows it; "" where that is not known."""
    if not since:
        return ""
    seconds = max(0, int(now - since))
    if seconds < 120:
        return f"{seconds}s"
    for unit, size, until in (("m", 60, 180), ("h", 3600, 48)):
        if seconds < size * until:
            return f"{seconds // size}{unit}"
    return f"{seconds // 86400}d"
