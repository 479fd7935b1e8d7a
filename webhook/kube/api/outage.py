"""Outages of the API server: all calls fail. Who waits to try again is woken when the first one succeeds."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

LEAST_SECONDS = 1.0
"""Seconds for which all calls have to fail; a call that fails between others that succeed is no outage."""


class Outages:
    """Begins when a call fails, and ends when any call succeeds."""

    def __init__(self) -> None:
        self._over: asyncio.Event | None = None
        self._since = 0.0

    def begin(self) -> None:
        """Records that a call failed."""
        if self._over is None:
            self._over, self._since = asyncio.Event(), time.monotonic()

    def end(self) -> None:
        """Records that a call succeeded."""
        if self._over is not None and time.monotonic() - self._since >= LEAST_SECONDS:
            self._over.set()
        self._over = None

    async def wait(self, seconds: float) -> bool:
        """Waits so long, or until the present outage ends. Returns whether one ended."""
        if self._over is None:
            await asyncio.sleep(seconds)
            return False
        over = self._over
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):  # `wait_for` of Python 3.11 may lose a cancellation
                await over.wait()
        return over.is_set()
