"""The variable `cluster` keeps what a change does not affect, and is always that of a cluster read anew."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from planner.cluster.snapshot import Snapshot
from planner.devices.claims import ResourceClaim
from planner.model.labels import Taint
from planner.model.settings import Bound, Quota
from planner.model.volumes import StorageClass
from tests.webhook.kube.state.test_live_snapshot import World
from webhook.cel.values.stand_in import StandIn, StandInRead
from webhook.variables.cluster import ClusterOfNodes, cluster_variable, records_of_cluster, shared_limits


def shown(snapshot: Snapshot) -> dict[str, object]:
    """All that policies see of the cluster; of the nodes of a kind, the fields that policies read."""
    cluster = dict(cluster_variable(snapshot))
    groups: Iterable[Any] = cluster.pop("nodeKinds")  # type: ignore[assignment]
    kinds = [(kind, [node.labels for node in kind.nodes]) for kind in groups]
    return {
        **cluster,
        "nodeKinds": [
            (kind.product, kind.taints, kind.allocatable, kind.claimable, labels) for kind, labels in kinds
        ],
    }


@pytest.mark.parametrize("seed", range(8))
def test_after_any_changes_policies_see_the_cluster_as_if_read_anew(seed: int) -> None:
    """Pods, nodes, labels, taints, topologies, NUMA zones and quotas come, change and go."""
    world = World(random.Random(seed))
    quotas: dict[str, Quota] = {}
    for _ in range(30):
        for _ in range(world.chance.choice((1, 1, 3))):
            world.change()
        team, left = f"team-{world.chance.randrange(3)}", world.chance.randrange(5)
        quotas[f"{team}/q"] = quota = Quota("q", {"pods": 9}, {"pods": left})
        world.picture.record_changed("quotas", f"{team}/q", quota)
        fresh = world.anew_picture()
        for key, record in quotas.items():
            fresh.record_changed("quotas", key, record)
        assert shown(world.picture.snapshot()) == shown(fresh.snapshot())


def test_a_quota_that_changes_leaves_all_that_policies_see_of_nodes() -> None:
    """The quota of a namespace changes with each pod. At 5,000 nodes, the kinds of nodes took 0.2 s of the
    next decision.
    """
    world = World(random.Random(1))
    before = cluster_variable(world.picture.snapshot())
    kinds, claims, limits = before["nodeKinds"], before["claims"], before["limits"]
    world.picture.record_changed("quotas", "team/q", Quota("q", {"pods": 9}, {"pods": 3}))
    after = cluster_variable(world.picture.snapshot())
    assert after["nodeKinds"] is kinds
    assert after["claims"] is claims
    assert limits == {}
    assert after["limits"] == {
        "team": {"ranges": [], "quotas": [{"name": "q", "hard": {"pods": 9}, "left": {"pods": 3}}]}
    }


@pytest.mark.parametrize(
    "condition",
    [
        {"cordoned": True, "taints": (Taint("node.kubernetes.io/unschedulable", "", "NoSchedule"),)},
        {"ready": False, "taints": (Taint("node.kubernetes.io/not-ready", "", "NoExecute"),)},
    ],
    ids=("cordoned", "not ready"),
)
def test_the_condition_of_a_node_leaves_all_that_policies_see_of_nodes(condition: dict[str, Any]) -> None:
    """Policies see nodes as in the empty cluster."""
    world = World(random.Random(1))
    kinds = cluster_variable(world.picture.snapshot())["nodeKinds"]
    world.nodes["n1"] = replace(world.nodes["n1"], **condition)
    world.picture.node_changed("n1")
    assert cluster_variable(world.picture.snapshot())["nodeKinds"] is kinds


@pytest.mark.parametrize(
    "change", [{"labels": {}}, {"taints": (Taint("dedicated", "", "NoSchedule"),)}], ids=("labels", "a taint")
)
def test_other_labels_and_taints_of_a_node_are_seen(change: dict[str, Any]) -> None:
    """They last, so the kinds of nodes are computed again."""
    world = World(random.Random(1))
    kinds = cluster_variable(world.picture.snapshot())["nodeKinds"]
    world.nodes["n1"] = replace(world.nodes["n1"], **change)
    world.picture.node_changed("n1")
    assert cluster_variable(world.picture.snapshot())["nodeKinds"] is not kinds


def test_volumes_are_no_reason_to_run_policies_again() -> None:
    """`cluster` does not show them, so the outcomes of policies stay valid. It shows claims."""
    world = World(random.Random(1))
    before = world.picture.snapshot()
    world.picture.record_changed("volumes.classes", "fast", StorageClass("fast"))
    volumes = world.picture.snapshot()
    assert records_of_cluster(volumes) == records_of_cluster(before)
    world.picture.record_changed("claims.claims", "team/c", ResourceClaim(()))
    assert records_of_cluster(world.picture.snapshot()) != records_of_cluster(volumes)


def of_team(world: World) -> ClusterOfNodes:
    """The cluster as policies see it that run once for equal objects of the namespace team."""
    return ClusterOfNodes(world.picture.snapshot(), "team", StandIn)


def test_what_a_quota_has_left_is_no_reason_to_run_policies_again() -> None:
    """It changes with each pod. A policy that reads it runs for each object, the others once."""
    world = World(random.Random(1))
    world.picture.record_changed("quotas", "team/q", Quota("q", {"pods": 9}, {"pods": 3}))
    before = world.picture.snapshot()
    limits: Any = of_team(world)["limits"]
    assert "team" in limits
    assert limits["team"]["ranges"] == []
    with pytest.raises(StandInRead):
        list(limits["team"]["quotas"])
    world.picture.record_changed("quotas", "team/q", Quota("q", {"pods": 9}, {"pods": 2}))
    after = world.picture.snapshot()
    assert records_of_cluster(after) == records_of_cluster(before)
    assert shared_limits(after, "team") == shared_limits(before, "team") == [[], True]


@pytest.mark.parametrize(
    "read",
    [lambda limits: limits["other"], lambda limits: "other" in limits, len, list],
    ids=("an entry", "whether there is one", "their number", "all"),
)
def test_a_policy_that_reads_limits_of_another_namespace_runs_for_each_object(
    read: Callable[[Any], object],
) -> None:
    """The outcome would be that of other limits after these change."""
    world = World(random.Random(1))
    world.picture.record_changed("quotas", "other/q", Quota("q", {"pods": 9}, {"pods": 3}))
    limits = of_team(world)["limits"]
    with pytest.raises(StandInRead):
        read(limits)


def test_a_namespace_without_limits_has_none_for_equal_objects() -> None:
    """Whether it has any is part of what outcomes are kept by."""
    world = World(random.Random(1))
    limits: Any = of_team(world)["limits"]
    assert "team" not in limits
    assert shared_limits(world.picture.snapshot(), "team") is None
    bound = Bound("b", "Container", {}, {"cpu": 4000})
    world.picture.record_changed("bounds", "team/b", (bound,))
    (entry,) = of_team(world)["limits"]["team"]["ranges"]  # type: ignore[index]
    assert entry["max"] == {"cpu": 4000}
    assert of_team(world)["limits"]["team"]["quotas"] == []  # type: ignore[index]
    assert shared_limits(world.picture.snapshot(), "team") == [[entry], False]
