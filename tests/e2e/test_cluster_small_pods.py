"""Many clients create pods of one GPU at once through three replicas, as many pods as there are GPUs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.processes import wait_until
from tests.e2e.replicas import RESERVATIONS, Replicas, reservations, small_pod
from tests.e2e.serving import replicas_of
from tests.e2e.stage import Cluster
from tests.e2e.storm import PODS, create_again

COUNT = int(os.environ.get("BAYPLAN_E2E_SMALL_PODS", "128"))
CLIENTS = 32
HOSTS, GPUS = 4, 8


@pytest.fixture(scope="module")
def serving(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """As many GPUs as pods are created, and three replicas."""
    folder = tmp_path_factory.mktemp("small")
    with replicas_of(cluster, folder, COUNT // (HOSTS * GPUS), HOSTS, 3) as replicas:
        yield replicas


def test_as_many_small_pods_as_gpus_are_all_created_and_placed(
    serving: Replicas, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last GPU is found as well, no GPU is given twice, and each pod runs where its place is."""
    api = serving.api

    def apply(number: int) -> int:
        return create_again(api, PODS, small_pod(f"small-{number}"))

    with ThreadPoolExecutor(CLIENTS) as clients:
        repeated = sum(clients.map(apply, range(COUNT)))
    wanted = {f"research/Pod/small-{number}" for number in range(COUNT)}
    wait_until(lambda: set(reservations(api)) == wanted, "each pod to hold its place", 60)
    held = reservations(api)
    placed = {gang: reservation["spec"]["assignments"][0]["node"] for gang, reservation in held.items()}
    assert set(Counter(placed.values()).values()) == {GPUS}
    wait_until(
        lambda: all(pod["spec"].get("nodeName") for pod in api.items(PODS)), "the pods to be bound", 120
    )
    bound = {f"research/Pod/{pod['metadata']['name']}": pod["spec"]["nodeName"] for pod in api.items(PODS)}
    assert bound == placed
    tries = [
        line["tries"]
        for line in serving.lines()
        if (line.get("event"), line.get("phase"), line.get("kind")) == ("decision", "mutate", "Pod")
        and line["namespace"] == "research"
        and not line["dryRun"]
    ]
    with capsys.disabled():
        print(f"\n{COUNT} pods: {sum(tries) / COUNT:.2f} decisions a pod, {repeated} calls made again")
    for number in range(COUNT):
        api.delete(f"{PODS}/small-{number}", grace=0)
    wait_until(lambda: not api.items(RESERVATIONS), "the reservations to go", 120)
