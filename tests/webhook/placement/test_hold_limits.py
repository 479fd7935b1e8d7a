"""Limits of reservations: the quota and the parameters of the namespace, and only for pods that can run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.cluster.snapshot import Snapshot
from planner.model.podgroup import PodGroup
from planner.model.settings import Quota
from tests.builders import cluster, gang
from webhook.placement.fair_order import WaitingGang
from webhook.placement.hold_limits import NO_LIMITS, HoldLimits
from webhook.placement.planning import plan_workload
from webhook.placement.queue import plan_in_turn, plan_queue
from webhook.placement.workload_plan import GangPlan, WorkloadPlan
from webhook.workloads import Workload

RACKS = """
    r1: a b
    r2: c d
    r3: e f
"""
"""Three racks of 16 GPUs."""


def job(name: str, pods: int = 2, *, gpu: int = 8, space: str = "team", reserve: str = "auto") -> PodGroup:
    """A gang that needs one rack; who says nothing else leaves open what it holds."""
    group = gang(pods, name=f"{space}/Job/{name}", gpu=gpu, required="rack")
    return replace(group, reserve=reserve, reserve_is_default=reserve == "auto")  # type: ignore[arg-type]


def planned(snapshot: Snapshot, group: PodGroup, limits: HoldLimits = NO_LIMITS) -> WorkloadPlan:
    """The plan of a Job with this gang."""
    return plan_workload(snapshot, Workload("Job", group.name, gangs=(group,), holds=True), limits=limits)


def only(plan: WorkloadPlan) -> GangPlan:
    """The plan of the one gang."""
    (gang_plan,) = plan.placed
    return gang_plan


def with_quota(snapshot: Snapshot, gpus: int, space: str = "team") -> Snapshot:
    """The same cluster with a ResourceQuota of so many GPUs in a namespace."""
    size = {"requests.nvidia.com/gpu": gpus}
    quotas = {f"{space}/compute": Quota("compute", size, size)}
    return snapshot.evolve(base=replace(snapshot.base, quotas=quotas), changed_nodes=frozenset())


def test_a_quota_of_eight_holds_eight() -> None:
    """However many gangs are applied, one node is reserved and the others wait."""
    snapshot = with_quota(cluster(RACKS), 8)
    decisions = []
    for number in range(6):
        plan = planned(snapshot, job(f"hoard-{number}", 1, reserve="nodes"))
        decisions.append(plan.decision)
        snapshot = plan.snapshot
    assert decisions == ["admitted", *["queued"] * 5]
    assert sum(len(held.touched) for held in snapshot.reservations) == 1


def test_the_message_has_the_numbers() -> None:
    """The limit, the amount in use, the request, and the object that sets the limit."""
    snapshot = planned(with_quota(cluster(RACKS), 24), job("first")).snapshot
    answer = only(planned(snapshot, job("second"))).answer
    assert (answer.decision, answer.reason) == ("queued", "HoldLimit")
    assert answer.message == (
        "namespace team may hold 24 nvidia.com/gpu by ResourceQuota compute, holds 16, and would hold 16 "
        "more. It waits until gangs of its namespace have ended"
    )


def test_a_rack_held_whole_counts_whole() -> None:
    """Two pods of 5 GPUs would hold 16; with a quota of 12 they hold the 10 that they use, and are told."""
    gang_plan = only(planned(with_quota(cluster(RACKS), 12), job("small", 2, gpu=5)))
    assert gang_plan.answer.decision == "admitted"
    assert gang_plan.reservation is not None
    assert gang_plan.reservation.mode == "nodes"
    assert (
        "holds only what it uses: namespace team may hold 12 nvidia.com/gpu" in gang_plan.answer.warnings[0]
    )


def test_who_insists_on_a_whole_rack_waits() -> None:
    """The user's annotation is not changed."""
    gang_plan = only(planned(with_quota(cluster(RACKS), 12), job("small", 2, gpu=5, reserve="domain")))
    assert (gang_plan.answer.reason, gang_plan.reservation) == ("HoldLimit", None)


def test_another_namespace_has_a_quota_of_its_own() -> None:
    """What one tenant holds is no reason to keep another waiting."""
    snapshot = planned(with_quota(cluster(RACKS), 16), job("first")).snapshot
    assert planned(snapshot, job("second")).decision == "queued"
    assert planned(snapshot, job("second", space="others")).decision == "admitted"


def test_a_gang_that_holds_its_place_is_not_counted_twice() -> None:
    """A retry, or a second pass over the same object."""
    snapshot = planned(with_quota(cluster(RACKS), 16), job("first")).snapshot
    assert planned(snapshot, job("first")).decision == "admitted"


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (HoldLimits(gpus=16), "16 GPUs by parameter holds.gpus, holds 16, and would hold 16 more"),
        (HoldLimits(gpus=20), "20 GPUs by parameter holds.gpus, holds 16, and would hold 16 more"),
    ],
)
def test_a_parameter_caps_what_a_namespace_holds(limits: HoldLimits, words: str) -> None:
    """Also without a ResourceQuota."""
    first = planned(cluster(RACKS), job("first"), limits)
    second = only(planned(first.snapshot, job("second"), limits))
    assert second.answer.decision == "queued"
    assert words in second.answer.message


