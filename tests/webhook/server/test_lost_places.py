"""A place that is lost between the two calls of an object: refused only where the ledger confirms it.

Two replicas serve one ledger. The one that is asked to validate has a book that is older than the mutating
call: the hall is full in it, and of the gang's place it knows nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from planner.ledger.conflicts import Wish
from planner.ledger.ledger import Occupied, ReserveResult
from planner.ledger.sqlite import SqliteLedger
from planner.model.reservation import Book, reservation_id
from tests.webhook.calls import Serve, ServedWebhook, patched
from tests.webhook.server.test_in_flight import jobs

Json = dict[str, Any]
OTHERS = 40
"""Jobs of two nodes: more than the 32 nodes of the hall have room for."""


class Behind(SqliteLedger):
    """A replica's view of the ledger, which stands still while `seen` is set; what it writes is real."""

    seen: Book | None = None

    async def book(self, now: float, names: Iterable[str] = ()) -> Book:
        return self.seen or await super().book(now, names)


@dataclass
class Hall:
    """`stored`: a Job with the place that the first replica gave it; `late` learnt of nothing since the hall
    was full."""

    ahead: ServedWebhook
    late: ServedWebhook
    stored: Json
    rival: Json

    @property
    def gang(self) -> str:
        """The Job's gang."""
        return f"research/Job/{self.stored['metadata']['name']}"


@pytest.fixture
def hall(serve: Serve, tmp_path: Path) -> Any:
    """A full hall, seen so by the late replica, in which one gang ended and the Job got its place."""

    @asynccontextmanager
    async def served() -> AsyncIterator[Hall]:
        path = tmp_path / "book.db"
        behind = Behind(path)
        async with (
            serve("superpod-32", ledger=SqliteLedger(path)) as ahead,
            serve("superpod-32", ledger=behind) as late,
        ):
            *others, job, rival = jobs(OTHERS + 2)
            for other in others:
                await ahead.mutate(other)
            behind.seen = await ahead.ledger.book(ahead.now[0])
            assert 0 < len(behind.seen.reservations) < OTHERS, "some found no room"
            await ahead.ledger.release(behind.seen.reservations[0].id)
            stored = patched(job, await ahead.mutate(job))
            stored["metadata"]["uid"] = "uid-1"
            yield Hall(ahead, late, stored, rival)

    return served


async def test_a_replica_that_does_not_know_the_place_lets_in_what_the_ledger_holds(hall: Any) -> None:
    """The gang's reservation is claimed, though the replica took the place for another's."""
    async with hall() as served:
        assert served.gang in await served.ahead.holders()
        assert (await served.late.validate(served.stored))["allowed"]
        book = await served.ahead.ledger.book(served.ahead.now[0])
        (held,) = (reservation for reservation in book.reservations if reservation.gang == served.gang)
        assert (held.owner_uid, held.expires) == ("uid-1", None)


async def test_what_the_ledger_holds_for_another_is_refused(hall: Any) -> None:
    """Stored, the object would be pinned to what is another's; the ledger is as it was."""
    async with hall() as served:
        await served.ahead.ledger.release(reservation_id(served.gang))
        await served.ahead.mutate(served.rival)
        before = await served.ahead.holders()
        assert f"research/Job/{served.rival['metadata']['name']}" in before
        answer = await served.late.validate(served.stored)
        assert (answer["allowed"], answer["status"]["code"]) == (False, 409)
        assert "taken before it was stored; apply again" in answer["status"]["message"]
        assert await served.ahead.holders() == before


async def test_a_dry_run_is_never_refused_for_a_lost_place(hall: Any) -> None:
    """It holds nothing that could be lost between its two calls, and claims nothing."""
    async with hall() as served:
        await served.ahead.ledger.release(reservation_id(served.gang))
        await served.ahead.mutate(served.rival)
        before = (await served.ahead.ledger.book(served.ahead.now[0])).reservations
        assert (await served.late.validate(served.stored, dry_run=True))["allowed"]
        assert (await served.ahead.ledger.book(served.ahead.now[0])).reservations == before


class Lagging(SqliteLedger):
    """A ledger that takes a deleted Job for one that is there, so many times."""

    lag = 0

    async def reserve_all(self, wishes: Sequence[Wish], now: float) -> ReserveResult:
        if self.lag:
            self.lag -= 1
            raise Occupied("research/Job/again", "rack-1")
        return await super().reserve_all(wishes, now)


@pytest.mark.parametrize(("lag", "is_allowed"), [(0, True), (2, True), (99, False)])
async def test_a_job_made_again_at_once_gets_its_place(
    serve: Serve, tmp_path: Path, lag: int, is_allowed: bool
) -> None:
    """The watch tells a moment later that the former one is gone; what is really there is refused."""
    ledger = Lagging(tmp_path / "book.db")
    async with serve("superpod-32", ledger=ledger) as asked:
        (job,) = jobs(1)
        ledger.lag = lag
        answer = await asked.mutate(job)
        assert answer["allowed"] == is_allowed
        assert bool(await asked.holders()) == is_allowed
        if not is_allowed:
            assert answer["status"]["code"] == 409
            assert "is there already, and holds rack-1; delete it first" in answer["status"]["message"]
