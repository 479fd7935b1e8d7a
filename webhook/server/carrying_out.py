"""Carries out the ledger steps of a decision: reservations, claims and releases."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from planner.ledger.conflicts import Wish
from planner.ledger.ledger import Conflict, Ledger, LedgerUnavailable, ReserveResult
from webhook.admission.decision_record import Decision
from webhook.admission.ledger_steps import ReservationClaim, ReservationRelease
from webhook.placement.hold import hold_of


@dataclass(frozen=True, slots=True)
class LedgerSteps:
    """Carries out steps in a ledger.

    `hold_seconds`: how long a reservation is held for an object that is not stored yet; longer than a call
    may take. `undoing`: tasks that release the reservations of cancelled calls (asyncio itself keeps only
    weak references to tasks).
    """

    ledger: Ledger
    clock: Callable[[], float]
    hold_seconds: float
    undoing: set[asyncio.Task[None]] = field(default_factory=set)

    async def carry_out(self, decision: Decision) -> None:
        """Carries out every step of the decision.

        Raises `Conflict` if the ledger refuses a reservation, or lacks the reservation that a step claims.
        """
        now = self.clock()
        wishes = [
            replace(step, reservation=hold_of(step.reservation, now, self.hold_seconds))
            for step in decision.steps
            if isinstance(step, Wish)
        ]
        if wishes:
            await self._reserve(wishes, now)
        for step in decision.steps:
            match step:
                case ReservationClaim(reservation_id, owner_uid):
                    if not await self.ledger.claim(reservation_id, owner_uid, now):
                        raise Conflict(reservation_id)
                case ReservationRelease(reservation_id):
                    await self.ledger.release(reservation_id)

    async def _reserve(self, wishes: Sequence[Wish], now: float) -> None:
        """Makes all of these reservations, or none.

        If the call is cancelled meanwhile, the reservations that it created are released: no caller knows of
        them, and they would block other gangs until they expire.
        """
        taking = asyncio.ensure_future(self.ledger.reserve_all(wishes, now))
        try:
            await asyncio.shield(taking)
        except asyncio.CancelledError:
            undoing = asyncio.ensure_future(self._give_back(taking))
            self.undoing.add(undoing)
            undoing.add_done_callback(self.undoing.discard)
            raise

    async def _give_back(self, taking: Awaitable[ReserveResult]) -> None:
        with suppress(Conflict, LedgerUnavailable):
            taken = await taking
            for reservation in taken.reservations:
                if reservation.id in taken.new:
                    await self.ledger.give_back(reservation)
