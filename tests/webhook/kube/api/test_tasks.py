"""Calls at the same time: what several callers share, and what ends with the first error."""

from __future__ import annotations

import asyncio

import pytest

from webhook.kube.api.tasks import SharedTasks, run_together


async def test_callers_at_the_same_time_share_one_run() -> None:
    """A later caller gets a run of its own."""
    runs: list[str] = []
    tasks: SharedTasks[int] = SharedTasks()

    async def run() -> int:
        runs.append("run")
        await asyncio.sleep(0)
        return len(runs)

    assert await asyncio.gather(tasks.run("a", run), tasks.run("a", run), tasks.run("b", run)) == [2, 2, 2]
    assert len(runs) == 2
    assert await tasks.run("a", run) == 3


async def test_a_run_goes_on_after_a_caller_is_cancelled() -> None:
    """The other caller gets its result."""
    tasks: SharedTasks[str] = SharedTasks()
    go = asyncio.Event()

    async def run() -> str:
        await go.wait()
        return "done"

    leaving, staying = (asyncio.create_task(tasks.run("a", run)) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.sleep(0)
    go.set()
    assert await staying == "done"


async def test_the_error_of_a_run_that_nobody_waits_for_is_no_news() -> None:
    """Asyncio would log it, as an error that was forgotten."""
    tasks: SharedTasks[None] = SharedTasks()
    logged: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: logged.append(context))

    async def run() -> None:
        await asyncio.sleep(0.01)
        raise ValueError("lost")

    caller = asyncio.create_task(tasks.run("a", run))
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.sleep(0.05)
    assert logged == []


async def test_the_first_error_ends_the_calls_beside_it() -> None:
    """Nothing goes on behind the caller's back."""
    ended: list[str] = []

    async def fails() -> None:
        raise ValueError("first")

    async def lasts() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("lasts")

    with pytest.raises(ValueError, match="first"):
        await run_together([lasts(), fails()])
    assert ended == ["lasts"]
