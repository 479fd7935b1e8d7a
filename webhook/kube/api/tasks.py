"""Runs several calls at the same time: one run that several callers share, or many that end with the first
error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class SharedTasks(Generic[T]):
    """Runs at most one task for each key at a time: concurrent callers for the same key share it."""

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Task[T]] = {}

    async def run(self, key: str, begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Returns the result of the task for the key, which `begin` makes if there is none. Raises its error.

        If a caller is cancelled, the task goes on for the others.
        """
        task = self._running.get(key)
        if task is None:
            task = self._running[key] = asyncio.create_task(begin())
            task.add_done_callback(partial(self._ended, key))
        return await asyncio.shield(task)

    def _ended(self, key: str, task: asyncio.Task[T]) -> None:
        del self._running[key]
        if not task.cancelled():
            task.exception()  # reads the error: else asyncio logs it if no caller waits


async def run_together(calls: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Runs all calls at the same time, and waits for their end.

    Raises the first error, after it has cancelled the calls that have not ended. (`asyncio.gather` would let
    them go on, with nobody waiting for them.)
    """
    try:
        async with asyncio.TaskGroup() as tasks:
            for call in calls:
                tasks.create_task(call)
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
