"""Tests which reservation covers a bound pod: the one that it names, or the one that Kueue assigned."""

from __future__ import annotations

import pytest

from planner.manifests.pods.bound_pod import pod_from
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
