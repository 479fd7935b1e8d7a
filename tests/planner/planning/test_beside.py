"""Further seats of a gang whose pods are bound by rules to the pods on the seats that it keeps."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.model.labels import Requirement
from planner.model.pod import PodTerm
from planner.model.podgroup import PodGroup, PodSet
from planner.model.topology import HOSTNAME
from planner.planning.beside import beside
from planner.planning.plan import plan
from planner.planning.replay import fingerprint
from planner.planning.reservation import reservation_for
from tests.builders import gang, node, shape, topology


def cluster() -> Snapshot:
    """Two racks of two nodes with four GPUs each; the first node of each rack is on power supply u1."""
    names = [("r1", 1), ("r1", 2), ("r2", 1), ("r2", 2)]
    nodes = [node(f"{rack}-{n}", labels={"rack": rack, "ups": f"u{n}"}, gpu=4) for rack, n in names]
    return snapshot(nodes, [topology("rack")])


def pods(count: int, key: str, *, near: bool) -> PodGroup:
    """A gang with pod affinity, or anti-affinity, to its own pods."""
    term = PodTerm(key, (Requirement("app", "In", ("train",)),), attracts=near)
    return gang(
        PodSet("worker", count, replace(shape(gpu=1), labels={"app": "train"}, terms=(term,))),
        reserve="nodes",
    )


def grown(before: PodGroup, after: PodGroup) -> Counter[str] | None:
    """The number of seats by node after the gang has grown, None if there is no room beside its seats."""
    moment = cluster()
    held = reservation_for(moment, before, plan(moment, before))
    assert held is not None
    added = {"worker": after.size - before.size}
    outcome = beside(moment, after, replace(held, fingerprint=fingerprint(after)), added)
    seats = () if outcome is None else outcome.assignments
    return sum((Counter({seat.node: seat.count}) for seat in seats), Counter()) or None


@pytest.mark.parametrize(
    ("key", "before", "after", "seats"),
    [
        ("rack", 7, 8, {"r1-1": 4, "r1-2": 4}),
        ("rack", 8, 9, None),
        ("ups", 7, 8, {"r1-1": 4, "r2-1": 4}),
        ("ups", 8, 9, None),
        (HOSTNAME, 3, 4, {"r1-1": 4}),
        (HOSTNAME, 4, 5, None),
    ],
)
def test_further_pods_with_affinity_to_their_gang_get_seats_in_its_domain_only(key, before, after, seats):
    """In another domain they could never be bound, as the pods that they must be near are not there."""
    assert grown(pods(before, key, near=True), pods(after, key, near=True)) == seats


@pytest.mark.parametrize(("before", "after", "seats"), [(1, 2, {"r1-1": 1, "r2-1": 1}), (2, 3, None)])
def test_further_pods_stay_apart_from_those_of_their_gang(before, after, seats):
    """There are two racks, each for one of the pods."""
    assert grown(pods(before, "rack", near=False), pods(after, "rack", near=False)) == seats
