"""The ledger of reservations in a real API server, written by several replicas at once."""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from planner.ledger.conflicts import Wish
from planner.ledger.ledger import Conflict, LedgerUnavailable
from planner.model.reservation import Reservation
from tests.e2e.kube_ledgers import books, clear, install, ledgers, part, rack, ready, until
from tests.e2e.stage import Cluster
from webhook.kube.api.client import Api, Json, Unreachable
from webhook.kube.api.kubeconfig import connect
from webhook.kube.ledger import documents
from webhook.kube.ledger.ledger import KubeLedger

RACES = 200
NOW = 1_000_000.0


@pytest.fixture(scope="module")
def kubeconfig(cluster: Cluster) -> Path:
    """The kubeconfig of an API server with Bayplan's kinds."""
    install(cluster.kubectl)
    return cluster.kubectl.kubeconfig


async def taken(ledger: KubeLedger, wanted: Reservation, planned_on: int = 0) -> str:
    """ "won", or the name of the gang that holds the place."""
    try:
        await ledger.reserve(wanted, planned_on, NOW)
    except Conflict as conflict:
        return conflict.holder
    return "won"


async def test_of_two_replicas_that_race_for_the_last_rack_exactly_one_wins_every_time(
    kubeconfig: Path,
) -> None:
    """200 times: one wins, the other is told who, both see the same book, and nothing is left behind."""
    wins = [0, 0]
    started = time.perf_counter()
    async with ledgers(kubeconfig, 2) as (ledger, other):
        for round_ in range(RACES):
            gangs = (f"research/Job/a-{round_}", f"research/Job/b-{round_}")
            outcomes = await asyncio.gather(
                taken(ledger, rack("r1", gangs[0])), taken(other, rack("r1", gangs[1]))
            )
            assert sorted(outcomes) == sorted(["won", gangs[outcomes.index("won")]])
            wins[outcomes.index("won")] += 1
            held = await books(ledger, other, now=NOW, count=1)
            assert [[kept.gang for kept in book] for book in held] == [[gangs[outcomes.index("won")]]] * 2
            assert await other.release(held[0][0].id)
        assert await books(ledger, other, now=NOW, count=0) == [(), ()]
    took = time.perf_counter() - started
    print(f"\n{RACES} races in {took:.1f} s ({1000 * took / RACES:.0f} ms each), won {wins[0]} to {wins[1]}")


async def test_300_gangs_through_three_replicas_never_share_a_rack(kubeconfig: Path) -> None:
    """Each takes the first free rack of 40 that it knows: 40 hold one each, 260 are refused."""
    started = time.perf_counter()

    async def gang(ledger: KubeLedger, number: int) -> bool:
        name = f"research/Job/g{number}"
        while True:
            book = await ledger.book(NOW)
            held = {reservation.domain[1] for reservation in book.reservations if reservation.gang != name}
            free = [f"r{place}" for place in range(40) if f"r{place}" not in held]
            if not free:
                return False
            try:
                await ledger.reserve(rack(free[number % len(free)], name), book.revision, NOW)
            except Conflict:
                continue
            except LedgerUnavailable:  # others were faster for too long: the webhook's caller tries again
                continue
            return True

    async with ledgers(kubeconfig, 3) as replicas:
        placed = await asyncio.gather(*(gang(replicas[n % 3], n) for n in range(300)))
        held = await books(*replicas, now=NOW, count=40)
    assert sum(placed) == 40
    assert held[0] == held[1] == held[2]
    for reservation, other in combinations(held[0], 2):
        assert not reservation.touched & other.touched
    print(f"\n300 gangs through 3 replicas: {time.perf_counter() - started:.1f} s")


async def test_a_gang_is_two_writes_until_it_is_claimed(kubeconfig: Path) -> None:
    """One that proposes its place, one that claims it: by the API server's own count."""
    async with ledgers(kubeconfig, 2) as (ledger, other):
        before = await writes(kubeconfig)
        for place in range(8):
            await ledger.reserve(rack(f"r{place}", f"research/Job/g{place}"), 0, NOW)
        for place in range(8):
            assert await other.claim(rack(f"r{place}", f"research/Job/g{place}").id, "uid", NOW)
        assert await writes(kubeconfig) - before == 16


async def writes(kubeconfig: Path) -> float:
    """The number of writes of Bayplan's kinds that the API server has accepted."""
    api = await connect(str(kubeconfig))
    try:
        text = (await api.get("/metrics"))["text"]
    finally:
        await api.close()
    counted = re.findall(r'^apiserver_request_total\{(.*group="bayplan.dev".*)\} (\S+)$', text, re.MULTILINE)
    return sum(
        float(value) for labels, value in counted if re.search('verb="(POST|PUT|PATCH|DELETE)"', labels)
    )


