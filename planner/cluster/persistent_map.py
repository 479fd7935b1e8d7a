"""A mapping that is never changed: with one more entry it is another one, which shares nearly all with it.

A few changes lie over more of them, and these over a large base; when there are many in a layer, it is merged
with the one below. So a change costs the number of those in the upper layer, of the order of the cube root of
the whole, and a look-up three look-ups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

K = TypeVar("K")


V = TypeVar("V")


_LARGE = 1024
"""Entries from which on there is a layer in the middle."""


class PersistentMap(Mapping[K, V], Generic[K, V]):
    """An immutable mapping with cheap changes. Entries keep their order; a replaced one keeps its place.

    New ones come last; with an `order`, entries are in the order of that key instead.
    """

    __slots__ = ("_base", "_changes", "_layer", "_length", "_most", "_order", "_sorted")

    def __init__(
        self, base: Mapping[K, V] | None = None, order: Callable[[K], Any] | None = None, layer: int = 1
    ) -> None:
        self._order, self._layer = order, layer
        self._sorted: list[K] | None = None
        self._rest_on(base if base is not None else {})

    def _rest_on(self, entries: Mapping[K, V]) -> None:
        """Lie over these entries, with no changes."""
        self._length = len(entries)
        self._changes: dict[K, V | None] = {}
        self._most = 16 + int(self._length ** (self._layer / 3))
        middle = self._layer == 1 and self._length > _LARGE
        self._base: Mapping[K, V] = PersistentMap(entries, layer=2) if middle else entries

    def changed(self, key: K, value: V | None) -> PersistentMap[K, V]:
        """This mapping with the entry, or without it where the value is None."""
        return self.updated({key: value})

    def updated(self, changes: Mapping[K, V | None]) -> PersistentMap[K, V]:
        """This mapping with all these entries; None takes one out."""
        if not changes:
            return self
        made: PersistentMap[K, V] = PersistentMap.__new__(PersistentMap)
        made._base, made._layer, made._most = self._base, self._layer, self._most
        made._order, made._sorted = self._order, None
        made._changes = {**self._changes, **changes}
        length = self._length
        for key, value in changes.items():
            length += (value is not None) - (key in self)
        made._length = length
        if len(made._changes) > made._most:
            made._merge()
        return made

    def _merge(self) -> None:
        """Puts the changes into the layer below, which is another one then."""
        if isinstance(self._base, PersistentMap):
            self._base, self._changes = self._base.updated(self._changes), {}
            return
        base = dict(self._base)
        for key, value in self._changes.items():
            if value is None:
                base.pop(key, None)
            else:
                base[key] = value
        self._rest_on(base)

    def __getitem__(self, key: K) -> V:
        if key in self._changes:
            value = self._changes[key]
            if value is None:
                raise KeyError(key)
            return value
        return self._base[key]

    def get(self, key: K, default: Any = None) -> Any:
        if key in self._changes:
            value = self._changes[key]
            return default if value is None else value
        return self._base.get(key, default)

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
