"""The plan is one step of a decision: it follows the other policies and precedes the first that uses it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from planner.ledger.conflicts import Wish
from tests.policies.helpers import cluster
from tests.webhook.policy.helpers import OURS, mutating, patch, validating
from webhook.admission import plan_step
from webhook.admission.decision import decide
from webhook.admission.decision_record import Decision
from webhook.policy import load
from webhook.wire.request import from_object

HALL = cluster("superpod-32")
MORE_GPUS = patch(
    '[JSONPatch{op: "replace", path: "/spec/containers/0/resources/limits/nvidia.com~1gpu", value: "4"}]'
)


def note(name: str, expression: str) -> dict[str, Any]:
    """A policy that writes a value into an annotation."""
    change = f'[JSONPatch{{op: "add", path: "/metadata/annotations/{name}", value: string({expression})}}]'
    return mutating(patch(change), name=name, api=OURS)


def gpu_pod() -> dict[str, Any]:
    """A pod with one GPU."""
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "annotations": {"a": "b"}},
        "spec": {"containers": [{"name": "main", "image": "busybox:1.36", "resources": limits}]},
    }


def mutate(*documents: dict[str, Any]) -> Decision:
    """The decision on a new pod, by these policies."""
    policies = load([("policy.yaml", yaml.safe_dump_all(documents))])
    decision = decide(from_object(gpu_pod(), uid="uid"), policies, HALL, "mutate")
    assert decision.response.allowed, decision.response.message
    return decision


def annotations(decision: Decision) -> dict[str, str]:
    """The annotations that the policies wrote."""
    assert decision.object is not None
    written: dict[str, str] = decision.object["metadata"]["annotations"]
    return written


def test_the_plan_is_made_of_what_the_policies_before_it_left() -> None:
    """A policy that asks for more GPUs runs before one that reads `plan`, whatever their names."""
    raises = mutating(MORE_GPUS, name="z-raises", api=OURS)
    decision = mutate(raises, note("a-reads", "plan.decision + string(gang.gpus)"))
    assert annotations(decision)["a-reads"] == "admitted4"
    assert decision.plan is not None
    assert decision.plan.first.group.gpus == 4


def test_a_plan_that_nobody_reads_is_made_after_the_mutating_policies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once, of the object as they leave it."""
    planned: list[str] = []
    plan_in_turn = plan_step.plan_in_turn

    def counted(snapshot: Any, workload: Any, *around: Any) -> Any:
        planned.append(str(workload.gangs[0].gpus))
        return plan_in_turn(snapshot, workload, *around)

    monkeypatch.setattr(plan_step, "plan_in_turn", counted)
    mutate(mutating(MORE_GPUS, name="raises", api=OURS))
    assert planned == ["4"]


def test_two_policies_that_use_the_plan_see_the_same_one() -> None:
    """What the first one writes does not change the plan for the second."""
    pins = patch(
        '[JSONPatch{op: "add", path: "/spec/nodeSelector", value: {"kubernetes.io/hostname": plan.nodes[0]}}]'
    )
    decision = mutate(
        mutating(pins, name="a-pins", api=OURS), note("b-tells", "plan.nodes[0] + plan.message")
    )
    assert decision.plan is not None
    answer = decision.plan.first.answer
    assert annotations(decision)["b-tells"] == answer.assignments[0].node + answer.message


def test_a_policy_that_uses_the_plan_and_asks_for_more_is_planned_for_that() -> None:
    """The reserved placement is for the object as it will be stored."""
    condition = {"name": "has-a-place", "expression": "size(plan.nodes) == 1"}
    raises = mutating(MORE_GPUS, name="raises", api=OURS, matchConditions=[condition])
    decision = mutate(raises)
    (step,) = decision.steps
    assert isinstance(step, Wish)
    assert [amounts["nvidia.com/gpu"] for _, amounts in step.reservation.requests] == [4]


def test_validating_policies_read_the_plan_that_was_applied() -> None:
    """They read the same message as the mutating call."""
    check = validating(
        {"expression": 'plan.decision != "admitted"', "messageExpression": "plan.message"},
        name="tell",
        api=OURS,
    )
    policies = load([("policy.yaml", yaml.safe_dump_all([check]))])
    decision = decide(from_object(gpu_pod(), uid="uid"), policies, HALL, "mutate")
    assert decision.plan is not None
    assert decision.plan.message() in decision.response.message
