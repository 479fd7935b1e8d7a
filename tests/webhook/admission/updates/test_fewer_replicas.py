"""Tests the warning, per template, that fewer pods fit because policies raised their requests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.model.labels import Taint
from planner.model.node import Node
from planner.node.node_groups import node_groups
from planner.node.runtime_class import RuntimeClass, RuntimeClasses
from webhook.admission.updates.fewer_replicas import fewer_replicas
from webhook.workloads import read

Json = dict[str, Any]
GI = 2**30


def node(name: str, **fields: Any) -> Node:
    """A node of eight GPUs."""
    amounts = {"cpu": 64_000, "memory": 512 * GI, "nvidia.com/gpu": 8, "pods": 110}
    return Node(name, {"pool": "a"}, amounts, **fields)


def deployment(cpu: object, **spec: Any) -> Json:
    """Pods of one GPU that request this much CPU."""
    box = {"name": "serve", "resources": {"requests": {"cpu": cpu}, "limits": {"nvidia.com/gpu": 1}}}
    template = {"metadata": {"labels": {"app": "s"}}, "spec": {"containers": [box], **spec}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "s"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "s"}}, "template": template},
    }


def sentences(before: Json, after: Json, *nodes: Node) -> list[str]:
    """The warnings."""
    return fewer_replicas(before, after, read(after), node_groups(nodes), RuntimeClasses())


def test_both_numbers_and_what_was_raised_are_told() -> None:
    """Sixteen pods fit by GPUs, four by CPU cores."""
    (sentence,) = sentences(deployment(4), deployment(32), node("a"), node("b"))
    assert sentence.startswith(
        "4 pods of main fit on the nodes that could take them, when empty, where 16 would"
    )
    assert "policies raised cpu from 4 to 32. What would work:" in sentence


def test_nothing_is_said_where_as_many_fit() -> None:
    """No fewer pods fit than before; a request that no policy raises needs no calculation."""
    assert sentences(deployment(4), deployment(8), node("a")) == []
    assert sentences(deployment(8), deployment(4), node("a")) == []


def test_only_nodes_that_could_take_the_pods_count() -> None:
    """Tainted and unselected nodes do not count, and the plan's own node affinity is not lost room."""
    tainted = node("t", taints=(Taint("team", "red"),))
    (sentence,) = sentences(deployment(4), deployment(32), node("a"), tainted)
    assert sentence.startswith(
        "2 pods of main fit on the nodes that could take them, when empty, where 8 would"
    )
    other_pool = {"nodeSelector": {"pool": "z"}}
    assert sentences(deployment(4, **other_pool), deployment(32, **other_pool), node("a")) == []
    slices = node("m")
    slices = replace(slices, labels={"pool": "b"}, allocatable={**slices.allocatable, "nvidia.com/gpu": 28})
    steered = deployment(4, nodeSelector={"pool": "a"})
    assert sentences(deployment(4), steered, node("a"), slices) == []
    pinned = deployment(4, nodeSelector={"kubernetes.io/hostname": "a"})
    assert sentences(deployment(4), pinned, node("a"), node("b")) == []


def test_the_overhead_and_the_nodes_of_the_runtime_class_count() -> None:
    """Eight pods of 8 cores fit on 64, seven with one core more each; and only on the class's nodes."""
    before, after = deployment(4, runtimeClassName="kata"), deployment(8, runtimeClassName="kata")

    def warnings_with(own: RuntimeClass) -> list[str]:
        kinds = node_groups([node("a"), replace(node("b"), labels={"pool": "b"})])
        return fewer_replicas(before, after, read(after), kinds, RuntimeClasses({"kata": own}))

    assert warnings_with(RuntimeClass("kata")) == []
    (sentence,) = warnings_with(RuntimeClass("kata", {"cpu": 1_000}))
    assert sentence.startswith("14 pods")
    assert "where 16 would as they were written: policies raised cpu from 4 to 8." in sentence
    (sentence,) = warnings_with(RuntimeClass("kata", {"cpu": 1_000}, {"pool": "b"}))
    assert sentence.startswith("7 pods")


def test_a_malformed_template_is_the_api_servers_to_refuse() -> None:
    """Bayplan reads it without an error."""
    before = deployment("lots")
    workload = read(deployment(32))
    assert fewer_replicas(before, deployment(32), workload, node_groups([node("a")]), RuntimeClasses()) == []
