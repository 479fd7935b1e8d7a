"""The webhook as it is deployed: `bayplan serve` over TLS, called by the API server as 70-webhooks.yaml says.

Only the address differs from the manifest: a loopback URL in place of the Service, and the real CA.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planner.ledger.sqlite import SqliteLedger
from planner.model.reservation import Reservation
from tests.e2e.api import Api
from tests.e2e.binaries import ROOT
from tests.e2e.configured import configure, unconfigure, wait_for_calls
from tests.e2e.processes import Process, free_port, start

BAYPLAN = str(ROOT / ".venv" / "bin" / "bayplan")


@dataclass(slots=True)
class Hook:
    """One `bayplan serve`. `ledger` is the file of its reservations, `picture` the file with the state of the
    cluster.
    """

    api: Api
    folder: Path
    picture: Path
    policies: Sequence[str] = ()
    options: Sequence[str] = ()
    port: int = field(default_factory=free_port)
    process: Process | None = None
    configured: list[str] = field(default_factory=list)
    probe: str = ""
    """The URL of /readyz, where it is not at the port of the calls."""

    @property
    def ledger(self) -> Path:
        """The file of reservations."""
        return self.folder / "ledger.db"

    @property
    def certs(self) -> Path:
        """The folder of the server's certificates."""
        return self.folder / "certs"

    def start(self) -> None:
        """Creates certificates if there are none, starts the server, and waits until it is ready."""
        make_certificates(self.certs)
        command = [BAYPLAN, "serve", "--port", str(self.port), "-c", str(self.picture)]
        command += ["--tls-cert", str(self.certs / "tls.crt"), "--tls-key", str(self.certs / "tls.key")]
        command += ["--ledger", str(self.ledger), *(("-p", *self.policies) if self.policies else ())]
        command += self.options
        self.process = start("bayplan", command, self.folder)
        self.process.wait_until(self._ready)

    def stop(self) -> None:
        """Stops the server. The file of reservations stays."""
        if self.process is not None:
            assert self.process.stop() == 0, self.process.tail()
            self.process = None

    def configure(self) -> None:
        """Makes the API server call this server in both phases."""
        configure(self.api, self.configured, self.port, self.certs)
        wait_for_calls(self.api, self.decisions)

    def unconfigure(self) -> None:
        """Deletes the configurations; the API server calls no webhook afterwards."""
        unconfigure(self.api, self.configured, self.decisions)

    def reservations(self) -> list[Reservation]:
        """The current reservations by gang."""
        book = asyncio.run(_book(self.ledger))
        return sorted(book, key=lambda reservation: reservation.gang)

    def decisions(self) -> list[dict[str, Any]]:
        """The decisions in the server's log."""
        lines = self.process.log.read_text().splitlines() if self.process else []
        lines_read = [json.loads(line) for line in lines if line.startswith("{")]
        return [line for line in lines_read if line.get("event") == "decision"]

    def clear(self) -> None:
        """Releases every reservation."""
        asyncio.run(_clear(self.ledger))

    def _ready(self) -> bool:
        try:
            context = ssl.create_default_context(cafile=str(self.certs / "ca-bundle.crt"))
            url = self.probe or f"https://127.0.0.1:{self.port}/readyz"
            with urllib.request.urlopen(url, timeout=2, context=context) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


def make_certificates(folder: Path) -> None:
    """Creates a CA and a certificate for Bayplan's Service and for loopback, if the folder has none."""
    names = ["--service", "bayplan", "--namespace", "bayplan-system", "--loopback"]
    bayplan("certs", "init", "--dir", str(folder), *names)


def bayplan(*arguments: str, statuses: Sequence[int] = (0,)) -> str:
    """Runs bayplan and returns its output. Fails on any exit status except those given."""
    done = subprocess.run([BAYPLAN, *arguments], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode in statuses, f"bayplan {' '.join(arguments)}: {done.returncode} {done.stderr}"
    return done.stdout


async def _book(path: Path) -> tuple[Reservation, ...]:
    ledger = SqliteLedger(path)
    try:
        return (await ledger.book(time.time())).reservations
    finally:
        await ledger.close()


async def _clear(path: Path) -> None:
    ledger = SqliteLedger(path)
    try:
        for reservation in (await ledger.book(time.time())).reservations:
            await ledger.release(reservation.id)
    finally:
        await ledger.close()
