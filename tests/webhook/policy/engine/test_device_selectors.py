"""Device selectors are evaluated by the CEL engine, as Kubernetes' scheduler evaluates them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from planner.devices.device import Device, Version
from planner.devices.selectors import meets_selector
from planner.manifests.cluster import read
from planner.model.effort.deadline import DeadlinePassed, no_deadline, watched
from planner.model.pod import ClaimUse, PodShape
from planner.model.podgroup import PodGroup, PodSet
from planner.planning.plan import plan
from webhook.policy.engine.device_selectors import DEVICE_SELECTORS, read_cluster

GPU = Device(
    "gpu.nvidia.com",
    (
        ("type", "gpu"),
        ("productName", "NVIDIA H100 80GB HBM3"),
        ("driverVersion", Version("580.65.6")),
        ("numa", 1),
        ("resource.kubernetes.io/nvlink", True),
    ),
    (("memory", 80 * 2**30),),
    complete=True,
)
OWN = "device.attributes['gpu.nvidia.com']"
MEMORY = "device.capacity['gpu.nvidia.com'].memory"

Json = dict[str, Any]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f"cel.bind(gpu, {OWN}, gpu.type == 'gpu' && gpu.numa == 1)", True),
        (f"{OWN}.numa + 1 == 2", True),
        (f"{OWN}.numa < 4 ? {OWN}.type == 'gpu' : false", True),
        (f"'h100' in {OWN}.productName.lowerAscii().split(' ')", True),
        (f"['A100', 'H100'].exists(name, {OWN}.productName.contains(name))", True),
        (f"{OWN}.productName.find('[0-9]+GB') == '80GB'", True),
        (f"'gpu' == {OWN}.type", True),
        (f'{OWN}["type"] == "gpu"', True),
        (f"{OWN}.productName == r'NVIDIA H100 80GB HBM3'", True),
        (f"{OWN}.driverVersion.major() >= 580", True),
        (f"semver('570.0.0').isLessThan({OWN}.driverVersion)", True),
        (f"{MEMORY}.isGreaterThan(quantity('40Gi').add(quantity('20Gi')))", True),
        (f"quantity('40Gi').compareTo({MEMORY}) < 0", True),
        (f"has({OWN}.driverVersion) && !has({OWN}.brand)", True),
        (f"'brand' in {OWN} || {OWN}.type == 'gpu'", True),
        (f"{OWN}.?brand.orValue('none') == 'none'", True),
        ("device.attributes['resource.kubernetes.io'].nvlink", True),
        ("device.attributes['other.example'].?size.orValue(0) == 0", True),
        ("'other.example' in device.attributes", False),
        ("!device.allowMultipleAllocations", True),
    ],
)
def test_selectors_that_need_all_of_cel_are_evaluated(expression: str, expected: bool) -> None:
    """Bindings, arithmetic, macros, optionals, either side of a comparison."""
    assert meets_selector(DEVICE_SELECTORS, expression, GPU) is expected


@pytest.mark.parametrize(
    "expression",
    [
        f"{OWN}.brand == 'x'",
        "device.attributes['other.example'].type == 'gpu'",
        f"{OWN}.type > 3",
        f"{OWN}.driverVersion == '580.65.6'",
        f"{OWN}.type",
        "dyn(null)",
    ],
)
def test_an_error_at_evaluation_means_that_the_device_is_not_given(expression: str) -> None:
    """What the scheduler would not allocate, the plan does not count on: null, a version as a string."""
    assert meets_selector(DEVICE_SELECTORS, expression, GPU) is False


@pytest.mark.parametrize(
    "expression",
    [
        f"{OWN}.brand == 'x'",
        f"has({OWN}.brand)",
        f"{OWN}.?brand.orValue('x') == 'x'",
        f"{OWN}.all(name, name != 'x')",
        "size(device.attributes) == 1",
        f"{OWN}.type == 'mig' || {OWN}.brand == 'x'",
    ],
)
def test_what_hangs_on_an_attribute_that_is_not_known_cannot_be_told(expression: str) -> None:
    """Node labels tell some attributes of a device, not all."""
    assert meets_selector(DEVICE_SELECTORS, expression, replace(GPU, complete=False)) is None


def test_an_attribute_that_tells_equal_devices_apart_cannot_be_told() -> None:
    """Devices of a kind are looked at once, so none of them has a uuid."""
    assert meets_selector(DEVICE_SELECTORS, f"{OWN}.uuid == 'GPU-1'", GPU) is None


@pytest.mark.parametrize(
    "expression",
    ["", "device.", "device.name == 'x'", "nobody == 1", f"{OWN}.type.size()", "true" + " && true" * 2_000],
)
def test_what_the_api_server_refuses_cannot_be_told(expression: str) -> None:
    """It does not compile, gives no truth value, or is too long."""
    assert meets_selector(DEVICE_SELECTORS, expression, GPU) is None


def test_an_expression_that_costs_too_much_cannot_be_told() -> None:
    """It is stopped at the API's limit of cost."""
    many = "[" + ",".join("0123456789") + "]"
    nested = (
        f"{many}.all(a, {many}.all(b, {many}.all(c, {many}.all(d, {many}.all(e, {many}.all(f, a >= 0))))))"
    )
    assert meets_selector(DEVICE_SELECTORS, nested, GPU) is None


