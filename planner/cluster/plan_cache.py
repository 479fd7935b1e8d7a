"""Results of one plan that a later plan can reuse: typed, bounded and thread-safe.

Every plan asks the same questions about the cluster: which nodes a pod may be on, how many pods a rack takes,
which rack is best. The answers depend only on immutable values (`DomainCapacity`, `Subtree`, the fields of a
request), so they stay correct. `PlanCache` keeps them for all snapshots of one cluster; `DerivedValues` keeps
what was computed from a single record. The cache is divided into *lanes*, each of which allows one search at
a time. A thread can take a lane of its own, so that it waits for no other thread.

Each kind of entry is a `CacheSection`, declared beside the type that it stores:

    section         declared in                           holds                             stale when
    UNRESTRICTED    search/eligibility_map.py             pods that ask for no label        never
    ELIGIBILITY     search/eligibility_map.py             eligible nodes by subtree         tree rebuilt
    CAPPED          search/eligibility_map.py             the same, with caps of domains    never
    CLASSES         search/level_search.py                pods of a class that domains take never
    RANKINGS        search/level_search.py                the best domain for a pod class   never
    INTERCHANGEABLE search/mixtures/equivalent_classes.py if nodes hold as many of 2 shapes never
    REFINED_TREES   search/rules/label_levels.py          trees with labels as levels       a node changes
    TALLIES         explain/obstacles.py                  why domains take no pod           never
    LEAF_HOSTS      leafspine/leaf_capacity.py            pods that a leaf takes            never
    LATEST_CENSUS   cluster/census/namespaces.py          who has which GPUs                next census

No wrong result is ever used. An entry whose inputs no longer exist is not requested again, and is evicted as
the least recently used. A stale one is replaced (argument `fresh` of `PlanCache.entry`) or updated.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import count
from threading import Lock, RLock, local
from typing import Any, Generic, TypeVar, cast

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
R = TypeVar("R")

MAX_ENTRIES = 64
"""Maximum number of entries of a lane, all sections together; the least recently used is evicted. A request
needs two to six entries, so a lane keeps those of about twenty different requests, more than usually wait in
the queue of a busy cluster.
"""

MAX_RESULTS = 1_500_000
"""Maximum number of results in all lanes; each lane has an equal share, and evicts entries beyond it. A
result takes about 200 bytes, so this is about 300 MB.

