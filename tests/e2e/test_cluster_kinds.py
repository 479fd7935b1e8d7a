"""Workloads of other operators in a real cluster: their pods are bound according to what admission wrote.

The operators are simulated (`tests.e2e.operators`); Jobs, StatefulSets, garbage collection and the scheduler
are real.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.e2e.api import Json
from tests.e2e.operators import operate
from tests.e2e.processes import wait_until
from tests.e2e.real_kinds import define
from tests.e2e.replicas import GPU, RACK, Replicas, job, racks_of, reservations
from tests.e2e.serving import empty, replicas_of
from tests.e2e.stage import Cluster

PODS = "/api/v1/namespaces/research/pods"
JOBS = "/apis/batch/v1/namespaces/research/jobs"
GATE = "bayplan.dev/queued"
FOLDERS = {
    "Job": JOBS,
    "JobSet": "/apis/jobset.x-k8s.io/v1alpha2/namespaces/research/jobsets",
    "LeaderWorkerSet": "/apis/leaderworkerset.x-k8s.io/v1/namespaces/research/leaderworkersets",
    "PyTorchJob": "/apis/kubeflow.org/v1/namespaces/research/pytorchjobs",
    "MPIJob": "/apis/kubeflow.org/v2beta1/namespaces/research/mpijobs",
    "RayJob": "/apis/ray.io/v1/namespaces/research/rayjobs",
    "RayCluster": "/apis/ray.io/v1/namespaces/research/rayclusters",
    "StatefulSet": "/apis/apps/v1/namespaces/research/statefulsets",
    "Deployment": "/apis/apps/v1/namespaces/research/deployments",
}


def template(gpus: int = 8) -> Json:
    """A pod template of a whole node, or one without a GPU."""
    limits = {"cpu": "4", "memory": "8Gi", **({GPU: str(gpus)} if gpus else {})}
    container = {"name": "main", "image": "busybox", "resources": {"limits": limits}}
    return {"spec": {"containers": [container]}}


def workload(kind: str, name: str, spec: Json, **annotations: str) -> Json:
    """An object of the kind that requires one rack."""
    group, version = FOLDERS[kind].split("/")[2:4]
    asked = {"kai.scheduler/topology": "racks", "kai.scheduler/topology-required-placement": RACK}
    return {
        "apiVersion": f"{group}/{version}",
        "kind": kind,
        "metadata": {"name": name, "namespace": "research", "annotations": {**asked, **annotations}},
        "spec": spec,
    }


def job_set(name: str, *, copies: int = 1, pods: int = 2, gpus: int = 8, **annotations: str) -> Json:
    """The replicated jobs of a JobSet, with this many pods each."""
    pod_template = {"spec": {**template(gpus)["spec"], "restartPolicy": "Never"}}
    spec = {"parallelism": pods, "completions": pods, "completionMode": "Indexed", "template": pod_template}
    replicated = [{"name": "train", "replicas": copies, "template": {"spec": spec}}]
    return workload("JobSet", name, {"replicatedJobs": replicated}, **annotations)


def serving_set(name: str, replicas: int, gpus: int = 8, **annotations: str) -> Json:
    """A LeaderWorkerSet with replicas of two nodes, or of two pods with fewer GPUs."""
    group = {"size": 2, "leaderTemplate": template(gpus), "workerTemplate": template(gpus)}
    spec = {"replicas": replicas, "leaderWorkerTemplate": group}
    return workload("LeaderWorkerSet", name, spec, **annotations)


RAY: Json = {
    "headGroupSpec": {"rayStartParams": {}, "template": template(0)},
    "workerGroupSpecs": [{"groupName": "gpu", "replicas": 2, "minReplicas": 2, "template": template()}],
}
TRAINING: Json = {
    "Master": {"replicas": 1, "template": template()},
    "Worker": {"replicas": 1, "template": template()},
}
MPI: Json = {
    "Launcher": {"replicas": 1, "template": template(0)},
    "Worker": {"replicas": 2, "template": template()},
}
ONE_GANG: list[tuple[Json, int]] = [
    (job_set("sets", copies=1, pods=2), 2),
    (job_set("two-jobs", copies=2, pods=1), 2),
    (workload("PyTorchJob", "torch", {"pytorchReplicaSpecs": TRAINING}), 2),
    (workload("MPIJob", "mpi", {"mpiReplicaSpecs": MPI}), 3),
    (workload("RayCluster", "rays", RAY), 3),
    (workload("RayJob", "ray-job", {"entrypoint": "python x.py", "rayClusterSpec": RAY}), 3),
]


@pytest.fixture(scope="module")
def serving(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """Two racks of three nodes, and two replicas that the API server calls."""
    with replicas_of(cluster, tmp_path_factory.mktemp("kinds"), 2, 3) as replicas:
        yield replicas


TRAIN_JOBS = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/research/trainjobs"


@pytest.fixture
def trainer(cluster: Cluster) -> Iterator[None]:
    """Kubeflow's TrainJob, with the definition that its trainer ships."""
    name = "trainjobs.trainer.kubeflow.org"
    define(cluster.kubectl, name)
    yield
    cluster.api.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")


