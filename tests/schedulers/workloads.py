"""Workloads of the runs: gangs of every kind that is played, in one rack where they say so."""

from __future__ import annotations

from typing import Any

from tests.e2e.api import Json
from tests.schedulers.nodes import GPU, RACK, TOPOLOGY

QUEUE = "kueue.x-k8s.io/queue-name"


def pod_template(gpus: int, labels: Json | None = None, **spec: Any) -> Json:
    """A pod with so many GPUs."""
    limits = {
        "cpu": str(4 * max(gpus, 1)),
        "memory": f"{16 * max(gpus, 1)}Gi",
        **({GPU: str(gpus)} if gpus else {}),
    }
    container = {"name": "main", "image": "busybox", "resources": {"limits": limits}}
    pod: Json = {"spec": {"containers": [container], **spec}}
    if labels:
        pod["metadata"] = {"labels": labels}
    return pod


def wish(level: str = RACK, how: str = "required") -> dict[str, str]:
    """KAI's annotations for a level; none for "" ."""
    if not level:
        return {}
    return {"kai.scheduler/topology": TOPOLOGY, f"kai.scheduler/topology-{how}-placement": level}


def manifest(api_version: str, kind: str, name: str, spec: Json, **metadata: Any) -> Json:
    """An object in `research`, or in the namespace that `metadata` names."""
    metadata = {"namespace": "research", **{key: value for key, value in metadata.items() if value}}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def job(name: str, pods: int, gpus: int = 8, *, spec: Json | None = None, template: Json | None = None,
        **metadata: Any) -> Json:  # fmt: skip
    """An indexed Job whose pods all run at once."""
    metadata.setdefault("annotations", wish())
    pod = template or pod_template(gpus)
    body = {
        "parallelism": pods,
        "completions": pods,
        "completionMode": "Indexed",
        "backoffLimit": 100,
        "template": {**pod, "spec": {"restartPolicy": "Never", **pod["spec"]}},
        **(spec or {}),
    }
    return manifest("batch/v1", "Job", name, body, **metadata)


def job_set(
    name: str, jobs: dict[str, int], gpus: int = 8, *, spec: Json | None = None, **metadata: Any
) -> Json:
    """A JobSet of a job for each name, with so many pods."""
    metadata.setdefault("annotations", wish())
    pod = pod_template(gpus, restartPolicy="Never")
    replicated = [
        {
            "name": part,
            "replicas": 1,
            "template": {
                "spec": {
                    "parallelism": pods,
                    "completions": pods,
                    "completionMode": "Indexed",
                    "backoffLimit": 100,
                    "template": pod,
                }
            },
        }
        for part, pods in jobs.items()
    ]
    return manifest(
        "jobset.x-k8s.io/v1alpha2", "JobSet", name, {"replicatedJobs": replicated, **(spec or {})}, **metadata
    )


def training_job(name: str, workers: int, gpus: int = 8, *, spec: Json | None = None, master: bool = True,
                 template: Json | None = None, **metadata: Any) -> Json:  # fmt: skip
    """A PyTorchJob of a master and workers."""
    metadata.setdefault("annotations", wish())
    pod = template or pod_template(gpus)
    pod["spec"]["containers"][0]["name"] = "pytorch"
    parts = {"Worker": {"replicas": workers, "template": pod}}
    if master:
        parts = {"Master": {"replicas": 1, "template": pod}, **parts}
    body = {"pytorchReplicaSpecs": parts, **(spec or {})}
    return manifest("kubeflow.org/v1", "PyTorchJob", name, body, **metadata)


def leader_worker_set(name: str, replicas: int, size: int, gpus: int = 8, **metadata: Any) -> Json:
    """A LeaderWorkerSet whose leaders are like its workers. Its own webhook states the strategy; Kueue's
    leaves it empty, which the schema refuses."""
    metadata.setdefault("annotations", wish())
    group = {"size": size, "workerTemplate": pod_template(gpus)}
    return manifest(
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        name,
        {
            "replicas": replicas,
            "leaderWorkerTemplate": group,
            "rolloutStrategy": {"type": "RollingUpdate"},
        },
        **metadata,
    )


def deployment(
    name: str, replicas: int, gpus: int = 8, *, template: Json | None = None, **metadata: Any
) -> Json:
    """A Deployment."""
    metadata.setdefault("annotations", wish())
    pod = template or pod_template(gpus)
    pod.setdefault("metadata", {}).setdefault("labels", {})["app"] = name
    selector = {"matchLabels": {"app": name}}
    body = {"replicas": replicas, "selector": selector, "template": pod}
    return manifest("apps/v1", "Deployment", name, body, **metadata)


def pod(name: str, gpus: int = 8, *, spec: Json | None = None, **metadata: Any) -> Json:
    """A pod of its own."""
    return manifest("v1", "Pod", name, {**pod_template(gpus)["spec"], **(spec or {})}, **metadata)


def group(name: str, members: int, spec: Json | None = None, **metadata: Any) -> Json:
    """KAI's PodGroup."""
    body = {"minMember": members, "queue": "default-queue", **(spec or {})}
    return manifest("scheduling.run.ai/v2alpha2", "PodGroup", name, body, **metadata)
