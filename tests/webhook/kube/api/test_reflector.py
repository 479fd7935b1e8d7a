"""Lists and watches told to a store: nothing newer is lost, nothing unreadable stops it."""

from __future__ import annotations

import threading

from planner.model.errors import InputError
from webhook.kube.api.client import Event
from webhook.kube.api.store import Store
from webhook.kube.ledger.objects import Objects


def item(name: str, version: int, **fields: object) -> dict[str, object]:
    """An object of a list."""
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}, **fields}


def reservation(name: str, version: int, since: int = 1) -> dict[str, object]:
    """A committed Reservation object."""
    return item(name, version, spec={"gang": f"a/Job/{name}", "mode": "domain"}, status={"since": since})


def store() -> tuple[Store[str], list[str], list[str]]:
    """A store of the objects' `word`, what it read, and which keys it said were changed."""
    reads: list[str] = []
    changed: list[str] = []

    def read(document, where):
        reads.append(document["metadata"]["name"])
        if document.get("word") == "bad":
            raise InputError("is bad", where)
        return document.get("word")

    return Store(read, "Thing", changed.append, threading.Lock()), reads, changed


def listed(kept: Store[str], *items: dict[str, object]) -> None:
    """A whole list arrives."""
    kept.replaced([kept.read(document) for document in items], 9)


def test_an_object_that_says_the_same_stirs_nobody():
    """A heartbeat is a new version with the same words."""
    kept, _, changed = store()
    listed(kept, item("a", 1, word="x"))
    kept.changed(Event("MODIFIED", item("a", 2, word="x")))
    assert changed == ["a"]


def test_a_second_list_reads_only_what_changed():
    """After a watch that was too old to go on, 50,000 pods are not read again."""
    kept, reads, _ = store()
    listed(kept, item("a", 1, word="x"), item("b", 2, word="y"))
    listed(kept, item("a", 1, word="x"), item("b", 3, word="z"))
    assert reads == ["a", "b", "b"]
    assert kept.items == {"a": "x", "b": "z"}


def test_what_a_list_lacks_is_gone():
    """Also what was left out before."""
    kept, _, changed = store()
    listed(kept, item("a", 1, word="x"), item("b", 2, word="bad"))
    listed(kept)
    assert (kept.items, kept.bad) == ({}, {})
    assert changed == ["a", "a"]


def test_an_unreadable_object_is_left_out_with_its_reason_and_comes_back():
    """The others stay, and a mended one is taken up."""
    kept, _, _ = store()
    listed(kept, item("a", 1, word="x"), item("b", 2, word="bad"))
    assert (kept.items, kept.bad) == ({"a": "x"}, {"b": "Thing b: is bad"})
    kept.changed(Event("MODIFIED", item("b", 3, word="y")))
    assert (kept.items, kept.bad) == ({"a": "x", "b": "y"}, {})


def test_an_object_that_turns_bad_is_out_of_the_picture():
    """Its former words would be old."""
    kept, _, _ = store()
    listed(kept, item("a", 1, word="x"))
    kept.changed(Event("MODIFIED", item("a", 2, word="bad")))
    assert (kept.items, list(kept.bad)) == ({}, ["a"])


def test_a_list_that_was_overtaken_hides_nothing_newer():
    """What we wrote after the list was taken stays, or two gangs would hold one rack."""
    book = Objects()
    book.stored(reservation("new", 12, since=3))
    book.stored(reservation("moved", 11, since=2))
    book.replaced(map(book.read, (reservation("moved", 5), reservation("old", 4))), 10)
    assert {name: entry.version for name, entry in book.entries.items()} == {
        "new": 12,
        "moved": 11,
        "old": 4,
    }


def test_what_a_newer_list_lacks_is_gone_from_the_book():
    """Its deletion was missed by the watch."""
    book = Objects()
    book.stored(reservation("a", 5))
    book.replaced([], 10)
    assert book.entries == {}


def test_an_older_word_never_replaces_a_newer_one():
    """The watch tells of our own write after its answer did."""
    book = Objects()
    book.stored(reservation("a", 7, since=2))
    book.changed(Event("MODIFIED", reservation("a", 5, since=1)))
    assert book.entries["a"].since == 2


def test_the_watch_and_lists_tell_up_to_where_the_book_is_known():
    """Deletions as well."""
    book = Objects()
    book.changed(Event("ADDED", reservation("a", 5)))
    assert book.shown == 5
    book.changed(Event("DELETED", reservation("a", 8)))
    assert book.shown == 8
    book.replaced([], 10)
    assert book.shown == 10


def test_a_read_of_one_object_shows_nothing_of_what_came_before_it():
    """The watch lags: what else was written before is not known yet."""
    book = Objects()
    book.stored(reservation("c", 9, since=5))
    assert book.shown == 0


def test_an_object_that_was_deleted_does_not_come_back():
    """We deleted it, or read it before somebody else did; the watch tells of its former states later."""
    book = Objects()
    book.stored(reservation("a", 7, since=2))
    book.gone("a", reservation("a", 7)["metadata"]["uid"])
    book.changed(Event("MODIFIED", reservation("a", 6, since=1)))
    book.stored(reservation("a", 7, since=2))
    book.replaced([book.read(reservation("a", 7, since=2))], 7)
    assert book.entries == {}


def test_an_object_without_a_commit_counts_for_nothing():
    """A writer that died before its commit left it."""
    book = Objects()
    book.stored(item("a", 3, spec={"gang": "a/Job/a", "mode": "domain"}, status={}))
    assert book.entries["a"].kept is None


def test_a_reservation_that_does_not_read_is_left_out():
    """Somebody edited it by hand; the rest of the book stands."""
    book = Objects()
    broken = reservation("a", 3)
    broken["spec"] = {"gang": "a/Job/a", "mode": "sideways"}
    book.stored(broken)
    assert book.entries["a"].kept is None