@pytest.fixture(autouse=True)
def clean(serving: Replicas) -> Iterator[None]:
    """After each test, deletes all applied objects and waits until the reservations are gone."""
    yield
    empty(serving.api, *FOLDERS.values())


def pods(serving: Replicas, **labels: str) -> list[Json]:
    """The pods with these labels that are not being deleted."""
    listed = serving.api.items(
        PODS, labelSelector=",".join(f"{key}={value}" for key, value in labels.items())
    )
    return [pod for pod in listed if "deletionTimestamp" not in pod["metadata"]]


def bound(serving: Replicas, count: int, name: str = "") -> list[Json]:
    """Waits until exactly this many pods with this name prefix are bound."""

    def bound_pods() -> list[Json]:
        own = [pod for pod in pods(serving) if pod["metadata"]["name"].startswith(name)]
        return [pod for pod in own if "nodeName" in pod["spec"]]

    def arrived() -> bool:
        return len(bound_pods()) == count

    try:
        wait_until(arrived, f"{count} pods to be bound", 60)
    except TimeoutError as error:
        raise AssertionError(f"{error}: {json.dumps(pods(serving), indent=1)[:6000]}") from None
    return bound_pods()


def gates(pod: Json) -> set[str]:
    """The scheduling gates of a pod."""
    return {gate["name"] for gate in pod["spec"].get("schedulingGates", ())}


def apply(serving: Replicas, body: Json) -> Json:
    """Creates the object and simulates its operator."""
    stored = serving.api.create(FOLDERS[body["kind"]], body)
    if body["kind"] != "Job":
        operate(serving.api, stored)
    return stored


@pytest.mark.parametrize(("body", "count"), ONE_GANG, ids=[body["metadata"]["name"] for body, _ in ONE_GANG])
def test_the_pods_that_an_operator_makes_are_bound_where_the_plan_put_the_gang(
    serving: Replicas, body: Json, count: int
) -> None:
    """One reservation for the object, with its UID; all its GPU pods in the rack that it holds."""
    stored = apply(serving, body)
    gang = f"research/{body['kind']}/{body['metadata']['name']}"
    workers = [pod for pod in bound(serving, count) if GPU in str(pod["spec"]["containers"])]
    held = reservations(serving.api)
    assert set(held) == {gang}, "nothing is held twice, for the object and for its children"
    assert racks_of(workers) == {held[gang]["status"]["where"].partition("/")[0]}
    uid = stored["metadata"]["uid"]  # written once a watch has told of the object
    wait_until(lambda: reservations(serving.api)[gang]["status"].get("ownerUID") == uid, "it to be claimed")
    names = {pod["metadata"]["annotations"]["bayplan.dev/reservation"] for pod in workers}
    # Where the scheduler chose other nodes of the rack, the place is just being written anew, as NAME-next.
    wait_until(lambda: {reservations(serving.api)[gang]["metadata"]["name"]} == names, "its name")