@pytest.mark.parametrize("waiting_for", [0, 1])
def test_a_gang_beyond_the_whole_quota_is_told_that_no_end_helps(waiting_for: int) -> None:
    """Not the words of a gang that waits for others of its namespace, whether there are any or not."""
    snapshot = with_quota(cluster(RACKS), 12)
    for number in range(waiting_for):
        snapshot = planned(snapshot, job(f"first-{number}", 1, reserve="nodes")).snapshot
    answer = only(planned(snapshot, job("larger"))).answer
    assert (answer.decision, answer.reason) == ("queued", "HoldLimit")
    assert answer.message == (
        "namespace team may hold 12 nvidia.com/gpu by ResourceQuota compute, and this would hold 16 by "
        "itself. It cannot run while that is so, whichever gangs end: ask for fewer GPUs, or have the limit "
        "raised; it waits for that"
    )


def test_it_is_let_in_when_the_quota_is_raised() -> None:
    """A limit can change, so the gang is queued and not refused."""
    assert planned(with_quota(cluster(RACKS), 12), job("larger")).decision == "queued"
    assert planned(with_quota(cluster(RACKS), 16), job("larger")).decision == "admitted"


def test_who_insists_on_more_than_the_quota_is_told_of_the_smaller_hold() -> None:
    """Two pods of 5 GPUs want a rack of 16 for themselves; 12 are allowed, and 10 would do."""
    answer = only(planned(with_quota(cluster(RACKS), 12), job("small", 2, gpu=5, reserve="domain"))).answer
    assert "this would hold 16 by itself" in answer.message
    assert "hold only what it uses (bayplan.dev/reserve: nodes), ask for fewer GPUs" in answer.message


def test_a_namespace_that_may_hold_nothing_is_told_so() -> None:
    """The parameter is zero."""
    answer = only(planned(cluster(RACKS), job("first"), HoldLimits(gpus=0))).answer
    assert "may hold 0 GPUs by parameter holds.gpus, and this would hold 16 by itself" in answer.message


def test_a_parameter_caps_what_is_held_for_each_gpu_in_use() -> None:
    """A rack of 16 for two pods of 5 GPUs is 1.6 for each; 1.5 are allowed, so it holds the 10."""
    limits = HoldLimits(per_used=1.5)
    gang_plan = only(planned(cluster(RACKS), job("small", 2, gpu=5), limits))
    assert gang_plan.reservation is not None
    assert gang_plan.reservation.mode == "nodes"
    assert "1.5 GPUs for each one in use by parameter holds.per-used" in gang_plan.answer.warnings[0]
    whole = only(planned(cluster(RACKS), job("whole"), limits))
    assert whole.reservation is not None
    assert whole.reservation.mode == "domain"


def test_for_a_gang_over_its_limit_nothing_is_kept_free() -> None:
    """At the head of the queue it would guard a rack that it may not have; those behind it are let in."""
    snapshot = planned(with_quota(cluster(RACKS), 16), job("first")).snapshot
    turns, _ = plan_queue(snapshot, [job("second"), job("other", space="others")])
    assert [turn.answer.decision for turn in turns] == ["queued", "admitted"]


def gated(group: PodGroup, *gates: str) -> PodGroup:
    """The gang whose pods have these scheduling gates."""
    (part,) = group.pod_sets
    return replace(group, pod_sets=(replace(part, shape=replace(part.shape, gates=gates)),))


def test_what_waits_for_others_gates_holds_nothing() -> None:
    """It is planned when they are open; until then it stands behind our gate too."""
    group = gated(job("gated"), "example.com/approval")
    plan = plan_in_turn(cluster(RACKS), Workload("Job", group.name, gangs=(group,), holds=True), tuple)
    assert (plan.decision, plan.reservations, plan.gated) == ("queued", (), True)
    assert "scheduling gate example.com/approval, which others open" in plan.message()


def test_our_own_gate_is_nobody_elses() -> None:
    """The template of a queued gang that is applied again has it."""
    group = gated(job("queued"), "bayplan.dev/queued")
    plan = plan_in_turn(cluster(RACKS), Workload("Job", group.name, gangs=(group,), holds=True), tuple)
    assert plan.decision == "admitted"


def test_limits_count_for_those_that_wait_as_well() -> None:
    """A newcomer of another namespace is not kept behind a gang that may not have its place anyway."""
    snapshot = planned(with_quota(cluster(RACKS), 16), job("first")).snapshot
    waits = WaitingGang(job("second"))
    new = job("new", space="others")
    plan = plan_in_turn(snapshot, Workload("Job", new.name, gangs=(new,), holds=True), lambda: [waits])
    assert plan.decision == "admitted"
