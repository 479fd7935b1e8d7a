"""Tests the comparison of a gang's pods with its plan, and of a measurement with the model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.bandwidth.model import all_reduce
from planner.bandwidth.nccl_tests import Measurement, NcclRun
from planner.bandwidth.verification import compare_measurement, verify
from planner.cluster.snapshot import Snapshot
from planner.model.pod import BoundPod
from planner.model.reservation import Reservation
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import amounts, cluster, gang


def held_and_bound(*nodes: str) -> tuple[Snapshot, Reservation]:
    """A gang of two pods of 8 GPUs that holds a and b of rack r1, with pods on these nodes."""
    empty = cluster("r1: a b\nr2: c d")
    group = gang(2, required="rack")
    held = reservation_for(empty, group, plan(empty, group))
    assert held is not None
    snapshot = empty.with_reservation(held)
    for index, node in enumerate(nodes):
        requests = amounts(gpu=8) | {"pods": 1}
        snapshot = snapshot.with_pod(BoundPod(f"default/p{index}", node, requests, reservation=held.id))
    return snapshot, held


def test_pods_where_they_were_planned_are_as_planned():
    """Each of two pods is on its planned node."""
    verified = verify(*held_and_bound("a", "b"))
    assert verified.as_planned
    assert verified.layout is not None
    assert verified.layout.gpus == (8, 8)


def test_a_pod_elsewhere_is_seen_and_the_model_is_asked_about_where_it_is():
    """Both on one rack's node and another's."""
    verified = verify(*held_and_bound("a", "c"))
    assert not verified.as_planned
    assert [(seat.node, seat.planned, seat.bound) for seat in verified.seats] == [
        ("a", 1, 1),
        ("b", 1, 0),
        ("c", 0, 1),
    ]
    assert set(verified.gpus) == {"a", "c"}


def test_while_pods_wait_the_model_is_asked_about_the_plan():
    """One pod is on no node yet."""
    verified = verify(*held_and_bound("a"))
    assert (verified.waiting, set(verified.gpus)) == (1, {"a", "b"})


def test_another_gangs_pods_do_not_count():
    """They have another reservation id."""
    snapshot, held = held_and_bound("a", "b")
    other = BoundPod("default/other", "c", amounts(gpu=1) | {"pods": 1}, reservation="bp-other")
    assert verify(snapshot.with_pod(other), held).as_planned


def test_one_gpu_has_nothing_to_measure():
    """The model describes links between GPUs."""
    snapshot, held = held_and_bound()
    single = replace(held, requests=(("worker", amounts(gpu=0)),))
    assert verify(snapshot, single).layout is None


def test_the_job_asks_for_the_network_devices_of_the_gang():
    """As many beside each GPU."""
    snapshot, held = held_and_bound()
    with_rdma = replace(held, requests=(("worker", {**amounts(gpu=8, cpu=4), "rdma/ib": 4, "pods": 1}),))
    assert verify(snapshot, with_rdma).devices_per_gpu == {"rdma/ib": 0.5}


def test_a_measurement_is_compared_with_the_estimate_for_the_same_size():
    """The estimate is not adapted to the measurement."""
    layout = verify(*held_and_bound("a", "b")).layout
    assert layout is not None
    size = 2**30
    expected = all_reduce((8, 8), size, layout.rates.links)
    comparison = compare_measurement(
        layout, NcclRun(16, (Measurement(size, 0.01, expected.bus_bandwidth / 2, 0),))
    )
    assert comparison.model == expected
    assert comparison.share == pytest.approx(0.5)
