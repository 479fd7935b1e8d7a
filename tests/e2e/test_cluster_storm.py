"""Many gangs at once through three replicas, and through replicas that are killed at random moments."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import pytest

from tests.e2e.api import ApiError, Json
from tests.e2e.conftest import policy_set
from tests.e2e.fleet import Fleet
from tests.e2e.kube_ledgers import install
from tests.e2e.processes import wait_until
from tests.e2e.replicas import Replicas, job, nodes, reservations
from tests.e2e.stage import Cluster

GANGS = int(os.environ.get("BAYPLAN_E2E_GANGS", "60"))
RACKS = int(os.environ.get("BAYPLAN_E2E_RACKS", "8"))
JOBS = "/apis/batch/v1/namespaces/research/jobs"
PODS = "/api/v1/namespaces/research/pods"
PLACEMENT = "bayplan.dev/placement"


@pytest.fixture(scope="module")
def serving(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """Racks of two nodes, and three replicas."""
    install(cluster.kubectl)
    folder = tmp_path_factory.mktemp("storm")
    fleet = Fleet(cluster.api)
    replicas = Replicas(
        cluster.api, cluster.kubectl.kubeconfig, folder, 3, policy_set("default-scheduler", folder)
    )
    try:
        fleet.make(nodes(RACKS, 2))
        replicas.start()
        replicas.configure()
        yield replicas
        replicas.unconfigure()
    finally:
        replicas.stop()
        fleet.remove()


def apply_all(serving: Replicas, prefix: str) -> Counter[str]:
    """Every gang at once, 16 in flight; what became of each: admitted, queued, unseen, or a status."""

    def apply(number: int) -> str:
        body = job(f"{prefix}-{number}", 1 + number % 2)
        for _ in range(20):
            try:
                stored = serving.api.create(JOBS, body)
            except ApiError as error:
                if error.status in (409, 500, 503) and "AlreadyExists" not in str(error):
                    time.sleep(0.2)
                    continue
                return str(error.status)
            note = stored["metadata"]["annotations"].get(PLACEMENT, '"unseen"')
            return next(word for word in ("admitted", "queued", "unseen") if f'"{word}"' in note)
        return "never"

    with ThreadPoolExecutor(16) as workers:
        return Counter(workers.map(apply, range(GANGS)))


def is_sound(serving: Replicas) -> None:
    """No rack has two holders, and no gang is there in part."""
    held = reservations(serving.api)
    for one, other in combinations(held.values(), 2):
        assert not touched(one) & touched(other), f"{one['spec']['gang']} and {other['spec']['gang']}"
    for name, one in held.items():
        wanted = 1 + int(name.rpartition("-")[2]) % 2
        assert sum(part["count"] for part in one["spec"]["assignments"]) == wanted


def touched(reservation: Json) -> set[str]:
    """Every node that it holds or uses."""
    spec = reservation["spec"]
    return set(spec["nodes"]) | {one["node"] for one in spec["assignments"]}


def end_all(serving: Replicas) -> float:
    """Delete every Job; the seconds until no reservation is left."""
    started = time.monotonic()
    for item in serving.api.items(JOBS):
        serving.api.delete(f"{JOBS}/{item['metadata']['name']}")
    wait_until(lambda: not serving.api.items(PODS), "the pods to go", 120)
    wait_until(lambda: not reservations(serving.api), "the reservations to go", 120)
    return time.monotonic() - started


def test_many_gangs_at_once_are_each_placed_or_queued_and_no_rack_has_two_holders(
    serving: Replicas,
) -> None:
    """Then all are deleted, and no reservation is left."""
    started = time.monotonic()
    said = apply_all(serving, "storm")
    took = time.monotonic() - started
    assert set(said) <= {"admitted", "queued"}
    assert said["admitted"] >= RACKS
    is_sound(serving)
    gone = end_all(serving)
    print(
        f"\n{GANGS} gangs on {RACKS} racks in {took:.1f} s: {dict(said)}; all places free after {gone:.1f} s"
    )


def test_replicas_killed_at_random_moments_lose_and_double_nothing(serving: Replicas) -> None:
    """One of three is killed with SIGKILL, again and again, while gangs come."""
    stop = threading.Event()
    kills = 0

    def killer() -> None:
        nonlocal kills
        chance = random.Random(7)
        while not stop.wait(chance.uniform(1.0, 3.0)):
            number = chance.randrange(3)
            serving.kill(number)
            kills += 1
            serving.restart(number)
            wait_until(lambda number=number: serving.is_ready(serving.ports[number]), "it to be back", 60)

    thread = threading.Thread(target=killer)
    thread.start()
    try:
        said = apply_all(serving, "killed")
    finally:
        stop.set()
        thread.join()
    is_sound(serving)
    assert said.total() == GANGS
    assert set(said) <= {"admitted", "queued", "unseen"}
    gone = end_all(serving)
    print(f"\n{kills} kills among {GANGS} gangs: {dict(said)}; all places free after {gone:.1f} s")
