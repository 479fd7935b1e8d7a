"""One process against two workers, paired in one run: `python tests/bench/bench_workers.py`.

The same calls over HTTP, in turns, decided by the serving process itself and by two workers. A machine whose
cores others share shows no rate; so CPU is counted: what the serving process spends on a call, what workers
do, and what the two allow where each has a core. Then memory: the pages of all processes, shared ones counted
once (PSS), at 5,000 nodes with 50,000 pods, as the cluster changes under them.
"""

from __future__ import annotations

import asyncio
import gc
import os
import queue
import sys
import time
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import orjson
from aiohttp.test_utils import TestClient, TestServer

from planner.cluster import plan_cache
from planner.cluster.snapshot import Snapshot
from planner.ledger.sqlite import SqliteLedger
from planner.manifests.node import node_from
from planner.manifests.pods.bound_pod import pod_from
from planner.model.errors import Where
from tests.bench.bench_decision import pod
from tests.e2e.replicas import nodes
from tests.e2e.test_cluster_size import pod as bound_pod
from tests.webhook.calls import PATIENCE, clusters, request_of, review
from webhook.admission.environment import Environment
from webhook.cli.common.inputs import policy_store
from webhook.cli.installation.deciding import DecidingProcesses, deciding_processes
from webhook.kube.state.live_snapshot import LiveSnapshot
from webhook.policy.engine.device_selectors import read_cluster
from webhook.server.garbage_collection import freeze_survivors
from webhook.server.http import Webhook
from webhook.server.service import Service, decide_here
from webhook.server.workers.pool import Pool

ROUNDS, CALLS, FLOWS = 5, 60, 4
"""Rounds in turn, calls of each, and users that call at once."""
NODES, PODS_A_NODE, RACK = 5_000, 10, 18
CHANGES = (0, 20, 200, 1_000, 3_000)
TICKS = os.sysconf("SC_CLK_TCK")


def seconds(pids: Iterable[int]) -> float:
    """CPU seconds of processes so far."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def megabytes(pids: Iterable[int]) -> float:
    """Memory of processes, what they share counted once."""
    lines = [line for pid in pids for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


async def calls(client: TestClient[Any, Any]) -> None:
    """Dry runs of several users at once: the cluster stays the same."""

    async def flow(user: int) -> None:
        for number in range(CALLS // FLOWS):
            body = review(pod(), dry_run=True, uid=f"{user}-{number}")
            body["request"]["userInfo"]["username"] = f"user{user}"
            answer = await client.post(
                "/mutate", data=orjson.dumps(body), headers={"Content-Type": "application/json"}
            )
            assert answer.status == 200, await answer.text()
            await answer.read()

    await asyncio.gather(*map(flow, range(FLOWS)))


class Side:
    """A served webhook and its processes."""

    def __init__(self, client: TestClient[Any, Any], processes: DecidingProcesses) -> None:
        self.client = client
        self._processes = processes
        self.costs: list[tuple[float, float, float]] = []
        """Of each round: CPU of this process, client and server, and of workers; by the clock."""

    def workers(self) -> list[int]:
        """Those that decide beside this process."""
        return list(self._processes.pool.pids) if self._processes.pool is not None else []

    async def round(self) -> None:
        """All calls once."""
        began, own, deciding = time.monotonic(), time.process_time(), seconds(self.workers())
        await calls(self.client)
        spent = time.process_time() - own, seconds(self.workers()) - deciding, time.monotonic() - began
        self.costs.append(spent)

    def row(self, count: int) -> str:
        """The least of all rounds, for each of the three; milliseconds a call."""
        serving, deciding, clock = (1000 * min(column) / CALLS for column in zip(*self.costs, strict=True))
        bound = 1000 / max(serving, deciding / count if deciding else 0.0)
        return f"{count:8}{serving:14.1f}{deciding:12.1f}{1000 / clock:12.1f}{bound:18.1f}"


async def rates() -> None:
    """The first table."""
    head = f"{'workers':>8}{'serving, ms':>14}{'workers, ms':>12}{'calls/s now':>12}{'calls/s by CPU':>18}"
    with TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            sides: dict[int, Side] = {}
            for count in (1, 2):
                processes = stack.enter_context(deciding_processes(count))
                ledger = SqliteLedger(Path(folder) / f"{count}.db")
                service = Service(policy_store(()), ledger, clusters("superpod-32"), **processes.parts)
                app = Webhook(service, deadline=PATIENCE).app()
                client = await stack.enter_async_context(TestClient(TestServer(app)))
                sides[count] = Side(client, processes)
                await calls(client)
            freeze_survivors()
            for _ in range(ROUNDS):
                for side in sides.values():
                    await side.round()
            print("a pod, dry run; the serving process with its client", head, sep="\n")
            for count, side in sides.items():
                print(side.row(count))


def large() -> tuple[LiveSnapshot, dict[str, Any]]:
    """The picture of a large cluster, and its pods."""
    topology, *hosts = nodes(NODES // RACK + 1, RACK, 8)
    read = {host["metadata"]["name"]: node_from({**host, "spec": {}}, Where()) for host in hosts[:NODES]}
    names = list(read)
    bound = (bound_pod(f"p{number}", names[number % NODES]) for number in range(NODES * PODS_A_NODE))
    pods = {item["metadata"]["name"]: pod_from(orjson.loads(orjson.dumps(item)), Where()) for item in bound}
    document = {"apiVersion": "kai.scheduler/v1alpha1", "kind": "Topology", **topology}
    fabric = read_cluster([("", document)]).base
    return LiveSnapshot(read, pods, lambda: fabric), pods  # type: ignore[arg-type]


def memory() -> None:
    """The second table: both workers are asked in turn, so that both follow all changes."""
    policies = policy_store(()).current
    around = replace(Environment().with_policy_parameters(policies), now=1e6)
    picture, pods = large()
    pool, random, changed = Pool(2), Random(1), 0
    pool.idle = queue.Queue()
    for _ in range(2):
        pool.idle.put(None)

    def decide(snapshot: Snapshot) -> None:
        for _ in range(2):
            with plan_cache.own_lane():
                pool.decide(request_of(pod()), policies, snapshot, "mutate", around)

    names, first = list(pods), picture.snapshot()
    with plan_cache.own_lane():
        decide_here(request_of(pod()), policies, first, "mutate", around)
    gc.collect()
    gc.freeze()
    alone = megabytes([os.getpid()])
    decide(first)
    print(f"{'changes':>8}{'one, MB':>10}{'with two workers':>18}{'times':>8}")
    for changes in CHANGES:
        while changed < changes:
            for _ in range(20):
                name = random.choice(names)
                pods[name] = replace(pods[name], labels={**pods[name].labels, "turn": str(changed)})
                picture.pod_changed(name)
                changed += 1
            decide(picture.snapshot())
        decide(picture.snapshot())
        total = megabytes([os.getpid(), *pool.pids])
        print(f"{changes:8}{alone:10.0f}{total:18.0f}{total / alone:8.2f}")
    pool.close()


if __name__ == "__main__":
    asyncio.run(rates())
    print(f"\nmemory at {NODES:,} nodes with {NODES * PODS_A_NODE:,} pods, as pods change")
    memory()
