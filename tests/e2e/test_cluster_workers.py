"""One replica with two workers on a real cluster: many clients create pods while workers are killed."""

from __future__ import annotations

import os
import re
import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.processes import wait_until
from tests.e2e.replicas import RESERVATIONS, Replicas, job, reservations, small_pod
from tests.e2e.serving import replicas_of
from tests.e2e.stage import Cluster
from tests.e2e.storm import JOBS, PODS, create_again
from tests.webhook.server.workers.test_served import children, gone

RACKS, HOSTS, GPUS = 2, 3, 8
COUNT = RACKS * HOSTS * GPUS
CLIENTS = 8


@pytest.fixture(scope="module")
def serving(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """As many GPUs as pods are created, and one replica."""
    folder = tmp_path_factory.mktemp("workers")
    with replicas_of(cluster, folder, RACKS, HOSTS, 1, options=("--workers", "2")) as replicas:
        yield replicas


def test_pods_of_many_clients_are_placed_while_workers_are_killed(serving: Replicas) -> None:
    """Every GPU is found and none is given twice, whichever process decided, and whatever became of it."""
    server = serving.processes[0].popen.pid
    killed: set[int] = set()
    with ThreadPoolExecutor(CLIENTS) as clients:
        calls = [
            clients.submit(create_again, serving.api, PODS, small_pod(f"small-{n}")) for n in range(COUNT)
        ]
        while not all(call.done() for call in calls):
            time.sleep(0.5)
            for worker in set(children(server)) - killed if len(killed) < 5 else ():
                os.kill(worker, signal.SIGKILL)
                killed.add(worker)
        for call in calls:
            call.result()
    wanted = {f"research/Pod/small-{number}" for number in range(COUNT)}
    wait_until(lambda: set(reservations(serving.api)) == wanted, "each pod to hold its place", 60)
    nodes = [held["spec"]["assignments"][0]["node"] for held in reservations(serving.api).values()]
    assert set(Counter(nodes).values()) == {GPUS}
    assert killed
    for number in range(COUNT):
        serving.api.delete(f"{PODS}/small-{number}", grace=0)
    wait_until(lambda: not serving.api.items(RESERVATIONS), "the reservations to go", 120)


def test_workers_follow_the_book(serving: Replicas) -> None:
    """A rack that a Job holds is nobody else's, and is given again when the Job has gone."""

    def rack(name: str) -> str:
        create_again(serving.api, JOBS, job(name, HOSTS))
        gang = f"research/Job/{name}"
        wait_until(lambda: gang in reservations(serving.api), f"the place of {name}")
        return str(reservations(serving.api)[gang]["spec"]["domains"])

    first, second = rack("first"), rack("second")
    assert first != second
    serving.api.delete(f"{JOBS}/first")
    wait_until(lambda: "research/Job/first" not in reservations(serving.api), "the first Job's end", 60)
    assert rack("third") == first
    for name in ("second", "third"):
        serving.api.delete(f"{JOBS}/{name}")
    wait_until(lambda: not serving.api.items(RESERVATIONS), "the reservations to go", 120)


def test_metrics_and_readiness_speak_of_all(serving: Replicas) -> None:
    """All calls are counted in one place, and the replica is ready with all its workers."""
    port = serving.ports[0]
    status, detail = serving.readiness(port)
    assert (status, '"problems":[]' in detail) == (200, True)
    text = serving.metrics(port)
    counted = sum(float(value) for value in re.findall(r"^bayplan_decisions_total\{.*\} (\S+)$", text, re.M))
    logged = [line for line in serving.lines() if line.get("event") == "decision"]
    assert counted == len(logged) > COUNT
    assert re.search(r'^bayplan_worker_starts_total\{reason="lost"\} [1-9]', text, re.M)
    workers = children(serving.processes[0].popen.pid)
    assert f"bayplan_workers {len(workers)}.0" in text


def test_workers_end_with_the_replica(serving: Replicas) -> None:
    """Killed, it leaves none."""
    workers = children(serving.processes[0].popen.pid)
    assert workers
    serving.kill(0)
    gone(workers)
    serving.restart(0)
    serving.processes[0].wait_until(lambda: serving.is_ready(serving.ports[0]))