The maximum may be exceeded for a while. Values grow while a search uses them, and are measured only when they
are requested, and once more at the next request in their lane: if a search uses several at once, all but the
last may grow unmeasured until they are requested again. A lane evicts only when it is used: an idle one keeps
what it had when there were fewer lanes.
"""


def _one_result(_: object) -> int:
    return 1


@dataclass(frozen=True, slots=True, eq=False)
class CacheSection(Generic[K, V]):
    """One kind of entry of a `PlanCache`, with keys `K` and values `V`.

    `results` returns how many results a value contains, which counts toward `MAX_RESULTS`; 1 for a value that
    does not grow.
    """

    name: str
    results: Callable[[V], int] = _one_result


COMMON = 0
"""The lane that threads without a lane of their own share."""


class _OwnLane(local):
    """The number of the lane of the current thread; it applies to every plan cache."""

    number: int = COMMON


class _Lanes:
    """Assigns lanes to threads."""

    def __init__(self) -> None:
        self._own = _OwnLane()
        self._lock = Lock()
        self._taken: set[int] = {COMMON}

    @property
    def current(self) -> int:
        """The lane of this thread."""
        return self._own.number

    @contextmanager
    def own_lane(self) -> Iterator[None]:
        with self._lock:
            number = next(number for number in count() if number not in self._taken)
            self._taken.add(number)
        former, self._own.number = self._own.number, number
        try:
            yield
        finally:
            self._own.number = former
            with self._lock:
                self._taken.remove(number)

    @contextmanager
    def without_lane_changes(self) -> Iterator[None]:
        with self._lock:
            yield


_lanes = _Lanes()


def own_lane() -> AbstractContextManager[None]:
    """Gives this thread a lane of its own within the context.

    Within it, the thread waits for no search of another thread, and no thread waits for it, however long it
    searches. It gets the first free lane: if only one thread decides at a time, it therefore finds the
    results of all earlier decisions.
    """
    return _lanes.own_lane()


def in_own_lane() -> AbstractContextManager[None]:
    """Gives a forked process a lane of its own within the context.

    If the thread that forked has its own lane, the process keeps that one. The locks of the other lanes may
    stay locked forever, by threads that the new process does not have.
    """
    return nullcontext() if _lanes.current != COMMON else _lanes.own_lane()


def without_lane_changes() -> AbstractContextManager[None]:
    """Prevents all threads from taking or leaving a lane within the context, so that a fork sees no
    half-taken lane.
    """
    return _lanes.without_lane_changes()


@dataclass(slots=True)
class _CachedValue:
    """A value, and its number of results when `count` last counted them."""

    value: object
    count: Callable[[Any], int]
    results: int = 0


class PlanCache:
    """Cached values by section and key.

    Values grow while a search uses them, so each lane allows only one search at a time. Lanes share no
    entries: each works like a cache of its own.
    """

    def __init__(self) -> None:
        self._lanes = {COMMON: _Lane()}  # each other lane is created by the thread that takes it

    def exclusively(self, search: Callable[[], R]) -> R:
        """Runs the search and returns its result. No other thread uses an entry of the lane during the
        search.
        """
        with self._lane().lock:
            return search()

    def entry(
        self,
        section: CacheSection[K, V],
        key: K,
        make: Callable[[], V],
        *,
        fresh: Callable[[V], bool] | None = None,
    ) -> V:
        """Returns the value of a section under a key. `make` creates it if it is missing or not `fresh`.

        A value that exceeds its lane's share of `MAX_RESULTS` by itself is created again, so that no value
        grows from request to request without bound.
        """
        lane, share = self._lane(), MAX_RESULTS // len(self._lanes)
        with lane.lock:
            if lane.latest is not None:  # only the latest value may have grown, unless a search uses several
                lane.measure(lane.latest)
            place = (section, key)
            entry = lane.entries.get(place)
            if entry is None or lane.measure(entry) > share or (fresh and not fresh(entry.value)):  # type: ignore[arg-type]
                entry = lane.replace(place, _CachedValue(make(), section.results))
            lane.entries.move_to_end(place)
            lane.latest = entry
            lane.evict(share)
            return cast(V, entry.value)

    def _lane(self) -> _Lane:
        number = _lanes.current
        if number not in self._lanes:
            self._lanes[number] = _Lane()
        return self._lanes[number]

    @property
    def results(self) -> int:
        """The number of results in all entries."""
        return sum([lane.results for lane in list(self._lanes.values())])


class _Lane:
    """Entries that are used by one thread at a time.

    `results` is the sum over the entries, each as last measured. It is updated with every change, because
    summing over all entries at each access took more than half of the time of a workload of many small gangs.
    `latest` is the entry that was returned last.
    """

    def __init__(self) -> None:
        self.lock = RLock()  # reentrant: a search asks for further entries
        self.entries: OrderedDict[tuple[CacheSection[Any, Any], Hashable], _CachedValue] = OrderedDict()
        self.results = 0
        self.latest: _CachedValue | None = None

    def measure(self, entry: _CachedValue) -> int:
        """Returns the current number of results in an entry, and updates the sum."""
        before, entry.results = entry.results, entry.count(entry.value)
        self.results += entry.results - before
        return entry.results

    def replace(self, place: tuple[CacheSection[Any, Any], Hashable], entry: _CachedValue) -> _CachedValue:
        """Stores and returns the entry, in place of the former one of this section and key."""
        former = self.entries.get(place)
        self.results -= former.results if former is not None else 0
        self.entries[place] = entry
        return entry

    def evict(self, share: int) -> None:
        """Evicts the least recently used entries, but never the most recent one, which is being returned."""
        while len(self.entries) > MAX_ENTRIES or (self.results > share and len(self.entries) > 1):
            _, evicted = self.entries.popitem(last=False)
            self.results -= evicted.results


@dataclass(frozen=True, slots=True, eq=False)
class DerivedSection(Generic[K, V]):
    """One kind of value that is computed from a record, with keys `K` and values `V`.

    `max_keys` bounds sections whose keys come from requests; the key that was added first is evicted. Keys
    that the record itself bounds, such as topology names, need no bound.
    """

    name: str
    max_keys: int | None = None


_MISSING: Any = object()
"""Stands for no value where None is one."""


class DerivedValues:
    """Values computed from one immutable record. They are valid as long as the record and are dropped with
    it.
    """

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[DerivedSection[Any, Any], OrderedDict[Any, Any]] = {}

    def get(self, section: DerivedSection[K, V], key: K, make: Callable[[], V]) -> V:
        """Returns the section's value under the key, and computes it if it is missing.

        There is no lock: two threads may compute the same value twice, and both results are equal.
        """
        values: OrderedDict[K, V] = self._values.setdefault(section, OrderedDict())
        cached: V = values.get(key, _MISSING)  # one look-up: another thread may evict the key between two
        if cached is not _MISSING:
            return cached
        value = make()
        if section.max_keys is not None and len(values) >= section.max_keys:
            with suppress(KeyError):  # another thread removed it
                values.popitem(last=False)
        values[key] = value
        return value
