"""Nodes in racks, replicas that watch the cluster and are called by its API server, and the pods of Jobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.api import Json
from tests.e2e.conftest import policy_set
from tests.e2e.fleet import Fleet
from tests.e2e.kube_ledgers import install
from tests.e2e.processes import wait_until
from tests.e2e.replicas import Release, Replicas, nodes
from tests.e2e.stage import Cluster

PODS = "/api/v1/namespaces/research/pods"


@contextmanager
def replicas_of(
    cluster: Cluster,
    folder: Path,
    racks: int,
    hosts: int,
    count: int = 2,
    former: Release | None = None,
) -> Iterator[Replicas]:
    """So many replicas over racks of so many hosts; pods are the default scheduler's. Gone afterwards."""
    install(cluster.kubectl)
    fleet = Fleet(cluster.api)
    policies = policy_set("default-scheduler", folder)
    replicas = Replicas(cluster.api, cluster.kubectl.kubeconfig, folder, count, policies, former=former)
    try:
        fleet.make(nodes(racks, hosts))
        replicas.start()
        replicas.configure()
        yield replicas
        replicas.unconfigure()
    finally:
        replicas.stop()
        fleet.remove()


def pods(serving: Replicas, name: str) -> list[Json]:
    """A Job's pods that are not being deleted."""
    found = serving.api.items(PODS, labelSelector=f"job-name={name}")
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def running(serving: Replicas, name: str, count: int) -> list[Json]:
    """Wait until so many of a Job's pods are bound."""
    wait_until(
        lambda: sum("nodeName" in p["spec"] for p in pods(serving, name)) == count, f"{name} to run", 60
    )
    return pods(serving, name)