@pytest.mark.usefixtures("trainer")
def test_a_train_job_is_stored_as_it_is_and_its_job_set_is_the_gang(serving: Replicas) -> None:
    """Its own schema knows no pods: what its runtime makes of it is planned, and holds the place."""
    stored = serving.api.create(
        TRAIN_JOBS,
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": "tune", "namespace": "research"},
            "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": {"numNodes": 2}},
        },
    )
    assert not any("bayplan" in key for key in stored["metadata"].get("annotations", {}))
    body = job_set("tune")
    owner = {key: stored[key] for key in ("apiVersion", "kind")}
    owner |= {"name": "tune", "uid": stored["metadata"]["uid"], "controller": True}
    body["metadata"]["ownerReferences"] = [owner]
    apply(serving, body)
    assert len(racks_of(bound(serving, 2))) == 1
    assert set(reservations(serving.api)) == {"research/JobSet/tune"}
    serving.api.delete(f"{TRAIN_JOBS}/tune")


def test_each_replica_of_a_leader_worker_set_has_a_rack_of_its_own(serving: Replicas) -> None:
    """Leader and worker of one replica share it; the shared template is pinned to both racks."""
    apply(serving, serving_set("serve", 2))
    bound_pods = bound(serving, 4)
    held = reservations(serving.api)
    for index in ("0", "1"):
        own = [
            p
            for p in bound_pods
            if p["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/group-index"] == index
        ]
        assert len(own) == 2
        assert racks_of(own) == {held[f"research/LeaderWorkerSet/serve/{index}"]["status"]["where"]}
    assert len(racks_of(bound_pods)) == 2


def test_a_replica_without_a_place_waits_and_is_let_in_alone(serving: Replicas) -> None:
    """One rack is taken: the first replica starts, the second waits at its gate until the rack is free."""
    apply(serving, job("busy", 3))
    bound(serving, 3)
    stored = serving.api.create(FOLDERS["LeaderWorkerSet"], serving_set("serve", 2))
    operate(serving.api, stored)
    wait_until(lambda: len(pods(serving)) == 7, "the pods of both replicas")
    first = racks_of(bound(serving, 2, "serve"))
    waiting = [pod for pod in pods(serving) if "nodeName" not in pod["spec"]]
    assert [gates(pod) for pod in waiting] == [{GATE}, {GATE}]
    serving.api.delete(f"{JOBS}/busy")
    second = racks_of(bound(serving, 2, "serve-1"))
    assert len(first) == len(second) == 1
    assert first != second
    ids = [item["metadata"]["name"] for _, item in sorted(reservations(serving.api).items())]

    def reserved_ids() -> Any:
        now = serving.api.get(f"{FOLDERS['LeaderWorkerSet']}/serve")
        return now["metadata"]["annotations"]["bayplan.dev/reservation"].split(",")

    wait_until(lambda: reserved_ids() == ids, f"the object to name {ids}, not {reserved_ids()}")


def test_a_whole_leader_worker_set_that_waits_is_let_in_replica_by_replica(serving: Replicas) -> None:
    """Both racks are taken: no replica starts; when they are free each gets one."""
    for name in ("left", "right"):
        apply(serving, job(name, 3))
    bound(serving, 6)
    apply(serving, serving_set("serve", 2))
    wait_until(lambda: len(pods(serving)) == 10, "the pods of both replicas")
    waiting = [pod for pod in pods(serving) if "nodeName" not in pod["spec"]]
    assert [gates(pod) for pod in waiting] == [{GATE}] * 4
    assert set(reservations(serving.api)) == {"research/Job/left", "research/Job/right"}
    for name in ("left", "right"):
        serving.api.delete(f"{JOBS}/{name}")
    bound_pods = bound(serving, 4, "serve")
    assert len(racks_of(bound_pods)) == 2
    wait_until(lambda: len(reservations(serving.api)) == 2, "two places")


def test_replicas_that_would_fit_one_node_have_a_rack_each_if_they_ask_for_it(serving: Replicas) -> None:
    """LeaderWorkerSet's exclusive-topology keeps the leaders apart when they exist; the plan has to agree."""
    apply(serving, serving_set("serve", 2, 1, **{"leaderworkerset.sigs.k8s.io/exclusive-topology": RACK}))
    assert len(racks_of(bound(serving, 4))) == 2


