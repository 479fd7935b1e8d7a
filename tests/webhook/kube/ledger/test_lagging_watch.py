"""Replicas whose watches lag: what one has not been told of yet is never taken for free, nor for held."""

from __future__ import annotations

import asyncio

import pytest

from planner.ledger.conflicts import Wish
from planner.ledger.ledger import Conflict
from planner.model.reservation import reservation_id
from tests.planner.ledger.books import part, whole
from tests.webhook.kube.ledger.api_server import ApiServer
from tests.webhook.kube.ledger.replicas import NOW, holders, outcome, run, started


def test_a_read_of_one_object_does_not_hide_the_commits_before_it() -> None:
    """b was read by itself after two commits that the watch has not told of: the first of them is known."""

    async def script() -> None:
        server = ApiServer()
        (other, _), (lagging, client) = await started(server), await started(server)
        await other.reserve(whole("b", "r2"), 0, NOW)
        assert await holders(lagging) == {"b"}
        client.hold()
        await other.reserve(whole("a", "r1"), 0, NOW)
        await other.reserve(whole("b", "r10"), 99, NOW)
        assert await lagging.claim(reservation_id("b"), "uid", NOW)  # reads b, and nothing else
        assert await outcome(lagging, whole("c", "r1"), 99) == "a"
        assert await holders(lagging) == {"a", "b"}

    run(script)


def test_what_another_replica_released_is_taken_anew_when_its_gang_comes_again() -> None:
    """The watch has not told of the release: the same place under the same name is not held any more."""

    async def script() -> None:
        server = ApiServer()
        (other, _), (lagging, client) = await started(server), await started(server)
        await other.reserve(whole("a", "r1"), 0, NOW)
        assert await holders(lagging) == {"a"}
        client.hold()
        assert await other.release(reservation_id("a"))
        assert await outcome(lagging, whole("a", "r1"), 99) == "taken"
        assert await holders(other) == {"a"}
        assert await outcome(other, whole("b", "r1"), 99) == "a"

    run(script)


def test_what_we_released_does_not_come_back_by_a_watch_that_tells_of_it_later() -> None:
    """Its former states arrive after our own deletion."""

    async def script() -> None:
        server = ApiServer()
        (other, _), (lagging, client) = await started(server), await started(server)
        client.hold()
        await other.reserve(whole("a", "r1"), 0, NOW)
        assert await holders(lagging) == {"a"}
        assert await lagging.release(reservation_id("a"))
        client.show(3)  # a is made, committed and filled; its deletion is still to come
        await asyncio.sleep(0.01)
        assert await holders(lagging) == set()

    run(script)


def test_an_object_that_was_made_while_its_name_was_read_is_not_lost() -> None:
    """The read found none; before its answer came, the watch told of a new one."""

    async def script() -> None:
        server = ApiServer()
        (other, _), (lagging, client) = await started(server), await started(server)
        await other.reserve(whole("a", "r1"), 0, NOW)
        assert await holders(lagging) == {"a"}
        client.hold()
        await other.release(reservation_id("a"))
        answer = lagging._api._server.call  # type: ignore[attr-defined]

        async def overtaken(method: str, path: str) -> None:
            """The answer of the next read of a is on its way while the watch catches up."""
            if method == "GET" and path.endswith(reservation_id("a")):
                client.before = at_once
                try:
                    answer(method, path, None)
                finally:
                    await other.reserve(whole("a", "r1"), 99, NOW)
                    client.show()
                    await asyncio.sleep(0.01)

        async def at_once(method: str, path: str) -> None:
            pass

        client.before = overtaken
        assert await outcome(lagging, whole("b", "r1"), 99) == "a"
        assert await holders(lagging) == {"a"}

    run(script)


def test_gangs_that_are_asked_for_together_are_one_commit_or_none() -> None:
    """Three gangs of one workload: written with one change of the Ledger; where one cannot be, nothing is."""

    async def script() -> None:
        server = ApiServer()
        ledger, _ = await started(server)
        wishes = [Wish(part("a", "n1"), 0), Wish(part("b", "n3", "r2"), 0), Wish(whole("c", "r10"), 0)]
        taken = await ledger.reserve_all(wishes, NOW)
        assert taken.new == {reservation_id(gang) for gang in "abc"}
        revision = (await ledger.book(NOW)).revision
        assert revision == 1
        late = [Wish(part("d", "n2"), revision), Wish(whole("e", "r10"), revision)]
        with pytest.raises(Conflict, match=r"^already held by c$"):
            await ledger.reserve_all(late, NOW)
        assert await holders(ledger) == {"a", "b", "c"}
        await asyncio.sleep(1)
        assert not ledger.uncommitted()
        again = await ledger.reserve_all(wishes, NOW)
        assert again.new == frozenset()

    run(script)
