"""The leader moves others for a gang that waits for long: with the component's rights, and no more."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.e2e.api import Json
from tests.e2e.binaries import ROOT
from tests.e2e.conftest import policy_set
from tests.e2e.fleet import Fleet
from tests.e2e.processes import wait_until
from tests.e2e.replicas import job, nodes, racks_of, reservations
from tests.e2e.rollout import SYSTEM, Rollout
from tests.e2e.stage import Cluster
from webhook.kube.moving.defragmenter import LOOK_SECONDS

JOBS = "/apis/batch/v1/namespaces/research/jobs"
PODS = "/api/v1/namespaces/research/pods"
EVENTS = "/api/v1/namespaces/research/events"
BUDGETS = "/apis/policy/v1/namespaces/research/poddisruptionbudgets"
NODES = "/api/v1/nodes"
PARAMETERS = f"/api/v1/namespaces/{SYSTEM}/configmaps/bayplan-parameters"
COMPONENT = ROOT / "manifests" / "components" / "defragmentation"
MARK = "bayplan.dev/defragmentation"
ON = {"defrag.after-seconds": "3", "defrag.every-seconds": "5"}


@pytest.fixture(scope="module")
def rollout(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rollout]:
    """A replica over two racks of two nodes, which may cordon and evict."""
    folder = tmp_path_factory.mktemp("moves")
    fleet = Fleet(cluster.api)
    installed = Rollout(cluster, folder, policy_set("default-scheduler", folder))
    rights = str(COMPONENT / "rbac.yaml")
    try:
        fleet.make(nodes(2, 2))
        installed.install()
        assert cluster.kubectl("apply", "-f", rights).status == 0
        installed.add()
        yield installed
    finally:
        cluster.kubectl("delete", "-f", rights, "--ignore-not-found")
        installed.uninstall()
        fleet.remove()


@pytest.fixture(autouse=True)
def halves(rollout: Rollout) -> Iterator[None]:
    """A node of each rack is used by a Job that may be restarted, and a gang of a whole rack waits."""
    api = rollout.api
    chosen(rollout, {})
    for name in ("x", "filler", "y"):
        body = job(name, 1)
        body["metadata"] |= {"labels": {"bayplan.dev/restartable": "true"}}
        body["metadata"]["annotations"]["bayplan.dev/reserve"] = "nodes"
        body["spec"]["template"]["metadata"] = {"labels": {"app": name}}
        api.create(JOBS, body)
        bound(rollout, name, 1)
    api.delete(f"{JOBS}/filler")
    wait_until(lambda: set(reservations(api)) == {"research/Job/x", "research/Job/y"}, "two halves")
    api.create(JOBS, job("big", 2))
    wait_until(lambda: "Queued" in event_messages(rollout, "big"), "the gang to wait", 60)
    yield
    chosen(rollout, {})
    for name in [item["metadata"]["name"] for item in api.items(BUDGETS)]:
        api.delete(f"{BUDGETS}/{name}")
    for item in api.items(JOBS):
        api.delete(f"{JOBS}/{item['metadata']['name']}")
    wait_until(lambda: not api.items(PODS), "the pods to go", 60)
    wait_until(lambda: not reservations(api), "the reservations to go", 60)
    wait_until(lambda: not cordoned(rollout), "the nodes to be uncordoned", 60)


def chosen(rollout: Rollout, parameters: dict[str, str]) -> None:
    """These parameters for moves, and no other."""
    data: Json = {key: parameters.get(key) for key in ("defrag.after-seconds", "defrag.every-seconds")}
    rollout.api.merge(PARAMETERS, {"data": data})


def pods_of(rollout: Rollout, name: str) -> list[Json]:
    """A Job's pods that are not being deleted."""
    listed = rollout.api.items(PODS, labelSelector=f"job-name={name}")
    return [pod for pod in listed if "deletionTimestamp" not in pod["metadata"]]


def bound(rollout: Rollout, name: str, count: int) -> list[Json]:
    """Wait until so many of a Job's pods are on nodes."""
    wait_until(
        lambda: sum("nodeName" in pod["spec"] for pod in pods_of(rollout, name)) == count,
        f"{name} to run",
        90,
    )
    return pods_of(rollout, name)


def event_messages(rollout: Rollout, name: str) -> dict[str, str]:
    """What the events on a Job say, by reason."""
    selector = f"involvedObject.kind=Job,involvedObject.name={name}"
    uids = {item["metadata"]["uid"] for item in rollout.api.items(JOBS)}
    events = rollout.api.items(EVENTS, fieldSelector=selector)
    return {
        event["reason"]: event["message"] for event in events if event["involvedObject"].get("uid") in uids
    }


def cordoned(rollout: Rollout) -> set[str]:
    """The nodes that no pod may come to."""
    return {
        node["metadata"]["name"]
        for node in rollout.api.items(NODES)
        if node["spec"].get("unschedulable") or MARK in (node["metadata"].get("annotations") or {})
    }


def test_a_rack_is_freed_for_the_gang_once_the_parameter_says_so(rollout: Rollout) -> None:
    """Off, nothing moves. Then one of the two Jobs does, is told so, and the gang has its rack."""
    before = {pod["metadata"]["uid"] for name in ("x", "y") for pod in pods_of(rollout, name)}
    time.sleep(2 * LOOK_SECONDS)  # two looks of the leader, which did nothing
    assert {pod["metadata"]["uid"] for name in ("x", "y") for pod in pods_of(rollout, name)} == before
    assert "Defragmenting" not in event_messages(rollout, "big")

    chosen(rollout, ON)
    (rack,) = racks_of(bound(rollout, "big", 2))
    small_pods = [*bound(rollout, "x", 1), *bound(rollout, "y", 1)]
    assert racks_of(small_pods) == {"r1", "r2"} - {rack}
    assert len(before - {pod["metadata"]["uid"] for pod in small_pods}) == 1
    wait_until(lambda: not cordoned(rollout), "the nodes to be uncordoned", 30)
    wait_until(lambda: "Defragmented" in event_messages(rollout, "big"), "the gang to be told", 30)
    assert "GPU-hours of work are lost" in event_messages(rollout, "big")["Defragmenting"]
    moved = [name for name in ("x", "y") if "Defragmented" in event_messages(rollout, name)]
    assert len(moved) == 1
    assert (
        "1 pod evicted to make room for research/Job/big" in event_messages(rollout, moved[0])["Defragmented"]
    )


def test_a_budget_that_allows_nothing_keeps_all_where_it_is_and_is_named(rollout: Rollout) -> None:
    """The gang is told why it goes on waiting; without the budget it has its place."""
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["x", "y"]}]}
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
