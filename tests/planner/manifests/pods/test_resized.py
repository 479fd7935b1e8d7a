"""A bound pod that is resized in place counts as in kube-scheduler: the most that it has or is to have."""

from __future__ import annotations

from typing import Any

import pytest

from planner.manifests.pods.bound_pod import pod_from
from planner.model.errors import Where

Json = dict[str, Any]
INFEASIBLE = [{"type": "PodResizePending", "reason": "Infeasible"}]
DEFERRED = [{"type": "PodResizePending", "reason": "Deferred"}]


def container(name: str, cpu: str, **fields: Any) -> Json:
    """A container with these cores and a GPU."""
    return {"name": name, "resources": {"requests": {"cpu": cpu, "nvidia.com/gpu": "1"}}, **fields}


def has(name: str, allocated: str, running: str = "") -> Json:
    """The status of a container: the cores that the kubelet has allocated to it, and those that it has."""
    amounts = [{"cpu": cpu, "nvidia.com/gpu": "1"} for cpu in (allocated, running or allocated)]
    return {"name": name, "allocatedResources": amounts[0], "resources": {"requests": amounts[1]}}


def used(*containers: Json, status: Json, **spec: Any) -> tuple[int, int]:
    """The millicores and the GPUs of a bound pod."""
    body = {"nodeName": "n", "containers": list(containers), **spec}
    pod = pod_from({"metadata": {"name": "a"}, "spec": body, "status": status}, Where())
    assert pod is not None
    return pod.requests.get("cpu", 0), pod.requests.get("nvidia.com/gpu", 0)


@pytest.mark.parametrize(
    ("asked", "allocated", "running", "conditions", "cores"),
    [
        ("1", "1", "1", [], 1),
        ("4", "1", "1", [], 4),
        ("1", "4", "4", [], 4),
        ("1", "1", "4", [], 4),
        ("100", "2", "2", DEFERRED, 100),
        ("100", "2", "2", INFEASIBLE, 2),
        ("100", "1", "2", INFEASIBLE, 2),
    ],
)
def test_the_most_of_spec_allocated_and_running_counts(
    asked: str, allocated: str, running: str, conditions: list[Json], cores: int
) -> None:
    """But not a request that the node can never give."""
    status = {"containerStatuses": [has("main", allocated, running)], "conditions": conditions}
    assert used(container("main", asked), status=status) == (cores * 1000, 1)


def test_containers_without_a_status_count_as_in_the_spec() -> None:
    """Also sidecars; all amounts of a stage are added before they are compared."""
    sidecar = container("proxy", "3", restartPolicy="Always")
    status = {"containerStatuses": [has("main", "4")], "initContainerStatuses": [has("proxy", "1")]}
    assert used(container("main", "1"), container("b", "2"), status=status, initContainers=[sidecar]) == (
        7000,
        3,
    )


def test_amounts_of_the_whole_pod_are_resized_too() -> None:
    """Eight cores are allocated to the pod, which is to have two."""
    resources = {"requests": {"cpu": "2"}}
    amounts = {"allocatedResources": {"cpu": "8"}, "resources": {"requests": {"cpu": "8"}}}
    status = {"containerStatuses": [has("main", "1")], **amounts}
    assert used(container("main", "1"), status=status, resources=resources) == (8000, 1)
    assert (
        used(container("main", "1"), status={**status, "conditions": INFEASIBLE}, resources=resources)[0]
        == 8000
    )


def test_a_request_that_the_node_cannot_give_counts_nothing_where_nothing_is_allocated() -> None:
    """As in kube-scheduler, until the kubelet states what the container has."""
    assert used(container("main", "9"), status={"conditions": INFEASIBLE}) == (0, 0)
