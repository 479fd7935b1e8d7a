"""A hold: the reservation of a gang that has a place, until its object is stored and claims it."""

from __future__ import annotations

from dataclasses import replace

from planner.model.reservation import Reservation

HOLD_SECONDS = 10.0
"""Time to live of a reservation whose object was not seen to be stored: nobody else may have the place so
long for an object that never comes, be the call forged. The API server stores an object within seconds of the
mutating call; where it takes longer, the place is reserved again by the validating call, and where that was
missed too, by the controller (`Restore`)."""


def hold_of(reservation: Reservation, now: float) -> Reservation:
    """The reservation as it is held from now on, in seconds since the epoch."""
    return replace(reservation, created=now, expires=now + HOLD_SECONDS)
