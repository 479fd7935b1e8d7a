"""Any leader writes onto a workload the place that its gangs hold, if the workload names another one."""

from __future__ import annotations

from dataclasses import replace

import orjson

from planner.cluster.snapshot import Snapshot
from planner.model.podgroup import PodGroup
from tests.builders import gang, racks
from tests.webhook.kube.worlds import booked, work, world
from webhook.kube.controller.actions.place_notes import notes_of
from webhook.kube.controller.reconcile import reconcile
from webhook.kube.controller.steps import NotePlace
from webhook.kube.state.gangs import Work
from webhook.placement.stamp import PlacementAnnotation, placement_annotation
from webhook.workloads.keys.annotation_keys import PLACEMENT


def part(name: str) -> PodGroup:
    """A gang of one pod that holds what it uses."""
    return gang(1, name=f"default/Job/{name}", reserve="nodes")


def naming(snapshot: Snapshot, *groups: PodGroup) -> Work:
    """A Job with these gangs, whose annotation is what Bayplan writes for the places that they hold."""
    held = [(group, own) for group in groups if (own := snapshot.holding(group.name)) is not None]
    note = placement_annotation(notes_of(snapshot, held))
    return replace(work(groups[0]), gangs=groups, note=note)


def noted(snapshot: Snapshot, job: Work) -> bool:
    """Whether the place is due to be written onto the Job; nothing else is due."""
    actions = reconcile(world(snapshot, works=(job,)))
    assert all(isinstance(action, NotePlace) for action in actions)
    return bool(actions)


def test_a_job_that_names_its_place_is_not_written_again():
    """Neither for nodes nor for whole racks, nor for a Job whose gangs hold several places."""
    for group in (part("a"), gang(2, name="default/Job/a", required="rack")):
        snapshot = booked(racks(2, 2), group)
        assert not noted(snapshot, naming(snapshot, group))
    groups = part("a"), gang(2, name="default/Job/a/1", required="rack")
    snapshot = booked(racks(2, 2), *groups)
    assert not noted(snapshot, naming(snapshot, *groups))


def test_a_job_that_names_a_former_place_is_written_by_a_leader_that_did_not_move_it():
    """The former leader ended after it had reserved the new place, and before it wrote it onto the Job."""
    for group in (part("a"), gang(2, name="default/Job/a", required="rack")):
        snapshot = booked(racks(2, 2), group)
        former = naming(snapshot, group)
        gone = min(snapshot.reservations[0].touched)
        away = snapshot.without_node(gone)
        (move,) = reconcile(world(away, works=(former,)))
        assert noted(away.with_reservation(move.move.reservation), former)  # type: ignore[union-attr]


def test_a_job_of_which_a_replica_got_its_place_later_is_written():
    """It names the places of the others only."""
    groups = part("a"), replace(part("b"), name="default/Job/a/1")
    snapshot = booked(racks(2, 2), groups[0])
    earlier = naming(snapshot, *groups)
    assert noted(booked(snapshot, groups[1]), earlier)


def test_a_job_without_the_annotation_is_left_alone():
    """Somebody has removed it: nothing false is written there."""
    snapshot = booked(racks(1, 1), part("a"))
    assert not noted(snapshot, replace(work(part("a")), note=PlacementAnnotation()))


def test_the_annotation_that_the_controller_writes_is_read_back():
    """As JSON on the Job."""
    snapshot = booked(racks(1, 2), part("a"))
    text = notes_of(snapshot, [(part("a"), snapshot.reservations[0])])[PLACEMENT]
    assert orjson.loads(text)["nodes"] == list(snapshot.reservations[0].touched)
