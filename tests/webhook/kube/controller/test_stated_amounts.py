"""The controller sees stored objects, and yet blames no amount that policies wrote into them."""

from __future__ import annotations

import json
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model.errors import Where
from planner.model.pod import BoundPod
from tests.builders import amounts, cluster
from tests.policies.helpers import policies
from tests.webhook.admission.test_unchanged import asked, stored
from tests.webhook.kube.worlds import world
from tests.webhook.workloads import objects as o
from webhook.kube.controller.reconcile import reconcile
from webhook.kube.controller.steps import WaitAction
from webhook.kube.state.gangs import work_from
from webhook.workloads.keys.annotation_keys import PLACEMENT

Json = dict[str, Any]


def busy() -> Snapshot:
    """Two nodes of 8 GPUs and 64 CPUs; on each a pod with one GPU and 60 of the CPUs."""
    bound = [BoundPod(f"team/on-{name}", name, amounts(gpu=1, cpu=60, pods=1)) for name in "ab"]
    return cluster("r1: a b gpu=8 cpu=64 memory=512", pods=bound)


def job() -> Json:
    """Two pods of four GPUs, of which nobody says how many CPUs they need."""
    return o.changed(o.JOB, ("spec", "template"), o.pod_template(4))


def event_message(item: Json, on: Snapshot) -> str:
    """What the event of the gang that waits says."""
    work = work_from(item, Where(), "batch/v1", "Job")
    assert work is not None
    (wait,) = (action for action in reconcile(world(on, works=(work,))) if isinstance(action, WaitAction))
    assert wait.answer is not None
    return wait.answer.message


def test_a_queue_event_tells_a_share_of_policies_as_theirs() -> None:
    """As the warning did when the object was applied."""
    hall = busy()
    decision = asked(job(), on=hall)
    (warned,) = [warning for warning in decision.response.warnings if "queued" in warning]
    assert "that policies give a pod (it states none)" in warned
    item = stored(decision)
    assert "that policies give a pod (it states none)" in event_message(item, hall)
    notes = item["metadata"]["annotations"]
    note = json.loads(notes[PLACEMENT])
    del note["stated"]
    without = o.annotated(item, {**notes, PLACEMENT: json.dumps(note)})
    assert "that policies give a pod" not in event_message(without, hall)


def test_the_note_stays_as_it_is_when_the_webhook_is_asked_again() -> None:
    """In a reinvocation the object comes with the policies' amounts already."""
    hall = busy()
    first = stored(asked(job(), on=hall))
    assert asked(first, on=hall, by=policies()).response.patch == []


def test_a_note_that_somebody_else_wrote_breaks_nothing() -> None:
    """Anybody can write annotations."""
    hall = busy()
    item = stored(asked(job(), on=hall))
    for wrong in ({"main": 7}, [], {"main": {"cpu": "x"}}, {"main": {"cpu": None}}):
        note = json.dumps({"decision": "queued", "stated": wrong})
        assert work_from(o.annotated(item, {PLACEMENT: note}), Where(), "batch/v1", "Job") is not None
