"""Measures the cost of code in ways that do not depend on the load of the machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from cProfile import Profile


def cpu_seconds(work: Callable[[], object], tries: int = 1) -> float:
    """CPU seconds of one run: the minimum over this many tries. Wall-clock time also counts other programs on
    a busy machine, so a bound on it would fail for reasons outside the code.
    """

    def once() -> float:
        began = time.process_time()
        work()
        return time.process_time() - began

    return min(once() for _ in range(tries))


def calls(work: Callable[[], object], *, builtins: bool = False) -> int:
    """Number of Python function calls in one run. It is the same in each run, whatever the load. `builtins`
    also counts functions that are written in C. The time inside C code is not seen: the number shows how
    often code does something, not how long that takes.
    """
    profile = Profile(builtins=builtins)
    profile.runcall(work)
    return sum(entry.callcount for entry in profile.getstats())
