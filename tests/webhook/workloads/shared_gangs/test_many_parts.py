"""A gang of many parts, which anybody may state of a pod: the time to read it grows with their number."""

from __future__ import annotations

from typing import Any

import pytest

from planner.model.errors import InputError
from tests.effort import calls
from tests.webhook.workloads import objects as o
from webhook.admission.environment import pod_groups
from webhook.workloads import read
from webhook.workloads.options import GANG, GANG_RESOURCES, GANG_SIZE, MOST_PARTS

Json = dict[str, Any]


def stated(parts: int) -> Json:
    """A pod of a gang whose other pods are stated in parts."""
    text = ";".join(f"{1 + number % 7} p{number}: nvidia.com/gpu=8" for number in range(parts))
    return o.annotated(o.POD, {GANG: "g", GANG_SIZE: "9", GANG_RESOURCES: text})


def grouped(parts: int) -> Json:
    """A PodGroup of KAI with subgroups."""
    subgroups = [{"name": f"s{number}", "minMember": 1 + number % 3} for number in range(parts)]
    return o.obj("scheduling.run.ai/v2alpha2", "PodGroup", {"minMember": parts, "subGroups": subgroups})


def test_twice_the_stated_parts_take_twice_the_time() -> None:
    """The largest pod so far was looked up among all for each part: 10 s for 1,000 of them."""
    few, many = stated(MOST_PARTS // 2), stated(MOST_PARTS)
    assert len(read(many).gangs[0].pod_sets) == MOST_PARTS + 1
    assert calls(lambda: read(many)) < 2.5 * calls(lambda: read(few))


def test_twice_the_subgroups_take_twice_the_time() -> None:
    """Likewise, of a PodGroup that a pod names."""
    pod = o.annotated(o.POD, {"pod-group-name": "demo"})

    def effort(parts: int) -> int:
        groups = pod_groups([grouped(parts)])
        assert len(read(pod, podgroups=groups).gangs[0].pod_sets) >= parts
        return calls(lambda: read(pod, podgroups=groups))

    assert effort(400) < 2.5 * effort(200)


def test_more_parts_than_a_gang_may_have_are_an_error() -> None:
    """It is read wherever the object is, and not only when it is created."""
    with pytest.raises(InputError, match=f"states {MOST_PARTS + 1} parts of a gang; at most {MOST_PARTS}"):
        read(stated(MOST_PARTS + 1))
