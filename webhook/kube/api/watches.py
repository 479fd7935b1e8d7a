"""Runs several watches that are started and closed together, and tells what watches lack."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress

from webhook.kube.api.reflector import Reflector


class Watches:
    """Runs reflectors: `start` them, and `close` them after use."""

    def __init__(self, reflectors: Sequence[Reflector]) -> None:
        self.reflectors = list(reflectors)
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Starts all watches; `waiting` returns "" once each has listed its resource."""
        self._tasks = [asyncio.create_task(reflector.run()) for reflector in self.reflectors]

    async def synced(self) -> None:
        """Waits until each watch has listed its resource once."""
        for reflector in self.reflectors:
            await reflector.synced.wait()

    async def close(self) -> None:
        """Stops all watches."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task

    def waiting(self) -> str:
        """Returns which resource has not been listed yet, or why it cannot be listed; "" once each watch has
        listed its resource.
        """
        return first_unread(self.reflectors)

    def problem(self) -> str:
        """Returns the problems of the watches that fail at present; "" if there is none."""
        return problems_of(self.reflectors)


def first_unread(reflectors: Iterable[Reflector]) -> str:
    """Returns one resource that has not been listed yet, or why one cannot be listed; "" if all have been
    listed.
    """
    left = [reflector for reflector in reflectors if not reflector.synced.is_set()]
    if not left:
        return ""
    problems = (reflector.problem for reflector in left if reflector.problem)
    return next(problems, f"{left[0].path}: not read yet")


def problems_of(reflectors: Iterable[Reflector]) -> str:
    """Returns the problems of those watches that fail at present; "" if there is none."""
    return "; ".join(dict.fromkeys(reflector.problem for reflector in reflectors if reflector.problem))
