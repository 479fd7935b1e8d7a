"""DeviceTaintRules taint devices as their ResourceSlices may (Kubernetes 1.37 serves them unasked)."""

from __future__ import annotations

import pytest

from planner.model.errors import InputError
from tests.planner.devices.test_catalog import Json, answered, claiming, cluster, node, slice_of, template

TOLERATED = {"tolerations": [{"key": "repair", "operator": "Exists"}]}
TWO = (node("a"), node("b"), slice_of("a", 4), slice_of("b", 4))


def rule(selector: Json | None, effect: str = "NoSchedule", name: str = "repair") -> Json:
    """A DeviceTaintRule with this `deviceSelector`."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": {"deviceSelector": selector, "taint": {"key": "repair", "value": "now", "effect": effect}},
    }


@pytest.mark.parametrize(
    ("selector", "pods"),
    [
        ({}, 0),
        ({"driver": "gpu.nvidia.com"}, 0),
        ({"pool": "a"}, 4),
        ({"pool": "a", "device": "gpu-1"}, 7),
        ({"device": "gpu-1"}, 6),
        ({"driver": "nic.example", "pool": "a"}, 8),
        (None, 8),
        ({"deviceClassName": "gpu.nvidia.com"}, 8),
    ],
    ids=str,
)
def test_a_rule_taints_the_devices_that_its_selector_names(selector: Json | None, pods: int) -> None:
    """All of its fields must agree; an empty selector means every device, and none means no device."""
    snapshot = cluster(*TWO, rule(selector), template(1))
    assert answered(snapshot, claiming(pods + 1)).decision == "rejected"
    assert not pods or answered(snapshot, claiming(pods)).decision == "admitted"


def test_a_claim_may_tolerate_the_taint_of_a_rule() -> None:
    """As a taint in a slice."""
    assert answered(cluster(*TWO, rule({}), template(4, **TOLERATED)), claiming(2)).decision == "admitted"


def test_a_rule_without_effect_on_scheduling_keeps_nothing_away() -> None:
    """The effect None only informs."""
    assert answered(cluster(*TWO, rule({}, "None"), template(4)), claiming(2)).decision == "admitted"


def test_several_rules_taint_together() -> None:
    """In whatever order they are read."""
    rules = rule({"pool": "a"}), rule({"pool": "b"}, "NoExecute", "other")
    for ordered in (rules, rules[::-1]):
        assert answered(cluster(*ordered, *TWO, template(1)), claiming(1)).decision == "rejected"


def test_a_malformed_rule_is_refused_by_field() -> None:
    """With its name."""
    with pytest.raises(InputError, match=r"DeviceTaintRule repair: spec\.deviceSelector\.pool"):
        cluster(*TWO, rule({"pool": 3}))


def test_a_refusal_for_taints_names_them_and_the_remedy() -> None:
    """With the tolerations that it asks for the gang is admitted."""
    answer = answered(cluster(*TWO, rule({}), template(1)), claiming(1))
    assert "devices that match are tainted (repair=now:NoSchedule). Would work: tolerations" in answer.message
    assert answered(cluster(*TWO, rule({}), template(1, **TOLERATED)), claiming(1)).decision == "admitted"


def test_a_refusal_for_numbers_names_no_taint_that_changes_nothing() -> None:
    """Nine devices are too many, tainted or not."""
    joint = template(3)
    joint["spec"]["spec"]["devices"]["requests"].append(
        {"name": "more", **template(2)["spec"]["spec"]["devices"]["requests"][0]}
    )
    joint["spec"]["spec"]["devices"]["requests"][1]["name"] = "more"
    answer = answered(cluster(*TWO, rule({"device": "gpu-1"}), joint), claiming(1))
    assert "no node has all of that together. Would work: fewer devices in one pod" in answer.message
