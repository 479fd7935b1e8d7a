"""Decides which of several concurrent decisions continues: a long one pauses while a short one runs.

Threads of one interpreter share one core, so a short decision beside a long one would take twice its time and
more. The rule is least attained service: who has worked least goes first. What a decision will cost is not
known beforehand, but those of one flow (a user in a namespace) are alike: one of a flow whose decisions took
long counts as long from its first step. The rule is applied where the deadline is checked
(`planner.model.deadline.poll`), so a long decision gives way within a few milliseconds. It keeps nothing
meanwhile that another could wait for: each has entries of the plan cache of its own
(`planner.cluster.plan_cache.apart`).
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

SHORT = 0.03
"""Core seconds up to which a decision never yields, unless its flow counts as long: that of an ordinary pod
takes 13 ms."""


PATIENCE = 2.0
"""How long a decision stands still at most, in multiples of what it has worked (`SHORT` at least): however
many short ones come, it has a third of its time, and so it is not taken for one that a busy machine left no
time (`service.BUSY_SHARE`)."""


RECENT = 1 / 4
"""How much of a flow's expected seconds its latest decision makes up. The expected seconds decide whether the
flow counts as long: from `SHORT` on."""


CAP = 4
"""In multiples of `SHORT`, what a decision counts for at most: however long it was, its flow counts as short
again after seven of 13 ms."""


MOST_FLOWS = 4096
"""Flows whose expected seconds are kept; the one that was decided least recently is forgotten."""


LOOK_SECONDS = 0.02
"""Interval at which a paused decision checks whether its call is over."""


@dataclass(slots=True, eq=False)
class _Running:
    """`began`: the thread's CPU time at the start; `paused`: seconds for which it paused."""

    began: float
    is_short: bool
    paused: float = 0.0


class Precedence:
    """The decisions that run in the threads of this process."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running: set[_Running] = set()
        self._expected: OrderedDict[str, float] = OrderedDict()

    @contextmanager
    def running(self, over: Callable[[], bool], flow: str) -> Iterator[Callable[[], bool]]:
        """Within it a decision of the flow runs in this thread. Gives what the decision is to ask at each
        step of long work: whether it is `over`; before it answers, it lets others go first."""
        own = _Running(time.thread_time(), self._expected.get(flow, 0.0) < SHORT)

        def asked() -> bool:
            if len(self._running) > 1:  # no check is needed if it runs alone
                self._give_way(own, over)
            return over()

        with self._changed:
            self._running.add(own)
        try:
            yield asked
        finally:
            with self._changed:
                self._running.remove(own)
                self._remember(flow, time.thread_time() - own.began)
                self._changed.notify_all()

    def _remember(self, flow: str, seconds: float) -> None:
        seconds = min(seconds, CAP * SHORT)
        former = self._expected.pop(flow, seconds)
        self._expected[flow] = former + RECENT * (seconds - former)
        if len(self._expected) > MOST_FLOWS:
            self._expected.popitem(last=False)

    def _give_way(self, own: _Running, over: Callable[[], bool]) -> None:
        worked = time.thread_time() - own.began
        if own.is_short and worked < SHORT:
            return
        with self._changed:
            own.is_short = False
            self._changed.notify_all()
            while (
                any(running.is_short for running in self._running)
                and own.paused < PATIENCE * max(worked, SHORT)
                and not over()
            ):
                began = time.monotonic()
                self._changed.wait(LOOK_SECONDS)
                own.paused += time.monotonic() - began
