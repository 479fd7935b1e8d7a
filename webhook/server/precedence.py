"""Chooses which of several concurrent decisions continues: a long decision pauses while a short one runs.

The threads of a Python interpreter share one core, so a short decision that runs beside a long one would take
at least twice as long. The rule is *least attained service*: the decision that has worked least goes first.
The cost of a decision is not known beforehand, but decisions of one flow (a user in a namespace) are similar:
if earlier decisions of a flow took long, its next decision counts as long from its first step.

The rule is applied where the deadline is checked (`planner.model.effort.deadline.poll`), so a long decision
pauses within a few milliseconds. A paused decision holds no lock that another could wait for: each decision
has its own part of the plan cache (`planner.cluster.plan_cache.own_lane`).
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

SHORT = 0.03
"""Core seconds up to which a decision counts as short and never pauses, unless its flow counts as long. The
decision on an ordinary pod takes 13 ms.
"""


PATIENCE = 2.0
"""The longest total pause of a decision, as a multiple of the core seconds that it has worked (at least
`SHORT`). So a long decision runs for at least a third of its time, however many short decisions arrive. A
third is above `service.BUSY_SHARE`, so pauses alone never make a late decision look as if an overloaded
machine had delayed it.
"""


RECENT = 1 / 4
"""The weight of the latest decision in the expected core seconds of a flow, which are a moving average. A
flow counts as long if its expected seconds are `SHORT` or more.
"""


CAP = 4
"""The most core seconds with which one decision enters the average, as a multiple of `SHORT`. So after a
decision of any length, its flow counts as short again after seven decisions of 13 ms.
"""


MOST_FLOWS = 4096
"""The number of flows whose expected seconds are kept; the flow whose last decision is oldest is removed
first.
"""


LOOK_SECONDS = 0.02
"""Interval at which a paused decision checks whether its call is over."""


@dataclass(slots=True, eq=False)
class _Running:
    """A decision that runs.

    `began`: the thread's CPU seconds at its start; `is_short`: whether it counts as short; `paused`:
    seconds of its pauses.
    """

    began: float
    is_short: bool
    paused: float = 0.0


class Precedence:
    """Decides which of the decisions in the threads of this process continues, and which pause."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running: set[_Running] = set()
        self._expected: OrderedDict[str, float] = OrderedDict()

    @contextmanager
    def running(self, over: Callable[[], bool], flow: str) -> Iterator[Callable[[], bool]]:
        """A context in which a decision of the flow runs in this thread.

        Yields the function that the decision calls at each step of long work. This function pauses a long
        decision while short ones run, and then returns the result of `over`: whether the decision should end.
        """
        own = _Running(time.thread_time(), self._expected.get(flow, 0.0) < SHORT)

        def asked() -> bool:
            if len(self._running) > 1:  # a decision that runs alone never pauses
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
