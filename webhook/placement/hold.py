"""A hold: the reservation of a gang that has a place, until its object is stored and claims it."""

from __future__ import annotations

from dataclasses import replace

from planner.model.reservation import Reservation

HOLD_SECONDS = 30.0
"""Time to live of a reservation that no validating call has claimed, since the object was never stored. The
API server makes that call within seconds of the mutating one; where it takes longer, the place is reserved
again then, and where only the validating call is missing, the controller claims it (`ClaimFor`)."""


def hold_of(reservation: Reservation, now: float) -> Reservation:
    """The reservation as it is held from now on, in seconds since the epoch."""
    return replace(reservation, created=now, expires=now + HOLD_SECONDS)
