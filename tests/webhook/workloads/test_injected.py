"""A gang is planned with the containers that another webhook adds to its pods."""

from __future__ import annotations

import pytest

from planner.model.errors import InputError
from tests.webhook.workloads import objects as o
from webhook.workloads import read

TEMPLATE = ("spec", "template")
MOUNTS = {"annotations": {"gke-gcsfuse/volumes": "true", "gke-gcsfuse/memory-limit": "1Ti"}}
MOUNTING = o.changed(o.JOB, (*TEMPLATE, "metadata"), MOUNTS)


def test_the_pods_of_a_job_request_what_the_sidecar_takes() -> None:
    """Else a node would look large enough on which the pod, with the sidecar, stays pending."""
    (without,), (group,) = read(o.JOB).gangs, read(MOUNTING).gangs
    before, after = (gang.pod_sets[0].shape.requests for gang in (without, group))
    assert after.get("memory", 0) - before.get("memory", 0) == 2**40


def test_an_error_names_the_index_that_the_container_has_in_the_manifest() -> None:
    """The sidecar comes before it, and is in no manifest."""
    wrong = [{"name": "load", "resources": {"requests": {"cpu": "many"}}}]
    with pytest.raises(InputError, match=r"initContainers\[0\]"):
        read(o.changed(MOUNTING, (*TEMPLATE, "spec", "initContainers"), wrong))


def head_requests(obj: o.Json) -> tuple[int, int]:
    """CPU in thousandths and memory that the head pod requests."""
    requests = read(obj).gangs[0].pod_sets[0].shape.requests
    return requests.get("cpu", 0), requests.get("memory", 0)


def added_to_head(obj: o.Json, *path: str, value: object) -> tuple[int, int]:
    """How much more the head pod requests with this field of the spec."""
    (cpu, memory), before = head_requests(o.changed(obj, ("spec", *path), value)), head_requests(obj)
    return cpu - before[0], memory - before[1]


@pytest.mark.parametrize(
    ("mode", "added"), [("SidecarMode", (500, 200 * 2**20)), ("K8sJobMode", (0, 0)), ("HTTPMode", (0, 0))]
)
def test_the_head_of_a_ray_job_requests_what_the_submitter_takes(mode: str, added: tuple[int, int]) -> None:
    """Which KubeRay adds to the head pod in SidecarMode only."""
    assert added_to_head(o.RAY_JOB, "submissionMode", value=mode) == added


def test_the_head_of_a_ray_cluster_requests_what_rays_autoscaler_takes() -> None:
    """Its default, or what the cluster states for it."""
    assert added_to_head(o.RAY_CLUSTER, "enableInTreeAutoscaling", value=True) == (500, 512 * 2**20)
    stated = o.changed(
        o.RAY_CLUSTER, ("spec", "autoscalerOptions"), {"resources": {"requests": {"cpu": "2"}}}
    )
    assert added_to_head(stated, "enableInTreeAutoscaling", value=True) == (2000, 0)


def test_a_submitter_that_the_head_has_already_is_not_added() -> None:
    """KubeRay's own RayCluster has it in its template."""
    containers = ("spec", "rayClusterSpec", "headGroupSpec", "template", "spec", "containers")
    own = o.changed(o.RAY_JOB, containers, [{"name": "ray-job-submitter", "image": "ray"}])
    assert added_to_head(own, "submissionMode", value="SidecarMode") == (0, 0)
