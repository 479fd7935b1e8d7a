"""A refusal names the field that states the number of pods, with the number that would work there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.model.answer import Answer
from planner.model.podgroup import CountField
from planner.planning.plan import plan
from tests.builders import racks
from tests.webhook.workloads import objects as o
from webhook.workloads import read

Json = dict[str, Any]
GANG = "bayplan.dev/gang"
SIZE, MINIMUM = (
    ("metadata", "annotations", "bayplan.dev/gang-size"),
    ("metadata", "annotations", "bayplan.dev/gang-min"),
)
ONE_JOB = o.changed(o.JOB_SET, ("spec", "replicatedJobs", 1, "replicas"), 1)
AVAILABLE = o.changed(o.PYTORCH_JOB, ("spec", "runPolicy"), {"schedulingPolicy": {"minAvailable": 4}})


def answer(obj: Json, hosts: int, gpu: int) -> Answer:
    """The answer for the first gang of the object, in one rack of `hosts` hosts with `gpu` GPUs each."""
    return plan(racks(1, hosts, gpu=gpu), read(obj).gangs[0])


@pytest.mark.parametrize(
    ("obj", "hosts", "gpu", "pods", "path", "number"),
    [
        (o.JOB, 3, 2, "3 pods", ("spec", "parallelism"), 3),
        (o.JOB_SET, 5, 8, "3 pods of worker", ("spec", "replicatedJobs", 1, "replicas"), 1),
        (
            ONE_JOB,
            2,
            8,
            "2 pods of worker",
            ("spec", "replicatedJobs", 1, "template", "spec", "parallelism"),
            2,
        ),
        (o.LWS, 3, 8, "2 pods of worker", ("spec", "leaderWorkerTemplate", "size"), 3),
        (o.PYTORCH_JOB, 3, 8, "2 pods of worker", ("spec", "pytorchReplicaSpecs", "Worker", "replicas"), 2),
        (AVAILABLE, 3, 8, "2 pods of worker", ("spec", "runPolicy", "schedulingPolicy", "minAvailable"), 3),
        (o.MPI_JOB, 3, 8, "3 pods of worker", ("spec", "mpiReplicaSpecs", "Worker", "replicas"), 3),
        (
            o.RAY_JOB,
            4,
            8,
            "2 pods of small",
            ("spec", "rayClusterSpec", "workerGroupSpecs", 0, "minReplicas"),
            1,
        ),
        (o.annotated(o.STATEFUL_SET, {GANG: "g"}), 2, 1, "2 pods", ("spec", "replicas"), 2),
        (o.annotated(o.DEPLOYMENT, {GANG: "g", SIZE[2]: "3"}), 2, 1, "2 pods", SIZE, 2),
        (o.annotated(o.JOB, {MINIMUM[2]: "3"}), 2, 2, "a minimum of 2 pods", MINIMUM, 2),
    ],
    ids=lambda value: f"{value['kind']}" if isinstance(value, dict) else "",
)
def test_the_named_number_works_in_the_named_field(
    obj: Json, hosts: int, gpu: int, pods: str, path: tuple[str | int, ...], number: int
) -> None:
    """A refusal names a field and a number; the object with this number in this field is admitted."""
    refused = answer(obj, hosts, gpu)
    assert refused.decision == "rejected"
    assert f"{pods} ({dotted(path)}: {number})" in refused.message
    value = str(number) if path[1] == "annotations" else number
    assert answer(o.changed(obj, path, value), hosts, gpu).decision == "admitted"


def test_a_number_that_no_unit_of_the_field_gives_is_said_without_the_field() -> None:
    """One Job of the set is three pods, and only two have room: no number of Jobs gives two pods."""
    refused = answer(o.JOB_SET, 2, 8)
    assert "Would work: 2 pods of worker." in refused.message


def test_a_gang_of_several_objects_names_no_field() -> None:
    """The pods of a gang's part are in several objects, so no single field states their number."""
    obj = o.annotated(o.JOB, {GANG: "g", "bayplan.dev/gang-size": "6"})
    assert "Would work: 3 pods." in answer(obj, 3, 2).message


def test_what_only_messages_read_makes_no_other_request() -> None:
    """Gangs are compared to find equal ones, and to find what an update changes."""
    (group,) = read(o.JOB).gangs
    (pod_set,) = group.pod_sets
    assert pod_set.count_field.path == ("spec", "parallelism")
    assert replace(pod_set, count_field=CountField(), title="another") == pod_set


def dotted(path: tuple[str | int, ...]) -> str:
    """A path as messages write it."""
    text = ""
    for step in path:
        if isinstance(step, int) or "/" in step:
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text
