"""Valid workloads to start a test from, one a kind; a test changes one thing."""

from __future__ import annotations

import copy
from typing import Any

Json = dict[str, Any]
GPU = "nvidia.com/gpu"


def pod_template(gpus: int = 2, annotations: Json | None = None, limits: Json | None = None) -> Json:
    """A pod template with one container; `limits` adds to what it asks for."""
    amounts = {**({GPU: gpus} if gpus else {}), **(limits or {})}
    spec = {"containers": [{"name": "main", "image": "trainer:1", "resources": {"limits": amounts}}]}
    return {"metadata": {"annotations": annotations}, "spec": spec} if annotations else {"spec": spec}


def obj(api_version: str, kind: str, spec: Json, **annotations: str) -> Json:
    """An object named `demo` in namespace `team`."""
    return annotated({"apiVersion": api_version, "kind": kind, "metadata": {}, "spec": spec}, annotations)


def annotated(manifest: Json, annotations: Json) -> Json:
    """A copy named `demo` in `team` that carries these annotations besides its own."""
    changed = copy.deepcopy(manifest)
    metadata = {"name": "demo", "namespace": "team", **changed["metadata"]}
    if annotations:
        metadata["annotations"] = {**metadata.get("annotations", {}), **annotations}
    return {**changed, "metadata": metadata}


def changed(manifest: Json, path: tuple[str | int, ...], value: Any) -> Json:
    """A copy with another value at `path`."""
    copied = copy.deepcopy(manifest)
    place: Any = copied
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return copied


POD = obj("v1", "Pod", pod_template()["spec"])
JOB = obj(
    "batch/v1",
    "Job",
    {"parallelism": 4, "completions": 4, "completionMode": "Indexed", "template": pod_template()},
)
BAG = obj("batch/v1", "Job", {"parallelism": 4, "completions": 8, "template": pod_template()})
CRON_JOB = obj(
    "batch/v1", "CronJob", {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": pod_template()}}}
)
JOB_SET = obj(
    "jobset.x-k8s.io/v1alpha2",
    "JobSet",
    {
        "replicatedJobs": [
            {"name": "driver", "template": {"spec": {"template": pod_template(0)}}},
            {
                "name": "worker",
                "replicas": 2,
                "template": {"spec": {"parallelism": 4, "completions": 3, "template": pod_template(8)}},
            },
        ]
    },
)
LWS = obj(
    "leaderworkerset.x-k8s.io/v1",
    "LeaderWorkerSet",
    {
        "replicas": 2,
        "leaderWorkerTemplate": {
            "size": 4,
            "leaderTemplate": pod_template(1),
            "workerTemplate": pod_template(8),
        },
    },
)
PYTORCH_JOB = obj(
    "kubeflow.org/v1",
    "PyTorchJob",
    {
        "pytorchReplicaSpecs": {
            "Worker": {"replicas": 3, "template": pod_template(8)},
            "Master": {"replicas": 1, "template": pod_template(8)},
        }
    },
)
MPI_JOB = obj(
    "kubeflow.org/v2beta1",
    "MPIJob",
    {
        "mpiReplicaSpecs": {
            "Launcher": {"replicas": 1, "template": pod_template(0)},
            "Worker": {"replicas": 4, "template": pod_template(8)},
        }
    },
)
RAY_CLUSTER_SPEC: Json = {
    "headGroupSpec": {"template": pod_template(0)},
    "workerGroupSpecs": [
        {"groupName": "small", "replicas": 5, "minReplicas": 2, "numOfHosts": 2, "template": pod_template(4)},
        {"groupName": "big", "replicas": 3, "minReplicas": 0, "template": pod_template(8)},
        {"groupName": "off", "replicas": 9, "suspend": True, "template": pod_template(8)},
    ],
}
RAY_CLUSTER = obj("ray.io/v1", "RayCluster", RAY_CLUSTER_SPEC)
RAY_JOB = obj("ray.io/v1", "RayJob", {"rayClusterSpec": RAY_CLUSTER_SPEC})
RAY_SERVICE = obj("ray.io/v1", "RayService", {"rayClusterConfig": RAY_CLUSTER_SPEC})
DEPLOYMENT = obj("apps/v1", "Deployment", {"replicas": 3, "template": pod_template(1)})
REPLICA_SET = obj("apps/v1", "ReplicaSet", {"replicas": 3, "template": pod_template(1)})
STATEFUL_SET = obj("apps/v1", "StatefulSet", {"replicas": 3, "template": pod_template(1)})
GROVE = obj(
    "grove.io/v1alpha1",
    "PodCliqueSet",
    {
        "template": {
            "cliques": [
                {
                    "name": "prefill",
                    "labels": {"role": "prefill"},
                    "spec": {"replicas": 2, "podSpec": pod_template()["spec"]},
                }
            ]
        }
    },
)

EVERY = (
    POD, JOB, CRON_JOB, JOB_SET, LWS, PYTORCH_JOB, MPI_JOB, RAY_CLUSTER, RAY_JOB, RAY_SERVICE, DEPLOYMENT,
    REPLICA_SET, STATEFUL_SET, GROVE,
    *(
        obj("kubeflow.org/v1", kind, {specs: {"Worker": {"replicas": 2, "template": pod_template()}}})
        for kind, specs in (
            ("TFJob", "tfReplicaSpecs"), ("XGBoostJob", "xgbReplicaSpecs"), ("JAXJob", "jaxReplicaSpecs"),
            ("PaddleJob", "paddleReplicaSpecs"),
        )
    ),
)  # fmt: skip
