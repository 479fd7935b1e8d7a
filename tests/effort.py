"""What work costs this process, whatever else the machine does meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable


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
