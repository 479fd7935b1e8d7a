"""Simulates operators whose programs do not run here: creates once what they create for a stored workload.

The Jobs, StatefulSets and pods have the owners, names and labels that the real operators give them (JobSet,
LeaderWorkerSet, Kubeflow's trainer, the MPI operator, KubeRay), and the pod affinity of exclusive placement.
Real controllers then act on these objects.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from hashlib import sha1

from tests.e2e.api import Api, Json
from tests.e2e.processes import wait_until

JOBSET = "jobset.sigs.k8s.io"
LWS = "leaderworkerset.sigs.k8s.io"
TRAINING = "training.kubeflow.org"
JOBS, STATEFUL_SETS, PODS = (
    "/apis/batch/v1/namespaces/{}/jobs",
    "/apis/apps/v1/namespaces/{}/statefulsets",
    "/api/v1/namespaces/{}/pods",
)
RAY_CLUSTERS = "/apis/ray.io/v1/namespaces/{}/rayclusters"


def operate(api: Api, stored: Json) -> None:
    """Creates what the object's operator creates at first sight. Raises `KeyError` for a kind without an
    operator here.
    """
    OPERATORS[stored["kind"]](api, stored)


def _job_set(api: Api, stored: Json) -> None:
    number = 0
    for replicated in stored["spec"]["replicatedJobs"]:
        for index in range(replicated.get("replicas", 1)):
            name = f"{stored['metadata']['name']}-{replicated['name']}-{index}"
            full_name = f"{stored['metadata']['namespace']}/{name}"
            key = sha1(full_name.encode(), usedforsecurity=False).hexdigest()
            labels = {
                f"{JOBSET}/jobset-name": stored["metadata"]["name"],
                f"{JOBSET}/replicatedjob-name": replicated["name"],
                f"{JOBSET}/job-key": key,
                f"{JOBSET}/job-index": str(index),
                f"{JOBSET}/job-global-index": str(number),
            }
            template = copy.deepcopy(replicated["template"])
            _labelled(template, labels)
            _labelled(template["spec"]["template"], labels)
            for annotated in (stored, template):
                if level := (annotated["metadata"].get("annotations") or {}).get(
                    f"alpha.{JOBSET}/exclusive-topology"
                ):
                    _in_own_domain(template["spec"]["template"], level, key)
            _make(api, JOBS, {"apiVersion": "batch/v1", "kind": "Job", **template}, name, stored)
            number += 1


def _in_own_domain(template: Json, level: str, key: str) -> None:
    """JobSet adds these terms to the first pod, and the first pod's domain to the others."""
    own = {"key": f"{JOBSET}/job-key", "operator": "In", "values": [key]}
    others = [{"key": f"{JOBSET}/job-key", "operator": "Exists"}, {**own, "operator": "NotIn"}]
    affinity = template["spec"].setdefault("affinity", {})
    for kind, requirements in (("podAffinity", [own]), ("podAntiAffinity", others)):
        selector = {"matchExpressions": requirements}
        term = {"topologyKey": level, "namespaceSelector": {}, "labelSelector": selector}
        affinity[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def _training_job(api: Api, stored: Json) -> None:
    (field,) = (key for key in stored["spec"] if key.endswith("ReplicaSpecs"))
    for role, replica in stored["spec"][field].items():
        if stored["kind"] == "MPIJob" and role == "Launcher":
            labels = {f"{TRAINING}/job-role": "launcher"}
            template = _labelled(copy.deepcopy(replica["template"]), labels)
            template["spec"].setdefault("restartPolicy", "OnFailure")
            body = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": template}}
            _make(api, JOBS, body, f"{stored['metadata']['name']}-launcher", stored)
            continue
        for index in range(replica.get("replicas", 1)):
            labels = {
                f"{TRAINING}/job-name": stored["metadata"]["name"],
                f"{TRAINING}/replica-type": role.lower(),
                f"{TRAINING}/replica-index": str(index),
            }
            name = f"{stored['metadata']['name']}-{role.lower()}-{index}"
            _pod(api, replica["template"], labels, name, stored)


def _ray_job(api: Api, stored: Json) -> None:
    body = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "spec": stored["spec"]["rayClusterSpec"]}
    name = f"{stored['metadata']['name']}-raycluster-x1y2z"
    ray_cluster = _make(api, RAY_CLUSTERS, body, name, stored)
    _ray_cluster(api, ray_cluster)


