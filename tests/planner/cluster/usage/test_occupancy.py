"""A gang's reservation covers its bound pods, assignment by assignment, and nothing else."""

from __future__ import annotations

from planner.cluster.snapshot import Snapshot
from planner.model.pod import BoundPod
from planner.model.podgroup import Assignment
from planner.model.reservation import Reservation
from tests.builders import GPU, amounts, cluster

HELD = Reservation(
    id="bp-x",
    gang="a/Job/train",
    topology="topo",
    level="",
    domain=(),
    mode="nodes",
    domains=(),
    nodes=frozenset(),
    assignments=(Assignment("main", "n1", 1),),
    requests=(("main", {GPU: 4, "pods": 1}),),
    fingerprint="f",
)


def taken(*pods: BoundPod) -> tuple[int, int]:
    """GPUs that are used on n1 and n2; train has one assignment of 4 GPUs on n1."""
    snapshot: Snapshot = cluster("r1: n1 n2", pods=pods, reservations=[HELD])
    return snapshot.taken_on("n1").get(GPU, 0), snapshot.taken_on("n2").get(GPU, 0)


def pod(name: str, node: str, gpus: int = 4) -> BoundPod:
    """A bound pod with the annotation of train's reservation."""
    return BoundPod(name, node, amounts(gpu=gpus, pods=1), reservation="bp-x")


def test_a_seat_is_taken_before_its_pod_comes_and_not_twice_after() -> None:
    """Four GPUs are in use with the pod and without it."""
    assert taken() == (4, 0)
    assert taken(pod("a/train-0", "n1")) == (4, 0)


def test_a_pod_beside_its_seat_uses_what_it_uses() -> None:
    """The place stays reserved, and the pod's node is not counted as free."""
    assert taken(pod("a/train-0", "n2", gpus=8)) == (4, 8)


def test_one_pod_too_many_is_counted() -> None:
    """A second pod is on the node of one reserved place."""
    assert taken(pod("a/train-0", "n1"), pod("a/train-1", "n1")) == (8, 0)


def test_a_pod_that_uses_more_than_its_seat_is_counted_for_the_rest() -> None:
    """Four of its six GPUs are reserved."""
    assert taken(pod("a/train-0", "n1", gpus=6)) == (6, 0)


def test_an_id_copied_into_another_namespace_covers_nothing() -> None:
    """Anybody can write the annotation."""
    assert taken(pod("b/thief", "n1")) == (8, 0)
