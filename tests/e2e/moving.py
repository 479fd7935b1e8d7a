"""A set-up for moves: two racks half used by Jobs that may be restarted, and a gang that waits for a whole
rack.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.api import Json
from tests.e2e.binaries import ROOT
from tests.e2e.conftest import policy_set
from tests.e2e.fleet import Fleet
from tests.e2e.processes import wait_until
from tests.e2e.replicas import job, nodes, reservations
from tests.e2e.rollout import SYSTEM, Rollout
from tests.e2e.serving import empty
from tests.e2e.stage import Cluster

JOBS = "/apis/batch/v1/namespaces/research/jobs"
PODS = "/api/v1/namespaces/research/pods"
EVENTS = "/api/v1/namespaces/research/events"
BUDGETS = "/apis/policy/v1/namespaces/research/poddisruptionbudgets"
NODES = "/api/v1/nodes"
PARAMETERS = f"/api/v1/namespaces/{SYSTEM}/configmaps/bayplan-parameters"
COMPONENT = ROOT / "manifests" / "components" / "defragmentation"
MARK = "bayplan.dev/defragmentation"
ON = {"defrag.after-seconds": "3", "defrag.every-seconds": "5"}


@contextmanager
def moving(cluster: Cluster, folder: Path, *, hosts: int) -> Iterator[Rollout]:
    """An installation on two racks of this many nodes, with the permission to cordon and evict; no replica
    runs yet.
    """
    fleet = Fleet(cluster.api)
    installed = Rollout(cluster, folder, policy_set("default-scheduler", folder))
    rights = str(COMPONENT / "rbac.yaml")
    try:
        fleet.make(nodes(2, hosts))
        installed.install()
        assert cluster.kubectl("apply", "-f", rights).status == 0
        yield installed
    finally:
        cluster.kubectl("delete", "-f", rights, "--ignore-not-found")
        installed.uninstall()
        fleet.remove()


@contextmanager
def a_gang_that_waits_for_moves(rollout: Rollout, *, hosts: int) -> Iterator[None]:
    """Jobs x1, x2, … use half of one rack and y1, y2, … half of the other; Job big waits for a whole rack.
    Afterwards all Jobs are deleted and no node is cordoned.
    """
    api = rollout.api
    chosen(rollout, {})
    half = range(1, hosts // 2 + 1)
    for name in [f"{letter}{number}" for letter in ("x", "filler", "y") for number in half]:
        body = job(name, 1)
        body["metadata"] |= {"labels": {"bayplan.dev/restartable": "true"}}
        body["metadata"]["annotations"]["bayplan.dev/reserve"] = "nodes"
        body["spec"]["template"]["metadata"] = {"labels": {"app": name}}
        api.create(JOBS, body)
        bound(rollout, name, 1)
    for number in half:
        api.delete(f"{JOBS}/filler{number}")
    held = {f"research/Job/{letter}{number}" for letter in "xy" for number in half}
    wait_until(lambda: set(reservations(api)) == held, "two halves")
    api.create(JOBS, job("big", hosts))
    wait_until(lambda: "Queued" in event_messages(rollout, "big"), "the gang to wait", 60)
    yield
    chosen(rollout, {})
    empty(api, BUDGETS, JOBS)
    wait_until(lambda: not cordoned(rollout), "the nodes to be uncordoned", 60)


def chosen(rollout: Rollout, parameters: dict[str, str]) -> None:
    """Sets these parameters for moves, and no others."""
    data: Json = {key: parameters.get(key) for key in ("defrag.after-seconds", "defrag.every-seconds")}
    rollout.api.merge(PARAMETERS, {"data": data})


def pods_of(rollout: Rollout, name: str) -> list[Json]:
    """The pods of a Job that are not being deleted."""
    listed = rollout.api.items(PODS, labelSelector=f"job-name={name}")
    return [pod for pod in listed if "deletionTimestamp" not in pod["metadata"]]


def bound(rollout: Rollout, name: str, count: int) -> list[Json]:
    """Waits until this many pods of a Job are bound."""
    wait_until(
        lambda: sum("nodeName" in pod["spec"] for pod in pods_of(rollout, name)) == count,
        f"{name} to run",
        90,
    )
    return pods_of(rollout, name)


def event_messages(rollout: Rollout, name: str) -> dict[str, str]:
    """The messages of the events on a Job, by reason."""
    selector = f"involvedObject.kind=Job,involvedObject.name={name}"
    uids = {item["metadata"]["uid"] for item in rollout.api.items(JOBS)}
    events = rollout.api.items(EVENTS, fieldSelector=selector)
    return {
        event["reason"]: event["message"] for event in events if event["involvedObject"].get("uid") in uids
    }


def cordoned(rollout: Rollout) -> set[str]:
    """The unschedulable nodes."""
    return {
        node["metadata"]["name"]
        for node in rollout.api.items(NODES)
        if node["spec"].get("unschedulable") or MARK in (node["metadata"].get("annotations") or {})
    }
