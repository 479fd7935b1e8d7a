"""Estimates how many other calls plan at the same moment and may choose the same places (`plan_aside`).

Such calls are those that other threads of this replica decide now, and those of other replicas. The
reservations in flight of this replica are no rivals, because a decision sees them; but their number shows how
busy the replicas are. That other replicas choose the same places shows in the ledger, which refuses the later
reservation.

Each rival may cost a gang one more plan, and each conflict one more decision, which takes about as long as
ten plans. So the estimate is high after a conflict, and low in a replica that is alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

PER_CONFLICT = 4
"""Rivals that are assumed for each conflict of a call, in addition to those estimated from the reservations
in flight.
"""

MAX_PER_THREAD = 3
"""The maximum number of assumed rivals for each deciding thread of this replica beside the call's own, while
the replica is *alone*: it had no conflict within `REMEMBERED_SECONDS`, so other replicas seem to choose no
places.

A call that assumes n rivals chooses one of n + 1 equal places. It conflicts with another call with
probability 1 / (n + 1), and makes n / 2 more plans on average. If a conflict costs as much as ten plans, the
cost 10 / (n + 1) + n / 2 is lowest for n = 3 and n = 4. With more threads a smaller number would be enough
for each; `MAX_SKIPPED` of `plan_aside` limits the sum.
"""

REMEMBERED_SECONDS = 10.0
"""Seconds after a conflict for which other replicas are assumed to plan as many calls as this replica has
reservations in flight (without the limit by `MAX_PER_THREAD`).
"""


@dataclass(slots=True)
class Rivals:
    """One replica's estimate of how many other calls plan at the same moment. Thread-safe: each method reads
    or writes one number.

    `threads`: the number of its deciding threads. `clock`: returns monotonic seconds.
    """

    threads: int
    clock: Callable[[], float] = field(default=time.monotonic)
    _lost_at: float = -math.inf

    def record_conflict(self) -> None:
        """Records a conflict: the ledger has refused a reservation or a claim."""
        self._lost_at = self.clock()

    def assumed(self, in_flight: int, losses: int) -> int:
        """Returns the estimate for a decision. `in_flight`: the number of reservations in flight that the
        decision sees, 0 if this replica is idle; `losses`: the number of conflicts of its call so far.
        """
        is_alone = self.clock() - self._lost_at > REMEMBERED_SECONDS
        busy = min(in_flight, MAX_PER_THREAD * (self.threads - 1)) if is_alone else in_flight
        return busy + PER_CONFLICT * losses
