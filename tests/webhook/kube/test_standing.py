"""Who holds a place and who waits, as it is told from outside: the same as the controller decides.

Two racks of two nodes with eight GPUs each, and Jobs of two whole nodes in one rack.
"""

from __future__ import annotations

from dataclasses import replace

from planner.model.pod import BoundPod
from planner.model.podgroup import PodGroup
from planner.model.reservation import Book, reservation_id
from tests.builders import amounts, gang, of_class, racks, with_classes
from tests.webhook.kube.state.test_workload_watch import watch_of
from tests.webhook.kube.worlds import NOW, booked, pod, work, world
from webhook.kube.controller.world import no_namespace, world_of
from webhook.kube.gang_standing import GangStanding, standings
from webhook.placement.stamp import PlacementAnnotation


def job(name: str) -> PodGroup:
    """A gang of two whole nodes in one rack."""
    return gang(2, name=f"default/Job/{name}", required="rack")


def rows(gangs: tuple[GangStanding, ...]) -> list[tuple[str, str, int]]:
    """Name, state and position of each."""
    return [(gang.name.split("/")[2], gang.state, gang.position) for gang in gangs]


def test_a_gang_whose_pods_are_on_nodes_runs() -> None:
    """Its pods name its reservation."""
    snapshot = booked(racks(2, 2), job("a"))
    name = reservation_id("default/Job/a")
    pods = tuple(
        BoundPod(f"default/a-{part.node}", part.node, amounts(gpu=8), reservation=name)
        for part in snapshot.reservations[0].assignments
    )
    (running,) = standings(world(replace(snapshot, pods=pods), works=(work(job("a")),)))
    assert (running.state, running.bound, running.pods, running.gpus) == ("running", 2, 2, 16)


def test_a_pod_that_ends_beside_its_successor_is_one_too_many_and_no_third_of_two() -> None:
    """It uses its node until it is gone; the gang's pods are counted up to its size, and the rest apart."""
    snapshot = booked(racks(2, 2), job("a"))
    name, (first, second) = reservation_id("default/Job/a"), snapshot.reservations[0].assignments
    nodes = {"a-0": first.node, "a-1": second.node, "a-1-again": second.node}
    pods = tuple(
        BoundPod(f"default/{pod}", node, amounts(gpu=4), reservation=name) for pod, node in nodes.items()
    )
    (gang_now,) = standings(world(replace(snapshot, pods=pods), works=(work(job("a")),)))
    assert (gang_now.state, gang_now.bound, gang_now.surplus, gang_now.pods) == ("running", 2, 1, 2)
    assert gang_now.to_json()["pods"] == {"wanted": 2, "bound": 2, "gated": 0, "surplus": 1}


def test_a_gang_with_a_place_whose_pods_are_still_to_be_bound_starts() -> None:
    """Those at the gate are counted."""
    snapshot = booked(racks(2, 2), job("a"))
    (starting,) = standings(world(snapshot, works=(work(job("a")),), pods=(pod("a-0", "a"),)))
    assert (starting.state, starting.bound, starting.gated) == ("starting", 0, 1)


def test_those_that_wait_come_by_priority_then_age() -> None:
    """Each with what it waits for; both racks are held."""
    snapshot = with_classes(booked(racks(2, 2), job("a"), job("b")), urgent=100)
    works = (
        work(job("a")),
        work(job("b")),
        work(job("young"), queued=True, created=20.0),
        work(job("old"), queued=True, created=10.0),
        work(of_class(job("urgent"), "urgent"), queued=True, created=30.0),
    )
    gangs = standings(world(snapshot, works=works))
    assert rows(gangs) == [
        ("a", "starting", 0),
        ("b", "starting", 0),
        ("urgent", "waiting", 1),
        ("old", "waiting", 2),
        ("young", "waiting", 3),
    ]
    urgent = gangs[2]
    assert urgent.priority == 100
    assert urgent.answer is not None
    assert urgent.answer.decision == "queued"
    assert urgent.answer.message


def test_a_gang_that_waits_before_evictions_has_no_position_and_names_those_that_start() -> None:
    """Its pods are at the gate, because both racks are held by gangs that have not started."""
    snapshot = booked(racks(2, 2), job("a"), job("b"))
    note = PlacementAnnotation("queued", waits_for_eviction=True)
    works = (work(job("a")), work(job("b")), work(job("high")))
    gangs = standings(world(snapshot, works=works, pods=(pod("high-0", "high", notes=(note,)),)))
    assert rows(gangs)[2:] == [("high", "waiting", 0)]
    assert gangs[2].to_json()["position"] is None
    assert gangs[2].waits_for(wide=True).endswith("These gangs are default/Job/a, default/Job/b")


def test_a_gang_for_which_there_is_room_is_let_in_now() -> None:
    """It no longer waits and has no position."""
    snapshot = booked(racks(2, 2), job("a"))
    gangs = standings(world(snapshot, works=(work(job("a")), work(job("b"), queued=True))))
    assert rows(gangs) == [("a", "starting", 0), ("b", "admitted", 0)]


def test_a_place_in_a_namespace_that_is_not_enforced_any_more_is_not_told() -> None:
    """Its Job is still starting and no pod is there: the reservation alone names the namespace."""
    book = Book(1, booked(racks(2, 2), job("a")).reservations)
    enforced = world_of(racks(2, 2), book, watch_of(), NOW, observed=no_namespace)
    assert rows(standings(enforced)) == [("a", "starting", 0)]
    in_audit = world_of(racks(2, 2), book, watch_of(), NOW, observed=frozenset)
    assert standings(in_audit) == ()


def test_what_its_gang_needs_no_more_is_not_told() -> None:
    """The controller releases it in the same round."""
    snapshot = booked(racks(2, 2), job("a"))
    assert standings(world(snapshot, works=(work(job("a"), finished=True),))) == ()
