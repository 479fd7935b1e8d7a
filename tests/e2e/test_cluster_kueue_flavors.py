"""Gangs in a queue of Kueue's that counts quota, on the nodes of the flavor that Kueue wrote onto their pods.

Kueue itself is played: its queue and flavors (its own schema), the label and the gate that its webhook
gives to each pod, and the node selector with which it opens that gate. API server, scheduler and the
controllers of StatefulSets and Deployments are real.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.api import Api, Json
from tests.e2e.binaries import find
from tests.e2e.controlplane import ControlPlane
from tests.e2e.fleet import namespace
from tests.e2e.kubectl import Kubectl
from tests.e2e.kubelet import Kubelet
from tests.e2e.processes import wait_until
from tests.e2e.real_kinds import NAMES, define
from tests.e2e.replicas import GPU, RACK, Replicas, racks_of, reservations
from tests.e2e.serving import PODS, replicas_of
from tests.e2e.stage import Cluster

VERSION = "kueue.x-k8s.io/v1beta2"
GATE = "kueue.x-k8s.io/admission"
POOLS = {"r1": "first", "r2": "second"}
"""Each rack is a pool of its own, and a flavor."""


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """A cluster of Kueue's: two racks of two nodes, a flavor for each, a queue, and a replica."""
    programs, folder = find(), tmp_path_factory.mktemp("flavors")
    with ControlPlane(programs, folder) as plane:
        kubectl = Kubectl(programs["kubectl"], plane.kubeconfig)
        kinds = sorted(name for name in NAMES if name.endswith("kueue.x-k8s.io"))
        define(kubectl, *kinds, "topologies.kai.scheduler", "reports.openreports.io")
        namespace(plane.api, "research")
        with Kubelet(plane.api) as kubelet:
            cluster = Cluster(plane.api, kubectl, kubelet)
            _make_queue(plane.api)
            with replicas_of(cluster, folder, 2, 2, 1) as replicas:
                for node in replicas.api.items("/api/v1/nodes"):
                    name = node["metadata"]["name"]
                    labels = {"pool": POOLS[name.partition("-")[0]]}
                    replicas.api.merge(f"/api/v1/nodes/{name}", {"metadata": {"labels": labels}})
                yield replicas


def _make_queue(api: Api) -> None:
    """The LocalQueue `quota` over both flavors."""
    flavors = []
    for pool in POOLS.values():
        _create(api, "resourceflavors", "ResourceFlavor", pool, {"nodeLabels": {"pool": pool}})
        flavors.append({"name": pool, "resources": [{"name": GPU, "nominalQuota": "16"}]})
    groups = [{"coveredResources": [GPU], "flavors": flavors}]
    _create(api, "clusterqueues", "ClusterQueue", "all", {"resourceGroups": groups})
    _create(api, "namespaces/research/localqueues", "LocalQueue", "quota", {"clusterQueue": "all"})


def _create(api: Api, folder: str, kind: str, name: str, spec: Json) -> None:
    head = {"apiVersion": VERSION, "kind": kind, "metadata": {"name": name}}
    api.create(f"/apis/{VERSION}/{folder}", {**head, "spec": spec})


@pytest.fixture
def gone(serving: Replicas) -> Iterator[None]:
    """No set, no pod and no reservation is left afterwards."""
    yield
    for folder in (_folder("StatefulSet"), _folder("Deployment")):
        for item in serving.api.items(folder):
            serving.api.delete(f"{folder}/{item['metadata']['name']}")
    wait_until(lambda: not serving.api.items(PODS) and not reservations(serving.api), "all to go", 60)


def _folder(kind: str) -> str:
    return f"/apis/apps/v1/namespaces/research/{kind.lower()}s"


def _apply(serving: Replicas, kind: str) -> None:
    """A gang of two whole nodes in a rack, in Kueue's queue; its pods come as Kueue's webhook leaves them."""
    labels = {"app": "web", "kueue.x-k8s.io/managed": "true"}
    queue = {"kueue.x-k8s.io/queue-name": "quota"}
    resources = {"limits": {GPU: 8}}
    spec: Json = {
        "schedulingGates": [{"name": GATE}],
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "busybox", "resources": resources}],
    }
    body: Json = {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {**labels, **queue}}, "spec": spec},
    }
    if kind == "StatefulSet":
        body |= {"podManagementPolicy": "Parallel", "serviceName": "web"}
    annotations = {"bayplan.dev/gang": "web", "kai.scheduler/topology-required-placement": RACK}
    metadata = {"name": "web", "namespace": "research", "labels": queue, "annotations": annotations}
    serving.api.create(
        _folder(kind), {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": body}
    )
    wait_until(lambda: len(_pods(serving)) == 2, "its pods", 60)


def _pods(serving: Replicas) -> list[Json]:
    listed = serving.api.items(PODS, labelSelector="app=web")
    return [pod for pod in listed if "deletionTimestamp" not in pod["metadata"]]


def _admit(serving: Replicas, pool: str) -> None:
    """Kueue admits the pods in a flavor: it opens its gate, and writes the flavor's labels."""
    for pod in _pods(serving):
        gates = [gate for gate in pod["spec"]["schedulingGates"] if gate["name"] != GATE]
        spec = {"nodeSelector": {"pool": pool}, "schedulingGates": gates or None}
        serving.api.merge(f"{PODS}/{pod['metadata']['name']}", {"spec": spec})


def _bound(serving: Replicas) -> list[Json]:
    wait_until(lambda: sum("nodeName" in pod["spec"] for pod in _pods(serving)) == 2, "both to run", 60)
    return _pods(serving)


@pytest.mark.usefixtures("gone")
@pytest.mark.parametrize("kind", ["StatefulSet", "Deployment"])
def test_a_gang_goes_to_the_pool_of_the_flavor_that_kueue_chose(serving: Replicas, kind: str) -> None:
    """Its template names no pool, and both racks are free; before Kueue admits it, it holds nothing."""
    _apply(serving, kind)
    assert reservations(serving.api) == {}
    _admit(serving, "second")
    assert racks_of(_bound(serving)) == {"r2"}
    (held,) = reservations(serving.api).values()
    assert sorted(seat["node"] for seat in held["spec"]["assignments"]) == ["r2-n1", "r2-n2"]


@pytest.mark.usefixtures("gone")
def test_a_gang_that_kueue_evicts_gives_its_place_back_and_may_come_in_another_flavor(
    serving: Replicas,
) -> None:
    """All pods go, and others wait at Kueue's gate: nothing is held then, and nothing pins them to the rack
    where the first ones were."""
    _apply(serving, "StatefulSet")
    _admit(serving, "second")
    first = _bound(serving)
    for pod in first:
        serving.api.delete(f"{PODS}/{pod['metadata']['name']}", grace=0)
    uids = {pod["metadata"]["uid"] for pod in first}
    wait_until(
        lambda: len([pod for pod in _pods(serving) if pod["metadata"]["uid"] not in uids]) == 2,
        "new pods",
        60,
    )
    assert not any("affinity" in pod["spec"] for pod in _pods(serving)), "not pinned yet"
    wait_until(lambda: not reservations(serving.api), "its place to be given back", 60)
    why = "Kueue has taken its admission back"

    def released() -> list[str]:
        entries = serving.api.items("/api/v1/namespaces/research/events")
        return [entry["message"] for entry in entries if entry["reason"] == "Released"]

    wait_until(lambda: any(text.endswith(why) for text in released()), "the event", 60)
    _admit(serving, "first")
    assert racks_of(_bound(serving)) == {"r1"}
