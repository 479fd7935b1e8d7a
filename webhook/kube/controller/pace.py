"""When the controller acts on what it sees: gangs that wait are told their position, the head of the queue
soon and its tail seldom; and what may only seem so is acted on when it lasts. Pure.

Each change of a long queue would otherwise be as many events as gangs wait.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

NEAR = 8
"""Positions from the head that are told a change soon."""


NEAR_SECONDS, FAR_SECONDS = 2.0, 60.0
"""Between two words to a gang, near the head and behind."""


class PositionPace:
    """When each gang that waits was last told its position; the first word comes at once to everyone."""

    def __init__(self) -> None:
        self._told_at: dict[str, float] = {}

    def is_due(self, gang: str, position: int, now: float) -> bool:
        """Whether the gang is to be told its position now; it counts as told then."""
        pause = NEAR_SECONDS if position <= NEAR else FAR_SECONDS
        if now - self._told_at.get(gang, 0.0) < pause:
            return False
        self._told_at[gang] = now
        return True

    def forget_all_but(self, waiting: Collection[str]) -> None:
        """Forget the gangs that wait no longer."""
        self._told_at = {gang: told_at for gang, told_at in self._told_at.items() if gang in waiting}


class Lasting:
    """Since when each name has been seen without a break, in seconds of the caller's clock."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def beyond(
        self, seen: Mapping[str, float], now: float, patience: Callable[[str], float]
    ) -> frozenset[str]:
        """The names that have been seen for `patience` seconds or longer, of those `seen` now; all others are
        forgotten. `seen` tells since when at least, as far as that can be told now."""
        self._since = {name: min(self._since.get(name, now), since) for name, since in seen.items()}
        return frozenset(name for name, since in self._since.items() if now - since >= patience(name))
