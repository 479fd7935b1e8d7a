"""One tenant's storm of worst requests, beside another who creates small pods.

The storm never stops; what changes is whom it hits. In the quiet phases it hits another replica than the one
that the API server asks, in the others just this one. So the machine does the same work in both, they follow
each other within seconds, and only what one tenant does to the other is left of the difference.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

import aiohttp
import orjson

from tests.attack import calls
from tests.attack.storm import review
from tests.bench.cluster.run import create, pod
from tests.e2e.api import Api
from tests.e2e.replicas import Replicas

CLIENTS = 16
"""Of the storm, each of which sends its next request when the last is answered."""
PHASES, CALLS = 6, 50
"""Of each sort, by turns, and the pods in each of them: 300 calls of either sort."""


@dataclass(slots=True)
class Beside:
    """The seconds of the honest calls, quiet and beside the storm; the statuses of those that failed."""

    quiet: list[float] = field(default_factory=list)
    loud: list[float] = field(default_factory=list)
    failed: Counter[int] = field(default_factory=Counter)


def beside(api: Api, replicas: Replicas) -> Beside:
    """The API server asks the first replica alone; the storm hits the second, and by turns the first."""
    assert replicas.balancer is not None, "they run"
    every, replicas.balancer.ports = replicas.balancer.ports, replicas.ports[:1]
    replicas.balancer.cut()
    seen = Beside()
    try:
        create(api, [pod(f"warm{number}") for number in range(20)], 2, dryRun="All")
        for phase in range(PHASES):
            for target, seconds in ((1, seen.quiet), (0, seen.loud)):
                with storm(replicas.ports[target]):
                    bodies = [pod(f"p{phase}-{number}") for number in range(CALLS)]
                    created = create(api, bodies, 2, dryRun="All")
                seconds.extend(created.seconds)
                seen.failed += created.failed
    finally:
        replicas.balancer.ports = every
        replicas.balancer.cut()
    return seen


@contextmanager
def storm(port: int) -> Iterator[None]:
    """It blows at this port, from a process of its own."""
    attacker = subprocess.Popen([sys.executable, "-m", "tests.attack.noisy", str(port)])
    try:
        time.sleep(calls.GATHERING)
        yield
    finally:
        attacker.kill()
        attacker.wait()


async def _blow(port: int) -> None:
    """Until this process is killed."""
    numbers = count()
    connector = aiohttp.TCPConnector(ssl=calls.trusting_nobody(), limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def client() -> None:
            for number in numbers:
                body = orjson.dumps(review(number))
                url = f"https://127.0.0.1:{port}/mutate"
                async with session.post(url, data=body, headers=calls.JSON) as answer:
                    await answer.read()

        await asyncio.gather(*(client() for _ in range(CLIENTS)))


if __name__ == "__main__":
    asyncio.run(_blow(int(sys.argv[1])))
