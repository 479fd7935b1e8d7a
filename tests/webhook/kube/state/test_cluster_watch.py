"""Which objects of a watched cluster become part of its snapshot."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.admission.environment import pod_groups
from webhook.kube.api.client import Api, Event
from webhook.kube.state import cluster_watch as module
from webhook.kube.state.cluster_watch import EXTRAS, ClusterWatch, Extra


class Nowhere(Api):
    """No API server: what the watches would tell is told to the stores by the test."""

    def __init__(self) -> None:
        """Connects to nothing."""


def watch(namespace: str = "bayplan-system") -> ClusterWatch:
    """A watch that has read an empty cluster."""
    cluster_watch = ClusterWatch(Nowhere(), namespace)
    for reflector in cluster_watch.reflectors:
        reflector.handler.replaced((), 1)
        reflector.synced.set()
    return cluster_watch


def tell(cluster_watch: ClusterWatch, extra: Extra, item: dict[str, object]) -> None:
    """One object of a kind is there."""
    reflector = cluster_watch.reflectors[3 + EXTRAS.index(extra)]
    reflector.handler.replaced([reflector.handler.read(item)], 2)


def config(namespace: str) -> dict[str, object]:
    """The leaf-spine scheduler's ConfigMap, with a limit of its own."""
    data = {"config.yaml": "spec: {topologyConstraints: {maxNodesPerLeaf: 7}}"}
    metadata = {"name": "topology-scheduler-config", "namespace": namespace, "resourceVersion": "2"}
    return {"metadata": metadata, "data": data}


CONFIG = next(kind for kind in EXTRAS if kind.name == "topology-scheduler-config")


def settled(cluster_watch: ClusterWatch) -> int:
    """The limit that the picture tells."""
    snapshot = cluster_watch.snapshot()
    assert snapshot is not None
    return snapshot.base.settings.nodes_per_leaf


def test_a_schedulers_configmap_counts() -> None:
    """In the namespace of the system."""
    cluster_watch = watch()
    assert settled(cluster_watch) == 4
    tell(cluster_watch, CONFIG, config("kube-system"))
    assert settled(cluster_watch) == 7


def test_a_configmap_in_the_namespace_of_the_installation_counts() -> None:
    """The leader writes the history of the gangs there, and would otherwise never read it again."""
    cluster_watch = watch("planning")
    tell(cluster_watch, CONFIG, config("planning"))
    assert settled(cluster_watch) == 7


def test_a_tenants_configmap_of_that_name_says_nothing() -> None:
    """Otherwise a tenant could change how all gangs are placed."""
    cluster_watch = watch()
    tell(cluster_watch, CONFIG, config("research"))
    assert settled(cluster_watch) == 4


def test_limit_ranges_and_quotas_are_in_the_picture() -> None:
    """Policies that set requests read them."""
    cluster_watch = watch()
    metadata = {"name": "limits", "namespace": "research", "resourceVersion": "2"}
    bounds = {"type": "Container", "max": {"cpu": "4"}}
    tell(
        cluster_watch,
        Extra("", "limitranges", "LimitRange"),
        {"metadata": metadata, "spec": {"limits": [bounds]}},
    )
    quota = {"hard": {"requests.cpu": "8"}, "used": {"requests.cpu": "2"}}
    tell(
        cluster_watch,
        Extra("", "resourcequotas", "ResourceQuota"),
        {"metadata": metadata, "spec": {"hard": quota["hard"]}, "status": quota},
    )
    snapshot = cluster_watch.snapshot()
    assert snapshot is not None
    assert snapshot.base.bounds["research/limits"][0].maximum == {"cpu": 4000}
    assert snapshot.base.quotas["research/limits"].left == {"requests.cpu": 6000}


def test_labels_of_namespaces_are_in_the_picture_and_follow_changes() -> None:
    """Namespace selectors of pod affinity terms read them."""
    cluster_watch = watch()
    spaces = cluster_watch.reflectors[2].handler
    for team, version in (("red", "2"), ("blue", "3")):
        metadata = {"name": "research", "labels": {"team": team}, "resourceVersion": version}
        spaces.replaced([spaces.read({"metadata": metadata})], int(version))
        snapshot = cluster_watch.snapshot()
        assert snapshot is not None
        assert snapshot.base.spaces == {"research": {"team": team}}


def test_a_list_of_many_pod_groups_is_indexed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """KAI makes one for each workload: indexed after each of thousands, they would stop the replica for
    minutes. The index is the same mapping until one of them changes.
    """
    indexed: list[int] = []

    def counted(objects: Any) -> Any:
        indexed.append(1)
        return pod_groups(objects)

    monkeypatch.setattr(module, "pod_groups", counted)
    cluster_watch = watch()
    handler = cluster_watch.reflectors[3 + len(EXTRAS)].handler
    names = [f"group-{number}" for number in range(50)]
    items = ({"metadata": {"name": name, "namespace": "a", "resourceVersion": "2"}} for name in names)
    handler.replaced([handler.read(item) for item in items], 2)
    groups = cluster_watch.pod_groups()
    assert sorted(groups) == sorted(("a", name) for name in names)
    assert cluster_watch.environment().podgroups is cluster_watch.pod_groups() is groups
    handler.replaced([], 3)
    assert cluster_watch.pod_groups() == {}
    assert len(indexed) == 2


