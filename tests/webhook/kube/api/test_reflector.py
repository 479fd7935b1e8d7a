"""Lists and watches told to a store: nothing newer is lost, nothing unreadable stops it."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

from planner.model.errors import InputError
from webhook.kube.api import reflector as module
from webhook.kube.api.client import Api, ApiError, Event
from webhook.kube.api.reflector import FIRST_PAUSE, Reflector
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

    return Store(read, "Thing", lambda key, *_: changed.append(key), threading.Lock()), reads, changed


def listed(kept: Store[str], *items: dict[str, object]) -> None:
    """A whole list arrives."""
    kept.replaced([kept.read(document) for document in items], 9)


def test_a_new_version_with_the_same_content_notifies_nobody():
    """A heartbeat is a new version with the same content."""
    kept, _, changed = store()
    listed(kept, item("a", 1, word="x"))
    kept.changed(Event("MODIFIED", item("a", 2, word="x")))
    assert changed == ["a"]


def test_a_second_list_reads_only_what_changed():
    """When a watch expires, 50,000 pods are not parsed again."""
    kept, reads, _ = store()
    listed(kept, item("a", 1, word="x"), item("b", 2, word="y"))
    listed(kept, item("a", 1, word="x"), item("b", 3, word="z"))
    assert reads == ["a", "b", "b"]
    assert kept.items == {"a": "x", "b": "z"}


def test_what_a_list_lacks_is_gone():
    """So is an object that could not be read before."""
    kept, _, changed = store()
    listed(kept, item("a", 1, word="x"), item("b", 2, word="bad"))
    listed(kept)
    assert (kept.items, kept.bad) == ({}, {})
    assert changed == ["a", "a"]


def test_an_unreadable_object_is_left_out_with_its_reason_and_comes_back():
    """The other objects stay, and the object is read again when it is corrected."""
    kept, _, _ = store()
    listed(kept, item("a", 1, word="x"), item("b", 2, word="bad"))
    assert (kept.items, kept.bad) == ({"a": "x"}, {"b": "Thing b: is bad"})
    kept.changed(Event("MODIFIED", item("b", 3, word="y")))
    assert (kept.items, kept.bad) == ({"a": "x", "b": "y"}, {})


def test_an_object_that_turns_bad_is_out_of_the_picture():
    """Its earlier content would be stale."""
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


def test_what_a_newer_list_lacks_is_gone_from_the_ledger():
    """The watch missed its deletion."""
    book = Objects()
    book.stored(reservation("a", 5))
    book.replaced([], 10)
    assert book.entries == {}


def test_an_older_version_never_replaces_a_newer_one():
    """The watch reports a replica's own write after the answer to it."""
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
    """The watch lags, so earlier writes to other objects are not known."""
    book = Objects()
    book.stored(reservation("c", 9, since=5))
    assert book.shown == 0


def test_an_object_that_was_deleted_does_not_come_back():
    """The watch may report earlier versions after the deletion is known."""
    book = Objects()
    book.stored(reservation("a", 7, since=2))
    book.record_deletion("a", reservation("a", 7)["metadata"]["uid"])
    book.changed(Event("MODIFIED", reservation("a", 6, since=1)))
    book.stored(reservation("a", 7, since=2))
    book.replaced([book.read(reservation("a", 7, since=2))], 7)
    assert book.entries == {}


def test_an_object_without_a_commit_counts_for_nothing():
    """A writer that died before its commit left it."""
    book = Objects()
    book.stored(item("a", 3, spec={"gang": "a/Job/a", "mode": "domain"}, status={}))
    assert book.entries["a"].recorded is None


def test_a_reservation_that_does_not_read_is_left_out():
    """A user edited it; the other reservations stay."""
    book = Objects()
    broken = reservation("a", 3)
    broken["spec"] = {"gang": "a/Job/a", "mode": "sideways"}
    book.stored(broken)
    assert book.entries["a"].recorded is None