def _ray_cluster(api: Api, stored: Json) -> None:
    name = stored["metadata"]["name"]
    labels = {"ray.io/cluster": name, "ray.io/is-ray-node": "yes"}
    head = {**labels, "ray.io/node-type": "head", "ray.io/group": "headgroup"}
    _pod(api, stored["spec"]["headGroupSpec"]["template"], head, f"{name}-head", stored)
    for group in stored["spec"].get("workerGroupSpecs", ()):
        for _ in range(group["replicas"] * group.get("numOfHosts", 1)):
            worker = {**labels, "ray.io/node-type": "worker", "ray.io/group": group["groupName"]}
            _pod(api, group["template"], worker, f"{name}-{group['groupName']}-worker-", stored)


def _leader_worker_set(api: Api, stored: Json) -> None:
    """Creates a StatefulSet of leaders and, for each existing leader, a StatefulSet of its workers, owned by
    the leader. LeaderWorkerSet's own webhook labels the leaders after ours; here they are labelled once they
    exist.
    """
    metadata, spec = stored["metadata"], stored["spec"]
    group, count = spec["leaderWorkerTemplate"], spec.get("replicas", 1)
    name, folder = metadata["name"], PODS.format(metadata["namespace"])
    labels = {f"{LWS}/name": name}
    leader = copy.deepcopy(group.get("leaderTemplate") or group["workerTemplate"])
    if level := (metadata.get("annotations") or {}).get(f"{LWS}/exclusive-topology"):
        # Its webhook adds a hash of the leader's name. One template for all leaders has their index instead.
        term = {
            "topologyKey": level,
            "labelSelector": {"matchLabels": {**labels, f"{LWS}/worker-index": "0"}},
            "mismatchLabelKeys": ["apps.kubernetes.io/pod-index"],
        }
        apart = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        leader["spec"].setdefault("affinity", {})["podAntiAffinity"] = apart
    body = _stateful_set(leader, {**labels, f"{LWS}/worker-index": "0"}, count, 0)
    _make(api, STATEFUL_SETS, body, name, stored)

    def leaders() -> list[Json]:
        pods = api.items(folder, labelSelector=f"{LWS}/name={name},{LWS}/worker-index=0")
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    wait_until(lambda: len(leaders()) == count, f"the leaders of {name}", 60)
    for pod in leaders():
        own = {**labels, f"{LWS}/group-index": pod["metadata"]["name"].rpartition("-")[2]}
        api.merge(f"{folder}/{pod['metadata']['name']}", {"metadata": {"labels": own}})
        if group["size"] > 1:
            body = _stateful_set(group["workerTemplate"], own, group["size"] - 1, 1)
            _make(
                api, STATEFUL_SETS, body, pod["metadata"]["name"], {**pod, "apiVersion": "v1", "kind": "Pod"}
            )


def _stateful_set(template: Json, labels: dict[str, str], replicas: int, first: int) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "spec": {
            "replicas": replicas,
            "ordinals": {"start": first},
            "podManagementPolicy": "Parallel",
            "serviceName": labels[f"{LWS}/name"],
            "selector": {"matchLabels": labels},
            "template": _labelled(copy.deepcopy(template), labels),
        },
    }


def _pod(api: Api, template: Json, labels: dict[str, str], name: str, owner: Json) -> None:
    body = {"apiVersion": "v1", "kind": "Pod", **_labelled(copy.deepcopy(template), labels)}
    _make(api, PODS, body, name, owner)


def _labelled(template: Json, labels: dict[str, str]) -> Json:
    metadata = template.setdefault("metadata", {})
    metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
    return template


def _make(api: Api, folder: str, body: Json, name: str, owner: Json) -> Json:
    """Creates the object with its owner. The API server completes a name that ends in "-"."""
    owner_metadata = owner["metadata"]
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner_metadata["name"],
        "uid": owner_metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata = {
        **body.get("metadata", {}),
        "generateName" if name.endswith("-") else "name": name,
        "namespace": owner_metadata["namespace"],
        "ownerReferences": [reference],
    }
    return api.create(folder.format(owner_metadata["namespace"]), {**body, "metadata": metadata})


OPERATORS: dict[str, Callable[[Api, Json], None]] = {
    "JobSet": _job_set,
    "LeaderWorkerSet": _leader_worker_set,
    "PyTorchJob": _training_job,
    "MPIJob": _training_job,
    "RayJob": _ray_job,
    "RayCluster": _ray_cluster,
}
