"""`bayplan demo`: shows what Bayplan does on this machine, without a cluster."""

from __future__ import annotations

import argparse
import asyncio
import logging
import re
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.rule import Rule

from certs.authority import service_names
from certs.rotation import Rotation
from planner.model.reservation import reservation_id
from planner.model.words import counted
from webhook.cli.common.parsers import Subparsers, subcommand
from webhook.cli.demo.apiserver import Reply
from webhook.cli.demo.scenes import NEXT, SCENES, STORY, STORY_CLUSTER
from webhook.cli.demo.show import fabric, heading, outcome
from webhook.cli.demo.stage import Stage, served
from webhook.files.reader import objects
from webhook.report import terminal

EPILOG = """examples:
  bayplan demo         a short story on one cluster
  bayplan demo --all   six clusters, seventeen manifests, every changed field

The demo creates a CA and a certificate in a temporary folder, serves the webhook over TLS on a free loopback
port, sends the examples of manifests/examples as an API server would, and removes everything at the end.
"""


def add_parser(subparsers: Subparsers) -> None:
    """Adds `demo`."""
    parser = subcommand(
        subparsers,
        "demo",
        description="Run the webhook on a loopback port and send it the example manifests.",
        epilog=EPILOG,
    )
    parser.add_argument(
        "--all", action="store_true", help="run every example on its own cluster, and show all fields"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Shows the story, or every scene. Returns 1 if a dry run and its real request got different
    responses.
    """
    logging.getLogger("bayplan").addHandler(logging.NullHandler())
    logging.getLogger("bayplan").propagate = False
    console = terminal.console()
    with tempfile.TemporaryDirectory(prefix="bayplan-demo-") as folder:
        return asyncio.run(_demo(console, Path(folder), every=args.all))


async def _demo(console: Console, folder: Path, *, every: bool) -> int:
    started = time.perf_counter()
    names = service_names("bayplan", "bayplan-system", loopback=True)
    Rotation(folder / "certs", names).check(datetime.now(UTC))
    words = (
        "A CA and a certificate are made, the webhook is served over TLS on loopback, and each manifest is "
    )
    words += "sent as an API server would: as a dry run, then for real."
    console.print(terminal.folded(words, "", terminal.width(console)))
    replies = await (_scenes(console, folder) if every else _story(console, folder))
    identical = sum(reply.same_as_dry_run for reply in replies)
    seconds = time.perf_counter() - started
    answered = f"{identical} answered alike by the dry run and for real; {seconds:.1f} s"
    words = f"{counted(len(replies), 'manifest')}, {answered}"
    console.print("\n" + terminal.folded(words, "", terminal.width(console)))
    if not every:
        console.print("\nTo try next:")
        widest = max(len(command) for command, _ in NEXT)
        for command, text in NEXT:
            console.print(f"  bayplan {command:<{widest}}  {text}")
    return 0 if identical == len(replies) else 1


async def _story(console: Console, folder: Path) -> list[Reply]:
    """Applies the examples of the story to one cluster, one after another, and returns the replies."""
    replies = []
    async with served(folder, (STORY_CLUSTER,)) as stage:
        fabric(console, "The cluster, as it is before:", await stage.snapshot())
        for number, step in enumerate(STORY, 1):
            if step.ended:
                await stage.ledger.release(reservation_id(step.ended))
            file = stage.example(step.example)
            heading(console, file.name, step.text, number)
            replies += await _applied(console, stage, file, every=False)
        fabric(console, "The cluster now:", await stage.snapshot())
    return replies


async def _scenes(console: Console, folder: Path) -> list[Reply]:
    """Applies the examples of each scene to the cluster of the scene, and returns the replies."""
    replies = []
    for number, scene in enumerate(SCENES):
        console.print()
        console.print(Rule(scene.title), width=terminal.width(console))
        async with served(folder, scene.clusters, number) as stage:
            for name in scene.examples:
                file = stage.example(name)
                heading(console, file.name, _first_line(file))
                replies += await _applied(console, stage, file, every=True)
            fabric(console, "The cluster now:", await stage.snapshot())
    return replies


async def _applied(console: Console, stage: Stage, file: Path, *, every: bool) -> list[Reply]:
    replies = [await stage.server.apply(document.value) for document in objects([str(file)])]
    for reply in replies:
        outcome(console, reply, every=every)
    return replies


def _first_line(file: Path) -> str:
    with file.open() as text:
        comment = text.readline().lstrip("# ").strip()
    # The comment also says what happens on an empty cluster. That is cut off: other gangs are placed already.
    return re.split(r": (?:admitted|queued|refused)", comment)[0]
