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


MOST_FAR, FAR_EACH_SECONDS = 100, 0.1
"""Maximum number of events of one round for gangs behind the first `NEAR` positions, and by how many seconds
each waiting gang makes the time between two of them longer. They are written one after the other: for 10,000
gangs, one each minute would leave the leader no time to admit any.
"""


class PositionPace:
    """Remembers when each waiting gang last got an event about its position. The first is due at once, as far
    as a round has room for it.
    """

    def __init__(self) -> None:
        self._told_at: dict[str, float] = {}
        self._far_seconds, self._room = FAR_SECONDS, MOST_FAR
        """The seconds between two events for a gang far behind; for how many of them this round has room."""

    def is_due(self, gang: str, position: int, now: float) -> bool:
        """Returns whether the gang should get an event at `now`, and records that it gets one."""
        is_far = position > NEAR
        pause = self._far_seconds if is_far else NEAR_SECONDS
        if now - self._told_at.get(gang, 0.0) < pause or (is_far and not self._room):
            return False
        self._told_at[gang] = now
        self._room -= is_far
        return True

    def begin_round(self, waiting: Collection[str]) -> None:
        """Begins a round with these waiting gangs; forgets those that do not wait any more."""
        self._told_at = {gang: told_at for gang, told_at in self._told_at.items() if gang in waiting}
        self._far_seconds, self._room = max(FAR_SECONDS, FAR_EACH_SECONDS * len(waiting)), MOST_FAR


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
