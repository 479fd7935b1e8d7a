"""The policies that ship, folder by folder, on every kind of workload and example cluster, in any order."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.policies.helpers import FOLDERS, Json, cluster, mutate, policies, with_parameters
from tests.webhook.workloads.objects import EVERY, GPU, JOB, LWS, POD, annotated, changed, pod_template
from webhook.admission.decision_record import Decision

CLUSTERS = ("superpod-32", "nvl72-8racks", "mig-pool")
RACK = {"kai.scheduler/topology-required-placement": "cloud.provider.com/topology-rack"}
GROUP = {"schedulingGroup": {"podGroupName": "pair"}}
SCHEDULED: tuple[Json, ...] = (
    changed(JOB, ("metadata", "labels"), {"kueue.x-k8s.io/queue-name": "research"}),
    changed(JOB, ("metadata", "labels"), {"runai/queue": "vision"}),
    changed(JOB, ("metadata", "labels"), {"kai.scheduler/node-pool": "h100"}),
    annotated(JOB, {**RACK, "kai.scheduler/segment-size": "2"}),
    annotated(JOB, {"topology.scheduler/placement-strategy": "distributed"}),
    annotated(POD, {"bayplan.dev/gang": "pair", "bayplan.dev/gang-size": "2"}),
    annotated(POD, {"bayplan.dev/gpu-memory": "40G"}),
    annotated(POD, {"gpu-fraction": "0.5"}),
    changed(POD, ("metadata", "name"), "llama-decode-0"),
    changed(LWS, ("metadata", "name"), "llama-prefill"),
    changed(POD, ("spec",), {**pod_template()["spec"], **GROUP}),
    changed(POD, ("spec",), pod_template(0, limits={"nvidia.com/mig-1g.10gb": 1})["spec"]),
    changed(POD, ("spec",), pod_template(8, limits={"rdma/ib": 8})["spec"]),
    {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "spec": {},
     "metadata": {"name": "pair", "namespace": "team", "annotations": RACK}},
    {"apiVersion": "scheduling.run.ai/v2", "kind": "PodGroup", "metadata": {"name": "g", "namespace": "team"},
     "spec": {"minMember": 2, "topologyPolicy": {"scope": "rack"}}},
)  # fmt: skip
"""What single policies look for: queues, pools, keys of each system, roles, groups, slices, adapters."""
OBJECTS = (*EVERY, *SCHEDULED)


def sized(obj: Json, where: str) -> Json:
    """The object with as many GPUs a pod as a node of that cluster has at most."""
    return json.loads(json.dumps(obj).replace(f'"{GPU}": 8', f'"{GPU}": 4')) if "nvl72" in where else obj


def failures(decision: Decision) -> list[str]:
    """What says that an expression of a policy could not be evaluated, or that something broke inside."""
    messages = [decision.response.message, *decision.response.warnings]
    return [
        text for text in messages if re.search(r"policy '[\w-]+', spec\.|Traceback|Error\(|NoneType", text)
    ]


@pytest.mark.parametrize("where", CLUSTERS)
@pytest.mark.parametrize("folder", FOLDERS)
def test_each_folder_alone_answers_for_every_kind_on_every_cluster(folder: str, where: str) -> None:
    """No expression fails; what is let in needs nothing more on a second pass."""
    for obj in OBJECTS:
        first = mutate(sized(obj, where), policies(folder), cluster(where))
        assert failures(first) == [], obj
        if first.response.allowed and first.effects:
            second = mutate(dict(first.object or {}), policies(folder), cluster(where))
            assert list(second.response.patch) == [], obj


PARAMETERS: tuple[dict[str, Any], ...] = (
    {},
    {"kueue-topology.queue": "research"},
    {"guaranteed-qos.direction": "cut", "numa-alignment.action": "warn"},
    {"native-gang.adopt": "true", "rdma-fabric.resource": "rdma/ib", "nccl-env.ib-hca": "mlx5_0"},
    {"rdma-fabric.network": "roce", "runai-defaults.scheduler": "kai-scheduler"},
)


@settings(max_examples=40, phases=(Phase.explicit, Phase.generate))
@given(
    obj=st.sampled_from(OBJECTS),
    where=st.sampled_from(("", *CLUSTERS)),
    data=st.sampled_from(PARAMETERS),
    switched_off=st.sets(st.sampled_from(FOLDERS)),
    random=st.randoms(use_true_random=False),
)
def test_any_of_the_policies_in_any_order_come_to_rest(
    obj: Json, where: str, data: dict[str, Any], switched_off: set[str], random: Any
) -> None:
    """Any subset, in any order, under any parameters: one pass is enough, and none fails.

    Those that read the plan come after those that do not, as the engine has it (decision 2).
    """
    every = with_parameters(**data, **{f"{name}.enabled": "false" for name in switched_off})
    order = list(every.mutating)
    random.shuffle(order)
    order.sort(key=lambda policy: "plan" in policy.uses)
    using, on = replace(every, mutating=tuple(order)), cluster(where) if where else None
    first = mutate(sized(copy.deepcopy(obj), where), using, on)
    assert failures(first) == []
    if first.response.allowed:
        second = mutate(dict(first.object or {}), using, on)
        assert list(second.response.patch) == []
