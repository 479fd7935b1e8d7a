"""What work costs this process, whatever else the machine does meanwhile."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType


def cpu_seconds(work: Callable[[], object], tries: int = 1) -> float:
    """CPU seconds of one run, the least of so many tries.

    Not the time on the wall: on a busy machine that is other programs' time, and a bound on it would fail for
    what is not ours.
    """

    def once() -> float:
        began = time.process_time()
        work()
        return time.process_time() - began

    return min(once() for _ in range(tries))


def calls(work: Callable[[], object]) -> int:
    """Functions of Python's own that one run calls: the same number in each run, whatever else goes on.

    What C code costs it does not see: it tells how often our code looks at things, not how long that takes.
    """
    count = 0

    def counted(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        count += event == "call"

    former = sys.getprofile()
    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(former)
    return count
