"""Replicas with lagging watches: what a replica has not seen yet is never treated as free, nor as held."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from planner.ledger.conflicts import Wish
from planner.ledger.ledger import Conflict
from planner.model.reservation import Reservation, reservation_id
from tests.planner.ledger.books import part, whole
from tests.webhook.kube.ledger.api_server import ApiServer, Client
from tests.webhook.kube.ledger.replicas import NOW, holders, outcome, run, started
from webhook.kube.api.client import ApiError, Json, Unreachable
from webhook.kube.ledger import documents
from webhook.kube.ledger.ledger import KubeLedger
from webhook.kube.ledger.proposals import NEXT_SECONDS


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
        assert not await lagging.release(reservation_id("c"))

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
    """Earlier versions arrive after the replica's own deletion."""

    async def script() -> None:
        server = ApiServer()
        (other, _), (lagging, client) = await started(server), await started(server)
        client.hold()
        await other.reserve(whole("a", "r1"), 0, NOW)
        assert {held.gang for held in (await lagging.book(NOW, [reservation_id("a")])).reservations} == {"a"}
        assert await lagging.release(reservation_id("a"))
        client.show(1)  # a is made; its deletion is still to come
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
        answer = server.call

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


@pytest.mark.parametrize("stored", [True, False])
def test_a_hold_that_ended_is_kept_for_the_object_that_is_stored_and_for_no_other(stored: bool) -> None:
    """Nobody could claim it in time: the API server was away, or the replica that answered is gone."""

    async def owner(held: Reservation) -> str:
        return "uid-1" if stored and held.gang == "a" else ""

    async def script() -> None:
        server = ApiServer()
        (first, _), (second, _) = await started(server, lambda: owner), await started(server, lambda: owner)
        await first.reserve(replace(whole("a", "r1"), expires=NOW + 10), 0, NOW)
        later = NOW + 60
        assert await outcome(second, whole("b", "r1"), 99, later) == ("a" if stored else "taken")
        (held,) = (await second.book(later)).reservations
        assert (held.gang, held.owner_uid) == (("a", "uid-1") if stored else ("b", ""))
        await first.sweep(later)
        assert len((await second.book(later)).reservations) == 1

    run(script)


def test_a_hold_whose_object_cannot_be_read_stays_in_nobody_elses_way() -> None:
    """The conversion webhook of its kind is down: its place is held on, the others' holds end as ever, and
    so does this one once its object can be read."""
    unread = {"a"}

    async def owner(held: Reservation) -> str:
        if held.gang in unread:
            raise ApiError(500, "InternalError", "conversion webhook failed")
        return ""

    async def script() -> None:
        ledger, _ = await started(ApiServer(), lambda: owner)
        for gang, rack in (("a", "r1"), ("b", "r2")):
            await ledger.reserve(replace(whole(gang, rack), expires=NOW + 10), 0, NOW)
        later = NOW + 60
        assert [held.gang for held in await ledger.sweep(later)] == ["b"]
        assert ledger.next_expiry() > later, "the controller does not look again at once"
        assert await outcome(ledger, whole("c", "r1"), 99, later) == "a"
        assert await outcome(ledger, whole("c", "r2"), 99, later) == "taken"
        unread.clear()
        assert "a" in [held.gang for held in await ledger.sweep(later + 60)]

    run(script)


def test_whose_holds_are_that_ended_together_is_asked_once_and_by_calls_for_their_places_alone() -> None:
    """Forged calls can hold every rack: when all that ends, ten calls for one rack do not ask about each."""
    asked: list[str] = []

    async def owner(held: Reservation) -> str:
        asked.append(held.gang)
        await asyncio.sleep(0.1)
        return ""

    async def script() -> None:
        ledger, _ = await started(ApiServer(), lambda: owner)
        for rack in ("r1", "r2", "r10"):
            await ledger.reserve(replace(whole(f"forged-{rack}", rack), expires=NOW + 10), 0, NOW)
        calls = (outcome(ledger, whole(f"honest-{number}", "r10"), 99, NOW + 60) for number in range(10))
        outcomes = await asyncio.gather(*calls)
        assert outcomes.count("taken") == 1
        assert asked == ["forged-r10"]

    run(script)


