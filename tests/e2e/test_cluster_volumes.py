"""Volumes, host ports and RuntimeClasses on a real control plane: the plan uses the nodes that kube-scheduler
binds to.

The zones of the nodes are the names of their racks, but rack r3 has no zones. The volumes are real objects
that the controller manager binds; nothing is mounted, because the kubelets are simulated.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from planner.manifests.pods.pod import shape_of
from planner.model.errors import Where
from planner.model.podgroup import PodGroup, PodSet
from planner.planning.plan import plan
from tests.e2e.api import ApiError, Json
from tests.e2e.processes import wait_until
from tests.e2e.replicas import Replicas, job, racks_of, reservations
from tests.e2e.serving import PODS, empty, replicas_of, running
from tests.e2e.stage import Cluster
from tests.e2e.verdicts import decided, planned
from webhook.policy.engine.device_selectors import read_cluster

JOBS = "/apis/batch/v1/namespaces/research/jobs"
CLAIMS = "/api/v1/namespaces/research/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
LOCAL = "kubernetes.io/no-provisioner"
RUNTIMES = "/apis/node.k8s.io/v1/runtimeclasses"
BOUNDS = ("/api/v1/namespaces/research/limitranges", "/api/v1/namespaces/research/resourcequotas")
SEEN = "nodes,pods,pv,pvc,storageclasses,runtimeclasses"


@pytest.fixture(scope="module")
def serving(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """Three racks of two nodes, and a replica that the API server calls."""
    with replicas_of(cluster, tmp_path_factory.mktemp("replicas"), 3, 2, count=1) as replicas:
        for rack in ("r1", "r2"):
            for host in (1, 2):
                labels = {"metadata": {"labels": {ZONE: rack}}}
                replicas.api.merge(f"/api/v1/nodes/{rack}-n{host}", labels)
        yield replicas


@pytest.fixture(autouse=True)
def clean(serving: Replicas) -> Iterator[None]:
    """After each test, deletes all applied objects, after which the reservations are released."""
    yield
    empty(serving.api, JOBS, PODS, CLAIMS, VOLUMES, CLASSES, RUNTIMES, *BOUNDS)
    wait_until(lambda: not serving.api.items(CLAIMS), "the claims to go", 60)
    wait_until(lambda: not serving.api.items(VOLUMES), "the volumes to go", 60)


def volume(
    name: str, *, on: tuple[str, str] | None = None, labels: Json | None = None, **spec: object
) -> Json:
    """A volume of 1Gi for the claim of the same name, usable on nodes with one value of one label."""
    affinity: Json = {}
    if on:
        expression = {"key": on[0], "operator": "In", "values": [on[1]]}
        affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}}
    stated = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteMany"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "by-hand",
        "claimRef": {"namespace": "research", "name": name},
        "nfs": {"server": "example.com", "path": "/"},
    }
    metadata = {"name": name, "labels": labels or {}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": metadata,
        "spec": {**stated, **affinity, **spec},
    }


def claim(name: str, storage: str = "by-hand") -> Json:
    """A PersistentVolumeClaim of a class."""
    spec = {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": storage,
    }
    metadata = {"name": name, "namespace": "research"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def storage_class(name: str, *zones: str, provisioner: str = "example.com/disk") -> Json:
    """A StorageClass with WaitForFirstConsumer."""
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}] if zones else None
    return {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer", "allowedTopologies": allowed,
    }  # fmt: skip


def runtime_class(name: str, overhead: Json | None = None, **scheduling: Json) -> Json:
    """A RuntimeClass with the overhead of each pod, and where its pods run."""
    parts = {"overhead": {"podFixed": overhead}} if overhead else {}
    head = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}}
    placed = {"scheduling": scheduling} if scheduling else {}
    return {**head, "handler": "kata-qemu", **parts, **placed}


FOLDERS = {
    "PersistentVolume": VOLUMES,
    "PersistentVolumeClaim": CLAIMS,
    "StorageClass": CLASSES,
    "RuntimeClass": RUNTIMES,
}


def make(serving: Replicas, *objects: Json) -> None:
    """Creates the objects and waits until claims of a class with immediate binding are bound."""
    for item in objects:
        serving.api.create(FOLDERS[item["kind"]], item)
    for item in objects:
        if item["kind"] == "PersistentVolumeClaim" and item["spec"]["storageClassName"] == "by-hand":
            path = f"{CLAIMS}/{item['metadata']['name']}"
            wait_until(
                lambda path=path: serving.api.get(path)["status"]["phase"] == "Bound",
                "the claim to be bound",
                60,
            )


def mounted(name: str) -> list[Json]:
    """The volumes of a pod: one, of a claim."""
    return [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]


def test_a_gang_goes_to_the_zone_of_its_volume(serving: Replicas) -> None:
    """Both pods mount a claim whose volume is in zone r2; without it they would go to r1."""
    make(serving, volume("data", on=(ZONE, "r2")), claim("data"))
    serving.api.create(JOBS, job("plain", 2))
    assert racks_of(running(serving, "plain", 2)) == {"r1"}
    serving.api.delete(f"{JOBS}/plain")
    wait_until(lambda: not reservations(serving.api), "the place to be free", 60)
    serving.api.create(JOBS, job("zonal", 2, volumes=mounted("data")))
    assert reservations(serving.api)["research/Job/zonal"]["status"]["where"] == "r2"
    assert racks_of(running(serving, "zonal", 2)) == {"r2"}


def test_a_gang_waits_while_the_zone_of_its_volume_is_taken(serving: Replicas) -> None:
    """It is let in when the zone is free, and not before, though two racks are empty."""
    make(serving, volume("data", on=(ZONE, "r2")), claim("data"))
    serving.api.create(JOBS, job("first", 2, volumes=mounted("data")))
    running(serving, "first", 2)
    stored = serving.api.create(JOBS, job("second", 2, volumes=mounted("data")))
    placement = stored["metadata"]["annotations"]["bayplan.dev/placement"]
    assert '"queued"' in placement
    serving.api.delete(f"{JOBS}/first")
    assert racks_of(running(serving, "second", 2)) == {"r2"}


def test_pods_with_one_host_port_get_a_node_each(serving: Replicas) -> None:
    """Two pods of a GPU each would fit one node; with a host port they are bound to two, and another Job for
    the same port goes to another rack."""
    for name, rack in (("first", "r1"), ("second", "r2")):
        body = job(name, 2, gpus=1)
        body["metadata"]["annotations"]["bayplan.dev/reserve"] = "nodes"
        (container,) = body["spec"]["template"]["spec"]["containers"]
        container["ports"] = [{"containerPort": 8080, "hostPort": 8080}]
        serving.api.create(JOBS, body)
        hosts = {pod["spec"]["nodeName"] for pod in running(serving, name, 2)}
        assert hosts == {f"{rack}-n1", f"{rack}-n2"}


def test_a_gang_goes_to_the_nodes_of_its_runtime_class_and_holds_its_overhead(serving: Replicas) -> None:
    """The template has the class's name alone. Its pods have what the class adds, and stay Guaranteed."""
    make(serving, runtime_class("kata", {"cpu": "250m"}, nodeSelector={ZONE: "r2"}))
    body = job("sandboxed", 2, runtimeClassName="kata")

    def planned_in_its_zone() -> bool:
        stored = serving.api.create(JOBS, body, dryRun="All")
        return '"r2"' in stored["metadata"]["annotations"]["bayplan.dev/placement"]

    wait_until(planned_in_its_zone, "the replica to see the RuntimeClass", 60)
    serving.api.create(JOBS, body)
    held = reservations(serving.api)["research/Job/sandboxed"]
    assert held["status"]["where"] == "r2"
    pods = running(serving, "sandboxed", 2)
    assert racks_of(pods) == {"r2"}
    assert {pod["status"]["qosClass"] for pod in pods} == {"Guaranteed"}
    assert [pod["spec"]["overhead"] for pod in pods] == [{"cpu": "250m"}] * 2
    (part,) = held["spec"]["requests"]
    assert [shape_of(pod["spec"], Where()).requests for pod in pods] == [part["perPod"]] * 2


