"""What one tenant can send that costs most, as whole objects."""

from __future__ import annotations

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
