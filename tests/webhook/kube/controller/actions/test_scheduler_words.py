"""A gang whose pods are not bound gets an event with the reason of its own scheduler."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from planner.model.errors import Where
from planner.model.pod import BoundPod
from planner.model.reservation import reservation_id
from tests.builders import amounts, gang, racks
from tests.webhook.kube.worlds import NOW, booked, pod, work, world
from webhook.kube.api.client import Api, ApiError
from webhook.kube.controller.actions.scheduler_words import SILENT, scheduler_words
from webhook.kube.controller.kueue.words import KueueSays, said_of
from webhook.kube.controller.memory import Memory, patience, unused
from webhook.kube.controller.reconcile import reconcile
from webhook.kube.controller.steps import LeftUnbound, Release, Restore
from webhook.kube.controller.unbound_pods import BINDING_SECONDS, left_unbound
from webhook.kube.state.gangs import unbound_from

UNABLE = "kai-scheduler says: Unable to schedule pod"


class Groups(Api):
    """KAI's PodGroups with this status, or an API server without them."""

    def __init__(self, status: dict[str, Any] | None) -> None:
        self.status, self.asked = status, ""

    async def get(self, path: str, **query: str) -> dict[str, Any]:
        raise ApiError(404, "NotFound", "no such group")

    async def list(self, path: str, **query: str) -> tuple[list[dict[str, Any]], str]:
        self.asked = f"{path}?{query}"
        if self.status is None:
            raise ApiError(404, "NotFound", "no such kind")
        return [{"status": self.status}], "1"


def stored(**condition: str) -> dict[str, Any]:
    """A pod for KAI with one condition."""
    metadata = {"name": "a-0", "namespace": "default", "uid": "1", "annotations": {"pod-group-name": "pg-a"}}
    spec = {"schedulerName": "kai-scheduler", "containers": [{"name": "c", "image": "i"}]}
    return {
        "metadata": metadata,
        "spec": spec,
        "status": {"conditions": [{"type": "PodScheduled"} | condition]},
    }


def test_a_pod_says_what_its_scheduler_said_of_it() -> None:
    """Nothing while it is gated, or after it is bound."""
    refused = unbound_from(
        stored(status="False", reason="Unschedulable", message="Unable to\nschedule pod"), Where()
    )
    assert refused is not None
    assert (refused.verdict, refused.pod_group) == (UNABLE, "pg-a")
    for condition in (
        {"status": "False", "reason": "SchedulingGated", "message": "gates"},
        {"status": "True"},
    ):
        waiting = unbound_from(stored(**condition), Where())
        assert waiting is not None
        assert waiting.verdict == ""


def test_a_gang_with_a_place_that_its_scheduler_leaves_for_a_minute_is_told() -> None:
    """Not before, not at the gate, and not where no scheduler has looked at it."""
    group = gang(2, name="default/Job/a", required="rack")
    left = pod("a-0", "a", gated=False, verdict=UNABLE, created=NOW - BINDING_SECONDS)
    (action,) = reconcile(world(booked(racks(2, 2), group), works=(work(group),), pods=(left,)))
    assert isinstance(action, LeftUnbound)
    assert action.pods == (left,)
    young = pod("a-0", "a", gated=False, verdict=UNABLE, created=NOW - BINDING_SECONDS + 1)
    gated = pod("a-0", "a", verdict=UNABLE)
    assert left_unbound((young, gated, pod("a-0", "a", gated=False)), NOW) == ()


