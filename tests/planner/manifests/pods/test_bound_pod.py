"""Tests which reservation covers a bound pod: the one that it names, or the one that Kueue assigned."""

from __future__ import annotations

import pytest

from planner.manifests.pods.bound_pod import MOST_RESERVATIONS, RESERVATION_KEY, pod_from
from planner.model.errors import Where
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