TRAIN = PodGroup(
    "team/Job/train", (PodSet("main", 1, PodShape({}, claims=(ClaimUse("slice", True),))),), reserve="nodes"
)
"""A pod with a claim from the template."""


def node_with(devices: Sequence[Json], *selectors: str) -> list[tuple[str, object]]:
    """A node a with devices of these attributes, and a template of a claim with these selectors."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "a", "labels": {"kubernetes.io/hostname": "a"}},
        "status": {"allocatable": {"cpu": "64"}},
    }
    offered = [
        {"name": f"gpu-{number}", "attributes": {name: {"string": value} for name, value in device.items()}}
        for number, device in enumerate(devices)
    ]
    offer = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "a"},
        "spec": {"driver": "gpu.nvidia.com", "nodeName": "a", "pool": {"name": "a"}, "devices": offered},
    }
    request: Json = {
        "deviceClassName": "gpu.nvidia.com",
        "selectors": [{"cel": {"expression": text}} for text in selectors],
    }
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "slice", "namespace": "team"},
        "spec": {"spec": {"devices": {"requests": [{"name": "slice", "exactly": request}]}}},
    }
    return [("cluster", [node, offer, template])]


def test_each_evaluation_checks_the_deadline_of_the_decision() -> None:
    """Anybody may write a claim with a thousand selectors, each as costly as is allowed."""
    selector = DEVICE_SELECTORS.compile("[1, 2].all(x, [1, 2].all(y, x + y > 0))")
    with watched(no_deadline):
        assert selector(GPU) is True
    with watched(lambda: True), pytest.raises(DeadlinePassed):
        selector(GPU)


def test_each_pattern_that_is_compiled_checks_the_deadline_of_the_decision() -> None:
    """A selector of 10 kB may have 300 constant patterns, of which RE2 takes 0.1 s for each."""
    checks: list[None] = []

    def late() -> bool:
        checks.append(None)
        return len(checks) > 3

    text = " || ".join(f"'a'.matches('\\\\pL{{1,50}}x{n}')" for n in range(20))
    with watched(late), pytest.raises(DeadlinePassed):
        DEVICE_SELECTORS.compile(text)


def test_each_match_of_an_evaluation_checks_the_deadline_of_the_decision() -> None:
    """The pattern may come from the device, and is compiled then."""
    checks: list[None] = []
    selector = DEVICE_SELECTORS.compile("[1, 2, 3].all(n, device.driver.matches('^' + device.driver))")

    def late() -> bool:
        checks.append(None)
        return False

    with watched(late):
        assert selector(GPU) is True
    assert len(checks) > 3


def test_without_an_engine_every_selector_is_taken_to_hold_and_the_plan_says_so() -> None:
    """The planner has no CEL of its own, and guesses at none."""
    documents = node_with([{"type": "gpu"}], f"{OWN}.type == 'mig'")
    assert plan(read_cluster(documents), TRAIN).reason == "NoSuchDevice"
    answer = plan(read(documents), TRAIN)
    assert answer.decision == "admitted"
    assert any("no CEL engine reads the selector" in text for text in answer.warnings)


@pytest.mark.parametrize(
    ("selectors", "warns"),
    [
        ([f"{OWN}.productName == 'H100'"], True),
        ([f"has({OWN}.productName) && {OWN}.productName == 'H100'"], False),
        ([f"has({OWN}.productName)", f"{OWN}.productName == 'H100'"], False),
        ([f"{OWN}.productName == 'H100'", f"has({OWN}.productName)"], True),
        ([f"{OWN}.?productName.orValue('') == 'H100'"], False),
    ],
)
def test_a_plan_warns_of_a_selector_that_ends_the_allocation_of_the_scheduler(
    selectors: list[str], warns: bool
) -> None:
    """gpu-0 lacks the attribute. The scheduler comes to it first, and gives nothing; gpu-1 would match."""
    documents = node_with([{"type": "gpu"}, {"type": "gpu", "productName": "H100"}], *selectors)
    answer = plan(read_cluster(documents), TRAIN)
    assert answer.decision == "admitted"
    error_warnings = [
        text for text in answer.warnings if "ends in an error on a device of node a, no such key" in text
    ]
    assert len(error_warnings) == int(warns), answer.warnings