REFUSED: dict[str, Json] = {
    "a class that does not exist": {"runtimeClassName": "kat"},
    "another overhead": {"runtimeClassName": "kata", "overhead": {"cpu": "1"}},
    "an overhead without a class": {"overhead": {"cpu": "1"}},
    "another value of a label that the class selects": {
        "runtimeClassName": "kata",
        "nodeSelector": {ZONE: "r1"},
    },
}
ACCEPTED: dict[str, Json] = {
    "the class": {"runtimeClassName": "kata"},
    "the class and its overhead": {"runtimeClassName": "kata", "overhead": {"cpu": "0.25"}},
    "the class and its label": {"runtimeClassName": "kata", "nodeSelector": {ZONE: "r2"}},
}


def test_the_plan_warns_of_the_pods_that_the_api_server_refuses(serving: Replicas, cluster: Cluster) -> None:
    """For their RuntimeClass, and of no others."""
    make(serving, runtime_class("kata", {"cpu": "250m"}, nodeSelector={ZONE: "r2"}))
    output = cluster.kubectl("get", SEEN, "--all-namespaces", "-o", "json")
    snapshot = read_cluster([("cluster", json.loads(output.out))])
    for title, stated in {**REFUSED, **ACCEPTED}.items():
        spec = {"containers": [{"name": "main", "image": "busybox"}], **stated}
        group = PodGroup("research/Job/a", (PodSet("main", 1, shape_of(spec, Where())),))
        warnings = [text for text in plan(snapshot, group).warnings if "the API server refuses" in text]
        assert bool(warnings) == (title in REFUSED), title
        if title in REFUSED:
            with pytest.raises(ApiError):
                serving.api.create(PODS, pod("a", spec), dryRun="All")
        else:
            serving.api.create(PODS, pod("a", spec), dryRun="All")


