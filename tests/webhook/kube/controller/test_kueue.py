"""Gangs whose pods wait at Kueue's gate: Bayplan queues them once Kueue has admitted them, not before."""

from __future__ import annotations

from dataclasses import replace

from planner.model.errors import Where
from tests.builders import gang, racks
from tests.webhook.kube.worlds import pod, work, world
from tests.webhook.workloads import objects as o
from webhook.kube.controller.reconcile import reconcile
from webhook.kube.controller.steps import Admit, LeftUnbound
from webhook.kube.state.gangs import unbound_from, work_from
from webhook.kube.state.gathering import gangs_of
from webhook.workloads.keys.annotation_keys import QUEUED_GATE

GROUP = gang(2, name="default/Job/a", required="rack")
AT_KUEUES = pod("a-0", "a", held_back=True)
THROUGH = pod("a-1", "a")


def test_a_gang_is_planned_once_all_of_its_pods_have_passed_kueues_gate() -> None:
    """Its place would be idle while Kueue waits for quota; then it is let in at once."""
    snapshot = racks(2, 2)
    job = work(GROUP, queued=True)
    (left_unbound,) = reconcile(world(snapshot, works=(job,), pods=(AT_KUEUES, THROUGH)))
    assert isinstance(left_unbound, LeftUnbound)
    (admitted,) = reconcile(
        world(snapshot, works=(job,), pods=(replace(AT_KUEUES, held_back=False), THROUGH))
    )
    assert isinstance(admitted, Admit)


def test_a_set_of_kueues_whose_pods_have_not_come_waits_for_them() -> None:
    """Nobody knows yet whether Kueue admits it."""
    set_of_kueues = replace(work(GROUP, queued=True), kueue=True)
    assert reconcile(world(racks(2, 2), works=(set_of_kueues,))) == []


def test_a_gang_that_kueue_holds_up_keeps_nobody_waiting() -> None:
    """The room that it will need is not kept for it."""
    (held_up,) = gangs_of((work(GROUP, queued=True),), (AT_KUEUES,)).values()
    (through,) = gangs_of((work(GROUP, queued=True),), (THROUGH,)).values()
    assert (held_up.waits, through.waits) == (False, True)


def test_kueues_gate_and_queue_are_read_from_what_is_stored() -> None:
    """Of pods the gate `kueue.x-k8s.io/admission`, of sets the queue's label; a Job is suspended instead."""
    stored = o.annotated(o.POD, {})
    stored["spec"]["schedulingGates"] = [{"name": QUEUED_GATE}, {"name": "kueue.x-k8s.io/admission"}]
    waiting = unbound_from(stored, Where())
    assert waiting is not None
    assert (waiting.gated, waiting.held_back) == (True, True)
    for obj, gates_pods in ((o.LWS, True), (o.JOB, False)):
        labelled = o.changed(o.annotated(obj, {}), ("metadata", "labels"), {"kueue.x-k8s.io/queue-name": "q"})
        read = work_from(labelled, Where(), obj["apiVersion"], obj["kind"])
        assert read is not None
        assert read.kueue is gates_pods
