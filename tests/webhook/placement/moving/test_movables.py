"""Which gangs and pods may be moved: those that agreed, and what prevents others."""

from __future__ import annotations

from typing import Any

import pytest

from planner.cluster.snapshot import Snapshot
from planner.manifests.cluster import read
from planner.planning.defragmentation.movable import Movable
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from webhook.placement.moving.movables import movables
from webhook.workloads import read as read_workload

Json = dict[str, Any]
AGREED = {"bayplan.dev/restartable": "true"}


def node(name: str) -> Json:
    """A node of rack r1 with 8 GPUs."""
    labels = {"rack": "r1", "kubernetes.io/hostname": name}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"cpu": "64", "nvidia.com/gpu": "8", "pods": "110"}},
    }


def pod(name: str = "x", *, labels: Json | None = None, owner: str = "ReplicaSet/web", **spec: Any) -> Json:
    """A pod of 2 GPUs on node a, made by a ReplicaSet."""
    kind, _, of = owner.partition("/")
    version = "batch/v1" if kind == "Job" else "apps/v1"
    reference = {"apiVersion": version, "kind": kind, "name": of, "uid": of, "controller": True}
    containers = [{"name": "main", "image": "main", "resources": {"limits": {"nvidia.com/gpu": "2"}}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "team",
            "labels": AGREED if labels is None else labels,
            "ownerReferences": [reference] if owner else [],
            "creationTimestamp": "2026-11-23T00:00:00Z",
        },
        "spec": {"nodeName": "a", "containers": containers, **spec},
        "status": {"phase": "Running"},
    }


def job(**labels: str) -> Json:
    """An Indexed Job of two pods, which is a gang."""
    template = pod()["spec"] | {"restartPolicy": "Never"}
    template.pop("nodeName")
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "team", "labels": labels},
        "spec": {
            "completionMode": "Indexed",
            "completions": 2,
            "parallelism": 2,
            "template": {"spec": template},
        },
    }


def budget(allowed: int | None, name: str = "web") -> Json:
    """A PodDisruptionBudget of every pod of the namespace."""
    status = {} if allowed is None else {"disruptionsAllowed": allowed}
    metadata = {"name": name, "namespace": "team"}
    spec: Json = {"selector": {}}
    return {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec,
        "status": status,
    }  # fmt: skip


def seen(*objects: Json, snapshot: Snapshot | None = None, **words: Any) -> tuple[Movable, ...]:
    """What may be moved of these objects, an hour after they were made."""
    cluster = snapshot or read([("cluster.yaml", item) for item in (node("a"), node("b"), *objects)])
    return movables(objects, cluster, 1795395600.0, **words)


def test_a_pod_that_agreed_and_is_made_again_may_be_moved():
    """Its own label allows it, and it has run for an hour."""
    (movable,) = seen(pod())
    assert (movable.name, movable.kept_because, movable.age) == ("team/Pod/x", "", 3600.0)
    assert movable.opted_in


def test_its_workload_may_agree_for_it():
    """The label is on the ReplicaSet."""
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": "web",
            "namespace": "team",
            "labels": AGREED,
            "ownerReferences": [{"kind": "X"}],
        },
    }
    (movable,) = seen(pod(labels={}), replica_set)
    assert movable.opted_in


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (pod(labels={}), "has not agreed"),
        (pod(labels={"bayplan.dev/restartable": "false"}), '"false"'),
        (pod(owner=""), "no controller"),
        (pod(owner="Node/a"), "static pod"),
        (pod(priority=2_000_001_000), "the cluster's own"),
    ],
    ids=["silent", "says no", "bare", "static", "system priority"],
)
def test_what_keeps_a_pod(changed: Json, why: str):
    """The reason is the end of a sentence."""
    (movable,) = seen(changed)
    assert why in movable.kept_because


def test_who_is_silent_is_moved_where_all_may_be_and_who_says_no_is_not():
    """`--restart-all`."""
    silent, unwilling = pod("x", labels={}), pod("y", labels={"bayplan.dev/restartable": "false"})
    assert [bool(movable.kept_because) for movable in seen(silent, unwilling, all_restartable=True)] == [
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("spec", "labels", "moves"),
    [
        ({"schedulerName": "kai-scheduler"}, {}, True),
        ({"schedulerName": "kai-scheduler", "priorityClassName": "inference"}, {}, False),
        ({"schedulerName": "kai-scheduler", "priorityClassName": "nowhere"}, {}, False),
        ({"schedulerName": "kai-scheduler"}, {"kai.scheduler/preemptibility": "non-preemptible"}, False),
        ({"schedulerName": "default-scheduler"}, {"kai.scheduler/preemptibility": "preemptible"}, False),
    ],
    ids=[
        "KAI's train",
        "KAI's inference",
        "an unknown class",
        "non-preemptible",
        "another scheduler",
    ],
)
def test_what_kai_may_preempt_has_agreed(spec: Json, labels: Json, moves: bool):
    """KAI preempts below priority 100, and by its label."""
    inference = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "inference"},
        "value": 125,
    }
    (movable,) = seen(pod(labels=labels, **spec), inference)
    assert (movable.kept_because == "") == moves


def test_a_budget_that_allows_none_keeps_its_pods():
    """Also a budget that its controller has not counted yet."""
    for allowed, keeps in ((0, True), (None, True), (1, False)):
        (movable,) = seen(pod(), budget(allowed))
        assert ("PodDisruptionBudget web" in movable.kept_because) == keeps


def test_a_pod_of_two_budgets_is_kept():
    """The eviction API refuses it."""
    (movable,) = seen(pod(), budget(5), budget(5, "other"))
    assert "2 PodDisruptionBudgets" in movable.kept_because


def test_a_gang_moves_as_a_whole_with_what_its_workload_asks():
    """Two pods of an Indexed Job; a budget that allows one eviction keeps both."""
    pods = [pod(f"train-{index}", owner="Job/train") for index in range(2)]
    (movable,) = seen(*pods, job())
    assert (movable.name, movable.group.size, len(movable.pods)) == ("team/Job/train", 2, 2)
    (kept,) = seen(*pods, job(), budget(1))
    assert "allows 1 of its 2 evictions" in kept.kept_because


def test_a_gang_that_holds_a_place_is_moved_only_where_its_workload_is_known():
    """Its reservation does not say what it asked for."""
    empty = read([("cluster.yaml", node("a")), ("cluster.yaml", node("b"))])
    group = read_workload(job()).gangs[0]
    held = reservation_for(empty, group, plan(empty, group))
    assert held is not None
    member = pod("train-0", owner="Job/train")
    member["metadata"]["annotations"] = {"bayplan.dev/reservation": held.id}
    objects = [node("a"), node("b"), member]
    snapshot = read([("cluster.yaml", item) for item in objects]).with_reservation(held)
    (movable,) = seen(member, job(), snapshot=snapshot)
    assert (movable.name, movable.kept_because) == ("team/Job/train", "")
    (kept,) = seen(member, snapshot=snapshot)
    assert "not among the objects" in kept.kept_because


def test_daemon_sets_and_pods_that_leave_are_not_looked_at():
    """They are on every node, or end soon."""
    leaving = pod("y")
    leaving["metadata"]["deletionTimestamp"] = "2026-11-23T00:30:00Z"
    assert seen(pod(owner="DaemonSet/agent"), leaving) == ()
