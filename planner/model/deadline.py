"""The deadline of a decision, checked inside all work that may take long. This module reads no clock.

The caller hands in a function that says whether the deadline has passed (`watched`). Reading, policies,
search and explanation check it at each step (`poll`). A context variable (PEP 567) carries the function: it
is set for one decision in one thread, so that some two hundred functions in between need no argument for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

Part = Literal["reading", "policies", "search", "explanation"]


class DeadlinePassed(BaseException):
    """The deadline passed while `part` was at work.

    A `BaseException`, like `KeyboardInterrupt`: handlers that turn an error of an object or a policy into an
    answer catch `Exception`, and must not catch this.
    """

    def __init__(self, part: Part) -> None:
        self.part = part
        super().__init__(part)


def never() -> bool:
    """The check of a decision without a deadline: it never passes."""
    return False


_late: ContextVar[Callable[[], bool]] = ContextVar("late", default=never)


@contextmanager
def watched(late: Callable[[], bool]) -> Iterator[None]:
    """Sets the deadline check for the `with` block: `poll` raises once `late` returns True."""
    token = _late.set(late)
    try:
        yield
    finally:
        _late.reset(token)


def deadline() -> Callable[[], bool]:
    """The deadline check itself, for innermost loops, where a call of `poll` costs as much as a step.

    A caller that gets True raises `DeadlinePassed`.
    """
    return _late.get()


def poll(part: Part) -> None:
    """Raises `DeadlinePassed` if the deadline has passed. Costs 0.2 µs, which is cheap enough for loops."""
    if _late.get()():
        raise DeadlinePassed(part)
