"""What the controller records from one round to the next; each round gets its `Memory` from it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import partial

from planner.model.reservation import Reservation
from webhook.kube.controller import steps
from webhook.kube.controller.memory import (
    Claim,
    Memory,
    alive,
    claim_of,
    gangs_without_reservation,
    patience,
    unused,
)
from webhook.kube.controller.pace import Lasting
from webhook.kube.controller.recovery_metrics import recovery_histogram
from webhook.kube.controller.world import World

VANISHED_SECONDS = 8.0
"""Seconds for which the reservation of an admitted gang must be missing before it is restored: if the gang
was deleted, the reservation may be gone before the watch shows the deletion.
"""


class RoundRecords:
    """The records of one replica. Changed in place, by the controller and by the runner of its actions."""

    def __init__(self) -> None:
        self.recoveries = recovery_histogram()
        """The metric of how long gangs that lost a node waited for another place."""
        self.seen: frozenset[Claim] = frozenset()
        """The claims whose object the watches or this replica's own actions have shown."""
        self._broken: dict[str, float] = {}
        """By gang: since when it lacks a node or its reservation, in monotonic seconds."""
        self._rounds = 0
        self._unused, self._missing = Lasting(), Lasting()
        """Since when no bound pod uses a gang's place; since when a gang's reservation is not in the book."""

    def begin_term(self) -> None:
        """Forgets since when states have lasted: this replica has not seen them while another one led."""
        self._broken = {}
        self._unused, self._missing = Lasting(), Lasting()

    def memory(self, world: World, deleted: Mapping[str, Reservation]) -> Memory:
        """Returns what this and former rounds have shown. `deleted`: as in `Memory`."""
        gone, now = dict.fromkeys(gangs_without_reservation(world), world.now), world.now
        return Memory(
            deleted,
            missing=self._missing.overdue(gone, now, lambda _: VANISHED_SECONDS),
            idle=self._unused.overdue(unused(world), now, partial(patience, world)),
            rounds=self._rounds,
        )

    def decided(self, world: World, actions: Iterable[steps.Action], began: float) -> None:
        """Records what the actions of a round show: which gangs exist, and which lack a node or their
        reservation. `began`: when the round began, in monotonic seconds.
        """
        held = set(map(claim_of, world.snapshot.reservations))
        self.seen = (self.seen & held) | alive(world)
        broken = {action.gang.name for action in actions if isinstance(action, (steps.MoveTo, steps.Stuck))}
        self._broken = {name: self._broken.get(name, began) for name in broken}
        self._rounds += 1

    def moved(self, gang: str) -> None:
        """Records that a gang which lost nodes has another place."""
        self.recoveries.observe(time.monotonic() - self._broken.pop(gang, time.monotonic()))
