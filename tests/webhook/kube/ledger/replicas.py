"""The ledgers of several replicas on an API server in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from planner.ledger.ledger import Conflict
from planner.model.reservation import Reservation
from tests.webhook.kube.ledger.api_server import ApiServer, Client, VirtualTime
from webhook.kube.ledger.ledger import KubeLedger
from webhook.kube.ledger.owners import Owners, no_owners

NOW = 2.0


def run(script: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Runs a script in virtual time."""
    with asyncio.Runner(loop_factory=VirtualTime) as runner:
        runner.run(script())


async def started(server: ApiServer, owners: Owners = no_owners) -> tuple[KubeLedger, Client]:
    """The ledger of a replica that has read the reservations, and its client."""
    client = server.client()
    ledger = KubeLedger(client, owners=owners)
    await ledger.start()
    while ledger.waiting():  # noqa: ASYNC110 - a list is on its way
        await asyncio.sleep(0.01)
    return ledger, client


async def outcome(ledger: KubeLedger, wanted: Reservation, planned_on: int = 0, now: float = NOW) -> str:
    """ "taken", or the name of the gang in conflict."""
    try:
        await ledger.reserve(wanted, planned_on, now)
    except Conflict as conflict:
        return conflict.holder
    return "taken"


async def holders(ledger: KubeLedger) -> set[str]:
    """The gangs with a reservation."""
    return {reservation.gang for reservation in (await ledger.book(NOW)).reservations}
