"""Starts decisions in the order of a `FairQueue`. A *permit* is the right to run in one of the deciding
threads.

Everything here runs on the event loop, except for the work itself.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import TypeVar

from webhook.server.fair_queue import FairQueue, Ticket

T = TypeVar("T")
Turn = asyncio.Future[None]
"""A future of one call that is done when the call gets a permit."""


class Crowded(Exception):  # noqa: N818 - an outcome, not a fault
    """The queue of the call's flow is full, or the call got no permit in time."""


class Permits:
    """Limits concurrent decisions to `count`, the number of threads, and starts waiting decisions in fair
    order.
    """

    def __init__(self, count: int) -> None:
        self._queue: FairQueue[Turn] = FairQueue(count)

    async def submit(
        self, executor: Executor, flow: str, work: Callable[[], T], until: float = math.inf
    ) -> Future[T]:
        """Waits for a permit of the flow, starts the work in a thread of the executor, and returns its
        future.

        `until`: the latest time to start, in monotonic seconds. The permit becomes free when the work has
        ended, even if the caller has hung up, and only after the future's waiters were notified. Raises
        `Crowded` if the queue is full, or if there is no permit by `until`.
        """
        loop = asyncio.get_running_loop()
        ticket = self._queue.put(flow, loop.create_future())
        if ticket is None:
            raise Crowded
        self._start_next()
        try:
            async with asyncio.timeout(until - time.monotonic() if until < math.inf else None):
                await ticket.call
        except (TimeoutError, asyncio.CancelledError) as error:
            if not self._queue.leave(ticket):  # it got its permit at the moment of the cancellation
                self._end(ticket, 0.0)
            if isinstance(error, TimeoutError):
                raise Crowded from None
            raise
        began = time.monotonic()
        outcome: Future[T] = Future()
        outcome.set_running_or_notify_cancel()  # work that has started is never cancelled

        def ended(running: Future[T]) -> None:
            if (error := running.exception()) is not None:
                outcome.set_exception(error)
            else:
                outcome.set_result(running.result())
            loop.call_soon_threadsafe(self._end, ticket, time.monotonic() - began)

        executor.submit(work).add_done_callback(ended)
        return outcome

    def _end(self, ticket: Ticket[Turn], seconds: float) -> None:
        self._queue.end(ticket, seconds)
        self._start_next()

    def _start_next(self) -> None:
        while (ticket := self._queue.take()) is not None:
            if not ticket.call.done():
                ticket.call.set_result(None)
