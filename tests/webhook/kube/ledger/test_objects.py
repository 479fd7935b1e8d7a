"""The indexes over Reservation objects give the same answers as a scan of all objects."""

import asyncio
import math
from bisect import bisect_left
from collections import Counter
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.reservation import Reservation, reservation_id
from tests.builders import cluster
from tests.planner.ledger.books import whole
from tests.webhook.kube.ledger.api_server import ApiServer
from tests.webhook.kube.ledger.replicas import holders, outcome, run, started
from webhook.kube.ledger import objects
from webhook.kube.ledger.documents import RESERVATIONS, Entry, as_next, proposed
from webhook.kube.ledger.objects import Objects
from webhook.kube.ledger.view import BookView, lives

NOW = 1_000.0
GANGS = ("a", "b", "c", "d")
Step = tuple[str, str, float | None]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("stored", "proposed anew", "unread", "gone")),
        st.sampled_from(GANGS),
        st.sampled_from((None, NOW - 1, NOW, NOW + 1, NOW + 2)),
    ),
    max_size=30,
)


def after(steps: list[Step]) -> BookView:
    """The view after these changes of the objects, in their order."""
    view = BookView(api=None)  # type: ignore[arg-type]  # nothing is asked of the API server
    for version, (kind, gang, expires) in enumerate(steps, start=1):
        reservation: Reservation | None = replace(whole(gang, "r1"), expires=expires)
        assert reservation is not None
        name = reservation_id(gang)
        if kind == "proposed anew":
            reservation = as_next(reservation, expires or NOW)
            name = reservation.id
        if kind == "gone":
            view.objects.record_deletion(name, name)
        else:
            entry = Entry(name, name, version, 0, None if kind == "unread" else reservation)
            view.objects.replaced([*view.objects.entries.values(), entry], version)
    return view


def test_a_list_of_objects_is_sorted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its objects was taken out of the sorted names and put into them again."""
    searches = Counter[str]()

    def counted(names: list[str], name: str) -> int:
        searches["names"] += 1
        return bisect_left(names, name)

    monkeypatch.setattr(objects, "bisect_left", counted)
    listed = [Entry(gang, gang, 1, 0, replace(whole(gang, "r1"), gang=gang)) for gang in "dbca"]
    book = Objects()
    for version in (1, 2):
        book.replaced(listed, version)
        assert (book.held_names, [held.gang for held in book.held]) == (list("abcd"), list("abcd"))
    assert not searches


@pytest.mark.parametrize("name", ["maintenance-next", f"{reservation_id('another')}-next"])
def test_a_reservation_made_by_hand_counts_whatever_its_name(name: str) -> None:
    """Only the gang's own id before `-next` is a proposal; any other would block places that look free."""

    async def script() -> None:
        server = ApiServer()
        ledger, _ = await started(server)
        by_hand = replace(whole("a", "r1"), id=name, expires=NOW + 5)
        server.call("POST", RESERVATIONS, proposed(by_hand))
        await asyncio.sleep(0.1)  # in virtual time: the watch shows it
        assert await holders(ledger) == {"a"}
        assert await outcome(ledger, whole("b", "r1")) == "a"
        assert [held.id for held in await ledger.sweep(NOW + 6)] == [name]
        assert await holders(ledger) == set()

    run(script)


def test_a_reservation_made_by_hand_for_a_gang_is_not_the_gangs_own(caplog: pytest.LogCaptureFixture) -> None:
    """Its place is kept free, of the gang too; the gang still holds its own, whichever name sorts first."""

    async def script(name: str) -> None:
        server = ApiServer()
        ledger, _ = await started(server)
        gang = "team/Job/a"
        assert await outcome(ledger, whole(gang, "r1")) == "taken"
        server.call("POST", RESERVATIONS, proposed(replace(whole(gang, "r2"), id=name, expires=None)))
        await asyncio.sleep(0.1)  # in virtual time: the watch shows it
        own = cluster("r1: n1 n2").with_book(await ledger.book(2.0)).holding(gang)
        assert own is not None
        assert own.domains == (("z", "r1"),)
        assert await holders(ledger) == {gang, f"Reservation/{name}"}
        assert await outcome(ledger, whole("team/Job/b", "r2")) == f"Reservation/{name}"

    for name in ("a-first", "z-last"):
        run(partial(script, name))
        assert (
            f"Reservation/{name} was made by hand for team/Job/a, whose own reservation is bp-" in caplog.text
        )


@given(STEPS)
def test_live_and_expired_are_those_of_a_walk_over_all_objects(steps: list[Step]) -> None:
    """Objects are stored, stored again with another expiry, made unreadable and deleted, in any order."""
    view = after(steps)
    entries = view.objects.entries.values()
    own = [entry.reservation for entry in entries if entry.reservation and not entry.name.endswith("-next")]
    live = sorted((held for held in own if lives(held, NOW)), key=lambda held: held.id)
    assert view.live(NOW) == tuple(live)
    assert {reservation_id(gang) for gang in GANGS if view.has(reservation_id(gang), NOW)} == {
        held.id for held in live
    }
    ended = [entry for entry in entries if entry.reservation and not lives(entry.reservation, NOW)]
    assert sorted(entry.name for entry in view.expired(NOW)) == sorted(entry.name for entry in ended)
    expiries = [entry.reservation.expires for entry in entries if entry.reservation]
    assert view.next_expiry() == min((end for end in expiries if end is not None), default=math.inf)
