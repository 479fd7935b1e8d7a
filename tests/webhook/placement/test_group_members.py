"""Gangs of Kubernetes itself whose pods come from several objects."""

from __future__ import annotations

import pytest

from tests.policies.helpers import Json, cluster, policies
from tests.webhook.workloads.objects import JOB, POD, changed
from webhook.admission.environment import Environment
from webhook.cli.decisions.mutate import decide_all
from webhook.files.reader import Document
from webhook.placement.group_members import group_of


def joined(workload: Json, path: tuple[str | int, ...], group: str, scheduler: str) -> Json:
    """An object whose pods join a group and name a scheduler ("" for none)."""
    member = changed(workload, (*path, "schedulingGroup"), {"podGroupName": group})
    return changed(member, (*path, "schedulerName"), scheduler) if scheduler else member


def answers(*objects: Json) -> list[str]:
    """The refusal of each object of one file, "" where it is let in."""
    documents = [Document("gang.yaml", place, manifest) for place, manifest in enumerate(objects)]
    outcomes = decide_all(policies(), cluster("superpod-32"), documents, Environment())
    return [outcome.decision.response.message for outcome in outcomes]


JOBS_POD = ("spec", "template", "spec")


def test_pods_and_jobs_of_one_group_under_one_scheduler_are_let_in() -> None:
    """Whether it is named or not."""
    pod = joined(POD, ("spec",), "pair", "")
    assert answers(pod, joined(JOB, JOBS_POD, "pair", "default-scheduler")) == ["", ""]


def test_objects_of_one_group_under_two_schedulers_are_refused_with_each_others_name() -> None:
    """Each refusal names the other object."""
    pod = joined(POD, ("spec",), "pair", "")
    first, second = answers(pod, joined(JOB, JOBS_POD, "pair", "kai-scheduler"))
    assert "Job/demo of the same group pair names the scheduler kai-scheduler" in first
    assert "Pod/demo of the same group pair names the scheduler default-scheduler" in second


def test_another_group_and_another_namespace_are_none_of_its_business() -> None:
    """Two groups may have two schedulers."""
    pod = joined(POD, ("spec",), "pair", "")
    other = joined(JOB, JOBS_POD, "other", "kai-scheduler")
    in_other_namespace = changed(
        joined(JOB, JOBS_POD, "pair", "kai-scheduler"), ("metadata", "namespace"), "other"
    )
    assert answers(pod, other, in_other_namespace) == ["", "", ""]


@pytest.mark.parametrize(
    ("spec", "group"),
    [
        ({"schedulingGroup": {"podGroupName": "a"}}, "a"),
        ({"workloadRef": {"name": "b", "podGroup": "workers"}}, "b"),
        ({"schedulingGroup": {"podGroupName": 3}}, ""),
        ({"schedulingGroup": "a"}, ""),
        ({}, ""),
    ],
)
def test_a_pod_names_its_group_in_the_way_of_its_version(spec: Json, group: str) -> None:
    """1.36 and later, 1.35, or not at all; what is malformed names none."""
    assert group_of(spec) == group
