"""Pods are a gang where somebody says so; all others are a bag, of which each is planned by itself."""

from typing import Any

import pytest

from tests.webhook.workloads import objects as o
from webhook.workloads import read


def test_the_pods_of_a_plain_job_are_independent() -> None:
    """Each pod is a gang, and the Job reserves nothing."""
    workload = read(o.BAG)
    assert [gang.size for gang in workload.gangs] == [1, 1, 1, 1]
    assert (workload.per_pod, workload.holds) == (True, False)


@pytest.mark.parametrize(
    "job",
    [
        o.changed(o.BAG, ("spec", "completionMode"), "Indexed"),
        o.annotated(o.BAG, {"kai.scheduler/topology-required-placement": "rack"}),
        o.annotated(o.BAG, {"bayplan.dev/gang": "train"}),
        o.annotated(o.BAG, {"kai.scheduler/batch-min-member": "4"}),
        o.changed(
            o.BAG,
            ("spec", "template"),
            o.pod_template(2, {"kueue.x-k8s.io/podset-required-topology": "rack"}),
        ),
        o.changed(o.BAG, ("spec", "template"), o.pod_template(2, {"pod-group-name": "train"})),
    ],
    ids=["indexed", "topology", "gang", "kai", "template", "group"],
)
def test_a_job_is_a_gang_where_somebody_says_so(job: Any) -> None:
    """By an index, a topology key, a group key or an annotation."""
    workload = read(job)
    assert [gang.size for gang in workload.gangs] == [4]
    assert (workload.per_pod, workload.holds) == (False, True)


@pytest.mark.parametrize("obj", [o.PYTORCH_JOB, o.MPI_JOB, o.JOB_SET, o.RAY_JOB], ids=lambda obj: obj["kind"])
def test_training_kinds_stay_gangs(obj: Any) -> None:
    """All their pods start together."""
    (gang,) = read(obj).gangs
    assert gang.size > 1


def test_a_job_of_one_pod_at_a_time_is_planned_with_its_job() -> None:
    """Gang or single pod, the plan is the same."""
    workload = read(o.changed(o.BAG, ("spec", "parallelism"), 1))
    assert (len(workload.gangs), workload.per_pod, workload.holds) == (1, False, True)


@pytest.mark.parametrize(
    ("obj", "path"),
    [
        (o.JOB, ("spec", "suspend")),
        (o.JOB_SET, ("spec", "suspend")),
        (o.RAY_CLUSTER, ("spec", "suspend")),
        (o.RAY_JOB, ("spec", "suspend")),
        (o.PYTORCH_JOB, ("spec", "runPolicy")),
        (o.MPI_JOB, ("spec", "runPolicy")),
    ],
    ids=lambda argument: argument["kind"] if isinstance(argument, dict) else "",
)
def test_what_is_suspended_holds_nothing(obj: Any, path: tuple[str, ...]) -> None:
    """Its gangs are read for a preview."""
    suspended = read(o.changed(obj, path, {"suspend": True} if path[-1] == "runPolicy" else True))
    assert (read(obj).holds, suspended.holds, suspended.suspended) == (True, False, True)
    assert suspended.gangs == read(obj).gangs
