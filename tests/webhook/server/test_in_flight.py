"""Calls that come to one replica at once do not run for the same rack; a promise is no more than that."""

from __future__ import annotations

import asyncio
import copy
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from planner.ledger.conflicts import Wish
from planner.ledger.ledger import Conflict, LedgerUnavailable, Taken
from planner.ledger.sqlite import SqliteLedger
from tests.webhook.calls import Serve, example


class Slow(SqliteLedger):
    """A book whose commits take a moment, as they do over a network; it counts those that came too late."""

    late = 0

    async def reserve_all(self, wishes: Sequence[Wish], now: float) -> Taken:
        """As ever, a little later."""
        await asyncio.sleep(0.05)
        try:
            return await super().reserve_all(wishes, now)
        except Conflict:
            self.late += 1
            raise


def jobs(count: int) -> list[dict[str, Any]]:
    """So many Jobs of two nodes."""
    made = [copy.deepcopy(example("job-two-nodes-one-rack")) for _ in range(count)]
    for number, job in enumerate(made):
        job["metadata"]["name"] = f"job-{number}"
    return made


async def test_gangs_that_come_at_once_each_plan_around_those_before(serve: Serve, tmp_path: Path) -> None:
    """None is planned onto a rack that another call has promised, so none is sent back by the ledger."""
    ledger = Slow(tmp_path / "book.db")
    async with serve("superpod-32", ledger=ledger) as asked:
        await asyncio.gather(*(asked.mutate(job) for job in jobs(3)))
        held = (await ledger.book(asked.now[0])).reservations
    assert len(held) == len({one.domain for one in held}) > 1
    assert ledger.late == 0


async def test_a_retry_of_a_call_that_is_under_way_is_answered_with_its_outcome(
    serve: Serve, tmp_path: Path
) -> None:
    """One reservation, and both answers tell its place."""
    async with serve("superpod-32", ledger=Slow(tmp_path / "book.db")) as asked:
        (job,) = jobs(1)
        first, second = await asyncio.gather(asked.mutate(job, uid="u"), asked.mutate(job, uid="u"))
        assert first == second
        assert await asked.holders() == ["research/Job/job-0"]


async def test_a_promise_that_was_not_kept_is_in_nobodys_way(serve: Serve, tmp_path: Path) -> None:
    """The ledger refused the first gang; the second is given the very place that the first was to have."""

    class Refusing(Slow):
        refuses = True

        async def reserve_all(self, wishes: Sequence[Wish], now: float) -> Taken:
            if self.refuses:
                raise LedgerUnavailable("the disk is full")
            return await super().reserve_all(wishes, now)

    ledger = Refusing(tmp_path / "book.db")
    async with serve("superpod-32", ledger=ledger) as asked:
        first, second = jobs(2)
        rehearsed = await asked.mutate(second, dry_run=True, uid="u")
        assert (await asked.mutate(first))["status"]["code"] == 503
        ledger.refuses = False
        assert await asked.mutate(second, uid="u") == rehearsed


async def test_small_pods_that_come_at_once_to_two_replicas_all_get_a_place(
    serve: Serve, tmp_path: Path
) -> None:
    """64 pods of one GPU on 256 free GPUs: both replicas choose the same nodes, and yet no call ends in a
    conflict, for a newer reservation on the same node is in the way only where it does not fit."""
    path = tmp_path / "book.db"
    first, second = Slow(path), Slow(path)
    async with (
        serve("superpod-32", ledger=first) as north,
        serve("superpod-32", ledger=second) as south,
    ):
        replicas = [north, south]
        answers = await asyncio.gather(
            *(replicas[number % 2].mutate(notebook(number)) for number in range(64))
        )
        held = (await first.book(north.now[0])).reservations
    assert all(answer["allowed"] for answer in answers)
    assert len(held) == 64
    taken = Counter(assignment.node for reservation in held for assignment in reservation.assignments)
    assert max(taken.values()) <= 8


def notebook(number: int) -> dict[str, Any]:
    """A pod of one GPU that holds no more than it uses."""
    container = {"name": "main", "image": "jupyter", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"notebook-{number}",
            "namespace": "research",
            "annotations": {"bayplan.dev/reserve": "nodes"},
        },
        "spec": {"containers": [container]},
    }
