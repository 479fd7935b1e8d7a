"""Tests the GPUs per namespace: those of gangs and of other pods, on the nodes that a gang may use."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.census.namespaces import contested_gpus, gpus_by_node, gpus_of_namespaces
from planner.cluster.snapshot import Snapshot
from planner.model.pod import BoundPod
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import amounts, cluster, gang, pod_set, racks, shape
from tests.effort import calls

TWO_KINDS = """
    r1: a b
    r2: c d
    r3: t u   gpu=2 pool=1
"""
"""Four nodes of eight GPUs, and two of two."""


def uses(name: str, node: str, gpus: int, reservation: str = "") -> BoundPod:
    """A pod on a node."""
    return BoundPod(name, node, amounts(gpu=gpus, pods=1), reservation)


def holding(snapshot: Snapshot, pods: int, *, name: str, reserve: str = "nodes", gpu: int = 8) -> Snapshot:
    """The cluster with the gang's reservation."""
    group = gang(pods, name=name, gpu=gpu, required="rack", reserve=reserve)  # type: ignore[arg-type]
    held = reservation_for(snapshot, group, plan(snapshot, group))
    assert held is not None
    return snapshot.with_reservation(held)


def namespaces(snapshot: Snapshot, gpu: int = 8) -> dict[str, int]:
    """The GPUs of each namespace among those that a gang of pods of this size may use."""
    return dict(gpus_of_namespaces(snapshot, contested_gpus(snapshot, gang(1, gpu=gpu))))


def test_a_namespace_has_what_its_gangs_hold_and_its_pods_use() -> None:
    """Research holds two nodes and has a pod beside them."""
    snapshot = holding(cluster(TWO_KINDS, pods=[uses("research/p", "c", 3)]), 2, name="research/Job/train")
    assert namespaces(snapshot) == {"research": 19}


def test_of_a_node_that_is_held_whole_all_gpus_count() -> None:
    """One GPU is in use on two nodes that are reserved whole."""
    snapshot = holding(cluster(TWO_KINDS), 1, name="research/Job/train", gpu=1, reserve="domain")
    assert namespaces(snapshot, gpu=1) in ({"research": 8}, {"research": 2})


def test_a_pod_of_a_gang_that_holds_its_place_counts_once() -> None:
    """Its GPUs are those that are held; one more than these counts by itself."""
    snapshot = holding(cluster(TWO_KINDS), 1, name="research/Job/train", gpu=4)
    (held,) = snapshot.reservations
    (node,) = held.touched
    assert namespaces(snapshot.with_pod(uses("research/p", node, 4, held.id))) == {"research": 4}
    assert namespaces(snapshot.with_pod(uses("research/p", node, 6, held.id))) == {"research": 6}


def test_gpus_that_a_gang_cannot_use_are_not_contested() -> None:
    """Its pods do not fit on the nodes that inference uses."""
    snapshot = cluster(TWO_KINDS, pods=[uses("inference/p", "t", 2), uses("inference/q", "a", 1)])
    assert contested_gpus(snapshot, gang(1, gpu=8)).total == 32
    assert namespaces(snapshot, gpu=8) == {"inference": 1}
    assert contested_gpus(snapshot, gang(1, gpu=2)).total == 36
    assert namespaces(snapshot, gpu=2) == {"inference": 3}


def test_a_selector_rules_out_nodes_of_the_same_kind() -> None:
    """The gang selects the first rack only."""
    group = gang(pod_set(1, shape(gpu=8, selector={"rack": "r1"})))
    assert contested_gpus(cluster(TWO_KINDS), group).total == 16


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdtu"), st.integers(0, 2), st.sampled_from(("x", "y"))), max_size=12
    )
)
def test_what_was_counted_before_a_change_is_never_taken_for_what_is(
    changes: list[tuple[str, int, str]],
) -> None:
    """Pods come and go; after each the count is that of a cluster that is looked at for the first time."""
    snapshot = holding(cluster(TWO_KINDS), 1, name="x/Job/held")
    for node, gpus, space in changes:
        pod = uses(f"{space}/{node}", node, gpus)
        snapshot = snapshot.with_pod(pod) if gpus else snapshot.without_pod(pod)
        fresh = cluster(TWO_KINDS, pods=tuple(snapshot.bound), reservations=snapshot.reservations)
        assert gpus_by_node(snapshot) == gpus_by_node(fresh)
        assert namespaces(snapshot, gpu=1) == namespaces(fresh, gpu=1)
        drained = replace(snapshot.nodes[node], cordoned=not snapshot.nodes[node].cordoned)
        snapshot = snapshot.with_node(drained)


def calls_after_a_change(count: int) -> int:
    """The calls for a new census after one more pod, in a cluster of this many racks of eight used nodes."""
    snapshot = racks(count, 8)
    for number, node in enumerate(snapshot.nodes):
        snapshot = snapshot.with_pod(uses(f"x/{number}", node, 1))
    gpus_by_node(snapshot)
    later = snapshot.with_pod(uses("y/new", next(iter(snapshot.nodes)), 1))
    return calls(lambda: gpus_by_node(later))


def test_after_a_change_only_nodes_that_changed_are_counted_again() -> None:
    """A cluster with four times as many nodes costs no more."""
    assert calls_after_a_change(80) < 1.5 * calls_after_a_change(20)
