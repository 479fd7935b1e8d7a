"""What work costs this process, whatever else the machine does meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from cProfile import Profile


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


def calls(work: Callable[[], object], *, builtins: bool = False) -> int:
    """Functions of Python's own that one run calls: the same number in each run, whatever else goes on.
    `builtins`: those that are written in C, too.

    What C code costs it does not see: it tells how often our code looks at things, not how long that takes.
    """
    profile = Profile(builtins=builtins)
    profile.runcall(work)
    return sum(entry.callcount for entry in profile.getstats())
