"""Pods that carry a copy of another namespace's reservation id are neighbours like any other pod."""

from __future__ import annotations

from planner.model.pod import BoundPod
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from planner.request.affinity.neighbours import neighbours_of
from tests.builders import amounts, gang, pod_set, racks, shape


def test_a_copied_id_hides_no_pod_from_the_gang_that_holds_it() -> None:
    """The gang does not take the pod for its own, and its own pods stay expected where they have seats."""
    group = gang(pod_set(2, shape(gpu=8)), name="research/Job/train")
    snapshot = racks(2, 2)
    reservation = reservation_for(snapshot, group, plan(snapshot, group))
    assert reservation is not None
    node = reservation.assignments[0].node

    def bound(name: str) -> set[tuple[str, bool]]:
        pod = BoundPod(name, node, amounts(gpu=1, pods=1), reservation=reservation.id)
        seen = snapshot.with_reservation(reservation).with_pod(pod)
        return {(neighbour.space, neighbour.bound) for neighbour in neighbours_of(seen, group)}

    assert ("storm", True) in bound("storm/thief")
    assert ("research", True) not in bound("research/train-0")
