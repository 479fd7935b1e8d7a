"""Containers that another webhook adds by annotation count in the request of a pod."""

from __future__ import annotations

from typing import Any

import pytest

from planner.manifests.pods.injected import with_injected
from planner.manifests.pods.pod import shape_of
from planner.model.errors import Where

GI = 2**30
MOUNTS = {"gke-gcsfuse/volumes": "true"}
TRAINER = {"name": "train", "resources": {"requests": {"cpu": "4", "memory": "8Gi"}}}
SPEC: dict[str, Any] = {"containers": [TRAINER]}


def requests(annotations: dict[str, str], spec: dict[str, Any] = SPEC) -> tuple[int, int]:
    """The millicores and GiB that a pod with these annotations requests."""
    shape = shape_of(with_injected(spec, annotations), Where())
    return shape.requests["cpu"], shape.requests["memory"] // GI


@pytest.mark.parametrize(
    ("stated", "cpu", "memory"),
    [
        ({}, 4250, 8),
        ({"gke-gcsfuse/cpu-limit": "500m", "gke-gcsfuse/memory-limit": "1Ti"}, 4500, 1032),
        ({"gke-gcsfuse/memory-request": "2Gi", "gke-gcsfuse/memory-limit": "4Gi"}, 4250, 10),
        ({"gke-gcsfuse/memory-limit": "0", "gke-gcsfuse/cpu-limit": "0"}, 4250, 8),
        ({"gke-gcsfuse/memory-limit": "much"}, 4250, 8),
    ],
    ids=["defaults", "only limits", "requests and limits", "without a limit", "malformed"],
)
def test_the_sidecar_of_cloud_storage_fuse_counts(stated: dict[str, str], cpu: int, memory: int) -> None:
    """Of a request and a limit of which one is stated it is both, of neither it is the default."""
    assert requests({**MOUNTS, **stated}) == (cpu, memory)


def test_an_init_container_runs_beside_the_sidecar() -> None:
    """It starts before them, so what the largest init container needs comes on top."""
    first = {"name": "load", "resources": {"requests": {"cpu": "6", "memory": "8Gi"}}}
    cpu, _ = requests(MOUNTS, {**SPEC, "initContainers": [first]})
    assert cpu == 6250


@pytest.mark.parametrize("part", ["containers", "initContainers"])
def test_a_pod_that_has_it_already_gets_no_second(part: str) -> None:
    """That webhook may run before Bayplan's."""
    sidecar = {"name": "gke-gcsfuse-sidecar", "restartPolicy": "Always"}
    spec = {**SPEC, part: [*SPEC.get(part, []), sidecar]}
    assert with_injected(spec, MOUNTS) is spec


def test_the_annotation_may_be_written_with_a_capital() -> None:
    """GKE's webhook accepts both."""
    assert requests({"gke-gcsfuse/volumes": "True"}) == (4250, 8)


@pytest.mark.parametrize("annotations", [{}, {"gke-gcsfuse/volumes": "false"}], ids=["none", "false"])
def test_a_pod_without_the_annotation_gets_none(annotations: dict[str, str]) -> None:
    """The amounts alone add no container."""
    assert with_injected(SPEC, {**annotations, "gke-gcsfuse/memory-limit": "1Ti"}) is SPEC
