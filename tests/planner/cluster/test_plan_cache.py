"""Tests the cache that plans share: entries by section and key, a bound, and one thread at a time."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from contextlib import suppress
from threading import Thread

import planner
from planner.cluster import plan_cache
from planner.cluster.plan_cache import CacheSection, DerivedSection, DerivedValues, PlanCache, own_lane

NUMBERS: CacheSection[int, list[int]] = CacheSection("numbers", results=len)
NAMES: CacheSection[int, list[int]] = CacheSection("names")


def test_an_entry_is_made_once_for_each_section_and_key():
    """Equal keys of different sections are different entries."""
    cache = PlanCache()
    numbers = cache.entry(NUMBERS, 1, list)
    assert cache.entry(NUMBERS, 1, list) is numbers
    assert cache.entry(NAMES, 1, list) is not numbers
    assert cache.entry(NUMBERS, 2, list) is not numbers


def test_an_entry_that_is_not_fresh_is_made_anew_in_its_place():
    """The former value is forgotten, so that values of former trees do not add up."""
    cache = PlanCache()
    former = cache.entry(NAMES, 1, list)
    latest = cache.entry(NAMES, 1, list, fresh=lambda value: value is not former)
    assert latest is not former
    assert cache.entry(NAMES, 1, list) is latest
    assert cache.results == 1


def test_the_entry_that_was_asked_for_longest_ago_goes_first():
    """By the number of entries."""
    cache = PlanCache()
    entries = [cache.entry(NAMES, key, list) for key in range(plan_cache.MAX_ENTRIES)]
    assert cache.entry(NAMES, 0, list) is entries[0]
    cache.entry(NAMES, -1, list)
    assert cache.entry(NAMES, 0, list) is entries[0]
    assert cache.entry(NAMES, 1, list) is not entries[1]


def test_an_entry_that_outgrows_the_bound_is_made_anew(monkeypatch):
    """No cached value grows from request to request without bound."""
    monkeypatch.setattr(plan_cache, "MAX_RESULTS", 10)
    cache = PlanCache()
    numbers = cache.entry(NUMBERS, 1, list)
    numbers += range(11)
    assert cache.entry(NUMBERS, 1, list) == []


def test_searches_run_one_at_a_time():
    """A thread waits until the search of another has ended; a search may ask for further entries."""
    cache, order = PlanCache(), []
    other = Thread(target=lambda: cache.exclusively(lambda: order.append("other")))

    def search() -> None:
        other.start()
        other.join(0.05)
        cache.entry(NUMBERS, 1, list)
        order.append("search")

    cache.exclusively(search)
    other.join()
    assert order == ["search", "other"]


def test_a_thread_apart_waits_for_no_search_of_another():
    """Its entries are its own; in its lane, searches run one at a time."""
    cache, order = PlanCache(), []

    def other() -> None:
        with own_lane():
            cache.exclusively(lambda: order.append("other"))

    def search() -> None:
        thread = Thread(target=other)
        thread.start()
        thread.join()
        order.append("search")

    cache.exclusively(search)
    with own_lane():
        cache.exclusively(search)
    assert order == ["other", "search"] * 2


def test_entries_of_threads_apart_are_others():
    """Two threads never share a value that grows while a search uses it."""
    cache = PlanCache()
    common = cache.entry(NUMBERS, 1, list)
    with own_lane():
        own = cache.entry(NUMBERS, 1, list)
        seen: list[list[int]] = []

        def other() -> None:
            with own_lane():
                seen.append(cache.entry(NUMBERS, 1, list))

        thread = Thread(target=other)
        thread.start()
        thread.join()
    assert len({id(common), id(own), id(seen[0])}) == 3


def test_one_decision_after_the_other_finds_what_the_former_left():
    """The first free lane is used, also after a decision that failed."""
    cache = PlanCache()
    with suppress(KeyError), own_lane():
        former = cache.entry(NUMBERS, 1, list)
        raise KeyError
    with own_lane():
        assert cache.entry(NUMBERS, 1, list) is former


def test_all_lanes_share_one_bound(monkeypatch):
    """With a second lane, each has half of it."""
    monkeypatch.setattr(plan_cache, "MAX_RESULTS", 10)
    cache = PlanCache()
    cache.entry(NUMBERS, 1, list).extend(range(6))
    assert len(cache.entry(NUMBERS, 1, list)) == 6
    with own_lane():
        cache.entry(NUMBERS, 1, list)
    assert cache.entry(NUMBERS, 1, list) == []


def test_derived_values_are_bounded_by_their_section():
    """A value that is None counts as one; the key that was added first goes first."""
    calls: list[int] = []
    section: DerivedSection[int, None] = DerivedSection("calls", max_keys=1)
    derived = DerivedValues()
    for key in (1, 1, 2, 1):
        derived.get(section, key, lambda key=key: calls.append(key))
    assert calls == [1, 2, 1]


def test_threads_that_derive_values_at_the_same_time_do_not_harm_each_other():
    """One may remove the oldest key while another looks for it. The threads change as often as they can."""
    section: DerivedSection[tuple[int, int], int] = DerivedSection("threads", max_keys=2)
    derived = DerivedValues()
    errors: list[Exception] = []

    def derive(thread: int) -> None:
        try:
            for number in range(20_000):
                assert derived.get(section, (thread, number), lambda number=number: number) == number
        except Exception as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [Thread(target=derive, args=(thread,)) for thread in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not errors


class EvictedKey:
    """A key that another thread evicts between the first and a second look-up of a cached value."""

    def __init__(self, derived: DerivedValues, section: DerivedSection[object, str]) -> None:
        self._derived, self._section, self.look_ups = derived, section, 0

    def __hash__(self) -> int:
        self.look_ups += 1
        if self.look_ups == 4:
            self._derived.get(self._section, "other", lambda: "of another key")
        return 1


def test_a_cached_value_is_returned_even_if_another_thread_evicts_it() -> None:
    """Two decisions read the outcomes of policies for different claims at the same time."""
    derived = DerivedValues()
    section: DerivedSection[object, str] = DerivedSection("one place", max_keys=1)
    key = EvictedKey(derived, section)
    assert derived.get(section, key, lambda: "first") == "first"
    assert key.look_ups == 2
    for _ in range(2):
        assert derived.get(section, key, lambda: "again") in ("first", "again")


def test_every_section_stands_in_the_table():
    """The table says what makes each kind of entry stale."""
    modules = [
        importlib.import_module(module.name)
        for module in pkgutil.walk_packages(planner.__path__, "planner.")
        if "sqlite" not in module.name
    ]
    sections = {
        name: module.__name__.removeprefix("planner.").replace(".", "/") + ".py"
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, CacheSection)
    }
    rows = [line.split() for line in (plan_cache.__doc__ or "").splitlines()]
    table = {row[0]: row[1] for row in rows if len(row) > 2 and row[0].isupper() and row[1].endswith(".py")}
    assert table == sections
