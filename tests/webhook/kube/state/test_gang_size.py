"""The gang size in KAI is lowered as pods of the Job succeed, because KAI counts living pods."""

from __future__ import annotations

from typing import Any

import pytest

from planner.model.errors import Where
from tests.builders import racks
from tests.webhook.kube.worlds import world
from webhook.kube.controller.reconcile import reconcile
from webhook.kube.controller.steps import TellSize
from webhook.kube.state.gangs import work_from


def job(
    succeeded: int, min_member: str = "4", policies: str = "kai-batch-min-member,kai-queue@abc"
) -> dict[str, Any]:
    """A stored Job of four pods at a time, of which some have succeeded."""
    pod = {"containers": [{"name": "t", "image": "t", "resources": {"limits": {"nvidia.com/gpu": "8"}}}]}
    notes = {"kai.scheduler/batch-min-member": min_member, "bayplan.dev/policies": policies}
    return {
        "metadata": {"name": "train", "namespace": "default", "uid": "u", "annotations": notes},
        "spec": {"completionMode": "Indexed", "parallelism": 4, "completions": 4, "template": {"spec": pod}},
        "status": {"succeeded": succeeded},
    }


OWNER = {"apiVersion": "example.com/v1", "kind": "Study", "name": "s", "uid": "s", "controller": True}


def told_sizes(item: dict[str, Any]) -> list[int]:
    """The gang sizes that the controller tells KAI."""
    work = work_from(item, Where(), "batch/v1", "Job")
    assert work is not None, "it is a gang"
    return [
        action.size for action in reconcile(world(racks(1, 4), works=(work,))) if isinstance(action, TellSize)
    ]


@pytest.mark.parametrize(("succeeded", "sizes"), [(0, []), (1, [3]), (3, [1]), (4, [1])])
def test_kai_is_told_of_as_many_pods_as_are_left(succeeded: int, sizes: list[int]) -> None:
    """Told four, it would start no retry once one index has succeeded."""
    assert told_sizes(job(succeeded)) == sizes


def test_what_was_told_already_is_not_told_again() -> None:
    """The Job already states three pods."""
    assert told_sizes(job(1, "3")) == []


def test_a_size_that_the_user_chose_stays() -> None:
    """Only a size that the policy wrote is lowered."""
    assert told_sizes(job(1, policies="kai-queue@abc")) == []


def test_kai_is_told_of_a_job_that_was_scaled_down() -> None:
    """Told four, it would start no pod of two again."""
    item = job(0)
    item["spec"]["parallelism"] = item["spec"]["completions"] = 2
    assert told_sizes(item) == [2]


def test_kai_is_told_nothing_of_a_job_that_was_scaled_to_zero() -> None:
    """It may be scaled up again, as a gang."""
    item = job(0)
    item["spec"]["parallelism"] = 0
    work = work_from(
        {**item, "metadata": {**item["metadata"], "ownerReferences": [OWNER]}}, Where(), "batch/v1", "Job"
    )
    assert work is not None, "it has an owner"
    assert work.size_left == 0