QUEUES = [kind for kind in EXTRAS if kind.kind in ("Queue", "LocalQueue", "ClusterQueue")]


@pytest.mark.parametrize("kind", QUEUES, ids=lambda kind: f"{kind.group}/{kind.kind}")
def test_the_status_of_a_queue_does_not_change_the_picture(kind: Extra) -> None:
    """It changes with each workload, and all objects would be read again for the next decision."""
    cluster_watch = watch()
    metadata = {"name": "q", "namespace": "research"}
    tell(cluster_watch, kind, {"metadata": {**metadata, "resourceVersion": "2"}, "status": {"used": 1}})
    before = cluster_watch.snapshot()
    cluster_watch.news.clear()
    tell(cluster_watch, kind, {"metadata": {**metadata, "resourceVersion": "3"}, "status": {"used": 2}})
    assert not cluster_watch.news.is_set()
    assert cluster_watch.snapshot() is before


def of_kind(kind: str) -> Extra:
    """The watched resource of this kind."""
    return next(extra for extra in EXTRAS if extra.kind == kind)


def test_a_right_that_is_taken_away_is_noticed_without_another_change() -> None:
    """Whether a RuntimeClass that a pod names exists is then not known."""
    cluster_watch = watch()
    before = cluster_watch.snapshot()
    reflector = cluster_watch.reflectors[3 + EXTRAS.index(of_kind("RuntimeClass"))]
    reflector.forbidden = True
    after = cluster_watch.snapshot()
    assert before is not None
    assert after is not None
    assert (before.base.runtime_classes.complete, after.base.runtime_classes.complete) == (True, False)
    assert cluster_watch.snapshot() is after


def test_a_claim_that_changes_leaves_all_other_objects_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim changes each time a pod starts. To read 20,000 claims again took half a second of the next
    decision.
    """
    cluster_watch, device = watch(), {"driver": "gpu.nvidia.com", "pool": "n", "device": "gpu-0"}
    metadata = {"name": "c", "namespace": "research"}
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 1}}
    claim = {"spec": {"devices": {"requests": [request]}}}
    before = cluster_watch.snapshot()
    read: list[object] = []
    monkeypatch.setattr(module, "read_cluster", read.append)
    tell(cluster_watch, of_kind("ResourceClaim"), {"metadata": {**metadata, "resourceVersion": "2"}, **claim})
    status = {"allocation": {"devices": {"results": [device]}}}
    handler = cluster_watch.reflectors[3 + EXTRAS.index(of_kind("ResourceClaim"))].handler
    item = {"metadata": {**metadata, "resourceVersion": "3"}, **claim, "status": status}
    handler.changed(Event("MODIFIED", item))
    after = cluster_watch.snapshot()
    assert before is not None
    assert after is not None
    assert before.base.claims.claims == {}
    assert after.base.claims.claims["research/c"].allocated == (("gpu.nvidia.com", "n", "gpu-0"),)
    assert read == []


def test_who_uses_a_claim_does_not_change_the_picture() -> None:
    """The status lists the pods of a claim; the planner reads the claims that pods name."""
    cluster_watch, kind = watch(), of_kind("ResourceClaim")
    metadata = {"name": "c", "namespace": "research"}
    tell(cluster_watch, kind, {"metadata": {**metadata, "resourceVersion": "2"}})
    before = cluster_watch.snapshot()
    status = {"reservedFor": [{"resource": "pods", "name": "p"}]}
    tell(cluster_watch, kind, {"metadata": {**metadata, "resourceVersion": "3"}, "status": status})
    assert cluster_watch.snapshot() is before


def test_the_zones_of_a_node_are_read_once() -> None:
    """There are as many objects as nodes, and an object of another kind leaves their records as they are."""
    cluster_watch, kind = watch(), of_kind("NodeResourceTopology")
    resource = {"name": "cpu", "capacity": "8", "allocatable": "8", "available": "8"}
    zones = [{"name": "node-0", "type": "Node", "resources": [resource]}]
    tell(cluster_watch, kind, {"metadata": {"name": "n", "resourceVersion": "2"}, "zones": zones})
    before = cluster_watch.snapshot()
    tell(cluster_watch, CONFIG, config("kube-system"))
    after = cluster_watch.snapshot()
    assert before is not None
    assert after is not None
    assert after is not before
    assert after.base.numa["n"] is before.base.numa["n"]


def test_a_runtime_class_that_is_not_listed_does_not_exist() -> None:
    """In a cluster that Bayplan watches; without the permission to list them, nothing is known of others."""
    cluster_watch = watch()
    kind = next(kind for kind in EXTRAS if kind.kind == "RuntimeClass")
    overhead = {"podFixed": {"cpu": "250m"}}
    item = {"metadata": {"name": "kata", "resourceVersion": "2"}, "handler": "kata", "overhead": overhead}
    tell(cluster_watch, kind, item)
    snapshot = cluster_watch.snapshot()
    assert snapshot is not None
    classes = snapshot.base.runtime_classes
    assert (classes.by_name["kata"].overhead, classes.complete) == ({"cpu": 250}, True)
    unread = watch()
    unread.reflectors[3 + EXTRAS.index(kind)].forbidden = True
    tell(unread, CONFIG, config("kube-system"))
    snapshot = unread.snapshot()
    assert snapshot is not None
    assert not snapshot.base.runtime_classes.complete
