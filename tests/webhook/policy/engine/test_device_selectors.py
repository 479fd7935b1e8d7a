"""Device selectors are evaluated by the CEL engine, as Kubernetes' scheduler evaluates them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.devices.device import Device, Version
from planner.devices.selectors import meets_selector
from planner.manifests.cluster import read
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
    ],
)
def test_an_error_at_evaluation_means_that_the_device_is_not_given(expression: str) -> None:
    """What the scheduler would not allocate, the plan does not count on; a version is no string."""
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


def test_without_an_engine_every_selector_is_taken_to_hold_and_the_plan_says_so() -> None:
    """The planner has no CEL of its own, and guesses at none."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "a", "labels": {"kubernetes.io/hostname": "a"}},
        "status": {"allocatable": {"cpu": "64"}},
    }
    device = {"name": "gpu-0", "attributes": {"type": {"string": "gpu"}}}
    pool = {"name": "a"}
    offer = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "a"},
        "spec": {"driver": "gpu.nvidia.com", "nodeName": "a", "pool": pool, "devices": [device]},
    }
    selector = {"cel": {"expression": f"{OWN}.type == 'mig'"}}
    request: Json = {"deviceClassName": "gpu.nvidia.com", "selectors": [selector]}
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "slice", "namespace": "team"},
        "spec": {"spec": {"devices": {"requests": [{"name": "slice", "exactly": request}]}}},
    }
    shape = PodShape({}, claims=(ClaimUse("slice", True),))
    gang = PodGroup("team/Job/train", (PodSet("main", 1, shape),), reserve="nodes")
    documents: list[tuple[str, object]] = [("cluster", [node, offer, template])]
    assert plan(read_cluster(documents), gang).reason == "NoSuchDevice"
    answer = plan(read(documents), gang)
    assert answer.decision == "admitted"
    assert any("no CEL engine reads the selector" in text for text in answer.warnings)
