"""Whether the time of a decision is over, asked inside all work that may be long. No clock of its own.

Who decides hands in a function that tells (`watched`); reading, policies, search and explanation ask it at
each step (`poll`). It is not an argument of some two hundred functions between the two, but a variable of the
context (PEP 567) that is set for one decision in one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

Part = Literal["reading", "policies", "search", "explanation"]


class DeadlinePassed(BaseException):
    """The decision has taken all its time; `part` was at work.

    No `Exception`: what makes an answer of an error that an object or a policy causes must let it pass, as it
    lets a `KeyboardInterrupt` pass.
    """

    def __init__(self, part: Part) -> None:
        self.part = part
        super().__init__(part)


def never() -> bool:
    """Without a deadline there is time."""
    return False


_late: ContextVar[Callable[[], bool]] = ContextVar("late", default=never)


@contextmanager
def watched(late: Callable[[], bool]) -> Iterator[None]:
    """Within it, `poll` raises as soon as `late` says so."""
    token = _late.set(late)
    try:
        yield
    finally:
        _late.reset(token)


def deadline() -> Callable[[], bool]:
    """What tells here whether the time is over: for innermost loops, where `poll` costs as much as a step.
    Whoever is told so raises `DeadlinePassed`."""
    return _late.get()


def poll(part: Part) -> None:
    """Raise `DeadlinePassed` where the time is over. A fifth of a microsecond, so that it may be in loops."""
    if _late.get()():
        raise DeadlinePassed(part)
