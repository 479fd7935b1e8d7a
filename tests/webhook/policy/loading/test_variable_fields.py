"""The fields that policies may name of our variables are those that the variables have."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

from planner.node.runtime_class import RuntimeClass, RuntimeClasses
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import gang, racks
from webhook.cel.values.schema import SchemaNode
from webhook.placement.group_members import GroupMember
from webhook.placement.planning import plan_workload
from webhook.policy.loading.variable_fields import VARIABLE_FIELDS
from webhook.policy.model.policy import BAYPLAN_VARIABLES
from webhook.variables.cluster import NO_CLUSTER, cluster_variable
from webhook.variables.gang import gang_variable
from webhook.variables.plan import NO_PLAN, PlanVariable
from webhook.workloads import read

PREFILL: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "chat-prefill", "annotations": {"bayplan.dev/required-level": "rack"}},
    "spec": {
        "completionMode": "Indexed",
        "parallelism": 2,
        "completions": 2,
        "template": {"spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 8}}}]}},
    },
}
"""With a fellow and a place beside it, no list of its `gang` is empty."""


def compared(value: Any, node: SchemaNode, path: str) -> set[str]:
    """Every list and map of fields that was compared, down from a value. Fails where they differ."""
    if node.kind == "list":
        assert value, f"{path} is empty: its elements are compared with nothing"
        return compared(value[0], node.items or SchemaNode("any"), f"{path}[]")
    if node.kind != "object":
        return set()
    assert set(value) == set(node.fields), path
    below = (compared(value[name], field, f"{path}.{name}") for name, field in node.fields.items())
    return {path}.union(*below)


def variables() -> Mapping[str, Any]:
    """`gang`, `plan` and `cluster` of the Job, beside the decoders of its service."""
    snapshot = racks(2, 4)
    decode = gang(2, name="chat/Job/chat-decode", required="rack")
    held = reservation_for(snapshot, decode, plan(snapshot, decode))
    assert held is not None
    workload = read(PREFILL, namespace="chat")
    fellow = GroupMember("chat", "g", "kai-scheduler", "Pod p")
    return {
        "gang": gang_variable(workload, "chat", "main", PREFILL, [fellow], [held]),
        "plan": PlanVariable(plan_workload(snapshot, workload)).of(""),
        "cluster": dict(cluster_variable(snapshot)),
    }


def test_every_variable_has_the_fields_that_policies_may_name() -> None:
    """All of them and no others, in the maps and lists within too; also where there is no plan or cluster."""
    seen = set[str]()
    for name, value in variables().items():
        seen |= compared(value, VARIABLE_FIELDS[name], name)
    assert seen >= {"gang", "gang.podSets[].constraint", "gang.beside[]", "plan.gangs[]", "cluster"}
    assert set(VARIABLE_FIELDS) == BAYPLAN_VARIABLES
    assert set(NO_CLUSTER) == set(VARIABLE_FIELDS["cluster"].fields)
    assert set(NO_PLAN) == set(VARIABLE_FIELDS["plan"].fields)


def test_the_amounts_of_a_gang_contain_the_overhead_of_its_runtime_class() -> None:
    """As ResourceQuotas count them, in created pods as well as in templates."""
    snapshot = racks(2, 4)
    classes = RuntimeClasses({"kata": RuntimeClass("kata", {"cpu": 250})})
    snapshot = replace(snapshot, base=replace(snapshot.base, runtime_classes=classes))
    job = deepcopy(PREFILL)
    job["spec"]["template"]["spec"]["runtimeClassName"] = "kata"
    before, after = (
        gang_variable(read(obj, namespace="chat"), "chat", "main", obj, snapshot=snapshot)["podSets"][0]
        for obj in (PREFILL, job)
    )
    assert after["resources"]["cpu"] == before["resources"].get("cpu", 0) + 250
    assert cluster_variable(snapshot)["runtimeClasses"] == {
        "kata": {"overhead": {"cpu": 250}, "nodeSelector": {}, "tolerations": []}
    }
