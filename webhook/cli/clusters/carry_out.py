"""`bayplan defrag --apply`, `--resume` and `--undo`: carries out moves in a cluster, and prints each step."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from webhook.cli.common import inputs
from webhook.cli.common.standing_words import quiet
from webhook.kube.api.client import ApiError
from webhook.kube.cluster_objects import MAKES_PODS, ObjectsLookout, objects_lookout
from webhook.kube.moving.mover import WAIT_SECONDS, Mover, Stopped
from webhook.report.printable import printable

LOOK_SECONDS = 2.0
"""Seconds after which the state of the cluster is checked again, even without a watch event."""

GOES_ON = "`bayplan defrag --resume` goes on, `bayplan defrag --undo` uncordons them"

Work = Callable[[Mover, ObjectsLookout], Awaitable[int]]
"""The type of a function that moves pods, or undoes that, and returns the exit status."""


def carry_out(
    kubeconfig: str | None,
    installation: str,
    work: Work,
    *,
    restart_all: bool = False,
    seconds: float = WAIT_SECONDS,
    out: TextIO | None = None,
) -> int:
    """Runs `work` on a live cluster, prints its progress to `out` (default: standard output), and returns
    the exit status.

    `restart_all`: treats all pods as restartable unless their label says no. `seconds`: the timeout of
    each step. Ctrl-C stops after the current step, a second Ctrl-C at once. Raises `InputError` for a
    cluster that cannot be read.
    """
    quiet()

    def tell(text: str) -> None:
        print(printable(text), file=out or sys.stdout, flush=True)

    async def connected() -> int:
        async with objects_lookout(kubeconfig, MAKES_PODS, installation) as lookout:
            inputs.note_unread(lookout.lookout.unread)
            with _stop_signal() as stop:
                mover = Mover(
                    lookout.api,
                    lookout.look,
                    lambda: _news(lookout),
                    tell,
                    stop.is_set,
                    restart_all,
                    seconds,
                )
                try:
                    return await work(mover, lookout)
                except (Stopped, ApiError) as error:
                    inputs.note(f"stopped: {error}")
                    await _tell_left(mover)
                    return 1

    try:
        return asyncio.run(connected())
    except KeyboardInterrupt:
        inputs.note(f"stopped at once; nodes that it has cordoned are still cordoned: {GOES_ON}")
        return 130


async def _tell_left(mover: Mover) -> None:
    try:
        left = await mover.marks.all()
    except ApiError as error:
        inputs.note(f"which nodes are still cordoned cannot be read ({error}): {GOES_ON}")
        return
    inputs.note(f"still cordoned: {', '.join(left)}; {GOES_ON}" if left else "no node is left cordoned by it")


async def _news(lookout: ObjectsLookout) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(LOOK_SECONDS):
            await lookout.lookout.news()


@contextmanager
def _stop_signal() -> Iterator[asyncio.Event]:
    """A context that yields an event, which the first SIGINT or SIGTERM sets. A second signal has its default
    effect.
    """
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    signals = (signal.SIGINT, signal.SIGTERM)

    def ask() -> None:
        stop.set()
        inputs.note("stops after this step; Ctrl-C once more stops at once")
        for number in signals:
            loop.remove_signal_handler(number)

    for number in signals:
        loop.add_signal_handler(number, ask)
    try:
        yield stop
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
