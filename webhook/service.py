"""One admission call, from bytes to bytes: decode, decide, keep the promise in the ledger, encode.

The decision is pure and made in a thread; only here does it meet the ledger. On a conflict (somebody else
took the place in between) the picture is taken anew and decided again, a few tries at most.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from planner.reservation import Book, Conflict, Ledger, LedgerUnavailable, Reservation
from planner.snapshot import Snapshot
from webhook.admission import Claim, Decision, Phase, Release, Reserve, decide, promise
from webhook.cluster import ClusterSource, NoCluster
from webhook.policy.files import PolicyStore
from webhook.policy.request import AdmissionRequest
from webhook.review import Response

TRIES = 4
"""Decisions made for one call before it is answered with "try again"."""
HOLD_SECONDS = 300.0
"""Time to live of a hold that no validating pass has claimed."""


@dataclass(frozen=True, slots=True)
class Service:
    """What answers admission requests. `clock` gives seconds since the epoch."""

    policies: PolicyStore
    ledger: Ledger
    cluster: ClusterSource = field(default_factory=NoCluster)
    clock: Callable[[], float] = time.time

    async def answer(self, request: AdmissionRequest, phase: Phase) -> Decision:
        """Decide, and unless it is a dry run do what the decision says in the ledger.

        Never raises for an object or a ledger that is in a bad state: that becomes a refusal in words.
        """
        holder = ""
        for _ in range(TRIES):
            try:
                book = await self.ledger.book(self.clock())
                decision = await asyncio.to_thread(self._decide, request, phase, book)
                if not request.dry_run:
                    await self._do(decision, book)
            except Conflict as conflict:
                holder = conflict.holder
                continue
            except LedgerUnavailable as error:
                return _refused(503, "ServiceUnavailable", f"no place can be reserved now: {error}", self)
            return decision
        message = (
            f"the place was taken {TRIES} times while it was being reserved, last by {holder}; apply again"
        )
        return _refused(409, "Conflict", message, self)

    def _decide(self, request: AdmissionRequest, phase: Phase, book: Book) -> Decision:
        picture: Snapshot | None = self.cluster.snapshot()
        snapshot = picture.with_book(book) if picture is not None else None
        return decide(request, self.policies.current, snapshot, phase, self.cluster.surroundings())

    async def _do(self, decision: Decision, book: Book) -> None:
        """Every step, or none of the reservations that this call would be the first to make."""
        now = self.clock()
        known = {held.id for held in book.reservations}
        new: list[str] = []
        try:
            for step in decision.steps:
                match step:
                    case Reserve(reservation, planned_on):
                        await self._reserve(reservation, planned_on, now)
                        if reservation.id not in known:
                            new.append(reservation.id)
                    case Claim(reservation_id, owner_uid):
                        await self.ledger.claim(reservation_id, owner_uid, now)
                    case Release(reservation_id):
                        await self.ledger.release(reservation_id)
        except (Conflict, LedgerUnavailable):
            for reservation_id in new:
                await self.ledger.release(reservation_id)
            raise

    async def _reserve(self, reservation: Reservation, planned_on: int, now: float) -> None:
        """Take it. Where another call has taken the gang's place already, elsewhere, that is a conflict too:
        the answer must tell the place that the book holds."""
        hold = replace(reservation, created=now, expires=now + HOLD_SECONDS)
        held = await self.ledger.reserve(hold, planned_on, now)
        if promise(held) != promise(hold):
            raise Conflict(held.gang)


def _refused(code: int, reason: str, message: str, service: Service) -> Decision:
    response = Response(False, code=code, reason=reason, message=message)
    return Decision(response, revision=service.policies.current.revision)
