"""Calls that come to one replica at once do not run for the same rack; a promise is no more than that."""

from __future__ import annotations

import asyncio
import copy
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from planner.ledger.conflicts import Wish
from planner.ledger.ledger import Conflict, LedgerUnavailable, ReserveResult
from planner.ledger.sqlite import SqliteLedger
from planner.model.reservation import Book
from tests.webhook.calls import EXAMPLES, PATIENCE, Serve, example, patched, request_of, review
from webhook.admission.environment import Environment
from webhook.cli.cluster_files.watched import ClusterFiles
from webhook.placement.hold import HOLD_SECONDS
from webhook.server import service
from webhook.server.listening import start


class Slow(SqliteLedger):
    """A book whose commits take a moment, as they do over a network; it counts those that came too late."""

    late = 0

    async def reserve_all(self, wishes: Sequence[Wish], now: float) -> ReserveResult:
        """As ever, a little later."""
        await asyncio.sleep(0.05)
        try:
            return await super().reserve_all(wishes, now)
        except Conflict:
            self.late += 1
            raise


def jobs(count: int) -> list[dict[str, Any]]:
    """So many Jobs of two nodes."""
    copies = [copy.deepcopy(example("job-two-nodes-one-rack")) for _ in range(count)]
    for number, job in enumerate(copies):
        job["metadata"]["name"] = f"job-{number}"
    return copies


async def test_gangs_that_come_at_once_each_plan_around_those_before(serve: Serve, tmp_path: Path) -> None:
    """None is planned onto a rack that another call has promised, so none is sent back by the ledger."""
    ledger = Slow(tmp_path / "book.db")
    async with serve("superpod-32", ledger=ledger) as asked:
        await asyncio.gather(*(asked.mutate(job) for job in jobs(3)))
        held = (await ledger.book(asked.now[0])).reservations
    assert len(held) == len({reservation.domain for reservation in held}) > 1
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

        async def reserve_all(self, wishes: Sequence[Wish], now: float) -> ReserveResult:
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


class Watched(ClusterFiles):
    """A cluster of which one decision is held up after it has seen what other calls are about to reserve."""

    def __init__(self, *paths: str) -> None:
        super().__init__(paths)
        self.held_up = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()

    def environment(self) -> Environment:
        """As ever; a decision, which is made in a thread of its own, gets it once the test goes on."""
        if threading.current_thread() is not threading.main_thread():
            self.held_up.set()
            self.go_on.wait()
        return super().environment()


async def test_a_gang_whose_promised_place_the_ledger_refused_is_decided_again(
    serve: Serve, tmp_path: Path
) -> None:
    """The second call found its gang's place promised by the first, whose commit fails while the second is
    decided: the second is not answered with a place that nobody holds."""
    cluster = Watched(str(EXAMPLES / "clusters" / "superpod-32.yaml"))
    reached, refuse = asyncio.Event(), asyncio.Event()

    class Refusing(SqliteLedger):
        async def reserve_all(self, wishes: Sequence[Wish], now: float) -> ReserveResult:
            if not refuse.is_set():
                reached.set()
                await refuse.wait()
                raise LedgerUnavailable("the disk is full")
            return await super().reserve_all(wishes, now)

    async with serve(cluster=cluster, ledger=Refusing(tmp_path / "book.db")) as asked:
        (job,) = jobs(1)
        first = asyncio.create_task(asked.mutate(job))
        await reached.wait()
        cluster.held_up.clear()
        cluster.go_on.clear()
        second = asyncio.create_task(asked.mutate(job))
        await asyncio.to_thread(cluster.held_up.wait)
        refuse.set()
        assert (await first)["status"]["code"] == 503
        cluster.go_on.set()
        assert (await second)["allowed"]
        assert await asked.holders() == ["research/Job/job-0"]


