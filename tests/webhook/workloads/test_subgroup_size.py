"""The subgroups of a LeaderWorkerSet are KAI's segments, without an annotation for their size."""

from __future__ import annotations

from typing import Any

import pytest

from planner.model.errors import InputError
from tests.webhook.workloads import objects as o
from webhook.workloads import read

WORKERS = ("spec", "leaderWorkerTemplate", "workerTemplate")
LEVEL = {"kai.scheduler/segment-topology-required-placement": "example.com/rack"}
SUBGROUPS = {"subGroupSize": 2, "subGroupPolicyType": "LeaderWorker"}


def of_segments(policy: dict[str, Any] | None, **annotations: str) -> dict[str, Any]:
    """A LeaderWorkerSet whose workers' template asks for a rack for each segment."""
    obj = o.changed(o.LWS, (*WORKERS, "metadata"), {"annotations": {**LEVEL, **annotations}})
    return o.changed(obj, ("spec", "leaderWorkerTemplate", "subGroupPolicy"), policy) if policy else obj


def sizes(obj: dict[str, Any]) -> dict[str, int]:
    """By PodSet, the number of pods in a segment."""
    return {pod_set.name: pod_set.constraint.slice_size for pod_set in read(obj).gangs[0].pod_sets}


def test_the_size_of_its_subgroups_is_that_of_its_segments() -> None:
    """As KAI's documentation has it."""
    assert sizes(of_segments(SUBGROUPS)) == {"leader": 0, "worker": 2}


def test_it_counts_more_than_the_annotation() -> None:
    """KAI reads the annotation only without that field."""
    assert sizes(of_segments(SUBGROUPS, **{"kai.scheduler/segment-size": "3"}))["worker"] == 2


def test_subgroups_without_a_level_are_no_segments() -> None:
    """LeaderWorkerSet has other uses for them."""
    plain = o.changed(o.LWS, ("spec", "leaderWorkerTemplate", "subGroupPolicy"), SUBGROUPS)
    assert sizes(plain) == {"leader": 0, "worker": 0}


def test_a_pod_of_such_a_worker_is_not_refused() -> None:
    """LeaderWorkerSet writes the size of its subgroups onto its pods."""
    size = {"leaderworkerset.sigs.k8s.io/subgroup-size": "2"}
    (group,) = read(o.annotated(o.POD, {**LEVEL, **size})).gangs
    assert group.size == 1


def test_a_level_without_any_size_is_still_refused() -> None:
    """Nothing says how many pods make a segment."""
    with pytest.raises(InputError, match="nothing says how many pods make one"):
        read(of_segments(None))
