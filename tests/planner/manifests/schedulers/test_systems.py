"""Tests which scheduling systems the objects of a cluster show, with their queues and topologies."""

from __future__ import annotations

from typing import Any

import pytest

from planner.manifests.cluster import read
from planner.manifests.schedulers.systems import SYSTEMS, watched
from planner.model.schedulers import KAI, KUEUE, SchedulersSeen

Json = dict[str, Any]
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"allocatable": {"cpu": "8"}},
}


def seen(*documents: Json) -> SchedulersSeen:
    """The systems that a node and these objects show."""
    return read([("c.yaml", document) for document in (NODE, *documents)]).base.schedulers


def obj(group: str, kind: str, name: str = "x", **fields: Any) -> Json:
    """An object of a kind in the first version of its group."""
    metadata = {"name": name, **fields.pop("metadata", {})}
    return {"apiVersion": f"{group}/v1" if group else "v1", "kind": kind, "metadata": metadata, **fields}


def pod(*args: str, image: str = "main", labels: dict[str, str] | None = None, **spec: Any) -> Json:
    """A bound pod whose container has these arguments."""
    container = {"name": "main", "image": image, "args": list(args)}
    metadata = {"namespace": "system", "labels": labels or {}}
    return obj("", "Pod", "p", metadata=metadata, spec={"nodeName": "n1", "containers": [container], **spec})


def levels(name: str, group: str, *keys: str) -> Json:
    """A Topology of a kind."""
    return obj(group, "Topology", name, spec={"levels": [{"nodeLabel": key} for key in keys]})


def test_a_cluster_of_nodes_shows_no_system():
    """It shows no queue and no topology either."""
    assert seen() == SchedulersSeen()


@pytest.mark.parametrize(("system", "kind"), [(row.name, kind) for row in SYSTEMS for kind in row.kinds])
def test_an_object_of_each_of_its_kinds_shows_a_system(system: str, kind: tuple[str, str]):
    """By group and kind, whatever the version."""
    spec = {"levels": [{"nodeLabel": "rack"}]} if kind[1] == "Topology" else {}
    assert seen(obj(*kind, spec=spec)).shown == {system: f"{kind[1]} x ({kind[0]})"}


@pytest.mark.parametrize(
    ("system", "name"),
    [(row.name, f"{plural}.{group}") for row in SYSTEMS for (group, _), plural in row.kinds.items()],
)
def test_so_does_its_customresourcedefinition(system: str, name: str):
    """Also if there is no object of the kind."""
    shown = seen(obj("apiextensions.k8s.io", "CustomResourceDefinition", name)).shown
    assert shown == {system: f"CustomResourceDefinition {name}"}


@pytest.mark.parametrize(
    ("running", "system"),
    [
        (pod(image="ghcr.io/nvidia/kai-scheduler/scheduler:v0.12.0"), KAI),
        (pod(image="registry.local:5000/kai-scheduler/scheduler@sha256:ab"), KAI),
        (pod(labels={"app": "kai-scheduler-default"}), KAI),
        (pod(image="registry.k8s.io/kueue/kueue:v0.14.0"), KUEUE),
        (pod(labels={"app.kubernetes.io/name": "kueue"}), KUEUE),
        (pod(image="docker.io/volcanosh/vc-scheduler:v1.12.0"), "volcano"),
        (pod(labels={"app": "runai-scheduler"}), "runai-scheduler"),
        (pod("--v=3", "--scheduler-name=second"), "second"),
        (pod("--scheduler-name", "second"), "second"),
        (pod(schedulerName="second"), "second"),
    ],
)
def test_so_does_a_pod_that_is_the_scheduler_or_was_bound_by_it(running: Json, system: str):
    """By its image, its labels, its arguments or its schedulerName."""
    assert seen(running).shown == {system: "pod system/p"}


@pytest.mark.parametrize(
    "other",
    [
        pod(),
        pod(schedulerName="default-scheduler"),
        pod("--scheduler-name=default-scheduler"),
        pod("--scheduler-name"),
        pod("--gang-scheduler-name=volcano"),
        pod(image="ghcr.io/nvidia/kai-scheduler/podgrouper:v0.12.0"),
        {**pod(schedulerName="second"), "status": {"phase": "Succeeded"}},
        pod(schedulerName="second", nodeName=""),
    ],
)
def test_other_pods_show_nothing(other: Json):
    """A pod that waits for an absent scheduler, or has ended."""
    assert seen(other).shown == {}


def test_kinds_that_two_systems_share_show_the_one_on_top():
    """Run:ai has KAI's kinds, and its own scheduler in place of KAI's; a pod of KAI's still shows KAI."""
    runai, queue = pod(labels={"app": "runai-scheduler"}), obj("scheduling.run.ai", "Queue")
    assert set(seen(runai, queue).shown) == {"runai-scheduler"}
    kai = pod(image="kai-scheduler/scheduler")
    kai["metadata"]["name"] = "kai"
    assert set(seen(runai, queue, kai).shown) == {"runai-scheduler", KAI}


def test_queues_are_known_by_system_once_any_is_read():
    """Kueue's with their namespaces; of a system without one nothing is known."""
    local = obj("kueue.x-k8s.io", "LocalQueue", "q", metadata={"namespace": "research"})
    assert seen(local).queues == {KUEUE: {"research/q"}}
    queues = [obj("scheduling.run.ai", "Queue", name) for name in ("a", "b")]
    assert seen(*queues).queues == {KAI: {"a", "b"}}


def test_a_system_follows_topology_objects_of_its_own_kind_alone():
    """Also where one of another kind has the same name, or the same levels."""
    topologies = [levels("t", "kai.scheduler", "rack"), levels("t", "kueue.x-k8s.io", "zone", "rack")]
    assert seen(*topologies).topologies == {
        KAI: {"t": ("rack", "kubernetes.io/hostname")},
        KUEUE: {"t": ("zone", "rack", "kubernetes.io/hostname")},
    }


def test_kueue_follows_only_topologies_that_a_flavor_names():
    """Where no ResourceFlavor was read, nothing is known of that."""
    fabric = levels("t", "kueue.x-k8s.io", "rack")
    plain = obj("kueue.x-k8s.io", "ResourceFlavor", "f", spec={"nodeLabels": {"pool": "a"}})
    with_topology = obj("kueue.x-k8s.io", "ResourceFlavor", "g", spec={"topologyName": "t"})
    assert seen(fabric).topologies[KUEUE] != {}
    assert seen(fabric, plain).topologies[KUEUE] == {}
    assert set(seen(fabric, plain, with_topology).topologies[KUEUE]) == {"t"}


def test_in_a_cluster_that_is_watched_a_queue_that_was_not_read_is_not_there():
    """In files it is not known."""
    live = watched(seen(), [("system/p", ("second",))])
    assert live.shown == {"second": "pod system/p"}
    assert live.queues == {KAI: frozenset(), KUEUE: frozenset()}
    assert live.topologies[KAI] == {}


def test_of_queues_that_may_not_be_read_nothing_is_known():
    """The user may list pods but not queues."""
    assert watched(seen(), (), [("scheduling.run.ai", "Queue")]).queues == {KUEUE: frozenset()}
