"""A review alone changes nothing permanently: only stored objects do."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace

import pytest

from planner.ledger.conflicts import Wish
from planner.ledger.ledger import Conflict, Occupied
from planner.model.reservation import Reservation, reservation_id
from tests.planner.ledger.books import whole
from tests.webhook.kube.ledger.api_server import ApiServer
from tests.webhook.kube.ledger.replicas import NOW, holders, outcome, run, started
from webhook.kube.ledger import documents
from webhook.kube.ledger.confirming import LOOKS, ConfirmingLedger
from webhook.kube.ledger.ledger import KubeLedger
from webhook.placement.hold import HOLD_SECONDS

GANG = "team/Job/a"


class Stored:
    """The UIDs of the objects that the API server has."""

    def __init__(self, *uids: str) -> None:
        self.uids = set(uids)

    def __call__(self, held: Reservation, uid: str) -> bool:
        return uid in self.uids


async def held(ledger: KubeLedger) -> Reservation:
    """The one reservation in the book."""
    (reservation,) = (await ledger.book(NOW)).reservations
    return reservation


def hold(gang: str = GANG, rack: str = "r1") -> Reservation:
    """A rack, held for a while."""
    return replace(whole(gang, rack), expires=NOW + 10)


def test_a_claim_counts_when_the_object_is_seen() -> None:
    """Until then the hold expires as before."""

    async def script() -> None:
        ledger, _ = await started(ApiServer())
        stored = Stored()
        words = ConfirmingLedger(ledger, stored)
        await words.reserve_all([Wish(hold(), 0)], NOW)
        assert await words.claim(reservation_id(GANG), "uid-1", NOW)
        await asyncio.sleep(1)
        assert (await held(ledger)).state == "held"
        stored.uids.add("uid-1")
        await asyncio.sleep(2)
        assert ((await held(ledger)).state, (await held(ledger)).owner_uid) == ("claimed", "uid-1")

    run(script)


def test_a_hold_whose_validating_call_came_late_lives_until_its_object_can_be_seen() -> None:
    """It would have expired in a second: another replica would have given the place away meanwhile."""

    async def script() -> None:
        server = ApiServer()
        (ledger, _), (other, _) = await started(server), await started(server)
        stored = Stored()
        words = ConfirmingLedger(ledger, stored)
        await words.reserve_all([Wish(hold(), 0)], NOW)
        late = NOW + 9
        assert ledger.next_expiry() == NOW + 10
        assert await words.claim(reservation_id(GANG), "uid-1", late)
        assert ledger.next_expiry() == late + HOLD_SECONDS
        with pytest.raises(Conflict):
            await other.reserve(whole("team/Job/b", "r1"), 0, late + 2)
        stored.uids.add("uid-1")
        await asyncio.sleep(sum(LOOKS))
        assert (await held(ledger)).state == "claimed"
        assert ledger.next_expiry() == math.inf

    run(script)


def test_a_claim_in_time_writes_nothing_before_its_object_is_seen() -> None:
    """The hold outlives every look for it as it is."""

    async def script() -> None:
        ledger, _ = await started(ApiServer())
        words = ConfirmingLedger(ledger, Stored())
        await words.reserve_all([Wish(hold(), 0)], NOW)
        before = ledger._view.readable_entry(reservation_id(GANG))
        assert await words.claim(reservation_id(GANG), "uid-1", NOW + 1)
        assert ledger._view.readable_entry(reservation_id(GANG)) == before

    run(script)


def test_a_claim_for_an_object_that_never_comes_is_forgotten() -> None:
    """The hold is unchanged and expires."""

    async def script() -> None:
        ledger, _ = await started(ApiServer())
        words = ConfirmingLedger(ledger, Stored())
        await words.reserve_all([Wish(hold(), 0)], NOW)
        assert await words.claim(reservation_id(GANG), "forged", NOW)
        await asyncio.sleep(10)
        assert (await held(ledger)).state == "held"
        assert asyncio.all_tasks() == {asyncio.current_task(), ledger._watching}

    run(script)


def test_a_hold_that_is_gone_cannot_be_claimed() -> None:
    """The caller gets a conflict and plans again."""

    async def script() -> None:
        ledger, _ = await started(ApiServer())
        words = ConfirmingLedger(ledger, Stored("uid-1"))
        assert not await words.claim(reservation_id(GANG), "uid-1", NOW)
        await words.reserve_all([Wish(hold(), 0)], NOW)
        assert not await words.claim(reservation_id(GANG), "uid-1", NOW + 11)

    run(script)


def test_a_release_in_a_review_releases_nothing() -> None:
    """The controller releases the placement when the object is gone."""

    async def script() -> None:
        ledger, _ = await started(ApiServer())
        words = ConfirmingLedger(ledger, Stored("uid-1"))
        await words.reserve_all([Wish(hold(), 0)], NOW)
        await words.release(reservation_id(GANG))
        assert await holders(ledger) == {GANG}

    run(script)


@pytest.mark.parametrize(
    ("asks", "stands", "is_changed"),
    [("", True, False), ("uid-2", True, False), ("uid-1", True, True), ("uid-2", False, True)],
)
def test_a_claimed_place_is_changed_only_for_its_owner_or_when_that_is_gone(
    asks: str, stands: bool, is_changed: bool
) -> None:
    """By the UID of the object that is updated."""

    async def script() -> None:
        ledger, _ = await started(ApiServer())
        words = ConfirmingLedger(ledger, Stored("uid-1") if stands else Stored())
        await words.reserve_all([Wish(hold(), 0)], NOW)
        await ledger.claim(reservation_id(GANG), "uid-1", NOW)
        other = replace(hold(rack="r2"), owner_uid=asks)
        if is_changed:
            await words.reserve_all([Wish(other, 99)], NOW)
        else:
            with pytest.raises(Occupied, match="team/Job/a is there already, and holds"):
                await words.reserve_all([Wish(other, 99)], NOW)
        assert (await held(ledger)).domain == whole(GANG, "r2" if is_changed else "r1").domain

    run(script)


def test_the_same_place_again_is_nobodys_loss() -> None:
    """A retry, or a creation that the API server will refuse, changes nothing."""

    async def script() -> None:
        ledger, _ = await started(ApiServer())
        words = ConfirmingLedger(ledger, Stored("uid-1"))
        await words.reserve_all([Wish(hold(), 0)], NOW)
        await ledger.claim(reservation_id(GANG), "uid-1", NOW)
        await words.reserve_all([Wish(hold(), 99)], NOW)
        assert (await held(ledger)).owner_uid == "uid-1"

    run(script)


def test_a_place_is_kept_that_was_claimed_while_the_watch_lagged() -> None:
    """The replica that is asked still takes it for a hold; nothing is left of what it proposed."""

    async def script() -> None:
        server = ApiServer()
        (ledger, _), (lagging, client) = await started(server), await started(server)
        await ledger.reserve_all([Wish(hold(), 0)], NOW)
        assert await holders(lagging) == {GANG}
        client.hold()
        assert await ledger.claim(reservation_id(GANG), "uid-1", NOW)
        with pytest.raises(Occupied):
            await ConfirmingLedger(lagging, Stored("uid-1")).reserve_all([Wish(hold(rack="r2"), 99)], NOW)
        assert (await held(ledger)).domain == whole(GANG, "r1").domain
        assert await outcome(ledger, whole("team/Job/b", "r2"), 99) == "taken"

    run(script)


def test_a_claim_knows_of_a_hold_that_another_replica_made_or_gave_back() -> None:
    """The watch has told of neither: whoever asks is answered by what is stored."""

    async def script() -> None:
        server = ApiServer()
        (ledger, _), (lagging, client) = await started(server), await started(server)
        words = ConfirmingLedger(lagging, Stored())
        client.hold()
        await ledger.reserve_all([Wish(hold(), 0)], NOW)
        assert await words.claim(reservation_id(GANG), "uid-1", NOW)
        await ledger.release(reservation_id(GANG))
        assert not await words.claim(reservation_id(GANG), "uid-1", NOW)

    run(script)


def test_a_proposal_that_will_be_withdrawn_cannot_be_claimed() -> None:
    """Its writer has not judged it yet; somebody else has the rack since before."""

    async def script() -> None:
        server = ApiServer()
        ledger, _ = await started(server)
        await ledger.reserve_all([Wish(hold("team/Job/b"), 0)], NOW)
        await server.client().create(documents.RESERVATIONS, documents.proposed(hold()))
        words = ConfirmingLedger(ledger, Stored("uid-1"))
        assert not await words.claim(reservation_id(GANG), "uid-1", NOW)
        assert await words.claim(reservation_id("team/Job/b"), "uid-2", NOW)

    run(script)


def test_a_gang_that_grows_keeps_its_owner_in_its_new_place() -> None:
    """The move was proposed in a second object, of which nothing is left to claim."""

    async def script() -> None:
        ledger, _ = await started(ApiServer())
        words = ConfirmingLedger(ledger, Stored("uid-1"))
        await words.reserve_all([Wish(hold(), 0)], NOW)
        await ledger.claim(reservation_id(GANG), "uid-1", NOW)
        await words.reserve_all([Wish(replace(hold(rack="r2"), owner_uid="uid-1"), 99)], NOW)
        assert await words.claim(reservation_id(GANG), "uid-1", NOW)
        place = await held(ledger)
        assert (place.domain, place.state, place.owner_uid) == (whole(GANG, "r2").domain, "claimed", "uid-1")
        assert place.expires is None

    run(script)
