"""Tests which reservation covers a bound pod: the one that it names, or the one that Kueue assigned."""

from __future__ import annotations

import pytest

from planner.manifests.pods.bound_pod import MOST_RESERVATIONS, RESERVATION_KEY, pod_from
from planner.model.errors import Where
from planner.model.pod import BoundPod
from planner.model.reservation import reservation_id

OWN = {"bayplan.dev/reservation": "bp-own"}
OF_KUEUE = {"kueue.x-k8s.io/workload": "job-a"}
PLACED = {**OF_KUEUE, "kueue.x-k8s.io/podset-required-topology": "rack"}
ASSIGNED = reservation_id("research/KueueWorkload/job-a")


@pytest.mark.parametrize(
    ("annotations", "carried"),
    [
        ({}, ""),
        (OWN, "bp-own"),
        (OF_KUEUE, ""),
        ({**OWN, **OF_KUEUE}, "bp-own"),
        (PLACED, ASSIGNED),
        ({**OF_KUEUE, "kueue.x-k8s.io/podset-unconstrained-topology": "true"}, ASSIGNED),
        ({**OF_KUEUE, "kueue.x-k8s.io/podset-preferred-topology": "rack"}, ASSIGNED),
        ({**OWN, **PLACED}, f"bp-own,{ASSIGNED}"),
    ],
)
def test_a_pod_takes_the_place_that_it_names_and_that_which_kueue_assigned(
    annotations: dict[str, str], carried: str
) -> None:
    """Kueue names its Workload on each pod that it admits; without a topology it chooses no node."""
    metadata = {"name": "p", "namespace": "research", "annotations": annotations}
    pod = pod_from({"metadata": metadata, "spec": {"nodeName": "n1"}, "status": {}}, Where())
    assert pod is not None
    assert pod.reservation == carried


def test_a_pod_with_thousands_of_reservation_ids_has_none() -> None:
    """Its owner wrote them: each would be looked up with every change on the pod's node, in each replica."""

    def ids(count: int) -> list[str]:
        text = ",".join(f"bp-{n}" for n in range(count))
        metadata = {"name": "a", "annotations": {RESERVATION_KEY: text}}
        pod = pod_from({"metadata": metadata, "spec": {"nodeName": "n", "containers": []}}, Where())
        assert pod is not None
        return list(filter(None, pod.reservation.split(",")))

    assert len(ids(MOST_RESERVATIONS)) == MOST_RESERVATIONS
    assert ids(MOST_RESERVATIONS + 1) == []


@pytest.mark.parametrize("controller", [True, False])
def test_a_pod_of_a_daemon_set_is_one_that_it_controls(controller: bool) -> None:
    """Anybody may name a DaemonSet among the owners of a pod; its node would count as free."""
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "controller": controller}
    metadata = {"name": "a", "ownerReferences": [owner]}
    pod = pod_from({"metadata": metadata, "spec": {"nodeName": "n", "containers": []}}, Where())
    assert pod is not None
    assert pod.daemon is controller


def replica(name: str, gpus: int = 4) -> BoundPod:
    """A bound pod of a ReplicaSet, with texts of its own, as if decoded from JSON."""
    metadata = {"name": name, "labels": {"app": "".join(("ser", "ve"))}}
    limits = {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": str(gpus)}
    spec = {"nodeName": "n1", "containers": [{"name": "main", "resources": {"limits": limits}}]}
    pod = pod_from({"metadata": metadata, "spec": spec, "status": {}}, Where())
    assert pod is not None
    return pod


def test_pods_of_one_template_share_the_memory_of_their_amounts_and_labels() -> None:
    first, second = replica("serve-1"), replica("serve-2")
    assert second.requests is first.requests
    assert second.labels is first.labels


def test_pods_that_request_other_amounts_share_only_their_labels() -> None:
    first, second = replica("serve-1"), replica("serve-2", gpus=8)
    assert (first.requests["nvidia.com/gpu"], second.requests["nvidia.com/gpu"]) == (4, 8)
    assert second.labels is first.labels


def test_a_pod_with_a_time_of_deletion_is_terminating() -> None:
    """The API server writes `deletionTimestamp` when the deletion is asked for; the pod ends later."""

    def terminating(**metadata: object) -> bool:
        pod = pod_from({"metadata": {"name": "p", **metadata}, "spec": {"nodeName": "n"}}, Where())
        return pod is not None and pod.terminating

    assert not terminating()
    assert terminating(deletionTimestamp="2026-11-23T00:30:00Z")
