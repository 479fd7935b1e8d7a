"""`functools.cached_property` as it is since Python 3.12: without a lock.

That of Python 3.11 holds a lock while it works a value out, one for all objects of the class: threads that
ask two snapshots wait for each other, and a process that is forked meanwhile finds it held for ever. Two
threads may work one value out twice here, and either is right, for it depends on an immutable record alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801 - named like the one it stands for
    """A property that is worked out once for each object, on first use, and kept in its `__dict__`."""

    def __init__(self, work: Callable[[Any], T]) -> None:
        self._work = work
        self.__doc__ = work.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, record: None, owner: type) -> cached_property[T]: ...

    @overload
    def __get__(self, record: object, owner: type) -> T: ...

    def __get__(self, record: object | None, owner: type) -> cached_property[T] | T:
        if record is None:
            return self
        value = record.__dict__[self._name] = self._work(record)
        return value
