"""Malformed objects and parameters: a refusal or a warning in words, never an internal error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.policies.helpers import Json, cluster, mutate, with_parameters
from tests.policies.test_matrix import OBJECTS
from tests.webhook.workloads.objects import JOB, POD, changed
from webhook.workloads import KEYS

JUNK = st.sampled_from(
    [None, "", "text", "8", 0, -1, 10**12, 1.5, True, [], ["a"], [None], [{}], {}, {"a": "b"}, {"a": None}]
)
INTERNAL = ("Traceback", "Error(", "object at 0x", "NoneType", "KeyError")


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of every value inside an object."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in steps:
        yield (*path, step)
        yield from places(item, (*path, step))


PLACES = [
    (manifest, path)
    for manifest in OBJECTS
    for path in places(manifest)
    if path not in (("apiVersion",), ("kind",))
]


@settings(max_examples=250)
@given(st.sampled_from(PLACES), JUNK, st.booleans())
def test_one_wrong_value_anywhere_gets_words(
    place: tuple[Json, tuple[str | int, ...]], junk: Any, with_cluster: bool
) -> None:
    """Whatever stands wherever, the answer is a decision, and its words are for people."""
    obj, path = place
    decision = mutate(changed(obj, path, junk), on=cluster("superpod-32") if with_cluster else None)
    messages = [decision.response.message, *decision.response.warnings]
    assert not [text for text in messages for word in INTERNAL if word in text]
    assert all(len(text) < 1_500 for text in messages)


RICH = changed(POD, ("spec",), {
    "hostNetwork": True,
    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}],
    "containers": [{
        "name": "main",
        "image": "trainer:1",
        "env": [{"name": "NCCL_IB_HCA", "value": "mlx5_1"}],
        "envFrom": [],
        "securityContext": {"capabilities": {"add": ["SYS_PTRACE"]}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "resources": {"limits": {"nvidia.com/gpu": 1, "rdma/ib": 1}, "claims": [{"name": "gpu"}]},
    }],
})  # fmt: skip
"""A pod with what the policies of fabrics and claims look at."""


@settings(max_examples=60)
@given(st.sampled_from([path for path in places(RICH) if path[0] == "spec"]), JUNK)
def test_one_wrong_value_in_a_fabrics_pod_fails_no_policy(path: tuple[str | int, ...], junk: Any) -> None:
    """What is malformed is the API server's to refuse; the policies look past it."""
    decision = mutate(changed(RICH, path, junk), on=cluster("nvl72-8racks"))
    messages = [decision.response.message, *decision.response.warnings]
    assert not [text for text in messages for word in INTERNAL if word in text]
    ours = ("compute-domain", "dra-gpus", "nccl-env", "numa-alignment", "rdma-fabric")
    assert not [
        text for text in messages for name in ours if re.search(rf"policy '{name}[a-z-]*', spec\.", text)
    ]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("guaranteed-qos.cpu-per-gpu", "lots"),
        ("guaranteed-qos.memory-per-gpu", "64 gigabytes"),
        ("guaranteed-qos.threads-per-core", "two"),
    ],
)
def test_a_parameter_that_is_no_number_is_told_and_the_rest_goes_on(key: str, value: str) -> None:
    """The pod is let in with a warning that names the policy; the other policies still run."""
    bare = changed(POD, ("spec", "containers", 0, "resources", "limits"), {"nvidia.com/gpu": 1})
    decision = mutate(bare, with_parameters(**{key: value}))
    assert decision.response.allowed
    assert any("guaranteed-qos" in warning for warning in decision.response.warnings)
    assert {effect.policy for effect in decision.effects} == {"kai-queue", "scheduler-name"}


def test_parameters_of_the_wrong_type_count_as_what_they_say() -> None:
    """A ConfigMap from a file may hold numbers that nobody quoted."""
    policy_set = with_parameters(**{"guaranteed-qos.cpu-per-gpu": 4, "guaranteed-qos.memory-per-gpu": "16Gi"})
    (container,) = mutate(JOB, policy_set).object["spec"]["template"]["spec"]["containers"]  # type: ignore[index]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 2, "cpu": "8", "memory": "32Gi"}


def test_a_quantity_that_is_none_is_refused_by_field() -> None:
    """The refusal names the field, the value and how to write one."""
    lots = changed(POD, ("spec", "containers", 0, "resources", "limits", "cpu"), "lots")
    message = mutate(lots).response.message
    assert "spec.containers[0].resources.limits.cpu" in message
    assert "'lots' is no quantity" in message


KEYED = (
    *(key.name for key in KEYS),
    *(f"bayplan.dev/{name}" for name in (
        "gang", "gang-size", "gang-min", "reserve", "on-unavailable", "balanced-slices", "skip", "placement",
        "reservation", "numa-alignment", "gpu-product", "gpu-family", "gpu-memory", "gpu-count",
        "gpu-interconnect",
    )),
    "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices", "pod-group-name",
    "kai.scheduler/batch-min-member",
    "kai.scheduler/queue", "kai.scheduler/node-pool", "kueue.x-k8s.io/queue-name", "runai/queue",
    "scheduling.run.ai/pod-group", "scheduling.run.ai/topology-policy", "scheduling.run.ai/topology-role",
    "scheduling.k8s.io/group-name", "k8s.v1.cni.cncf.io/networks",
)  # fmt: skip
"""Every annotation or label that some policy or the planner reads."""
METADATA_VALUES = st.sampled_from(
    ["", "x", "rack", "true", "0", "-1", "0.5", "80G", "9" * 40, "a,b", "[", "é", None, 3, 1.5, False, [], {}]
)


@settings(max_examples=120, phases=(Phase.explicit, Phase.generate))
@given(
    st.sampled_from(OBJECTS),
    st.dictionaries(st.sampled_from(KEYED), METADATA_VALUES, min_size=1, max_size=4),
    st.sampled_from(["annotations", "labels"]),
    st.sampled_from(["", "superpod-32", "nvl72-8racks", "mig-pool"]),
)
def test_keys_that_say_nonsense_or_contradict_each_other_get_words(
    obj: Json, metadata: Json, part: str, where: str
) -> None:
    """Whatever keys say, of whichever system, alone or together; no policy fails on them."""
    odd = changed(obj, ("metadata", part), metadata)
    decision = mutate(odd, on=cluster(where) if where else None)
    texts = [decision.response.message, *decision.response.warnings]
    assert not [text for text in texts for word in INTERNAL if word in text]
    assert not [text for text in texts if re.search(r"policy '[a-z-]+', (spec|match)", text)], texts
    assert decision.response.allowed or decision.response.message
