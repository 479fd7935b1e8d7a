"""`functools.cached_property` without a lock, as in Python 3.12 and later.

Python 3.11 computes a value under a lock that all objects of the class share: threads that read two different
snapshots wait for each other, and a process that is forked during a computation inherits a lock that is never
released. Without the lock, two threads may compute the same value twice. Both results are equal, because a
value depends only on an immutable record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801 - named like functools' property, which it replaces
    """A property that is computed once for each object, on first use, and stored in its `__dict__`."""

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