def test_a_place_to_which_no_pod_is_brought_is_released_and_not_taken_again() -> None:
    """Nobody came for as long as the namespace has patience: others may have it, until a pod is bound."""
    group = gang(2, name="default/Job/a", required="rack")
    snapshot, job = booked(racks(2, 2), group), replace(work(group), ids=(reservation_id(group.name),))
    pods = tuple(pod(f"a-{n}", "a", gated=False, verdict=UNABLE, created=NOW - 5000) for n in range(2))
    seen = world(snapshot, works=(job,), pods=pods)
    assert [type(action) for action in reconcile(seen)] == [LeftUnbound]  # it has it for a moment
    later = replace(seen, patience={"default": 1800.0})
    left, released = reconcile(later, Memory(idle=frozenset(unused(seen))))
    assert isinstance(left, LeftUnbound)
    assert isinstance(released, Release)
    assert released.why == "no pod was bound to it for 1800 s; it is held again once one is"
    free, missing = replace(later, snapshot=racks(2, 2)), frozenset({group.name})
    assert reconcile(free, Memory(missing=missing, idle=frozenset(unused(free)))) == []
    stands = BoundPod("default/a-0", "n1", amounts(gpu=8), reservation_id(group.name))
    bound = replace(free, snapshot=replace(free.snapshot, pods=(stands,)), pods=pods[1:])
    again = reconcile(bound, Memory(missing=missing, idle=frozenset(unused(bound))))
    assert [type(action) for action in again] == [Restore]


def test_a_place_counts_as_unused_while_no_pod_stands_in_it() -> None:
    """Whether or not a scheduler has looked at the pods."""
    group = gang(2, name="default/Job/a", required="rack")
    snapshot = booked(racks(2, 2), group)
    stands = BoundPod("default/a-1", "n2", amounts(gpu=8), reservation_id(group.name))
    left = pod("a-0", "a", gated=False, verdict=UNABLE, created=0.0)
    for pods in ((left,), (replace(left, verdict=""),), ()):
        assert unused(world(snapshot, works=(work(group),), pods=pods)).keys() == {group.name}
    assert not unused(world(replace(snapshot, pods=(stands,)), works=(work(group),), pods=(left,)))


def test_a_namespace_has_the_patience_that_parameters_say_and_with_zero_for_ever() -> None:
    """In seconds."""
    seen = replace(world(racks(1, 1)), patience={"default": 600.0, "services": 0.0})
    assert patience(seen, "default/Job/a") == 600
    assert patience(seen, "services/Job/a") == math.inf


async def test_what_was_said_of_few_pods_is_said_before_the_silence_about_most() -> None:
    """Three pods without a verdict beside a refused one: the gang hears the refusal."""
    refused = unbound_from(stored(status="False", reason="Unschedulable", message="no GPU"), Where())
    assert refused is not None
    unsaid = replace(refused, verdict="")
    assert await scheduler_words(Groups(None), [unsaid, unsaid, unsaid, refused]) == refused.verdict
    assert await scheduler_words(Groups(None), [unsaid]) == SILENT


async def test_pods_of_which_kai_says_nothing_are_left_too() -> None:
    """Seen of a JobSet with fewer pods alive than its gang starts with: grouped, and no condition at all."""
    grouped = pod("a-0", "a", gated=False, created=NOW - BINDING_SECONDS, pod_group="pg-a")
    assert left_unbound((grouped, replace(grouped, pod_group="")), NOW) == (grouped,)
    assert await scheduler_words(Groups({}), (grouped,)) == SILENT


async def test_what_kai_says_in_both_places_is_told_once() -> None:
    """OverLimit stands on the pods and on the PodGroup alike."""
    reason = "OverLimit: small quota has reached the allowable limit of GPUs"
    api = Groups({"schedulingConditions": [{"reasons": [{"message": f"{reason}."}]}]})
    left = pod("a-0", verdict=f"kai-scheduler says: {reason}.", pod_group="pg-a")
    assert await scheduler_words(api, (left,)) == f"kai-scheduler says: {reason}."


async def test_kais_reasons_stand_beside_the_pods_own_words() -> None:
    """The latest condition of the PodGroup that the pod names, its reasons each once."""
    reasons = [{"reason": "PodSchedulingErrors", "message": "Requested topology x\ndoes not exist"}] * 2
    api = Groups({"schedulingConditions": [{"message": "older"}, {"reasons": reasons}]})
    pods = (
        pod("a-0", verdict=UNABLE, pod_group="pg-a"),
        pod("a-1", verdict="other"),
        pod("a-2", verdict=UNABLE),
    )
    assert await scheduler_words(api, pods) == f"{UNABLE}: Requested topology x does not exist"
    assert "namespaces/default/podgroups?{'fieldSelector': 'metadata.name=pg-a'}" in api.asked


