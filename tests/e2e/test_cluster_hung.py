"""Bayplan accepts connections but never responds. Requests that do not concern it must not wait for it.

KAI's podgrouper creates a PodGroup for every pod of its scheduler, with or without GPUs. If the API server
called Bayplan for each of them, a hung webhook would delay them all until the call times out.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from tests.e2e.api import Json
from tests.e2e.configured import configure
from tests.e2e.hook import make_certificates
from tests.e2e.processes import wait_until
from tests.e2e.replicas import GPU
from tests.e2e.stage import Cluster

PODS = "/api/v1/namespaces/research/pods"
JOBS = "/apis/batch/v1/namespaces/research/jobs"
GROUPS = "/apis/scheduling.run.ai/v2alpha2/namespaces/research/podgroups"


class Silent:
    """A server on loopback that accepts every connection and sends nothing; `calls` counts the
    connections.
    """

    def __init__(self) -> None:
        """Listens until `close`."""
        self.calls = 0
        self._taken: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, name="silent", daemon=True).start()

    def close(self) -> None:
        """Closes every connection."""
        for end in (self._listener, *self._taken):
            end.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._taken.append(client)
            self.calls += 1


@pytest.fixture(scope="module")
def hung(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Silent]:
    """The shipped webhook configurations in mode enforce, in force, for a server that hangs."""
    certs = tmp_path_factory.mktemp("hung")
    make_certificates(certs)
    silent, paths = Silent(), []
    try:
        configure(cluster.api, paths, silent.port, certs)
        # A mode that is none is asked about by a webhook that lets pass what it cannot ask.
        body = {"metadata": {"labels": {"bayplan.dev/mode": "no-mode"}}}

        def is_called() -> bool:
            cluster.api.merge("/api/v1/namespaces/inference", body, dryRun="All")
            return silent.calls > 0

        wait_until(is_called, "the API server to call", 60)
        yield silent
    finally:
        for path in reversed(paths):
            cluster.api.delete(path)
        silent.close()


def pod(name: str, **annotations: str) -> Json:
    """A pod of KAI without a GPU."""
    container = {"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "research",
            "labels": {"kai.scheduler/queue": "default-queue"},
            "annotations": annotations,
        },
        "spec": {"schedulerName": "kai-scheduler", "containers": [container]},
    }


def group(name: str, owner: Json | None, **spec: object) -> Json:
    """A PodGroup as KAI's client writes it: it always contains an empty topologyConstraint."""
    metadata: Json = {"name": name, "namespace": "research"}
    if owner is not None:
        reference = {key: owner["metadata"][key] for key in ("name", "uid")}
        metadata["ownerReferences"] = [{"apiVersion": "v1", "kind": owner["kind"], **reference}]
    stated = {"minMember": 1, "queue": "default-queue", "topologyConstraint": {}, **spec}
    version, kind = "scheduling.run.ai/v2alpha2", "PodGroup"
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": stated}


def test_a_pod_without_gpus_and_its_kai_pod_group_never_wait_for_a_hung_bayplan(
    cluster: Cluster, hung: Silent
) -> None:
    """Pod, Job, the PodGroup that KAI makes for it, one of the user's, what KAI writes later and the end of
    each: nobody is called."""
    api, before = cluster.api, hung.calls
    stored = api.create(PODS, pod("cpu-only"))
    stored |= {"kind": "Pod"}
    api.create(GROUPS, group("pg-cpu-only", stored))
    copied = group("pg-wishes", stored, topologyConstraint={"topology": "racks"})
    copied["metadata"]["annotations"] = {"kai.scheduler/topology": "racks"}
    api.create(GROUPS, copied)
    part = {"name": "all", "minMember": 1, "topologyConstraint": {}}
    api.create(GROUPS, group("by-hand", None, subGroups=[part]))
    api.merge(f"{PODS}/cpu-only", {"metadata": {"annotations": {"pod-group-name": "pg-cpu-only"}}})
    template = {"metadata": stored["metadata"].get("labels") and {"labels": stored["metadata"]["labels"]}}
    spec = {**pod("")["spec"], "restartPolicy": "Never"}
    job = {"metadata": {"name": "cpu-only"}, "spec": {"template": {**template, "spec": spec}}}
    api.create(JOBS, job)
    wait_until(lambda: len(api.items(PODS, labelSelector="job-name=cpu-only")) == 1, "the Job's pod")
    assert hung.calls == before
    api.delete(f"{JOBS}/cpu-only")
    api.delete(f"{PODS}/cpu-only", grace=0)
    for name in ("pg-cpu-only", "pg-wishes"):
        api.delete(f"{GROUPS}/{name}")
    assert hung.calls == before
    api.delete(f"{GROUPS}/by-hand")  # of a user's own group the end is told: it may have held a place


def test_what_asks_for_gpus_does_wait(cluster: Cluster, hung: Silent) -> None:
    """Or the test before would say nothing: where Bayplan acts, such a pod is refused in words."""
    before = hung.calls
    body = pod("gpu")
    body["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "1", GPU: "1"}
    with pytest.raises(Exception, match="bayplan"):
        cluster.api.create(PODS, body)
    assert hung.calls > before