async def test_asked_again_a_gang_keeps_its_place_and_another_request_replaces_it(kubeconfig: Path) -> None:
    """The same place again gives what is there, on any replica; a plan of another place that did not know of
    it is made again; another request takes its place in one step."""
    async with ledgers(kubeconfig, 2) as (ledger, other):
        first = await ledger.reserve(rack("r1", "research/Job/a"), 0, NOW)
        assert await other.reserve(rack("r1", "research/Job/a"), 0, NOW) == first
        assert await taken(other, rack("r2", "research/Job/a")) == "research/Job/a"
        assert (await ledger.book(NOW)).reservations == (first,)
        moved = rack("r2", "research/Job/a", fingerprint="g")
        assert await other.reserve(moved, 0, NOW) == moved
        assert (await ledger.book(NOW, [moved.id])).reservations in ((first,), (moved,))
        await until(lambda: ledger.watched(NOW).reservations == (moved,))


async def test_a_claimed_gang_whose_place_went_moves_and_stays_its_owners(kubeconfig: Path) -> None:
    """A plan that knew the former place and chose another replaces it, claimed as it was."""
    async with ledgers(kubeconfig, 2) as (ledger, other):
        held = await ledger.reserve(rack("r1", "research/Job/a"), 0, NOW)
        assert await other.claim(held.id, "uid-1", NOW)
        revision = (await other.book(NOW)).revision
        moved = await other.reserve(rack("r2", "research/Job/a"), revision, NOW)
        assert (moved.state, moved.owner_uid, moved.expires) == ("claimed", "uid-1", None)
        await until(lambda: ledger.watched(NOW).reservations == (moved,))


async def test_two_gangs_share_a_node_only_if_the_later_knew_of_the_earlier(kubeconfig: Path) -> None:
    """What came after the plan was made was not counted in it, so it is a conflict."""
    async with ledgers(kubeconfig, 2) as (ledger, other):
        before = (await ledger.book(NOW)).revision
        assert await taken(ledger, part("r1-n1", "research/Job/a"), before) == "won"
        assert await taken(other, part("r1-n1", "research/Job/b"), before) == "research/Job/a"
        later = (await ledger.book(NOW)).revision
        assert await taken(other, part("r1-n1", "research/Job/b"), later) == "won"
        later = (await other.book(NOW)).revision
        assert await taken(other, rack("r1", "research/Job/c"), later) == "research/Job/a"


async def test_a_hold_that_nobody_claims_expires_and_a_claimed_one_stays(kubeconfig: Path) -> None:
    """After its time it is out of the book, cannot be claimed, and is in nobody's way."""
    async with ledgers(kubeconfig, 2) as (ledger, other):
        await ledger.reserve(rack("r1", "research/Job/a", lives=NOW + 5), 0, NOW)
        kept = await ledger.reserve(rack("r2", "research/Job/b", lives=NOW + 5), 0, NOW)
        assert await other.claim(kept.id, "uid-b", NOW + 4)
        later = NOW + 6
        await until(lambda: [r.gang for r in other.watched(later).reservations] == ["research/Job/b"])
        assert not await other.claim(rack("r1", "research/Job/a").id, "uid-a", later)
        await other.reserve(rack("r1", "research/Job/c"), 0, later)
        gangs = {"research/Job/b", "research/Job/c"}
        await until(lambda: {held.gang for held in ledger.watched(later).reservations} == gangs)
        assert await other.sweep(later) == ()


async def test_swept_holds_are_told_once(kubeconfig: Path) -> None:
    """Of two replicas that sweep at once each expired hold is given by one."""
    async with ledgers(kubeconfig, 2) as (ledger, other):
        for place in range(6):
            await ledger.reserve(rack(f"r{place}", f"research/Job/g{place}", lives=NOW + 5), 0, NOW)
        await books(ledger, other, now=NOW, count=6)
        swept = await asyncio.gather(ledger.sweep(NOW + 6), other.sweep(NOW + 6))
        assert sorted(held.gang for part in swept for held in part) == [
            f"research/Job/g{n}" for n in range(6)
        ]


class Dying(Api):
    """A client whose process dies at a given write; later requests are not sent."""

    def __init__(self, api: Api, write: int) -> None:
        self.__dict__ |= vars(api)
        self.writes_left = write

    async def _call(self, method: str, path: str, *rest: object, **kwargs: object) -> Json:
        if method != "GET":
            if self.writes_left == 0:
                raise asyncio.CancelledError
            self.writes_left -= 1
        return await super()._call(method, path, *rest, **kwargs)  # type: ignore[arg-type]


