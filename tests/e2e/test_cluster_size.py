"""The needs of a replica in a large cluster: time until it is ready, memory, and time for a response.

`BAYPLAN_E2E_NODES` and `BAYPLAN_E2E_PODS` set other sizes, such as 5,000 and 50,000.
"""

from __future__ import annotations

import json
import os
import ssl
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.api import Api, Json
from tests.e2e.binaries import find
from tests.e2e.controlplane import ControlPlane
from tests.e2e.kube_ledgers import install
from tests.e2e.kubectl import Kubectl
from tests.e2e.real_kinds import SHARED, define
from tests.e2e.replicas import GPU, Replicas, job, nodes
from tests.webhook.calls import review

NODES = int(os.environ.get("BAYPLAN_E2E_NODES", "400"))
PODS = int(os.environ.get("BAYPLAN_E2E_PODS", "2000"))
HOSTS = 10
"""Nodes of a rack; every tenth rack has none of the pods."""


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    """Only etcd and an API server: no controller may change the pods."""
    programs = find()
    plane = ControlPlane(programs, tmp_path)
    try:
        plane.start_etcd()
        plane.start_apiserver()
        kubectl = Kubectl(programs["kubectl"], plane.kubeconfig)
        install(kubectl)
        define(kubectl, *SHARED)
        fill(plane.api)
        yield plane
    finally:
        plane.stop()


def fill(api: Api) -> None:
    """Creates racks of ten nodes with pods on them."""
    api.create("/api/v1/namespaces", {"metadata": {"name": "research"}})
    api.create("/api/v1/namespaces/research/serviceaccounts", {"metadata": {"name": "default"}})
    topology, *hosts = nodes(NODES // HOSTS, HOSTS)
    api.create("/apis/kai.scheduler/v1alpha1/topologies", topology)
    busy = [host["metadata"]["name"] for place, host in enumerate(hosts) if place // HOSTS % 10]
    pods = [pod(f"p{number}", busy[number % len(busy)]) for number in range(PODS)]
    with ThreadPoolExecutor(16) as hands:
        list(hands.map(lambda body: api.create("/api/v1/nodes", body), hosts))
        born = [f"/api/v1/nodes/{host['metadata']['name']}" for host in hosts]  # with a taint: not ready
        list(hands.map(lambda path: api.merge(path, {"spec": {"taints": None}}), born))
        list(hands.map(lambda body: api.create("/api/v1/namespaces/research/pods", body), pods))


def pod(name: str, node: str) -> Json:
    """A bound pod with as much text as pods usually have."""
    labels = {"app": "train", "team": f"t{len(name)}", "batch.kubernetes.io/job-name": name}
    limits = {"cpu": "4", "memory": "8Gi", GPU: "1" if name.endswith(("0", "1")) else "0"}
    environment = [{"name": f"VARIABLE_{number}", "value": "x" * 40} for number in range(20)]
    container = {"name": "main", "image": "busybox", "env": environment, "resources": {"limits": limits}}
    return {
        "metadata": {"name": name, "namespace": "research", "labels": labels},
        "spec": {"nodeName": node, "automountServiceAccountToken": False, "containers": [container]},
    }


def megabytes(pid: int, field: str) -> int:
    """A line of the process's status in MB: VmRSS, or VmHWM for the maximum so far."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) // 1024


def answered(replicas: Replicas, number: int) -> float:
    """The seconds for a dry run of a Job of four nodes, for which a place must be found."""
    context = ssl.create_default_context(cafile=str(replicas.certs / "ca-bundle.crt"))
    body = json.dumps(review(job(f"asked-{number}", 4), dry_run=True)).encode()
    address = f"https://127.0.0.1:{replicas.ports[0]}/mutate"
    started = time.perf_counter()
    call = urllib.request.Request(address, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(call, timeout=30, context=context) as answer:
        response = json.loads(answer.read())["response"]
    assert response["allowed"], response
    assert not any("queued" in warning for warning in response.get("warnings", ())), response
    return time.perf_counter() - started


def test_a_replica_is_ready_soon_and_small(
    plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It lists page by page, keeps what it needs of each object, and answers from memory."""
    replicas = Replicas(plane.api, plane.kubeconfig, tmp_path, 1)
    try:
        began = time.perf_counter()
        replicas.start()
        ready = time.perf_counter() - began
        pid = replicas.processes[0].popen.pid
        first = answered(replicas, 0)
        times = []
        for number in range(1, 11):
            plane.api.create("/api/v1/namespaces/research/pods", pod(f"new-{number}", "r2-n1"))
            times.append(answered(replicas, number))
        rest, peak = megabytes(pid, "VmRSS"), megabytes(pid, "VmHWM")
    finally:
        replicas.stop()
    with capsys.disabled():
        print(
            f"\n{NODES} nodes, {PODS} pods: ready after {ready:.1f} s, {rest} MB now, {peak} MB at most; "
            f"first answer {1000 * first:.0f} ms, then with a new pod before each "
            f"{1000 * sorted(times)[5]:.0f} ms in the middle, {1000 * max(times):.0f} ms at most"
        )
    assert peak < 200 + (NODES + PODS) * 0.004
