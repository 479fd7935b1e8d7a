"""Measures the cost of code in ways that do not depend on the load of the machine."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


@contextmanager
def steps_so_far(*, builtins: bool = False) -> Iterator[Callable[[], int]]:
    """While the `with` block runs, gives the number of steps so far: functions that began or ended.

    The profiler asks its clock at each of them. This clock counts how often it is asked, in C: a trace
    function in Python would take longer than the code that it counts.
    """
    ticks = itertools.count()
    profile = Profile(ticks.__next__, 1, subcalls=False, builtins=builtins)
    profile.enable()
    try:
        yield ticks.__next__
    finally:
        profile.disable()


def fewest_steps(calls: int) -> int:
    """Steps between two moments that so many function calls take at least: all of them begin, and all end but
    those that are still on the stack.
    """
    return 2 * calls - sys.getrecursionlimit() - 1
