"""Calls over HTTP that other processes decide: no conflict, metrics, and `bayplan serve` as a whole."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import orjson
from aiohttp.test_utils import TestClient, TestServer

from tests.e2e.processes import wait_until
from tests.webhook.calls import EXAMPLES, PATIENCE, ServedWebhook, clusters, example, review
from tests.webhook.server.test_in_flight import Slow, jobs
from webhook.cli.common.inputs import policy_store
from webhook.cli.installation.deciding import deciding_processes
from webhook.server.http import Webhook
from webhook.server.service import Service

ROOT = Path(__file__).parents[4]
JSON = {"Content-Type": "application/json"}


@asynccontextmanager
async def served(folder: Path, workers: int) -> AsyncIterator[ServedWebhook]:
    """The shipped policies on a cluster, decided by so many processes."""
    now, ledger = [1_000_000.0], Slow(folder / "book.db")
    with deciding_processes(workers) as processes:
        cluster = clusters("superpod-32")
        service = Service(policy_store(()), ledger, cluster, clock=lambda: now[0], **processes.parts)
        webhook = processes.observed_by(Webhook(service, deadline=PATIENCE))
        async with TestClient(TestServer(webhook.app())) as client:
            yield ServedWebhook(client, ledger, webhook, now)
        await ledger.close()


async def test_gangs_that_come_at_once_plan_around_each_other(tmp_path: Path) -> None:
    """Whichever process decides: what another call is about to reserve is in its picture, so that none is
    sent back by the ledger.
    """
    async with served(tmp_path, 2) as asked:
        await asyncio.gather(*(asked.mutate(job) for job in jobs(3)))
        book = await asked.ledger.book(asked.now[0])
        assert isinstance(asked.ledger, Slow)
        late = asked.ledger.late
    domains = {reservation.domain for reservation in book.reservations}
    assert len(book.reservations) == len(domains) > 1
    assert late == 0


async def test_the_answers_do_not_depend_on_how_many_decide(tmp_path: Path) -> None:
    """The same calls, one after the other, each of which changes the book for the next."""
    answers = []
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        folder.mkdir()
        async with served(folder, workers) as asked:
            calls = [
                await call(job, uid=job["metadata"]["name"])
                for job in jobs(4)
                for call in (asked.mutate, asked.validate)
            ]
            answers.append(calls)
    assert answers[0] == answers[1]


async def test_metrics_count_processes_and_readiness_tells_of_lacking_ones(tmp_path: Path) -> None:
    """One was started, for there was one call at a time."""
    async with served(tmp_path, 2) as asked:
        await asked.mutate(example("job-two-nodes-one-rack"))
        text = await (await asked.client.get("/metrics")).text()
        before = orjson.loads(await (await asked.client.get("/readyz")).read())
        asked.webhook.workers_problem = lambda: "no process can be started"
        after = orjson.loads(await (await asked.client.get("/readyz")).read())
    assert "bayplan_workers 1.0" in text
    assert 'bayplan_worker_starts_total{reason="asked"} 1.0' in text
    assert (before["problems"], after["problems"]) == ([], ["no process can be started"])


def children(pid: int) -> list[int]:
    """The processes that it started."""
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())) + [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        if int(task.name) != pid
        for child in (task / "children").read_text().split()
    ]


def lives(pid: int) -> bool:
    """Whether there is such a process, and it has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pids: list[int]) -> None:
    """Wait until none of these is there."""
    wait_until(lambda: not any(map(lives, pids)), "the workers to end")


@asynccontextmanager
async def bayplan(folder: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """`bayplan serve --workers 2`, and its address."""
    cluster = str(EXAMPLES / "clusters" / "superpod-32.yaml")
    command = ["-m", "webhook.cli.main", "serve", "--insecure", "--port", "0", "-c", cluster]
    command += ["--workers", "2", "--ledger", str(folder / "book.db"), "--deadline", "60"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            while not (line := re.search(r"serving on (\S+),", (await process.stdout.readline()).decode())):
                pass
        yield process, line[1]
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def mutate(session: aiohttp.ClientSession, address: str, name: str) -> bool:
    """Whether a Job of this name is let in, as a dry run."""
    job = example("job-two-nodes-one-rack")
    job["metadata"]["name"] = name
    body = orjson.dumps(review(job, dry_run=True))
    async with session.post(f"{address}/mutate", data=body, headers=JSON) as answer:
        assert answer.status == 200, await answer.text()
        return orjson.loads(await answer.read())["response"]["allowed"] is True


async def test_calls_go_on_while_workers_are_killed(tmp_path: Path) -> None:
    """kill -9, again and again in the middle of calls: each is answered, and each is let in."""
    async with bayplan(tmp_path) as (process, address), aiohttp.ClientSession() as session:
        assert await mutate(session, address, "first")
        killed: set[int] = set()
        for turn in range(4):
            calls = [asyncio.create_task(mutate(session, address, f"j{turn}-{n}")) for n in range(16)]
            await asyncio.sleep(0.03)
            victim = next(iter(children(process.pid)), None)
            if victim is not None:
                os.kill(victim, signal.SIGKILL)
                killed.add(victim)
            assert await asyncio.gather(*calls) == [True] * 16
        assert killed
        assert not killed.intersection(children(process.pid))


async def test_workers_end_with_the_server(tmp_path: Path) -> None:
    """Told to stop it ends them, with status 0; killed it leaves none behind, nor its port taken."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        folder = tmp_path / sign.name
        folder.mkdir()
        async with bayplan(folder) as (process, address), aiohttp.ClientSession() as session:
            assert await mutate(session, address, "first")
            workers = children(process.pid)
            assert workers
            process.send_signal(sign)
            assert await process.wait() == (0 if sign is signal.SIGTERM else -sign)
            await asyncio.to_thread(gone, workers)
