"""How often the controller reports a position in the queue, and how long a state must last before it acts.
Pure.

Waiting gangs get events about their position: often near the head of the queue, rarely behind. Otherwise each
change of a long queue would cause as many events as gangs wait.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

NEAR = 8
"""Number of positions at the head of the queue with frequent events."""


NEAR_SECONDS, FAR_SECONDS = 2.0, 60.0
"""Minimum seconds between two events for a gang: at the first `NEAR` positions, and behind them."""


class PositionPace:
    """Remembers when each waiting gang last got an event about its position; the first is due at once."""

    def __init__(self) -> None:
        self._told_at: dict[str, float] = {}

    def is_due(self, gang: str, position: int, now: float) -> bool:
        """Returns whether the gang should get an event at `now`, and records that it gets one."""
        pause = NEAR_SECONDS if position <= NEAR else FAR_SECONDS
        if now - self._told_at.get(gang, 0.0) < pause:
            return False
        self._told_at[gang] = now
        return True

    def forget_all_but(self, waiting: Collection[str]) -> None:
        """Forgets the gangs that do not wait any more."""
        self._told_at = {gang: told_at for gang, told_at in self._told_at.items() if gang in waiting}


class Lasting:
    """Remembers since when each name has been seen in every round, in seconds of the caller's clock."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def overdue(
        self, seen: Mapping[str, float], now: float, patience: Callable[[str], float]
    ) -> frozenset[str]:
        """Returns the names that have been seen for at least `patience(name)` seconds; forgets names not in
        `seen`.

        `seen`: the names that are seen now, each with the time since when the caller knows it to be there:
        `now` if it knows no earlier one.
        """
        self._since = {name: min(self._since.get(name, now), since) for name, since in seen.items()}
        return frozenset(name for name, since in self._since.items() if now - since >= patience(name))