def test_the_overhead_counts_against_a_quota_and_not_against_a_limit_range(serving: Replicas) -> None:
    """As in `quota.exceeded` and `limits.broken`: with a quarter of a core on top of one."""
    make(serving, runtime_class("kata", {"cpu": "250m"}))
    limits, quotas = BOUNDS
    amounts = {"cpu": "1", "memory": "1Gi"}
    container = {"name": "main", "image": "busybox", "resources": {"limits": amounts}}
    spec = {"containers": [container], "runtimeClassName": "kata"}
    bound = {"type": "Pod", "max": {"cpu": "1"}}
    serving.api.create(limits, {"metadata": {"name": "sizes"}, "spec": {"limits": [bound]}})
    serving.api.create(PODS, pod("bounded", spec), dryRun="All")
    serving.api.create(quotas, {"metadata": {"name": "team"}, "spec": {"hard": {"requests.cpu": "1"}}})
    wait_until(lambda: serving.api.get(f"{quotas}/team")["status"].get("hard"), "the quota to be counted", 60)
    with pytest.raises(ApiError, match=r"exceeded quota: team, requested: requests\.cpu=1250m"):
        serving.api.create(PODS, pod("counted", spec), dryRun="All")


@dataclass(frozen=True)
class Case:
    """The objects around a pod: `around` creates them for the pod's name, `spec` is added to the pod."""

    around: Callable[[str], list[Json]] = lambda name: []
    spec: Callable[[str], Json] = lambda name: {}


def volumes_of(name: str) -> Json:
    """The pod mounts the claim of its own name."""
    return {"volumes": mounted(name)}


def of_class(name: str) -> Json:
    """The pod has the RuntimeClass of its own name."""
    return {"runtimeClassName": name}


def ports(**port: object) -> Callable[[str], Json]:
    """The pod uses this host port."""
    container = {"name": "main", "image": "busybox", "ports": [{"containerPort": 80, **port}]}
    return lambda name: {"containers": [container]}