async def test_without_a_group_of_kais_the_pods_words_stand_alone() -> None:
    """It is not served, it says nothing, or the pod names none."""
    for api in (Groups(None), Groups({})):
        assert await scheduler_words(api, (pod("a-0", verdict=UNABLE, pod_group="pg-a"),)) == UNABLE
    assert await scheduler_words(Groups(None), (pod("a-0", verdict=UNABLE),)) == UNABLE


OWNER = {"uid": "job", "kind": "Job", "name": "a"}


class Kueue(Api):
    """An API server with one Workload of Kueue's, of the object with the UID `job`."""

    def __init__(self, **conditions: tuple[str, str]) -> None:
        self.conditions = [
            {"type": kind, "status": status, "message": message}
            for kind, (status, message) in conditions.items()
        ]

    async def get(self, path: str, **query: str) -> dict[str, Any]:
        if path == "/apis":
            preferred = {"version": "v1beta2"}
            return {
                "groups": [{"name": "kueue.x-k8s.io", "preferredVersion": preferred, "versions": [preferred]}]
            }
        return {"resources": [{"name": "workloads"}]}

    async def list(self, path: str, **query: str) -> tuple[list[dict[str, Any]], str]:
        assert path == "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads"
        metadata = {"name": "job-a", "ownerReferences": [OWNER]}
        return [{"metadata": metadata, "status": {"conditions": self.conditions}}], "1"


NO_QUOTA = "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu"


async def test_kueue_says_why_it_has_not_admitted_a_gang_at_its_gate() -> None:
    """In the condition of its Workload; of another object's Workload nothing is told."""
    gated = pod("a-0", "a", gated=False, held_back=True)
    waits = Kueue(QuotaReserved=("False", NO_QUOTA), Admitted=("False", "The workload has no reservation"))
    words = await scheduler_words(waits, (gated,), {"job"})
    assert words == f"they wait at a gate that others open: Kueue says: {NO_QUOTA}"
    assert "Kueue" not in await scheduler_words(waits, (gated,), {"another"})


async def test_kueue_says_what_it_has_evicted_a_gang_for() -> None:
    """That explains more than that it has no quota since."""
    evicted = Kueue(QuotaReserved=("False", NO_QUOTA), Evicted=("True", "a node of it has failed"))
    words = await scheduler_words(evicted, (pod("a-0", "a", gated=False, verdict=UNABLE),), {"job"})
    assert words == f"{UNABLE}: Kueue says: a node of it has failed"


@pytest.mark.parametrize(("age", "is_told"), [(BINDING_SECONDS, True), (BINDING_SECONDS - 1, False)])
def test_a_gang_that_waits_for_a_minute_at_a_gate_of_others_is_told(age: float, is_told: bool) -> None:
    """It holds nothing, and stands in no queue of ours."""
    group = gang(1, name="default/Job/a")
    waits = pod("a-0", "a", held_back=True, created=NOW - age)
    actions = reconcile(world(racks(1, 1), works=(work(group, queued=True),), pods=(waits,)))
    assert [type(action) for action in actions] == ([LeftUnbound] if is_told else [])


@pytest.mark.parametrize(
    ("name", "is_found"),
    [("default/Job/a", True), ("default/Job/b", False), ("default/PodGroup/job-a", True)],
)
async def test_what_kueue_says_of_a_workload_is_found_by_whose_it_is(name: str, is_found: bool) -> None:
    """By kind and name of the object, or of a group of pods by the group's name, which the Workload has."""
    says = await said_of(Kueue(QuotaReserved=("False", NO_QUOTA)), name)
    expected = [KueueSays("job-a", "default/KueueWorkload/job-a", NO_QUOTA)]
    assert says == (expected if is_found else [])