@pytest.mark.parametrize("write", range(6))
async def test_a_writer_that_dies_at_any_point_leaves_holds_that_expire_and_blocks_nobody_else(
    kubeconfig: Path, write: int
) -> None:
    """Two gangs are reserved, one is claimed and moves: after its proposal, before it is in its own object,
    after that. What was answered stands, what was not is a hold, and the gang has one of its places."""
    first, second = rack("r1", "research/Job/a", lives=NOW + 30), rack("r2", "research/Job/b", lives=NOW + 30)

    async def work(ledger: KubeLedger) -> None:
        await ledger.reserve_all([Wish(first, 0), Wish(second, 0)], NOW)
        await ledger.claim(first.id, "uid-a", NOW)
        await ledger.reserve(rack("r3", "research/Job/a", fingerprint="g"), 2**62, NOW)

    async with ledgers(kubeconfig) as (survivor,):
        dying = Dying(await connect(str(kubeconfig)), write)
        victim = KubeLedger(dying)
        await victim.start()
        await ready(victim)
        with suppress(asyncio.CancelledError):
            await work(victim)
        assert await taken(survivor, rack("r9", "research/Job/c")) == "won"  # which knows all before it
        held = {reservation.gang: reservation for reservation in (await survivor.book(NOW)).reservations}
        assert len(held) == 1 + min(write, 2)
        assert [reservation.state for reservation in held.values()].count("claimed") == (write > 2)
        if write:
            assert held["research/Job/a"].domain[1] == ("r3" if write > 4 else "r1")
        later = NOW + 31
        await survivor.sweep(later)
        for place in ("r2", "r3") if write <= 4 else ("r2", "r1"):
            await survivor.reserve(rack(place, f"research/Job/late-{place}", lives=later + 30), 0, later)
        await victim.close()
        await dying.close()


async def test_an_answer_that_is_lost_does_not_lose_or_double_the_reservation(kubeconfig: Path) -> None:
    """The commit went through but its answer did not: the writer finds it in the book."""

    class Deaf(Dying):
        async def _call(self, method: str, path: str, *rest: object, **kwargs: object) -> Json:
            answer = await Api._call(self, method, path, *rest, **kwargs)  # type: ignore[arg-type]
            if method == "POST" and documents.RESERVATIONS in path and self.writes_left:
                self.writes_left -= 1
                raise Unreachable("reset")
            return answer

    async with ledgers(kubeconfig) as (other,):
        client = Deaf(await connect(str(kubeconfig)), 1)
        deaf = KubeLedger(client)
        await deaf.start()
        await ready(deaf)
        wish = rack("r1", "research/Job/a")
        assert await deaf.reserve(wish, 0, NOW) == wish
        assert (await other.book(NOW, [wish.id])).reservations == (wish,)
        await deaf.close()
        await client.close()


async def test_who_was_overtaken_by_another_replica_is_told_without_a_write(kubeconfig: Path) -> None:
    """Planned on an old book, the wish is lost before anything is written for it."""
    async with ledgers(kubeconfig, 2) as (ledger, other):
        planned_on = (await ledger.book(NOW)).revision
        await taken(other, rack("r1", "research/Job/a"))
        await books(ledger, now=NOW, count=1)
        before = await writes(kubeconfig)
        assert await taken(ledger, rack("r1", "research/Job/b"), planned_on) == "research/Job/a"
        assert await writes(kubeconfig) == before


async def test_kubectl_shows_the_book_worth_reading(kubeconfig: Path, cluster: Cluster) -> None:
    """Gang, level, domain, nodes, GPUs and state stand in columns."""
    async with ledgers(kubeconfig) as (ledger,):
        await ledger.reserve(replace(rack("r1", "research/Job/a"), expires=None), 0, NOW)
        output = await asyncio.to_thread(cluster.kubectl, "get", "reservations")
        header, line = output.out.splitlines()
        assert header.split() == ["NAME", "GANG", "LEVEL", "DOMAIN", "NODES", "GPUS", "STATE", "AGE"]
        assert line.split()[1:7] == ["research/Job/a", "rack", "z/r1", "1", "8", "held"]


async def test_the_tests_leave_nothing(kubeconfig: Path) -> None:
    """An empty book for whoever comes next."""
    api = await connect(str(kubeconfig))
    await clear(api)
    assert (await api.list(documents.RESERVATIONS))[0] == []
    await api.close()
