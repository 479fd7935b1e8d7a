"""Containers without a request get that of their namespace's LimitRange, as the API server gives it."""

from __future__ import annotations

from typing import Any

import pytest

from planner.cluster.snapshot import Snapshot
from planner.manifests.cluster import read
from planner.manifests.pods.pod import shape_of
from planner.model.errors import Where
from planner.model.podgroup import PodGroup, PodSet
from planner.planning.plan import plan
from planner.request.created_pods import as_admitted

Json = dict[str, Any]


def cluster(*entries: Json) -> Snapshot:
    """One node of 8 GPUs and 16 CPUs, and a LimitRange in the namespace research."""
    offered = {"nvidia.com/gpu": "8", "cpu": "16", "memory": "64Gi", "pods": "110"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1", "labels": {"kubernetes.io/hostname": "n1"}},
        "status": {"allocatable": offered, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    limits = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "sizes", "namespace": "research"},
        "spec": {"limits": list(entries)},
    }
    return read([("cluster.yaml", [node, limits])])


def container(**requests: str) -> Json:
    """A container with these requests."""
    return {"name": "main", "image": "a", "resources": {"requests": requests}}


def gang(spec: Json, count: int = 1, namespace: str = "research") -> PodGroup:
    """A gang of pods with this spec."""
    pods = PodSet("main", count, shape_of(spec, Where()))
    return PodGroup(f"{namespace}/Job/train", (pods,), reserve="nodes")


def requested(moment: Snapshot, group: PodGroup) -> Json:
    """What a pod of the gang requests when it is created, without its place on the node."""
    requests = as_admitted(moment, group).pod_sets[0].shape.requests
    return {name: amount for name, amount in requests.items() if name != "pods"}


ONE_GPU = {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
FOUR_CPUS = {"type": "Container", "defaultRequest": {"cpu": "4"}}


def test_the_default_request_counts_on_the_node():
    """Of eight pods of a GPU only four have 4 CPUs each; in another namespace all have a place."""
    assert plan(cluster(FOUR_CPUS), gang(ONE_GPU, 4)).decision == "admitted"
    assert plan(cluster(FOUR_CPUS), gang(ONE_GPU, 5)).decision == "rejected"
    assert plan(cluster(FOUR_CPUS), gang(ONE_GPU, 8, "inference")).decision == "admitted"


@pytest.mark.parametrize(
    ("entry", "cpu"),
    [
        ({"type": "Container", "default": {"cpu": "2"}}, 2000),
        ({"type": "Container", "max": {"cpu": "3"}}, 3000),
        ({"type": "Container", "min": {"cpu": "100m"}}, 100),
        ({"type": "Container", "min": {"cpu": "1"}, "max": {"cpu": "3"}}, 3000),
        ({"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}, 1000),
        ({"type": "Pod", "max": {"cpu": "3"}}, None),
    ],
)
def test_a_missing_default_is_that_of_the_api_server(entry: Json, cpu: int | None):
    """The default limit, else the maximum, else the minimum."""
    assert requested(cluster(entry), gang({"containers": [container()]})).get("cpu") == cpu


def test_only_containers_without_the_resource_get_it():
    """Each of them, sidecars too; an init container by the kubelet's rule."""
    moment = cluster(FOUR_CPUS)
    assert requested(moment, gang({"containers": [container(cpu="1")]})) == {"cpu": 1000}
    assert requested(moment, gang({"containers": [container(cpu="1"), container()]})) == {"cpu": 5000}
    first = {"initContainers": [container()], "containers": [container(cpu="1")]}
    assert requested(moment, gang(first)) == {"cpu": 4000}
    sidecar = {
        "initContainers": [{**container(), "restartPolicy": "Always"}],
        "containers": [container(cpu="1")],
    }
    assert requested(moment, gang(sidecar)) == {"cpu": 5000}