def test_gangs_that_are_asked_for_together_are_all_taken_or_none() -> None:
    """Three gangs of one workload: one write each; where one cannot be had, nothing is held."""

    async def script() -> None:
        server = ApiServer()
        ledger, client = await started(server)
        wishes = [Wish(part("a", "n1"), 0), Wish(part("b", "n3", "r2"), 0), Wish(whole("c", "r10"), 0)]
        client.calls.clear()
        taken = await ledger.reserve_all(wishes, NOW)
        assert taken.new == {reservation_id(gang) for gang in "abc"}
        assert [method for method, _ in client.calls] == ["POST"] * 3
        revision = (await ledger.book(NOW)).revision
        late = [Wish(part("d", "n2"), revision), Wish(whole("e", "r10"), revision)]
        with pytest.raises(Conflict, match=r"^already held by c$"):
            await ledger.reserve_all(late, NOW)
        assert await holders(ledger) == {"a", "b", "c"}
        again = await ledger.reserve_all(wishes, NOW)
        assert again.new == frozenset()

    run(script)


def test_a_gang_is_two_writes_until_it_is_claimed() -> None:
    """Its place, and its claim, whichever replica makes them; nothing else is written for it, and what shares
    nothing with it is not asked for."""

    async def script() -> None:
        server = ApiServer()
        (first, client), (second, other) = await started(server), await started(server)
        before = server.version
        await first.reserve(whole("a", "r1"), 0, NOW)
        await second.reserve(whole("b", "r2"), 0, NOW)
        assert await second.claim(reservation_id("a"), "uid", NOW)
        assert await first.claim(reservation_id("b"), "uid", NOW)
        assert server.version - before == 4
        calls = [method for caller in (client, other) for method, path in caller.calls if path.count("/") > 4]
        assert calls.count("GET") == 0

    run(script)


def test_of_two_proposals_the_one_that_was_stored_first_is_held() -> None:
    """Both were written before either replica's watch told of the other."""

    async def script() -> None:
        server = ApiServer()
        (first, client), (second, other) = await started(server), await started(server)
        client.hold()
        other.hold()
        asked = [
            asyncio.create_task(outcome(first, whole("a", "r1"))),
            asyncio.create_task(outcome(second, whole("b", "r1"))),
        ]
        await asyncio.sleep(0.01)
        assert server.version == 2
        client.show()
        other.show()
        order = [document["spec"]["gang"] for _, _, document in server.changes]
        answers = dict(zip("ab", await asyncio.gather(*asked), strict=True))
        assert answers == {order[0]: "taken", order[1]: order[0]}
        assert await holders(first) == {order[0]}

    run(script)


def test_a_claim_does_not_let_a_later_proposal_be_the_earlier() -> None:
    """a is claimed before b is judged: its place counts from when it was written."""

    async def script() -> None:
        server = ApiServer()
        (first, _), (second, other) = await started(server), await started(server)
        await first.reserve(whole("a", "r1"), 0, NOW)
        other.hold()
        late = asyncio.create_task(outcome(second, whole("b", "r1"), 99))
        await asyncio.sleep(0.001)
        assert await first.claim(reservation_id("a"), "uid", NOW)
        other.show()
        assert await late == "a"
        assert await holders(second) == {"a"}

    run(script)


def test_a_proposal_that_lost_is_claimed_by_nobody() -> None:
    """Its writer died before judging it; a replica that claims it judges it first."""

    async def script() -> None:
        server = ApiServer()
        (dying, client), (other, _) = await started(server), await started(server)
        client.hold()
        await other.reserve(whole("a", "r1"), 0, NOW)

        async def dead(method: str, path: str) -> None:
            if method != "POST":
                await asyncio.Event().wait()

        client.before = dead
        lost = asyncio.create_task(outcome(dying, whole("b", "r1"), 99))
        await asyncio.sleep(0.01)
        lost.cancel()
        assert not await other.claim(reservation_id("b"), "uid", NOW)
        assert await other.claim(reservation_id("a"), "uid", NOW)

    run(script)


async def proposing() -> tuple[ApiServer, KubeLedger, Client, asyncio.Task[Reservation]]:
    """A call for a whole rack whose proposal is stored, and whose watch does not tell of it."""
    server = ApiServer()
    ledger, client = await started(server)
    client.hold()
    call = asyncio.create_task(ledger.reserve(whole("a", "r1"), 0, NOW))
    await asyncio.sleep(0.01)
    return server, ledger, client, call


