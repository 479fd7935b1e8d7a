"""The deadline of a decision, checked in everything that may take long. This module reads no clock.

The caller passes a function that reports whether the deadline has passed (`watched`). Reading, policies,
search and explanation check it at each step (`poll`). A context variable (PEP 567) carries the function: it
is set for one decision in one thread, so that about 200 functions in between need no argument for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

Part = Literal["reading", "policies", "search", "explanation"]
"""The part of a decision that checks the deadline."""


class DeadlinePassed(BaseException):
    """Raised when the deadline has passed; `part` is what was running at that time.

    A `BaseException`, like `KeyboardInterrupt`: the handlers that turn an error in an object or a policy into
    an answer catch `Exception`, and must not catch this one.
    """

    def __init__(self, part: Part) -> None:
        self.part = part
        super().__init__(part)


def no_deadline() -> bool:
    """The deadline check of a decision without a deadline; always returns False."""
    return False


_late: ContextVar[Callable[[], bool]] = ContextVar("late", default=no_deadline)


@contextmanager
def watched(late: Callable[[], bool]) -> Iterator[None]:
    """Sets the deadline check for the `with` block: `poll` raises once `late` returns True."""
    token = _late.set(late)
    try:
        yield
    finally:
        _late.reset(token)


def deadline() -> Callable[[], bool]:
    """Returns the deadline check itself, for innermost loops, in which `poll` would cost as much as a step.

    If the check returns True, the caller has to raise `DeadlinePassed`.
    """
    return _late.get()


def poll(part: Part) -> None:
    """Raises `DeadlinePassed` if the deadline has passed. Costs 0.2 µs, which is cheap enough for loops."""
    if _late.get()():
        raise DeadlinePassed(part)
