"""What one plan works out and a later plan can use again: typed, bounded, and safe between threads.

Every plan asks the same questions of the same cluster: which nodes a pod may be on, how many pods a rack
holds, which rack is best. The answers depend on immutable values alone (`DomainCapacity`, `Subtree`, the
fields of a request), so they stay right for as long as somebody asks with the same values. `PlanCache` keeps
them for all snapshots that descend from one cluster; `DerivedValues` keeps what depends on one record.

Each kind of entry is a `CacheSection`, declared beside the type that it stores:

section         declared in                          holds                              until
UNRESTRICTED    search/eligibility_map.py            the map of pods that ask no label  always
ELIGIBILITY     search/eligibility_map.py            where pods may be, by subtree      the tree is grown anew
CLASSES         search/level_search.py               what domains hold of pod classes   nobody asks for them
RANKINGS        search/level_search.py               the best domain for a pod class    nobody asks for it
INTERCHANGEABLE search/mixtures/equivalent_classes.py whether nodes tell shapes apart    nobody asks for them
REFINED_TREES   search/rules/label_levels.py         a tree with labels as levels       a node changes
TALLIES         explain/obstacles.py                 why domains take no pod            nobody asks for it
LEAF_HOSTS      leafspine/leaf_capacity.py           the pods that a leaf holds         nobody asks for it
LATEST_CENSUS   cluster/census/namespaces.py         who has which GPUs                 the next one is made

Nothing here is ever wrong: an entry that has become useless is no longer asked for, or is refused by `fresh`,
and is the next to be dropped.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import count
from threading import Lock, RLock, local
from typing import Any, Generic, TypeVar, cast

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
R = TypeVar("R")

MAX_ENTRIES = 64
"""Entries of all sections together. A request needs two to six, so this serves about twenty kinds of requests
in turn, which is more than the queue of a busy cluster has; the entry that was asked for longest ago goes
first."""

MAX_RESULTS = 1_500_000
"""Results remembered inside all entries of all lanes together, of about 200 bytes each: at most some 300 MB.
Lanes have equal shares."""


def _one_result(_: object) -> int:
    return 1


@dataclass(frozen=True, slots=True, eq=False)
class CacheSection(Generic[K, V]):
    """One kind of entry of a `PlanCache`: its keys are `K`, its values `V`.

    `results` counts what a value has come to remember; of a value that does not grow it is 1.
    """

    name: str
    results: Callable[[V], int] = _one_result


COMMON = 0
"""The lane of all threads that have none of their own."""


class _OwnLane(local):
    """The lane of every plan cache that this thread uses."""

    number: int = COMMON


class _Lanes:
    """Which lanes decisions have for themselves."""

    def __init__(self) -> None:
        self._own = _OwnLane()
        self._lock = Lock()
        self._taken: set[int] = {COMMON}

    @property
    def current(self) -> int:
        """That of this thread."""
        return self._own.number

    @contextmanager
    def apart(self) -> Iterator[None]:
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
    def still(self) -> Iterator[None]:
        with self._lock:
            yield


_lanes = _Lanes()


def apart() -> AbstractContextManager[None]:
    """Within it this thread has entries of its own: it waits for no search of another thread, and none waits
    for it, however long it searches or stands still. They are those of the first lane that nobody has, so
    where one thread decides at a time it finds all that was worked out before."""
    return _lanes.apart()


def in_own_lane() -> AbstractContextManager[None]:
    """The same for a process that was forked: the lane of the thread that forked it is its own, where that
    has one. Others may be in use for ever by threads that it does not have."""
    return nullcontext() if _lanes.current != COMMON else _lanes.apart()


def still() -> AbstractContextManager[None]:
    """Within it no thread takes a lane or leaves it: a process that is forked finds none half taken."""
    return _lanes.still()


@dataclass(slots=True)
class _CachedValue:
    """A value, and how many results it held when it was last measured."""

    value: object
    count: Callable[[Any], int]
    results: int = 0

    def measure(self) -> int:
        self.results = self.count(self.value)
        return self.results


class PlanCache:
    """Entries by section and key. Values grow while a search uses them, so searches run one at a time in each
    lane; a lane is as good as a cache of its own."""

    def __init__(self) -> None:
        self._lanes = {COMMON: _Lane()}  # each other one is made by the thread that has it

    def exclusively(self, search: Callable[[], R]) -> R:
        """The search's result; no other thread uses an entry of the lane meanwhile."""
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
        """The section's value under the key; made where there is none, or where it is no longer `fresh`.

        One that alone has outgrown its lane's share of `MAX_RESULTS` is made anew too, so that no request
        grows without bound.
        """
        lane, share = self._lane(), MAX_RESULTS // len(self._lanes)
        with lane.lock:
            lane.measure_latest()
            place = (section, key)
            entry = lane.entries.get(place)
            if entry is None or entry.measure() > share or (fresh and not fresh(entry.value)):  # type: ignore[arg-type]
                entry = lane.entries[place] = _CachedValue(make(), section.results)
            lane.entries.move_to_end(place)
            lane.evict(share)
            return cast(V, entry.value)

    def _lane(self) -> _Lane:
        number = _lanes.current
        if number not in self._lanes:
            self._lanes[number] = _Lane()
        return self._lanes[number]

    @property
    def results(self) -> int:
        """How many results all entries remember."""
        return sum([lane.results for lane in list(self._lanes.values())])


class _Lane:
    """Entries that one thread uses at a time."""

    def __init__(self) -> None:
        self.lock = RLock()  # reentrant: a search asks for further entries
        self.entries: OrderedDict[tuple[CacheSection[Any, Any], Hashable], _CachedValue] = OrderedDict()

    def measure_latest(self) -> None:
        """Only the entry that was given out last can have grown much since it was measured."""
        if self.entries:
            next(reversed(self.entries.values())).measure()

    def evict(self, share: int) -> None:
        """Drop what was asked for longest ago; never the entry that is being given out."""
        while len(self.entries) > MAX_ENTRIES or (self.results > share and len(self.entries) > 1):
            self.entries.popitem(last=False)

    @property
    def results(self) -> int:
        """How many results its entries remember."""
        return sum([entry.results for entry in list(self.entries.values())])


@dataclass(frozen=True, slots=True, eq=False)
class DerivedSection(Generic[K, V]):
    """One kind of value that is derived from a record: its keys are `K`, its values `V`.

    `max_keys` bounds those whose keys come from requests; the key that was added first goes first. Keys that
    the record itself bounds (a topology's name, a fact's) need none.
    """

    name: str
    max_keys: int | None = None


class DerivedValues:
    """What was worked out from one immutable record alone: right for as long as the record, gone with it."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[DerivedSection[Any, Any], dict[Any, Any]] = {}

    def get(self, section: DerivedSection[K, V], key: K, make: Callable[[], V]) -> V:
        """The section's value under the key, made where there is none.

        Without a lock: two threads may make one value twice, and either is right.
        """
        values: dict[K, V] = self._values.setdefault(section, {})
        if key in values:
            return values[key]
        value = make()
        if section.max_keys is not None and len(values) >= section.max_keys:
            values.pop(next(iter(values)), None)
        values[key] = value
        return value