class Late(SqliteLedger):
    """A book whose answers come when the test lets them."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.reached, self.answered = asyncio.Event(), asyncio.Event()

    async def reserve_all(self, wishes: Sequence[Wish], now: float) -> ReserveResult:
        """What is taken is in the book; the answer is on its way."""
        taken = await super().reserve_all(wishes, now)
        self.reached.set()
        await self.answered.wait()
        return taken


async def test_a_call_that_is_given_up_gives_back_what_it_was_the_first_to_hold(
    serve: Serve, tmp_path: Path
) -> None:
    """The deadline passes between the commit and its answer: the place is free at once."""
    ledger = Late(tmp_path / "book.db")
    async with serve("superpod-32", ledger=ledger) as asked:
        call = asyncio.create_task(asked.service.answer(request_of(jobs(1)[0]), "mutate"))
        await ledger.reached.wait()
        assert await asked.holders() == ["research/Job/job-0"]
        call.cancel()
        ledger.answered.set()
        await asyncio.wait([call])
        await asyncio.gather(*asked.service.steps.undoing)
        assert await asked.holders() == []


async def test_a_caller_that_hangs_up_has_given_up(serve: Serve, tmp_path: Path) -> None:
    """The API server's own timeout passed before the webhook's: it closes the connection."""
    ledger = Late(tmp_path / "book.db")
    async with serve("superpod-32", ledger=ledger) as asked:
        running = await start(asked.webhook, "127.0.0.1", 0, None)
        body = orjson.dumps(review(jobs(1)[0]))
        _, caller = await asyncio.open_connection("127.0.0.1", running.port)
        head = f"POST /mutate HTTP/1.1\r\nHost: here\r\nContent-Length: {len(body)}\r\n"
        caller.write(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
        await ledger.reached.wait()
        caller.close()
        while not asked.service.steps.undoing:  # noqa: ASYNC110 - the server is to learn of it
            await asyncio.sleep(0.01)
        ledger.answered.set()
        await asyncio.gather(*asked.service.steps.undoing)
        assert await asked.holders() == []
        await running.stop()


async def test_a_call_that_is_given_up_leaves_what_another_call_holds(serve: Serve, tmp_path: Path) -> None:
    """Both asked for the same gang; the other replica answered with its place first."""
    path = tmp_path / "book.db"
    ledger = Late(path)
    async with (
        serve("superpod-32", ledger=ledger) as late,
        serve("superpod-32", ledger=SqliteLedger(path)) as quick,
    ):
        book = await ledger.book(late.now[0])
        stale = asyncio.Event()

        async def as_before(now: float, names: Iterable[str] = ()) -> Book:
            return book if not stale.is_set() else await SqliteLedger.book(ledger, now)

        ledger.book = as_before  # type: ignore[method-assign]
        assert (await quick.mutate(jobs(1)[0]))["allowed"]
        call = asyncio.create_task(late.service.answer(request_of(jobs(1)[0]), "mutate"))
        await ledger.reached.wait()
        call.cancel()
        ledger.answered.set()
        await asyncio.wait([call])
        await asyncio.gather(*late.service.steps.undoing)
        assert await quick.holders() == ["research/Job/job-0"]


async def test_a_decision_that_outlives_its_call_keeps_no_place_promised(
    serve: Serve, tmp_path: Path
) -> None:
    """The call ended while a thread still decided; the next call is decided without waiting for it."""
    cluster = Watched(str(EXAMPLES / "clusters" / "superpod-32.yaml"))
    async with serve(cluster=cluster) as asked:
        first, second = jobs(2)
        rehearsed = await asked.mutate(second, dry_run=True, uid="u")
        cluster.held_up.clear()
        cluster.go_on.clear()
        call = asyncio.create_task(asked.service.answer(request_of(first), "mutate"))
        await asyncio.to_thread(cluster.held_up.wait)
        call.cancel()
        await asyncio.wait([call])
        cluster.go_on.set()
        while asked.service.in_flight.added_to(cluster.snapshot(), 0.0)[1]:  # noqa: ASYNC110 - a thread works
            await asyncio.sleep(0.01)
        assert await asked.mutate(second, uid="u") == rehearsed


async def test_a_hold_that_expired_before_its_object_was_stored_is_made_again(serve: Serve) -> None:
    """The API server was slow between its two calls, and the place is still free."""
    async with serve("superpod-32") as asked:
        (job,) = jobs(1)
        stored = patched(job, await asked.mutate(job))
        stored["metadata"]["uid"] = "uid-1"
        asked.now[0] += HOLD_SECONDS + 1
        assert await asked.holders() == []
        assert (await asked.validate(stored))["allowed"]
        (held,) = (await asked.ledger.book(asked.now[0])).reservations
        assert (held.gang, held.owner_uid, held.expires) == ("research/Job/job-0", "uid-1", None)


async def test_an_object_whose_place_another_took_before_it_was_stored_is_refused(serve: Serve) -> None:
    """Its hold expired, and all nodes are somebody's by now: stored, it would be pinned to them."""
    async with serve("superpod-32") as asked:
        first, *others = jobs(40)
        stored = patched(first, await asked.mutate(first))
        stored["metadata"]["uid"] = "uid-1"
        asked.now[0] += HOLD_SECONDS + 1
        for job in others:
            await asked.mutate(job)
        assert "research/Job/job-0" not in await asked.holders()
        answer = await asked.validate(stored)
        assert not answer["allowed"]
        assert answer["status"]["code"] == 409
        assert "taken before it was stored; apply again" in answer["status"]["message"]


async def test_small_pods_that_come_at_once_to_two_replicas_all_get_a_place(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """64 pods of one GPU on 256 free GPUs: both replicas choose the same nodes, and yet no call ends in a
    conflict, for a newer reservation on the same node is in the way only where it does not fit."""
    # As the deadline of a call: on a busy machine 64 calls at once wait for longer than in earnest.
    monkeypatch.setattr(service, "TRY_SECONDS", PATIENCE)
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
