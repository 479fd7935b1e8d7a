"""The sentence about a topology spread constraint counts the room for pods as the search does."""

from __future__ import annotations

from dataclasses import replace

from planner.model.labels import Requirement
from planner.model.pod import SpreadConstraint
from planner.planning.plan import plan
from tests.planner.devices.test_catalog import claiming, cluster, node, slice_of, template

ZONE = "topology.kubernetes.io/zone"


def test_the_room_for_pods_with_claims_is_that_of_the_devices() -> None:
    """Zone z1 has four GPUs to claim and z2 one, so z1 may have two of the four pods."""
    snapshot = cluster(
        node("a", **{ZONE: "z1"}),
        node("b", **{ZONE: "z2"}),
        slice_of("a", 4),
        slice_of("b", 1),
        template(1),
    )
    group = claiming(4)
    (pod_set,) = group.pod_sets
    spread = SpreadConstraint(ZONE, 1, (Requirement("app", "In", ("a",)),))
    shape = replace(pod_set.shape, labels={"app": "a"}, spread=(spread,))
    answer = plan(snapshot, replace(group, pod_sets=(replace(pod_set, shape=shape),)))
    assert "zone z2 has 0 such pods and room for 1, so that no zone may have more than 2." in answer.message
