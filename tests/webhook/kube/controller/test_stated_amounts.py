"""The controller reads stored objects, but its messages never blame amounts that policies wrote."""

from __future__ import annotations

import json
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model.errors import Where
from planner.model.pod import BoundPod
from tests.builders import amounts, cluster
from tests.policies.helpers import policies
from tests.webhook.admission.updates.test_unchanged import asked, stored
from tests.webhook.kube.worlds import world
from tests.webhook.workloads import objects as o
from webhook.kube.controller.reconcile import reconcile
from webhook.kube.controller.steps import WaitAction
from webhook.kube.state.gangs import work_from
from webhook.workloads.keys.annotation_keys import PLACEMENT

Json = dict[str, Any]


def busy(nodes: int = 2) -> Snapshot:
    """Nodes of 8 GPUs and 64 CPUs; on each a pod with one GPU and 60 of the CPUs."""
    names = [f"n{number}" for number in range(nodes)]
    bound = [BoundPod(f"team/on-{name}", name, amounts(gpu=1, cpu=60, pods=1)) for name in names]
    return cluster(f"r1: {' '.join(names)} gpu=8 cpu=64 memory=512", pods=bound)


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


def job_set(parts: int) -> Json:
    """A JobSet of so many parts, each of two pods of four GPUs."""
    body = o.JOB_SET["spec"]["replicatedJobs"][0]
    part = {**body, "template": {"spec": {"parallelism": 2, "completions": 2, "template": o.pod_template(4)}}}
    jobs = [{**part, "name": f"part-{number:03}", "replicas": 1} for number in range(parts)]
    return o.changed(o.JOB_SET, ("spec", "replicatedJobs"), jobs)


def test_a_template_tells_what_was_stated_of_its_own_pods_alone() -> None:
    """The object tells it of all parts: what is written grows with their number, not with its square."""
    written = {}
    for parts in (10, 20):
        item = stored(asked(job_set(parts), on=busy(2 * parts)))
        own = json.loads(item["metadata"]["annotations"][PLACEMENT])
        names = [f"part-{number:03}" for number in range(parts)]
        assert (own["decision"], sorted(own["stated"])) == ("queued", names)
        templates = [job["template"]["spec"]["template"] for job in item["spec"]["replicatedJobs"]]
        notes = [json.loads(template["metadata"]["annotations"][PLACEMENT]) for template in templates]
        assert [list(note["stated"]) for note in notes] == [[name] for name in names]
        assert all(note["decision"] == "queued" for note in notes)
        written[parts] = len(json.dumps(item)) - len(json.dumps(job_set(parts)))
    assert written[20] < 2.2 * written[10], written


def test_a_template_of_leader_and_workers_tells_what_was_stated_of_both() -> None:
    """No pod of it says which of the two it is."""
    template = {"size": 2, "workerTemplate": o.pod_template(4)}
    lws = o.changed(o.LWS, ("spec",), {"replicas": 1, "leaderWorkerTemplate": template})
    written = stored(asked(lws, on=busy()))["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    note = json.loads(written["metadata"]["annotations"][PLACEMENT])
    assert (note["decision"], sorted(note["stated"])) == ("queued", ["leader", "worker"])


def test_the_note_stays_as_it_is_when_the_webhook_is_asked_again() -> None:
    """In a reinvocation the object comes with the policies' amounts already."""
    hall = busy()
    first = stored(asked(job(), on=hall))
    assert asked(first, on=hall, by=policies()).response.patch == []


def test_an_invalid_annotation_of_a_user_is_ignored() -> None:
    """Anybody can write annotations."""
    hall = busy()
    item = stored(asked(job(), on=hall))
    for wrong in ({"main": 7}, [], {"main": {"cpu": "x"}}, {"main": {"cpu": None}}):
        note = json.dumps({"decision": "queued", "stated": wrong})
        assert work_from(o.annotated(item, {PLACEMENT: note}), Where(), "batch/v1", "Job") is not None
