"""What one tenant can send that costs most, as whole objects."""

from __future__ import annotations

import copy
from typing import Any

from tests.webhook.workloads import objects as o

Json = dict[str, Any]
GPU_POD: Json = {"restartPolicy": "Never", "containers": o.pod_template(1)["spec"]["containers"]}
AT_HOSTS = "kubernetes.io/hostname"


def job_set(pod_sets: int = 200) -> Json:
    """A JobSet of so many replicated jobs: 50 kB for 200."""
    job = {"spec": {"parallelism": 1, "completions": 1, "template": {"spec": GPU_POD}}}
    jobs = [{"name": f"j{number}", "replicas": 1, "template": job} for number in range(pod_sets)]
    return o.obj("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": jobs})


def spread_job(pods: int = 3000) -> Json:
    """A Job of so many pods with two spread constraints: 1.1 kB."""
    spread = [
        {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
        for key in ("example.com/rack", AT_HOSTS)
    ]
    template = {"spec": {**GPU_POD, "topologySpreadConstraints": spread}}
    spec = {"parallelism": pods, "completions": pods, "completionMode": "Indexed", "template": template}
    return o.obj("batch/v1", "Job", spec)


def affine_job(terms: int = 2000) -> Json:
    """A Job whose pods may be on nodes by any of so many terms."""
    rows = [
        {"matchExpressions": [{"key": f"k{number}", "operator": "In", "values": ["a", "b"]}]}
        for number in range(terms)
    ]
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": rows}}
    }
    spec = {"parallelism": 10, "completions": 10, "template": {"spec": {**GPU_POD, "affinity": affinity}}}
    return o.obj("batch/v1", "Job", spec)


def unlike_job_set(pod_sets: int = 40) -> Json:
    """A JobSet of so many replicated jobs, no two of which ask for the same: 9 kB for 40."""
    jobs = []
    for number in range(pod_sets):
        limits = {o.GPU: 1 + number % 8, "cpu": str(number + 1), "memory": f"{number + 1}Gi"}
        container = {**GPU_POD["containers"][0], "resources": {"limits": limits}}
        pods = {"parallelism": 1 + number % 3, "completions": 1 + number % 3}
        template = {"spec": {**GPU_POD, "containers": [container]}}
        jobs.append(
            {"name": f"j{number}", "replicas": 1, "template": {"spec": {**pods, "template": template}}}
        )
    return o.obj("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": jobs})


def leader_worker_set(replicas: int = 10_000) -> Json:
    """A LeaderWorkerSet of so many replicas, each a gang of two pods: 400 bytes."""
    spec = {key: value for key, value in GPU_POD.items() if key != "restartPolicy"}
    template = {"size": 2, "workerTemplate": {"spec": spec}}
    return o.obj(
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        {"replicas": replicas, "leaderWorkerTemplate": template},
    )


def deployment(replicas: int = 2**31 - 1) -> Json:
    """A Deployment of so many pods, each planned for itself."""
    spec = {key: value for key, value in GPU_POD.items() if key != "restartPolicy"}
    template = {"metadata": {"labels": {"app": "a"}}, "spec": spec}
    body = {"replicas": replicas, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    return o.obj("apps/v1", "Deployment", body)


def job_set_with_variables(pod_sets: int = 200, variables: int = 100) -> Json:
    """A JobSet of so many replicated jobs, each with as many environment variables of its own: 1 MB."""
    body = copy.deepcopy(job_set(pod_sets))
    for number, job in enumerate(body["spec"]["replicatedJobs"]):
        (container,) = job["template"]["spec"]["template"]["spec"]["containers"]
        env = [{"name": f"V{name}", "value": f"{number}-{name}"} for name in range(variables)]
        own = {**container, "env": env}
        job["template"] = {
            "spec": {**job["template"]["spec"], "template": {"spec": {**GPU_POD, "containers": [own]}}}
        }
    return body


def job_of_containers(count: int = 100) -> Json:
    """A Job of one pod with so many containers, and as many init containers."""
    body = copy.deepcopy(affine_job(1))
    spec = body["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    spec["containers"] = [{**container, "name": f"c{number}"} for number in range(count)]
    spec["initContainers"] = [{**container, "name": f"i{number}"} for number in range(count)]
    return body


WORST = (
    ("/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets", job_set()),
    ("/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets", unlike_job_set()),
    ("/apis/batch/v1/namespaces/{}/jobs", spread_job()),
    ("/apis/batch/v1/namespaces/{}/jobs", affine_job()),
)
"""Where each is created in a namespace, and what."""


def review(number: int) -> Json:
    """A dry run of the worst in turn."""
    return review_of(WORST[number % len(WORST)][1], f"s{number}")


def review_of(body: Json, name: str) -> Json:
    """A dry run of this object in the namespace of the storm, as the API server would send it."""
    group, _, version = body["apiVersion"].rpartition("/")
    kind = body["kind"]
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": f"storm-{name}",
            "operation": "CREATE",
            "kind": {"group": group, "version": version, "kind": kind},
            "resource": {"group": group, "version": version, "resource": f"{kind.lower()}s"},
            "name": name,
            "namespace": "storm",
            "userInfo": {"username": "mallory"},
            "object": {**body, "metadata": {**body["metadata"], "namespace": "storm", "name": name}},
            "dryRun": True,
        },
    }
