"""A property that is worked out once, and that holds nobody up meanwhile."""

import threading
from dataclasses import dataclass, field

from planner.model.cached_property import cached_property


@dataclass(frozen=True)
class Record:
    """Two of them have nothing in common but their class."""

    began: threading.Event = field(default_factory=threading.Event)
    goes_on: threading.Event = field(default_factory=threading.Event)
    worked: list[int] = field(default_factory=list)

    @cached_property
    def value(self) -> int:
        """How often it was worked out."""
        self.began.set()
        assert self.goes_on.wait(10)
        self.worked.append(1)
        return len(self.worked)


def test_it_is_worked_out_once() -> None:
    """The second time it is known, and equal records have it each for itself."""
    record = Record()
    record.goes_on.set()
    assert (record.value, record.value, record.worked) == (1, 1, [1])
    assert Record.value.__doc__ == "How often it was worked out."


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