async def test_watches_that_end_at_once_are_not_opened_in_a_tight_loop():
    """A proxy may end each of them. The API server would get hundreds of calls a second, of every watch."""
    opened = 0

    class Server:
        async def list(self, path, keep, **query):
            return [], "1"

        async def watch(self, path, version, **query):
            nonlocal opened
            opened += 1
            await asyncio.sleep(0)  # the answer has no events
            yield Event("OPENED", {})

    kept, _, _ = store()
    with suppress(TimeoutError):
        async with asyncio.timeout(2.5 * FIRST_PAUSE):
            await Reflector(Server(), "/api/v1/things", kept).run()  # type: ignore[arg-type]
    assert opened <= 3


async def test_a_right_that_a_starting_server_does_not_know_yet_is_missing_until_it_does(monkeypatch):
    """It answers service accounts with 403 until it has read the roles. Else queues would stay unknown."""
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.01)
    seen, lists = [], 0

    class Server(Api):
        def __init__(self):
            pass

        async def list(self, path, keep, **query):
            nonlocal lists
            lists += 1
            if lists == 2:
                raise ApiError(403, "Forbidden", "things is forbidden")
            return [], str(lists)

        async def watch(self, path, version, **query):
            if lists == 1:
                raise ApiError(410, "Expired", "too old resource version")
            yield Event("OPENED", {})
            await asyncio.sleep(60)

    class Handler:
        def read(self, document):
            return document

        def replaced(self, items, version):
            seen.append(reflector.forbidden)

    reflector = Reflector(Server(), "/api/v1/things", Handler())
    with suppress(TimeoutError):
        async with asyncio.timeout(0.5):
            await reflector.run()
    assert lists == 3
    assert seen == [False, False]
    assert not reflector.forbidden


class Refusing(Api):
    """An API server that lists nothing, and says why."""

    def __init__(self, error: ApiError) -> None:
        self.error = error

    async def list(self, path, keep, **query):
        raise self.error


async def test_a_kind_that_may_not_be_listed_is_forbidden_after_it_was_done_without():
    """The page says so for as long as it lasts."""
    kept, _, _ = store()
    reflector = Reflector(Refusing(ApiError(403, "Forbidden", "things is forbidden")), "/api/v1/things", kept)
    running = asyncio.create_task(reflector.run())
    await asyncio.sleep(0.05)
    reflector.go_without()
    await asyncio.sleep(2 * FIRST_PAUSE)
    running.cancel()
    assert reflector.forbidden


async def test_a_fixed_path_that_is_not_served_for_a_while_leaves_all_objects(monkeypatch):
    """Reservations have such a path. While they counted as none, other gangs could take what is held."""
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.01)
    seen, answers = [], [[item("a", 1, word="x")], 404, 404, [item("a", 1, word="x")]]

    class Server(Api):
        def __init__(self):
            pass

        async def list(self, path, keep, **query):
            answer = answers.pop(0)
            seen.append((sorted(kept.items), reflector.missing, reflector.problem))
            if answer == 404:
                raise ApiError(404, "NotFound", "the server could not find the requested resource")
            return [keep(obj) for obj in answer], "1"

        async def watch(self, path, version, **query):
            if answers:
                raise ApiError(410, "Expired", "too old resource version")
            yield Event("OPENED", {})
            await asyncio.sleep(60)

    kept, _, _ = store()
    reflector = Reflector(Server(), "/apis/x/v1/things", kept)
    with suppress(TimeoutError):
        async with asyncio.timeout(0.5):
            await reflector.run()
    unserved = "/apis/x/v1/things: the API server does not serve it; is its CRD installed?"
    assert [names for names, _, _ in seen] == [[], ["a"], ["a"], ["a"]]
    assert seen[-1] == (["a"], True, unserved)
    assert (sorted(kept.items), reflector.missing, reflector.problem) == (["a"], False, "")


async def test_a_fixed_path_that_is_not_served_is_never_taken_for_empty():
    """A replica without the CRD of reservations is not ready."""

    kept, _, _ = store()
    absent = ApiError(404, "NotFound", "the server could not find the requested resource")
    reflector = Reflector(Refusing(absent), "/apis/x/v1/things", kept)
    with suppress(TimeoutError):
        async with asyncio.timeout(2.5 * FIRST_PAUSE):
            await reflector.run()
    assert reflector.missing
    assert not reflector.synced.is_set()