@pytest.mark.parametrize("gpus", [8, 1], ids=["whole nodes", "one node has room for both"])
def test_a_job_set_with_a_rack_for_each_job_has_a_gang_for_each(serving: Replicas, gpus: int) -> None:
    """JobSet's exclusive-topology: two jobs, two racks, and each job's pods together."""
    exclusive = {"alpha.jobset.sigs.k8s.io/exclusive-topology": RACK}
    body = job_set("apart", copies=2, gpus=gpus, **exclusive)
    apply(serving, body)
    bound_pods = bound(serving, 4)
    by_job = [racks_of(pods(serving, **{"jobset.sigs.k8s.io/job-global-index": str(n)})) for n in (0, 1)]
    assert [len(racks) for racks in by_job] == [1, 1]
    assert len(racks_of(bound_pods)) == 2
    assert len(reservations(serving.api)) == 2


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_replicas_that_are_annotated_as_one_gang_start_together(serving: Replicas, kind: str) -> None:
    """One reservation, for the object and not for its ReplicaSet too; while it waits no pod starts alone."""
    apply(serving, job("left", 3))
    apply(serving, job("right", 2))
    bound(serving, 5)
    labels = {"app": "web"}
    pod = {"metadata": {"labels": labels}, **template()}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": pod, "serviceName": "web"}
    spec |= {"podManagementPolicy": "Parallel"} if kind == "StatefulSet" else {}
    if kind == "Deployment":
        del spec["serviceName"]
    body = workload(kind, "web", spec, **{"bayplan.dev/gang": "web"})
    stored = serving.api.create(FOLDERS[kind], body)
    wait_until(lambda: len(pods(serving, app="web")) == 2, "its pods")
    assert [gates(pod) for pod in pods(serving, app="web")] == [{GATE}] * 2
    serving.api.delete(f"{JOBS}/left")
    assert len(racks_of(bound(serving, 2, "web"))) == 1
    wait_until(lambda: len(reservations(serving.api)) == 2, "the place of the job that went")
    held = reservations(serving.api)
    assert set(held) == {"research/Job/right", f"research/{kind}/web"}
    status = held[f"research/{kind}/web"]["status"]
    assert (status["state"], status["ownerUID"]) == ("claimed", stored["metadata"]["uid"])
    (first, *_) = pods(serving, app="web")
    serving.api.delete(f"{PODS}/{first['metadata']['name']}", grace=0)
    wait_until(lambda: first not in pods(serving, app="web"), "a new pod")
    assert len(racks_of(bound(serving, 2, "web"))) == 1


def test_a_queued_job_set_is_applied_again_and_waits_on(serving: Replicas, cluster: Cluster) -> None:
    """kubectl replaces the whole list of a kind without a schema; what admission wrote there stays.

    So while it waits, and so after it was let in: the templates of a JobSet can never change.
    """
    for name in ("left", "right"):
        apply(serving, job(name, 3))
    bound(serving, 6)
    manifest = yaml.safe_dump(job_set("again"))

    def applied() -> Json:
        output = cluster.kubectl("apply", "-f", "-", "-o", "yaml", text=manifest)
        assert output.status == 0, output.err
        return output.object

    first = applied()
    (replicated,) = first["spec"]["replicatedJobs"]
    template = replicated["template"]["spec"]["template"]
    assert "queued" in template["metadata"]["annotations"]["bayplan.dev/placement"]
    assert "schedulingGates" not in template["spec"], "gates are for pods, which the leader opens"
    assert applied()["spec"] == first["spec"]
    operate(serving.api, first)
    wait_until(lambda: len(pods(serving)) == 8, "its pods")
    serving.api.delete(f"{JOBS}/left")
    bound(serving, 2, "again")
    held = reservations(serving.api)["research/JobSet/again"]
    again = applied()
    assert again["spec"] == first["spec"]
    assert again["metadata"]["annotations"]["bayplan.dev/reservation"] == held["metadata"]["name"]
