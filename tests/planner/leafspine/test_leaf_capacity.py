"""What is remembered of a leaf is valid for the pods and the devices that it was computed for."""

from __future__ import annotations

from planner.cluster.hardware_update import with_hardware
from planner.cluster.snapshot import Snapshot
from planner.model.pod import PodShape
from planner.model.podgroup import FabricWish, PodGroup, PodSet
from planner.planning.plan import plan
from tests.planner.devices.test_allocator import device, slice_with
from tests.planner.devices.test_catalog import Json, cluster, node

RESOURCE = "example.com/gpu"


def two_leaves(product: str) -> Snapshot:
    """Leaves A and B of two nodes each, whose GPUs are the products A and B; a DeviceClass offers those of
    one product as an extended resource.
    """
    expression = f"device.attributes['gpu.nvidia.com'].productName == '{product}'"
    objects: list[Json] = [
        {
            "apiVersion": "kai.scheduler/v1alpha1",
            "kind": "Topology",
            "metadata": {"name": "fabric"},
            "spec": {"levels": [{"nodeLabel": "leaf"}, {"nodeLabel": "kubernetes.io/hostname"}]},
        },
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": "offered"},
            "spec": {
                "extendedResourceName": RESOURCE,
                "selectors": [{"cel": {"expression": expression}}],
            },
        },
    ]
    for name, leaf in (("a1", "A"), ("a2", "A"), ("b1", "B"), ("b2", "B")):
        devices = [device(f"gpu-{number}", product=leaf) for number in range(2)]
        objects += [node(name, leaf=leaf), slice_with(name, *devices)]
    return cluster(*objects)


def test_a_changed_device_class_changes_the_room_of_the_leaves() -> None:
    """The class offers the GPUs of the other leaf now: the gang is there, by the rules."""
    shape = PodShape({RESOURCE: 1, "pods": 1})
    gang = PodGroup(
        "team/Job/train",
        (PodSet("main", 4, shape),),
        reserve="nodes",
        fabric=FabricWish(stated=True),
    )
    before = two_leaves("A")
    assert {assignment.node for assignment in plan(before, gang).assignments} == {"a1", "a2"}
    answer = plan(with_hardware(before, two_leaves("B").base), gang)
    assert {assignment.node for assignment in answer.assignments} == {"b1", "b2"}
    assert answer.warnings == ()