CASES = {
    "volume in zone r2": Case(lambda n: [volume(n, on=(ZONE, "r2")), claim(n)], volumes_of),
    "volume on node r3-n1": Case(lambda n: [volume(n, on=(HOST, "r3-n1")), claim(n)], volumes_of),
    "volume everywhere": Case(lambda n: [volume(n), claim(n)], volumes_of),
    "volume labelled r2": Case(lambda n: [volume(n, labels={ZONE: "r2"}), claim(n)], volumes_of),
    "volume labelled r1__r2": Case(lambda n: [volume(n, labels={ZONE: "r1__r2"}), claim(n)], volumes_of),
    "volume labelled with a region": Case(
        lambda n: [volume(n, labels={"topology.kubernetes.io/region": "x"}), claim(n)], volumes_of
    ),
    "class of zone r1 that waits": Case(lambda n: [storage_class(n, "r1"), claim(n, n)], volumes_of),
    "class of a local volume on r2-n1": Case(
        lambda n: [
            storage_class(n, provisioner=LOCAL),
            volume(n, on=(HOST, "r2-n1"), storageClassName=n, claimRef=None),
            claim(n, n),
        ],
        volumes_of,
    ),
    "class of local volumes without any": Case(
        lambda n: [storage_class(n, provisioner=LOCAL), claim(n, n)], volumes_of
    ),
    "class of zone r1 and a volume on r3-n1": Case(
        lambda n: [storage_class(n, "r1"), volume(n, on=(HOST, "r3-n1"), storageClassName=n), claim(n, n)],
        volumes_of,
    ),
    "RuntimeClass of zone r1": Case(lambda n: [runtime_class(n, nodeSelector={ZONE: "r1"})], of_class),
    "RuntimeClass with an overhead": Case(lambda n: [runtime_class(n, {"cpu": "1"})], of_class),
    "RuntimeClass with an overhead that no node has": Case(
        lambda n: [runtime_class(n, {"cpu": "1k"})], of_class
    ),
    "a free host port": Case(spec=ports(hostPort=9999)),
    "the taken host port": Case(spec=ports(hostPort=80)),
    "the taken host port, UDP": Case(spec=ports(hostPort=80, protocol="UDP")),
    "the taken host port on an address": Case(spec=ports(hostPort=80, hostIP="10.1.1.1")),
}
NODES = ("r1-n1", "r2-n1", "r3-n1")


def test_the_plan_agrees_with_kube_scheduler_on_every_node(serving: Replicas, cluster: Cluster) -> None:
    """For each case a pod on each of three nodes: the plan has a place there where kube-scheduler binds it,
    and only there.

    A pod with host port 80 runs on r1-n1. The pods ask for no GPU, so that nobody but the scheduler is asked.
    """
    taken = {"nodeName": "r1-n1", **ports(hostPort=80)("")}
    serving.api.create(PODS, pod("taken", taken))
    wanted: dict[tuple[str, str], bool] = {}
    stored: dict[str, tuple[str, str]] = {}
    for number, ((title, case), node) in enumerate(itertools.product(CASES.items(), NODES)):
        name = f"p{number}"
        make(serving, *case.around(name))
        spec = {
            "containers": [{"name": "main", "image": "busybox"}],
            "nodeSelector": {HOST: node},
            **case.spec(name),
        }
        wanted[title, node] = planned(cluster, SEEN, name, spec)
        serving.api.create(PODS, pod(name, spec))
        stored[name] = (title, node)
        wait_until(
            lambda name=name: verdict(serving, name) is not None, f"the scheduler to decide on {name}", 60
        )
        assert verdict(serving, name) == wanted[title, node], (
            title,
            node,
            serving.api.get(f"{PODS}/{name}")["status"],
        )
        serving.api.delete(f"{PODS}/{name}", grace=0)
    by_node = {node: sum(wanted[title, node] for title in CASES) for node in NODES}
    assert all(0 < count < len(CASES) for count in by_node.values()), by_node


def pod(name: str, spec: Json) -> Json:
    """A pod with this spec."""
    metadata = {"name": name, "namespace": "research"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def verdict(serving: Replicas, name: str) -> bool | None:
    """What kube-scheduler decided on the pod (see `decided`). A pod that waits for its volume to be
    provisioned has a node already: the claim names it.
    """
    if (decision := decided(serving, name)) is not None:
        return decision
    for mount in serving.api.get(f"{PODS}/{name}")["spec"].get("volumes", ()):
        if "persistentVolumeClaim" in mount:
            held = serving.api.get(f"{CLAIMS}/{mount['persistentVolumeClaim']['claimName']}")
            if "volume.kubernetes.io/selected-node" in (held["metadata"].get("annotations") or {}):
                return True
    return None
