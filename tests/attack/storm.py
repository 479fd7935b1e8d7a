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


WORST = (
    ("/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets", job_set()),
    ("/apis/batch/v1/namespaces/{}/jobs", spread_job()),
    ("/apis/batch/v1/namespaces/{}/jobs", affine_job()),
)
"""Where each is created in a namespace, and what."""
