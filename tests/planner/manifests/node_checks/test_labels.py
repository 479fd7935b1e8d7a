"""Tests the checks of node labels: each mistake alone in a cluster that is otherwise correct."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.devices.claims import NO_CLAIMS
from planner.devices.slices import gathered
from planner.manifests.devices import slice_from
from planner.manifests.node_checks.finding import NodeFinding
from planner.manifests.node_checks.labels import check_labels
from planner.model.errors import Where
from planner.model.node import Node
from tests.builders import node, topology

COUNT, PRODUCT, CLIQUE = "nvidia.com/gpu.count", "nvidia.com/gpu.product", "nvidia.com/gpu.clique"


def hall() -> dict[str, Node]:
    """Two racks of four nodes of 4 GPUs, each rack an NVLink clique, all with correct labels."""
    return {
        name: node(
            name,
            labels={"rack": f"r{rack}", CLIQUE: f"abc.{rack}", COUNT: "4", PRODUCT: "NVIDIA-GB200"},
            gpu=4,
        )
        for rack in (1, 2)
        for name in (f"n{rack}{number}" for number in range(1, 5))
    }


def labelled(nodes: dict[str, Node], name: str, **labels: str | None) -> None:
    """Sets or removes (None) labels of a node; the names are those of `KEYS`."""
    keys = {"rack": "rack", "clique": CLIQUE, "count": COUNT, "product": PRODUCT}
    changed = dict(nodes[name].labels)
    for word, value in labels.items():
        changed.pop(keys[word], None)
        if value is not None:
            changed[keys[word]] = value
    nodes[name] = replace(nodes[name], labels=changed)


def seen(nodes: dict[str, Node], *objects: dict[str, Any]) -> list[NodeFinding]:
    """The findings about these nodes."""
    return check_labels(picture(nodes), objects)


def picture(nodes: dict[str, Node], *slices: dict[str, Any]) -> Snapshot:
    """A cluster of these nodes, with racks and ResourceSlices."""
    pieces = [slice_from(item, Where("cluster.yaml")) for item in slices]
    return snapshot(nodes.values(), [topology("rack")], claims=replace(NO_CLAIMS, slices=gathered(pieces)))


def test_correctly_labelled_nodes_have_no_findings():
    """The next tests change one label."""
    assert seen(hall()) == []


def no_gpus(nodes: dict[str, Node]) -> None:
    """The device plugin of n12 is missing."""
    nodes["n12"] = replace(nodes["n12"], allocatable={"cpu": 64000, "pods": 110})


def two_gpus(nodes: dict[str, Node]) -> None:
    """The device plugin of n12 offers half of its GPUs."""
    nodes["n12"] = replace(nodes["n12"], allocatable={**nodes["n12"].allocatable, "nvidia.com/gpu": 2})


@pytest.mark.parametrize(
    ("change", "reason", "label"),
    [
        (lambda nodes: labelled(nodes, "n12", rack=None), "CliqueWithoutLevel", ("rack", "r1")),
        (lambda nodes: labelled(nodes, "n12", rack=None, clique=None), "LevelMissing", None),
        (lambda nodes: labelled(nodes, "n12", rack="r2"), "CliqueAcrossDomains", None),
        (lambda nodes: labelled(nodes, "n12", rack="r9", clique=None), "AloneInDomain", None),
        (lambda nodes: labelled(nodes, "n12", product=None), "FeatureDiscoveryAbsent", None),
        (no_gpus, "DevicePluginAbsent", None),
        (two_gpus, "GpuCountDiffers", None),
    ],
    ids=["no rack", "no rack or clique", "torn clique", "alone", "no GFD", "no plugin", "fewer GPUs"],
)
def test_each_mistake_is_told_of_its_node(
    change: Callable[[dict[str, Node]], None], reason: str, label: tuple[str, str] | None
):
    """With the label that corrects it, if other nodes of the clique show the value."""
    nodes = hall()
    change(nodes)
    (finding,) = seen(nodes)
    assert (finding.node, finding.reason, finding.label) == ("n12", reason, label)


def test_where_no_node_has_racks_none_is_missed():
    """No label above the host exists in this cluster."""
    nodes = hall()
    for name in nodes:
        labelled(nodes, name, rack=None, clique=None)
    assert seen(nodes) == []


def test_a_node_without_gpus_needs_no_rack():
    """Such as a control-plane node."""
    assert seen({**hall(), "control": node("control", gpu=0)}) == []


def test_a_label_of_a_node_feature_that_did_not_arrive_is_told_with_its_value():
    """By the node that it names, not by its own name."""
    feature = {
        "kind": "NodeFeature",
        "metadata": {"name": "x", "labels": {"nfd.node.kubernetes.io/node-name": "n21"}},
        "spec": {"labels": {COUNT: "4", "nvidia.com/gpu.family": "blackwell"}},
    }
    (finding,) = seen(hall(), feature)
    assert (finding.node, finding.label) == ("n21", ("nvidia.com/gpu.family", "blackwell"))


def resource_slice(gpus: int, generation: int = 1) -> dict[str, Any]:
    """The GPUs of n21, and a MIG device, which does not count as a GPU."""
    kinds = ["gpu"] * gpus + ["mig"]
    devices = [{"name": f"d{i}", "attributes": {"type": {"string": kind}}} for i, kind in enumerate(kinds)]
    pool = {"name": "n21", "generation": generation}
    spec = {"driver": "gpu.nvidia.com", "nodeName": "n21", "pool": pool, "devices": devices}
    return {"kind": "ResourceSlice", "metadata": {"name": f"s{generation}"}, "spec": spec}


def of_slices(*slices: dict[str, Any]) -> list[NodeFinding]:
    """The findings about the cluster with these ResourceSlices."""
    return check_labels(picture(hall(), *slices), [])


def test_gpus_of_resource_slices_are_held_against_the_label():
    """Of the newest generation of the pool; older slices are on their way out."""
    assert of_slices(resource_slice(4)) == []
    assert of_slices(resource_slice(4, 2), resource_slice(1, 1)) == []
    (finding,) = of_slices(resource_slice(3))
    assert (finding.node, finding.reason) == ("n21", "SlicesDiffer")
