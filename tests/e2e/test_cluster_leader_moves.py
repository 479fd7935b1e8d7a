"""The leader moves other Jobs for a gang that has waited long, with the rights of the component only."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.e2e.moving import (
    BUDGETS,
    ON,
    a_gang_that_waits_for_moves,
    bound,
    chosen,
    cordoned,
    event_messages,
    moving,
    pods_of,
)
from tests.e2e.processes import wait_until
from tests.e2e.replicas import racks_of
from tests.e2e.rollout import SYSTEM, Rollout
from tests.e2e.stage import Cluster
from webhook.kube.moving.defragmenter import LOOK_SECONDS

HALVES = ("x1", "y1")
"""The Jobs that are in the way."""


@pytest.fixture(scope="module")
def rollout(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rollout]:
    """A replica on two racks of two nodes, with the permission to cordon and evict."""
    with moving(cluster, tmp_path_factory.mktemp("moves"), hosts=2) as installed:
        installed.add()
        yield installed


@pytest.fixture(autouse=True)
def halves(rollout: Rollout) -> Iterator[None]:
    """A Job that may be restarted uses one node of each rack, and a gang waits for a whole rack."""
    with a_gang_that_waits_for_moves(rollout, hosts=2):
        yield


def test_a_rack_is_freed_for_the_gang_once_the_parameter_says_so(rollout: Rollout) -> None:
    """Off, nothing moves. Then one of the two Jobs does, is told so, and the gang has its rack."""
    before = {pod["metadata"]["uid"] for name in HALVES for pod in pods_of(rollout, name)}
    time.sleep(2 * LOOK_SECONDS)  # two looks of the leader, which did nothing
    assert {pod["metadata"]["uid"] for name in HALVES for pod in pods_of(rollout, name)} == before
    assert "Defragmenting" not in event_messages(rollout, "big")

    chosen(rollout, ON)
    (rack,) = racks_of(bound(rollout, "big", 2))
    small_pods = [pod for name in HALVES for pod in bound(rollout, name, 1)]
    assert racks_of(small_pods) == {"r1", "r2"} - {rack}
    assert len(before - {pod["metadata"]["uid"] for pod in small_pods}) == 1
    wait_until(lambda: not cordoned(rollout), "the nodes to be uncordoned", 30)
    wait_until(lambda: "Defragmented" in event_messages(rollout, "big"), "the gang to be told", 30)
    assert "GPU-hours of work are lost" in event_messages(rollout, "big")["Defragmenting"]
    moved = [name for name in HALVES if "Defragmented" in event_messages(rollout, name)]
    assert len(moved) == 1
    assert (
        "1 pod evicted to make room for research/Job/big" in event_messages(rollout, moved[0])["Defragmented"]
    )


def test_a_budget_that_allows_nothing_keeps_all_where_it_is_and_is_named(rollout: Rollout) -> None:
    """The gang is told why it goes on waiting; without the budget it has its place."""
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": list(HALVES)}]}
    budget = {"metadata": {"name": "both"}, "spec": {"minAvailable": 2, "selector": selector}}
    rollout.api.create(BUDGETS, budget)
    chosen(rollout, ON)
    wait_until(lambda: "NotDefragmented" in event_messages(rollout, "big"), "the gang to be told", 60)
    assert "PodDisruptionBudget both" in event_messages(rollout, "big")["NotDefragmented"]
    assert cordoned(rollout) == set()
    assert "Admitted" not in event_messages(rollout, "big")


def test_the_account_can_neither_cordon_unmarked_nor_evict_programs_of_the_cluster(
    rollout: Rollout, cluster: Cluster
) -> None:
    """Beyond RBAC, whose rights are wider: the policies of the component refuse it, with their reason."""
    account = f"--as=system:serviceaccount:{SYSTEM}:bayplan"
    refused = cluster.kubectl("cordon", "r1-n1", account)
    assert "only what carries it is uncordoned" in refused.err, refused
    refused = cluster.kubectl("label", "node", "r1-n1", "own=yes", account)
    assert "of a node only the cordon" in refused.err, refused
    eviction = '{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a", "namespace": "%s"}}'
    for namespace in ("kube-system", SYSTEM):
        path = f"/api/v1/namespaces/{namespace}/pods/a/eviction"
        refused = cluster.kubectl("create", "--raw", path, "-f", "-", account, text=eviction % namespace)
        assert "namespaces of the cluster's own programs" in refused.err, refused
