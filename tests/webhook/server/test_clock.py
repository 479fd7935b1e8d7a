"""Somebody sets the machine's clock while the webhook runs: what is held stays held, and not for longer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HOUR = 3600.0

SCRIPT = """
import sys, time
real, jump = time.time, [0.0]
time.time = lambda: real() + jump[0]  # before anything of ours takes hold of it

import asyncio
from planner.ledger.sqlite import SqliteLedger
from tests.webhook.calls import clusters, example, request_of
from webhook.cli.common.inputs import policy_store
from webhook.placement.hold import HOLD_SECONDS
from webhook.server.service import Service

async def holders(ledger, now):
    return [held.gang for held in (await ledger.book(now)).reservations]

async def main():
    ledger = SqliteLedger(sys.argv[1])
    service = Service(policy_store(()), ledger, clusters("superpod-32"))
    first, second = example("jobset-64-gpus"), example("jobset-64-gpus")
    second["metadata"]["name"] = "later"
    await service.answer(request_of(first), "mutate")
    before = await holders(ledger, service.clock())
    assert len(before) == 1, before
    jump[0] = float(sys.argv[2])
    assert await holders(ledger, service.clock()) == before
    waits = await service.answer(request_of(second), "mutate")
    assert waits.plan.decision == "queued", waits.plan
    assert await holders(ledger, service.clock()) == before
    assert await holders(ledger, service.clock() + HOLD_SECONDS + 1) == []
    await ledger.close()

asyncio.run(main())
"""


@pytest.mark.parametrize("jump", [HOUR, -HOUR], ids=["forward", "back"])
def test_a_clock_that_jumps_expires_no_hold_and_keeps_none(jump: float, tmp_path: Path) -> None:
    """A hold ends when its time has passed by the API server's clock."""
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "ledger.db"), str(jump)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