def test_a_call_that_ends_while_its_proposal_is_on_its_way_leaves_nothing() -> None:
    """Neither what was stored, nor what no answer told of."""

    async def script() -> None:
        server, _, _, call = await proposing()
        assert len(server.objects) == 1
        call.cancel()
        await asyncio.sleep(0.01)
        assert not server.objects

    run(script)


def test_a_gang_that_comes_again_while_its_proposal_is_withdrawn_does_not_rely_on_it() -> None:
    """The first call was given up; its deletion is on its way when the second asks for the same place."""

    async def script() -> None:
        server, ledger, client, first = await proposing()

        async def slowly(method: str, path: str) -> None:
            await asyncio.sleep(0.2 if method == "DELETE" else 0)

        client.before = slowly
        client.show()
        client.shown = 0  # neither is told that the place is its own before the deletion is sent
        first.cancel()
        await asyncio.sleep(0.01)
        client.show()
        assert await outcome(ledger, whole("a", "r1"), 99) == "taken"
        await asyncio.sleep(1)
        assert await holders(ledger) == {"a"}
        assert len(server.objects) == 1

    run(script)


def test_an_answer_that_is_lost_neither_loses_nor_doubles_a_reservation() -> None:
    """The proposal was stored and its answer was not: the call finds it, and gives back what is its own."""

    async def script() -> None:
        server = ApiServer()
        ledger, client = await started(server)
        stored = server.call

        def deaf(method: str, path: str, body: Mapping[str, Any] | None) -> Json:
            stored_object = stored(method, path, body)
            if method == "POST":
                server.call = stored  # type: ignore[method-assign]
                raise Unreachable("reset")
            return stored_object

        server.call = deaf  # type: ignore[method-assign]
        taken = await ledger.reserve_all([Wish(whole("a", "r1"), 0)], NOW)
        assert taken.new == {reservation_id("a")}
        assert len(server.objects) == 1
        assert client.calls.count(("POST", documents.RESERVATIONS)) == 1

    run(script)


def test_a_gang_that_moves_keeps_its_place_until_the_new_one_is_its_own() -> None:
    """Where the new place is another's by then, nothing has changed; where it is not, the old one is free."""

    async def script() -> None:
        server = ApiServer()
        ledger, _ = await started(server)
        held = await ledger.reserve(whole("a", "r1"), 0, NOW)
        assert await ledger.claim(held.id, "uid", NOW)
        await ledger.reserve(whole("b", "r2"), 0, NOW)
        revision = (await ledger.book(NOW)).revision
        assert await outcome(ledger, whole("a", "r2"), revision) == "b"
        assert held.domains in {reservation.domains for reservation in (await ledger.book(NOW)).reservations}
        moved = await ledger.reserve(whole("a", "r10"), revision, NOW)
        assert (moved.state, moved.owner_uid, moved.domains) == ("claimed", "uid", (("z", "r10"),))
        assert len(server.objects) == 2
        assert await outcome(ledger, whole("c", "r1"), 99) == "taken"
        assert await outcome(ledger, whole("d", "r10"), 99) == "a"

    run(script)


def test_a_mover_that_dies_halfway_leaves_the_gang_its_place() -> None:
    """The proposal of the other place keeps others out until it expires; then it is away."""

    async def script() -> None:
        server = ApiServer()
        (dying, client), (other, _) = await started(server), await started(server)
        await dying.reserve(replace(whole("a", "r1"), expires=None), 0, NOW)

        async def dead(method: str, path: str) -> None:
            if method in ("PATCH", "DELETE"):
                await asyncio.Event().wait()

        client.before = dead
        moving = asyncio.create_task(dying.reserve(whole("a", "r2"), 99, NOW))
        await asyncio.sleep(0.01)
        moving.cancel()
        assert [held.domains for held in (await other.book(NOW)).reservations] == [(("z", "r1"),)]
        assert await outcome(other, whole("b", "r2"), 99) == "a"
        await other.reserve(whole("b", "r2"), 99, NOW + NEXT_SECONDS + 1)
        assert await holders(other) == {"a", "b"}

    run(script)
