"""Calls of somebody who is not the API server: reviews over TLS, and connections that want no answer."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, cast

import aiohttp
import orjson

Json = dict[str, Any]
Hostile = Literal["idle", "no handshake", "endless body"]
GATHERING = 1.5
"""Seconds until an attacker has opened all its connections once."""
JSON = {"Content-Type": "application/json"}
ENDLESS = (
    b"POST /mutate HTTP/1.1\r\nHost: b\r\nContent-Type: application/json\r\nContent-Length: 3000000\r\n\r\n"
    + b"x" * 500_000
)
HONEST: Json = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {
        "uid": "honest",
        "operation": "CREATE",
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "name": "a",
        "namespace": "team",
        "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
    },
}


def trusting_nobody() -> ssl.SSLContext:
    """TLS as an attacker speaks it."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def send(
    ports: Sequence[int], reviews: Iterable[Json], clients: int, answered: Callable[[Json, int, Json], None]
) -> Counter[int]:
    """Each review in both phases, by so many clients at once; statuses (0: no answer).

    `answered` gets each review with the status and the response; a response is empty without a 200.
    """
    statuses: Counter[int] = Counter()
    left = enumerate(reviews)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=trusting_nobody(), limit=0),
        timeout=aiohttp.ClientTimeout(total=60),
    ) as session:

        async def client() -> None:
            for number, review in left:
                body = orjson.dumps(review)
                for phase in ("mutate", "validate"):
                    url = f"https://127.0.0.1:{ports[number % len(ports)]}/{phase}"
                    try:
                        async with session.post(url, data=body, headers=JSON) as answer:
                            statuses[answer.status] += 1
                            content = await answer.read()
                    except (aiohttp.ClientError, TimeoutError):
                        statuses[0] += 1
                        answered(review, 0, {})
                        continue
                    response = orjson.loads(content)["response"] if answer.status == 200 else {}
                    answered(review, answer.status, response)

        await asyncio.gather(*(client() for _ in range(clients)))
    return statuses


async def hostile(port: int, how: Hostile) -> None:
    """One connection that stays as long as it is let."""
    tls = None if how == "no handshake" else trusting_nobody()
    with suppress(OSError, asyncio.IncompleteReadError):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
        if how == "endless body":
            writer.write(ENDLESS)
            await writer.drain()
        await reader.read(100)
        writer.close()


async def honest(port: int, seconds: float) -> tuple[list[float], int]:
    """The seconds of each call of a caller who asks twenty times a second, and how many failed."""
    took: list[float] = []
    failed = 0
    end = time.monotonic() + seconds
    body = orjson.dumps(HONEST)
    timeout = aiohttp.ClientTimeout(total=10)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=trusting_nobody()), timeout=timeout
    ) as session:
        while time.monotonic() < end:
            began = time.perf_counter()
            try:
                async with session.post(
                    f"https://127.0.0.1:{port}/mutate", data=body, headers=JSON
                ) as answer:
                    await answer.read()
                    failed += answer.status != 200
            except (aiohttp.ClientError, TimeoutError):
                failed += 1
            took.append(time.perf_counter() - began)
            await asyncio.sleep(0.05)
    return took, failed


def besieged(
    port: int, target: int, how: Hostile, count: int, seconds: float, memory: Callable[[], float]
) -> tuple[list[float], int, float]:
    """What an honest caller of a port sees beside so many hostile connections to the target, and the most
    memory meanwhile (MiB).

    The attacker is a process of its own: on the caller's event loop its handshakes would be measured too.
    """
    command = [sys.executable, "-m", "tests.attack.calls", str(target), how, str(count)]
    attacker = subprocess.Popen(command)
    try:
        time.sleep(GATHERING)
        return asyncio.run(_beside(port, seconds, memory))
    finally:
        attacker.kill()
        attacker.wait()


async def _beside(port: int, seconds: float, memory: Callable[[], float]) -> tuple[list[float], int, float]:
    peak = 0.0

    async def watch() -> None:
        nonlocal peak
        while True:
            peak = max(peak, memory())
            await asyncio.sleep(0.2)

    watching = asyncio.create_task(watch())
    took, failed = await honest(port, seconds)
    watching.cancel()
    return took, failed, peak


async def _attack(port: int, how: Hostile, count: int) -> None:
    """So many connections, each opened anew when it ends, until this process is killed."""

    async def again() -> None:
        while True:
            await hostile(port, how)
            await asyncio.sleep(1)

    await asyncio.gather(*(again() for _ in range(count)))


def resident(pid: int) -> float:
    """The resident memory of a process, in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


if __name__ == "__main__":
    asyncio.run(_attack(int(sys.argv[1]), cast(Hostile, sys.argv[2]), int(sys.argv[3])))
