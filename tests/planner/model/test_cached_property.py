"""Tests a property that is computed once and blocks no other thread meanwhile."""

import threading
from dataclasses import dataclass, field

from planner.model.cached_property import cached_property


@dataclass(frozen=True)
class Record:
    """A class with a cached property: instances share nothing."""

    began: threading.Event = field(default_factory=threading.Event)
    goes_on: threading.Event = field(default_factory=threading.Event)
    worked: list[int] = field(default_factory=list)

    @cached_property
    def value(self) -> int:
        """The number of computations so far."""
        self.began.set()
        assert self.goes_on.wait(10)
        self.worked.append(1)
        return len(self.worked)


def test_it_is_worked_out_once() -> None:
    """Equal records compute it separately."""
    record = Record()
    record.goes_on.set()
    assert (record.value, record.value, record.worked) == (1, 1, [1])
    assert Record.value.__doc__ == "The number of computations so far."


def test_another_object_is_not_waited_for() -> None:
    """`functools` in Python 3.11 would hold the second one up until the first is done."""
    slow, quick = Record(), Record()
    quick.goes_on.set()
    thread = threading.Thread(target=lambda: slow.value)
    thread.start()
    assert slow.began.wait(10)
    asked = threading.Thread(target=lambda: quick.value, daemon=True)
    asked.start()
    asked.join(10)
    assert quick.worked == [1]
    slow.goes_on.set()
    thread.join()
