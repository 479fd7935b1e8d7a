"""`bayplan demo`: the main job on this machine, with nothing else installed."""

from __future__ import annotations

import argparse
import asyncio
import logging
import re
import ssl
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from certs.authority import service_names
from certs.reload import ReloadingContext
from certs.rotation import Rotation
from planner.ledger.sqlite import SqliteLedger
from webhook.cli import inputs
from webhook.cli.demo.apiserver import ApiServer
from webhook.cli.demo.scenes import SCENES, DemoScene
from webhook.cli.demo.show import fabric, story
from webhook.cli.parsers import Subparsers, subcommand
from webhook.files.reader import objects
from webhook.server.cluster_files import ClusterFiles
from webhook.server.http import Webhook
from webhook.server.listening import start
from webhook.server.service import Service

EPILOG = """example:
  bayplan demo

It makes a CA and a certificate in a temporary folder, serves the webhook over TLS on a free loopback port,
applies the examples of manifests/examples as an API server would, and removes everything again.
"""


CALL_SECONDS = 120.0
"""For one call, where an API server would wait for five: here a person waits, whose machine may be busy."""


def add_parser(subparsers: Subparsers) -> None:
    """Add `demo`."""
    parser = subcommand(
        subparsers,
        "demo",
        description="Serve the webhook on loopback and send it the example manifests.",
        epilog=EPILOG,
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Show every scene; 1 where a dry run and the real thing differed."""
    logging.getLogger("bayplan").addHandler(logging.NullHandler())
    logging.getLogger("bayplan").propagate = False
    console = Console(highlight=False, soft_wrap=True)
    with tempfile.TemporaryDirectory(prefix="bayplan-demo-") as folder:
        return asyncio.run(_demo(console, Path(folder)))


async def _demo(console: Console, folder: Path) -> int:
    started = time.perf_counter()
    names = service_names("bayplan", "bayplan-system", loopback=True)
    Rotation(folder / "certs", names).check(datetime.now(UTC))
    console.print("certificates: a CA and a serving certificate for loopback, in a temporary folder")
    applied = matching = 0
    for number, scene in enumerate(SCENES):
        console.rule(f"[bold]{scene.title}[/]")
        replies = await _scene(console, scene, folder, number)
        applied += len(replies)
        matching += sum(replies)
    seconds = time.perf_counter() - started
    console.print(
        f"\n{applied} manifests, {matching} answered alike by the dry run and for real; {seconds:.1f} s"
    )
    return 0 if matching == applied else 1


async def _scene(console: Console, scene: DemoScene, folder: Path, number: int) -> list[bool]:
    """One cluster: serve, apply, draw, stop. For each manifest, whether the dry run answered the same."""
    examples = inputs.shipped("manifests") / "examples"
    cluster = ClusterFiles([str(examples / "clusters" / f"{name}.yaml") for name in scene.clusters])
    ledger = SqliteLedger(folder / f"ledger-{number}.db")
    webhook = Webhook(Service(inputs.policy_store(()), ledger, cluster), CALL_SECONDS)
    tls = ReloadingContext(folder / "certs" / "tls.crt", folder / "certs" / "tls.key")
    running = await start(webhook, "127.0.0.1", 0, tls.context)
    trust = ssl.create_default_context(cafile=str(folder / "certs" / "ca-bundle.crt"))
    replies = []
    try:
        async with ApiServer(f"https://127.0.0.1:{running.port}", trust) as server:
            for name in scene.examples:
                file = examples / f"{name}.yaml"
                for document in objects([str(file)]):
                    reply = await server.apply(document.value)
                    story(console, file.name, _first_line(file), reply)
                    replies.append(reply.same_as_dry_run)
        book = await ledger.book(time.time())
    finally:
        await running.stop()
        await ledger.close()
    console.print("\n  the fabric now")
    fabric(console, cluster.snapshot(), book.reservations)
    return replies


def _first_line(file: Path) -> str:
    with file.open() as text:
        comment = text.readline().lstrip("# ").strip()
    # How it ends alone on its cluster is the example's own claim; here other gangs came before it.
    return re.split(r": (?:admitted|queued|refused)", comment)[0]
