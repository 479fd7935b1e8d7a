"""A mapping that is never changed: with one more entry it is another one, which shares nearly all with it.

A few changes lie over a large base; when they are many, the two are merged into a new base. So a change
costs the number of changes since the last merge, and a look-up two look-ups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import isqrt
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Layered(Mapping[K, V], Generic[K, V]):
    """An immutable mapping with cheap changes. Entries keep their order; a replaced one keeps its place.

    New ones come last; with an `order`, entries are in the order of that key instead.
    """

    __slots__ = ("_base", "_changes", "_length", "_most", "_order", "_sorted")

    def __init__(self, base: Mapping[K, V] | None = None, order: Callable[[K], Any] | None = None) -> None:
        self._base: Mapping[K, V] = base if base is not None else {}
        self._order = order
        self._sorted: list[K] | None = None
        self._changes: dict[K, V | None] = {}
        self._length = len(self._base)
        self._most = 16 + isqrt(self._length)

    def changed(self, key: K, value: V | None) -> Layered[K, V]:
        """This mapping with the entry, or without it where the value is None."""
        return self.updated({key: value})

    def updated(self, changes: Mapping[K, V | None]) -> Layered[K, V]:
        """This mapping with all these entries; None takes one out."""
        if not changes:
            return self
        made: Layered[K, V] = Layered.__new__(Layered)
        made._base, made._most, made._order, made._sorted = self._base, self._most, self._order, None
        made._changes = {**self._changes, **changes}
        length = self._length
        for key, value in changes.items():
            length += (value is not None) - (key in self)
        made._length = length
        if len(made._changes) > made._most:
            made._merge()
        return made

    def _merge(self) -> None:
        """Puts the changes into a base of its own."""
        base = dict(self._base)
        for key, value in self._changes.items():
            if value is None:
                base.pop(key, None)
            else:
                base[key] = value
        self._base, self._changes, self._most = base, {}, 16 + isqrt(len(base))

    def __getitem__(self, key: K) -> V:
        if key in self._changes:
            value = self._changes[key]
            if value is None:
                raise KeyError(key)
            return value
        return self._base[key]

    def __contains__(self, key: object) -> bool:
        if key in self._changes:
            return self._changes[key] is not None
        return key in self._base

    def __iter__(self) -> Iterator[K]:
        if self._order is None:
            return self._there()
        if self._sorted is None:
            self._sorted = sorted(self._there(), key=self._order)
        return iter(self._sorted)

    def _there(self) -> Iterator[K]:
        changes = self._changes
        for key in self._base:
            if key not in changes or changes[key] is not None:
                yield key
        for key, value in changes.items():
            if value is not None and key not in self._base:
                yield key

    def __len__(self) -> int:
        return self._length
