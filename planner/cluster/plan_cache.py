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
ON_NODES        cluster/namespace_gpus.py            who has a node's GPUs              the node's pods change

Nothing here is ever wrong: an entry that has become useless is no longer asked for, or is refused by `fresh`,
and is the next to be dropped.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock, local
from typing import Any, Generic, TypeVar, cast

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
R = TypeVar("R")

MAX_ENTRIES = 64
"""Entries of all sections together. A request needs two to six, so this serves about twenty kinds of requests
in turn, which is more than the queue of a busy cluster has; the entry that was asked for longest ago goes
first."""

MAX_RESULTS = 1_500_000
"""Results remembered inside all entries together, of about 200 bytes each: at most some 300 MB."""


def _one_result(_: object) -> int:
    return 1


@dataclass(frozen=True, slots=True, eq=False)
class CacheSection(Generic[K, V]):
    """One kind of entry of a `PlanCache`: its keys are `K`, its values `V`.

    `results` counts what a value has come to remember; of a value that does not grow it is 1.
    """

    name: str
    results: Callable[[V], int] = _one_result


class _Exclusive(local):
    """How many plan caches this thread uses now, each as often as it has entered it."""

    depth: int = 0


_exclusive = _Exclusive()


def is_exclusive() -> bool:
    """Whether this thread keeps others from a plan cache: it must not wait for one of them now."""
    return _exclusive.depth > 0


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
    """Entries by section and key. Values grow while a search uses them, so searches run one at a time."""

    def __init__(self) -> None:
        self._lock = RLock()  # reentrant: a search asks for further entries
        self._entries: OrderedDict[tuple[CacheSection[Any, Any], Hashable], _CachedValue] = OrderedDict()

    def exclusively(self, search: Callable[[], R]) -> R:
        """The search's result; no other thread uses an entry meanwhile."""
        with self._alone():
            return search()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self._lock:
            _exclusive.depth += 1
            try:
                yield
            finally:
                _exclusive.depth -= 1

    def entry(
        self,
        section: CacheSection[K, V],
        key: K,
        make: Callable[[], V],
        *,
        fresh: Callable[[V], bool] | None = None,
    ) -> V:
        """The section's value under the key; made where there is none, or where it is no longer `fresh`.

        One that alone has outgrown `MAX_RESULTS` is made anew too, so that no request grows without bound.
        """
        with self._alone():
            self._measure_latest()
            place = (section, key)
            entry = self._entries.get(place)
            if entry is None or entry.measure() > MAX_RESULTS or (fresh and not fresh(entry.value)):  # type: ignore[arg-type]
                entry = self._entries[place] = _CachedValue(make(), section.results)
            self._entries.move_to_end(place)
            self._evict()
            return cast(V, entry.value)

    def _measure_latest(self) -> None:
        """Only the entry that was given out last can have grown much since it was measured."""
        if self._entries:
            next(reversed(self._entries.values())).measure()

    def _evict(self) -> None:
        """Drop what was asked for longest ago; never the entry that is being given out."""
        while len(self._entries) > MAX_ENTRIES or (self.results > MAX_RESULTS and len(self._entries) > 1):
            self._entries.popitem(last=False)

    @property
    def results(self) -> int:
        """How many results all entries remember."""
        return sum([entry.results for entry in self._entries.values()])


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
