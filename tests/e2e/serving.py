"""Nodes in racks, replicas that the API server of the cluster calls, and the pods of Jobs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.api import Api, Json
from tests.e2e.conftest import policy_set
from tests.e2e.fleet import Fleet
from tests.e2e.hook import BAYPLAN
from tests.e2e.kube_ledgers import install
from tests.e2e.processes import wait_until
from tests.e2e.replicas import Release, Replicas, job, nodes, reservations
from tests.e2e.stage import Cluster

PODS = "/api/v1/namespaces/research/pods"
JOBS = "/apis/batch/v1/namespaces/research/jobs"
HELD, WAITS = "research/Job/holds", "research/Job/waits"


@contextmanager
def replicas_of(
    cluster: Cluster,
    folder: Path,
    racks: int,
    hosts: int,
    count: int = 2,
    former: Release | None = None,
    options: Sequence[str] = (),
) -> Iterator[Replicas]:
    """Several replicas on racks of this many nodes, removed afterwards. Pods use the default scheduler.
    `options` are further options of `bayplan serve`.
    """
    install(cluster.kubectl)
    fleet = Fleet(cluster.api)
    policies = policy_set("default-scheduler", folder)
    kubeconfig = cluster.kubectl.kubeconfig
    replicas = Replicas(cluster.api, kubeconfig, folder, count, policies, options, former=former)
    try:
        fleet.make(nodes(racks, hosts))
        replicas.start()
        replicas.configure()
        try:
            yield replicas
        finally:  # also after a skip: other files use the same control plane
            replicas.unconfigure()
    finally:
        replicas.stop()
        fleet.remove()


@contextmanager
def holding_and_waiting(cluster: Cluster, folder: Path) -> Iterator[Replicas]:
    """A replica on one rack of two nodes: one Job (`HELD`) holds the rack, another (`WAITS`) waits for it."""
    with replicas_of(cluster, folder, 1, 2, count=1) as replicas:
        cluster.api.create(JOBS, job("holds", 2))
        running(replicas, "holds", 2)
        cluster.api.create(JOBS, job("waits", 2))
        wait_until(lambda: len(cluster.api.items(PODS)) == 4, "the pods of both", 60)
        yield replicas
        for name in ("holds", "waits"):
            cluster.api.delete(f"{JOBS}/{name}")
        wait_until(lambda: not cluster.api.items(PODS), "the pods to go", 60)


def bayplan(cluster: Cluster, *words: str) -> tuple[int, str]:
    """Runs a command on the cluster and returns exit status and output."""
    command = [BAYPLAN, *words, "--kubeconfig", str(cluster.kubectl.kubeconfig)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout


def empty(api: Api, *folders: str) -> None:
    """Deletes all objects at these paths and waits until no pod of the tests and no reservation is left."""
    for folder in folders:
        for item in api.items(folder):
            api.delete(f"{folder}/{item['metadata']['name']}")
    wait_until(lambda: not api.items(PODS), "the pods to go", 60)
    wait_until(lambda: not reservations(api), "the reservations to go", 60)


def pods(serving: Replicas, name: str) -> list[Json]:
    """The pods of a Job that are not being deleted."""
    listed = serving.api.items(PODS, labelSelector=f"job-name={name}")
    return [pod for pod in listed if "deletionTimestamp" not in pod["metadata"]]


def running(serving: Replicas, name: str, count: int) -> list[Json]:
    """Waits until this many pods of a Job are bound."""
    wait_until(
        lambda: sum("nodeName" in p["spec"] for p in pods(serving, name)) == count, f"{name} to run", 60
    )
    return pods(serving, name)
