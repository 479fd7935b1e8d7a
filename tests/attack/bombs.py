"""Requests that are small to send and dear to decide, all at once: each is answered, and nothing runs on."""

from __future__ import annotations

import asyncio
import time

import aiohttp
import orjson

from tests.attack import calls
from tests.attack.storm import affine_job, job_set, review_of, spread_job, unlike_job_set
from tests.bench.cluster.run import cpu
from tests.e2e.processes import Process

BOMBS = (
    job_set(),
    spread_job(),
    affine_job(),
    job_set(400),
    unlike_job_set(),
    spread_job(2_400),
    affine_job(990),
    job_set(100),
    spread_job(100),
    affine_job(100),
)
"""Above the bounds of what is asked, just below them, and well within: as many as once stopped a replica."""
TIMEOUT = 5.0
"""Seconds that the API server waits, by the manifests."""
AFTER = 1.0
"""For how long it is looked at what a replica does after its last answer, in seconds."""
LEFT = 0.1
"""Seconds of CPU that may be left of a decision after its answer."""


async def _explode(port: int) -> list[tuple[int, float, str]]:
    """Status, seconds and message of each, the dry runs sent at once."""
    connector = aiohttp.TCPConnector(ssl=calls.trusting_nobody(), limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def send(number: int) -> tuple[int, float, str]:
            body, began = orjson.dumps(review_of(BOMBS[number], f"b{number}")), time.perf_counter()
            url = f"https://127.0.0.1:{port}/mutate"
            async with session.post(url, data=body, headers=calls.JSON) as answer:
                text = await answer.read()
            seconds = time.perf_counter() - began
            response = orjson.loads(text)["response"] if answer.status == 200 else {"allowed": False}
            return (
                answer.status,
                seconds,
                "" if response["allowed"] else response.get("status", {}).get("message", ""),
            )

        return await asyncio.gather(*map(send, range(len(BOMBS))))


def explode(port: int, process: Process) -> tuple[bool, str]:
    """Whether each was answered in time, in words where it was refused, and nothing ran on; what was seen."""
    before = cpu(process)
    time.sleep(AFTER)
    idle = cpu(process) - before
    answers = asyncio.run(_explode(port))
    before = cpu(process)
    time.sleep(AFTER)
    left = max(0.0, cpu(process) - before - idle)
    slowest = max(seconds for _, seconds, _ in answers)
    statuses = {status for status, _, _ in answers}
    refused = [message for _, _, message in answers if message]
    holds = statuses == {200} and slowest < TIMEOUT and left < LEFT
    return (
        holds,
        f"slowest {slowest:.1f} s, {len(refused)} refused in words, {1000 * left:.0f} ms of CPU after",
    )
