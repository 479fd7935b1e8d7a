"""Gangs that hold or wait, in words, rows and JSON: what `queue`, `why`, `top` and `reservations` print."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from planner.model.reservation import Reservation
from webhook.admission.environment import NAMESPACE
from webhook.cli import inputs
from webhook.kube.standing import ClusterStanding, GangStanding, Lookout, standing_of
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


def to_json(gang: GangStanding) -> dict[str, object]:
    """A gang as plain JSON."""
    held, answer = gang.reservation, gang.answer
    created = datetime.fromtimestamp(gang.created, UTC).isoformat() if gang.created else None
    entry: dict[str, object] = {
        "name": gang.name,
        "state": gang.state,
        "position": gang.position or None,
        "pods": {"wanted": gang.pods, "bound": gang.bound, "gated": gang.gated},
        "gpus": gang.gpus,
        "priority": gang.priority,
        "created": created,
    }
    if held is not None:
        domains = [list(domain) for domain in held.domains]
        entry["holds"] = {
            "mode": held.mode,
            "domains": domains,
            "nodes": held_nodes(held),
            "id": held.id,
        }
    if answer is not None:
        attempts = [
            {"level": attempt.level or None, "fits": attempt.fits, "wanted": attempt.wanted}
            for attempt in answer.attempts
        ]
        entry |= {"reason": answer.reason, "message": answer.message}
        entry |= {"obstacles": dict(answer.obstacles), "levels": attempts}
    return entry


def holding(held: Reservation) -> str:
    """What is held, in words: whole domains as paths, or how many nodes are shared."""
    if held.mode == "domain":
        return ", ".join("/".join(filter(None, domain)) for domain in held.domains)
    nodes = held_nodes(held)
    return f"a part of {nodes[0]}" if len(nodes) == 1 else f"parts of {len(nodes)} nodes"


def held_nodes(held: Reservation) -> list[str]:
    """The nodes that its pods are to be on, by name."""
    return sorted({part.node for part in held.assignments})


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
