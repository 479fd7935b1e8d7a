"""What a decision costs over HTTP, in CPU, beside a webhook that allows everything: `python
tests/bench/bench_decision.py`.

Both are asked by the same client in the same process, in turns, so that a busy machine slows both alike; of
several rounds the least counts. What tells is the ratio to the empty webhook, client and HTTP included: it is
compared with the recorded one, and a decision that has become dearer by more than `ALLOWED` ends the run
with 1. A dearer or cheaper decision that is meant is recorded with `--record`, which prints the lines.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import orjson
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from planner.ledger.sqlite import SqliteLedger
from tests.bench.cluster.empty_webhook import answer
from tests.webhook.admission.test_growth_of_work import job_set
from tests.webhook.calls import PATIENCE, clusters, example, review
from webhook.cli.common.inputs import policy_store, shipped
from webhook.policy.engine.forms.equal_objects import MAX_FORMS
from webhook.server.cluster_source import NoCluster
from webhook.server.garbage_collection import freeze_survivors
from webhook.server.http import Webhook
from webhook.server.service import Service

Json = dict[str, Any]

ALLOWED = 1.2
"""How much dearer than recorded a decision may be: more than the noise between two runs on one machine."""
ROUNDS, CALLS = 7, 30
FIVE = ("guaranteed-qos", "key-spelling", "nccl-env", "rdma-fabric", "scheduler-name")
"""Policies that need no plan: what other policy engines do too."""

RECORDED: Mapping[str, float] = {
    "equal pods, shipped policies and plan, mutate": 34.8,
    "equal pods, shipped policies and plan, validate": 13.2,
    "equal pods, five policies without a plan, mutate": 10.1,
    "pods, shipped policies and plan, mutate": 46.9,
    "pods, shipped policies and plan, validate": 21.0,
    "pods, five policies without a plan, mutate": 23.8,
    "Job, shipped policies and plan, mutate": 71.4,
    "JobSet of 200 PodSets, mutate": 791.7,
}
"""Ratios to the empty webhook: the greater of two runs on two cores without other work."""


@dataclass(frozen=True)
class Row:
    """Calls of one kind: where they go, and what is sent, in turns."""

    name: str
    client: TestClient[Any, Any]
    path: str
    bodies: Iterator[bytes]
    calls: int = CALLS

    async def seconds(self) -> float:
        """CPU seconds of one call, client and server."""
        began = time.process_time()
        for body in islice(self.bodies, self.calls):
            reply = await self.client.post(self.path, data=body, headers={"Content-Type": "application/json"})
            assert reply.status == 200, await reply.text()
            await reply.read()
        return (time.process_time() - began) / self.calls


def pod(name: str = "train", **spec: Any) -> Json:
    """A pod of one GPU as people write it; `spec` adds to its spec."""
    container = {"name": "main", "image": "trainer:1", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "research"},
        "spec": {"containers": [container], **spec},
    }


def bodies(*objs: Json) -> Iterator[bytes]:
    """Dry runs, without end: the same cluster for each call."""
    return cycle([orjson.dumps(review(obj, dry_run=True)) for obj in objs])


def app(folder: str, *, planning: bool) -> web.Application:
    """Bayplan with a ledger of its own."""
    names = () if planning else tuple(str(shipped("policies") / name) for name in FIVE)
    cluster = clusters("superpod-32") if planning else NoCluster()
    ledger = SqliteLedger(Path(folder) / f"{planning}.db")
    return Webhook(Service(policy_store(names), ledger, cluster), deadline=PATIENCE).app()


def empty() -> web.Application:
    """The anchor."""
    application = web.Application()
    application.router.add_post("/mutate", answer)
    return application


async def measured(folder: str) -> dict[str, float]:
    """CPU seconds of a call by row, the anchor first."""
    anchor = TestClient(TestServer(empty()))
    whole = TestClient(TestServer(app(folder, planning=True)))
    five = TestClient(TestServer(app(folder, planning=False)))
    async with anchor, whole, five:
        job = example("job-two-nodes-one-rack")
        equal = bodies(*(pod(f"train-{number}") for number in range(CALLS)))
        # More kinds of pods than Bayplan keeps forms of: no pod is equal to one that it knows.
        unequal = bodies(*(pod(terminationGracePeriodSeconds=number) for number in range(2 * MAX_FORMS)))
        rows = [
            Row("empty webhook", anchor, "/mutate", bodies(pod())),
            Row("equal pods, shipped policies and plan, mutate", whole, "/mutate", equal),
            Row("equal pods, shipped policies and plan, validate", whole, "/validate", equal),
            Row("equal pods, five policies without a plan, mutate", five, "/mutate", equal),
            Row("pods, shipped policies and plan, mutate", whole, "/mutate", unequal),
            Row("pods, shipped policies and plan, validate", whole, "/validate", unequal),
            Row("pods, five policies without a plan, mutate", five, "/mutate", unequal),
            Row("Job, shipped policies and plan, mutate", whole, "/mutate", bodies(job)),
            Row("JobSet of 200 PodSets, mutate", whole, "/mutate", bodies(job_set(200)), 1),
        ]
        for row in rows:  # what is worked out once for a cluster and a set of policies
            await row.seconds()
        gc.collect()
        freeze_survivors()  # as the server does
        rounds = [[await row.seconds() for row in rows] for _ in range(ROUNDS)]
    return {row.name: min(times) for row, times in zip(rows, zip(*rounds, strict=True), strict=True)}


def main() -> None:
    """Print the table; 1 where a decision has become dearer."""
    with TemporaryDirectory() as folder:
        seconds = asyncio.run(measured(folder))
    anchor = next(iter(seconds.values()))
    dearer = []
    print(f"{'CPU of a call, client included':44}{'ms':>9}{'ratio':>9}{'recorded':>10}")
    for name, cost in seconds.items():
        ratio, recorded = cost / anchor, RECORDED.get(name)
        shown = f"{recorded:10.1f}" if recorded else f"{'':10}"
        print(f"{name:44}{cost * 1000:9.2f}{ratio:9.1f}{shown}")
        if recorded and ratio > recorded * ALLOWED:
            dearer.append(name)
    if "--record" in sys.argv:
        print("".join(f"    {name!r}: {cost / anchor:.1f},\n" for name, cost in seconds.items()))
    elif dearer:
        sys.exit(f"dearer than recorded by more than {ALLOWED - 1:.0%}: {', '.join(dearer)}")


if __name__ == "__main__":
    main()
