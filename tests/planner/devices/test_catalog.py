"""The plan counts GPUs and MIG slices that pods request by claim, together with those requested by limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.cluster.snapshot import Snapshot
from planner.devices.device import Device, Version
from planner.devices.selectors import meets_selector
from planner.model.answer import Answer
from planner.model.pod import ClaimUse, PodShape
from planner.model.podgroup import FabricWish, PodGroup, PodSet
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import GPU
from tests.effort import cpu_seconds
from webhook.policy.engine.device_selectors import DEVICE_SELECTORS, read_cluster

Json = dict[str, Any]
H100 = "NVIDIA-H100-80GB-HBM3"


def node(name: str, gpus: int = 0, product: str = H100, **other: str) -> Json:
    """A node whose device plugin offers this many GPUs."""
    labels = {"kubernetes.io/hostname": name, "nvidia.com/gpu.product": product}
    offers = {"cpu": "64", "memory": "512Gi", **({GPU: str(gpus)} if gpus else {})}
    labels |= {key: value for key, value in other.items() if not key.startswith("nvidia.com/mig-")}
    offers |= {key: value for key, value in other.items() if key.startswith("nvidia.com/mig-")}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": offers}}


def slice_of(name: str, count: int, **attributes: str) -> Json:
    """A ResourceSlice of a node with this many equal devices, whole GPUs by default."""
    strings = {"type": "gpu", "productName": "NVIDIA H100 80GB HBM3", "uuid": "x"} | attributes
    kind = strings["type"] + strings.get("profile", "")
    devices = [
        {
            "name": f"{kind}-{place}",
            "attributes": {f"gpu.nvidia.com/{key}": {"string": value} for key, value in strings.items()},
            "capacity": {"memory": {"value": "80Gi"}},
        }
        for place in range(count)
    ]
    spec = {"driver": "gpu.nvidia.com", "nodeName": name, "pool": {"name": name}, "devices": devices}
    metadata = {"name": f"{name}-{kind}"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": metadata, "spec": spec}


def template(count: int = 1, *selectors: str, device_class: str = "gpu.nvidia.com", **fields: Any) -> Json:
    """The template `gpus` of namespace team."""
    request: Json = {"deviceClassName": device_class, "count": count, **fields}
    request["selectors"] = [{"cel": {"expression": text}} for text in selectors]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpus", "namespace": "team"},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpus", "exactly": request}]}}},
    }


def pod(name: str, on: str, claim: str = "gpus", **fields: Any) -> Json:
    """A bound pod with the template's devices."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "team", **fields},
        "spec": {
            "nodeName": on,
            "containers": [{"name": "c"}],
            "resourceClaims": [{"name": "g", "resourceClaimTemplateName": claim}],
        },
    }


def cluster(*objects: Json) -> Snapshot:
    """The snapshot."""
    return read_cluster([("cluster", list(objects))])


def claiming(count: int = 1, source: str = "gpus", name: str = "team/Job/train", **requests: int) -> PodGroup:
    """A gang of this many pods, each with a claim from the template."""
    shape = PodShape({"pods": 1, **requests}, claims=(ClaimUse(source, True),))
    return PodGroup(name, (PodSet("main", count, shape),), reserve="nodes")


def asking(gpus: int) -> PodGroup:
    """A pod with GPUs in its limits."""
    return PodGroup(
        "team/Job/limits", (PodSet("main", 1, PodShape({GPU: gpus, "pods": 1})),), reserve="nodes"
    )


def answered(snapshot: Snapshot, group: PodGroup) -> Answer:
    """The result for the gang."""
    return plan(snapshot, group)


def after(snapshot: Snapshot, group: PodGroup) -> Snapshot:
    """The cluster with the gang's reservation."""
    reservation = reservation_for(snapshot, group, plan(snapshot, group))
    assert reservation is not None
    return snapshot.with_reservation(reservation)


def test_claimed_gpus_are_taken_from_the_slices_of_the_nodes() -> None:
    """Two nodes of 4: four pods of 2 fit, five do not."""
    snapshot = cluster(node("a"), node("b"), slice_of("a", 4), slice_of("b", 4), template(2))
    assert answered(snapshot, claiming(4)).decision == "admitted"
    assert answered(snapshot, claiming(5)).decision == "rejected"


def test_without_slices_they_are_the_gpus_of_the_device_plugin() -> None:
    """The number is the node's allocatable amount."""
    snapshot = cluster(node("a", 4), template(2))
    assert answered(snapshot, claiming(2)).decision == "admitted"
    assert answered(snapshot, claiming(3)).decision == "rejected"


def test_without_slices_and_plugin_the_label_tells() -> None:
    """The number is the GPU count label of GPU feature discovery."""
    snapshot = cluster(node("a", **{"nvidia.com/gpu.count": "4"}), template(2))
    assert answered(snapshot, claiming(2)).decision == "admitted"
    assert answered(snapshot, claiming(3)).decision == "rejected"


@pytest.mark.parametrize("slices", [(), (slice_of("a", 4),)])
def test_claims_and_limits_never_both_get_one_gpu(slices: tuple[Json, ...]) -> None:
    """A node that offers its 4 GPUs in both ways."""
    snapshot = cluster(node("a", 4), template(3), *slices)
    assert answered(after(snapshot, claiming(1)), asking(2)).decision == "queued"
    assert answered(after(snapshot, claiming(1)), asking(1)).decision == "admitted"
    assert answered(after(snapshot, asking(2)), claiming(1)).decision == "queued"
    assert answered(after(snapshot, asking(1)), claiming(1)).decision == "admitted"


def test_a_gang_that_asks_in_both_ways_is_packed_together() -> None:
    """One pod by claim and one by limits on one node of 4 GPUs."""
    claims = PodShape({"pods": 1}, claims=(ClaimUse("gpus", True),))
    pod_sets = (PodSet("claims", 1, claims), PodSet("limits", 1, PodShape({GPU: 2, "pods": 1})))
    group = PodGroup("team/Job/both", pod_sets, reserve="nodes")
    assert answered(cluster(node("a", 4), slice_of("a", 4), template(2)), group).decision == "admitted"
    assert answered(cluster(node("a", 4), slice_of("a", 4), template(3)), group).decision == "rejected"


def test_limits_cannot_have_what_only_claims_reach() -> None:
    """The node has no device plugin."""
    snapshot = cluster(node("a"), slice_of("a", 4))
    assert answered(snapshot, asking(1)).decision == "rejected"


def test_a_node_without_a_slice_gives_nothing_to_claims_where_others_have_one() -> None:
    """No driver runs there."""
    snapshot = cluster(node("a", 8), node("b"), slice_of("b", 1), template(1))
    (assignment,) = answered(snapshot, claiming(1)).assignments
    assert assignment.node == "b"
    assert answered(snapshot, claiming(2)).decision == "rejected"


def test_bound_pods_use_what_they_claim() -> None:
    """By their template, once each."""
    snapshot = cluster(node("a"), slice_of("a", 4), template(2), pod("x", "a"))
    assert answered(snapshot, claiming(1)).decision == "admitted"
    assert answered(snapshot, claiming(2)).decision == "queued"


def test_pods_that_share_a_claim_use_its_devices_once() -> None:
    """A ResourceClaim that two pods name."""
    claim = {**template(3), "kind": "ResourceClaim"}
    claim["spec"] = claim["spec"]["spec"]
    claim["metadata"] = {"name": "shared", "namespace": "team"}
    two = [pod(name, "a") for name in ("x", "y")]
    for bound_pod in two:
        bound_pod["spec"]["resourceClaims"] = [{"name": "g", "resourceClaimName": "shared"}]
    snapshot = cluster(node("a"), slice_of("a", 4), template(1), claim, *two)
    assert answered(snapshot, claiming(1)).decision == "admitted"
    assert answered(snapshot, claiming(2)).decision == "queued"


def test_an_allocation_tells_which_alternative_a_bound_pod_has() -> None:
    """Four slices instead of a whole GPU."""
    either = template()
    either["spec"]["spec"]["devices"]["requests"] = [
        {
            "name": "any",
            "firstAvailable": [
                {"deviceClassName": "gpu.nvidia.com"},
                {"deviceClassName": "mig.nvidia.com", "count": 2},
            ],
        }
    ]
    bound = pod("x", "a")
    bound["status"] = {"resourceClaimStatuses": [{"name": "g", "resourceClaimName": "x-g"}]}
    resource_claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "x-g", "namespace": "team"},
        "spec": either["spec"]["spec"],
        "status": {
            "allocation": {
                "devices": {
                    "results": [
                        {"driver": "gpu.nvidia.com", "pool": "a", "device": f"mig1g.10gb-{place}"}
                        for place in (0, 1)
                    ]
                }
            }
        },
    }
    slices = (slice_of("a", 1), slice_of("a", 2, type="mig", profile="1g.10gb"))
    snapshot = cluster(node("a"), *slices, either, bound, resource_claim)
    assert snapshot.taken_on("a") == {"pods": 1, "mig.nvidia.com/1g.10gb": 2, "mig.nvidia.com": 2}
    assert answered(snapshot, claiming(1)).decision == "admitted"


def test_a_reserved_claim_is_counted_once_when_its_pod_is_bound() -> None:
    """The seat covers its devices."""
    empty = cluster(node("a"), slice_of("a", 4), template(2))
    held = after(empty, claiming(2))
    ids = {"annotations": {"bayplan.dev/reservation": held.reservations[0].id}}
    bound = cluster(node("a"), slice_of("a", 4), template(2), pod("x", "a", **ids), pod("y", "a", **ids))
    assert bound.with_reservation(held.reservations[0]).taken_on("a")["gpu.nvidia.com"] == 4


MIG = "device.attributes['gpu.nvidia.com'].profile == '{}'"


def test_slices_are_counted_by_profile_and_together() -> None:
    """Two 3g and seven 1g; a claim without a profile takes any of them."""
    slices = (
        slice_of("a", 2, type="mig", profile="3g.40gb"),
        slice_of("a", 7, type="mig", profile="1g.10gb"),
    )
    mig = {"device_class": "mig.nvidia.com"}
    small = cluster(node("a"), *slices, template(1, MIG.format("3g.40gb"), **mig))
    assert answered(small, claiming(2)).decision == "admitted"
    assert answered(small, claiming(3)).decision == "rejected"
    whichever = cluster(node("a"), *slices, template(1, **mig))
    assert answered(whichever, claiming(9)).decision == "admitted"
    assert answered(whichever, claiming(10)).decision == "rejected"


def test_slices_of_the_device_plugin_serve_claims_where_no_slice_object_is_known() -> None:
    """By the name of the profile's resource."""
    mig = {"device_class": "mig.nvidia.com"}
    snapshot = cluster(
        node("a", **{"nvidia.com/mig-1g.10gb": "7"}), template(4, MIG.format("1g.10gb"), **mig)
    )
    assert answered(snapshot, claiming(1)).decision == "admitted"
    assert answered(snapshot, claiming(2)).decision == "rejected"


def test_a_selector_keeps_to_the_nodes_that_have_such_devices() -> None:
    """Of two products one; from slices, and from labels."""
    a100 = {"productName": "NVIDIA A100 80GB"}
    asks = template(1, "device.attributes['gpu.nvidia.com'].productName.matches('H100')")
    sliced = cluster(node("a"), node("b"), slice_of("a", 4, **a100), slice_of("b", 1), asks)
    labelled = cluster(node("a", 4, "NVIDIA-A100-80GB"), node("b", 1), asks)
    for snapshot in (sliced, labelled):
        assert [assignment.node for assignment in answered(snapshot, claiming(1)).assignments] == ["b"]
        assert answered(snapshot, claiming(2)).decision == "rejected"


def test_devices_that_nobody_offers_are_refused_with_what_there_is() -> None:
    """By class, selector and template."""
    snapshot = cluster(
        node("a"), slice_of("a", 4), template(1, MIG.format("9g.9gb"), device_class="mig.nvidia.com")
    )
    answer = answered(snapshot, claiming(1))
    assert (answer.decision, answer.reason) == ("rejected", "NoSuchDevice")
    for words in ("mig.nvidia.com", "9g.9gb", "template gpus", "NVIDIA H100 80GB HBM3"):
        assert words in answer.message


def test_a_gpu_is_no_remedy_for_a_claim_of_another_class() -> None:
    """A network adapter that no node offers, beside GPUs by slices and by labels; and one of another kind."""

    def adapters(selector: str) -> tuple[Json, ...]:
        driver = [{"cel": {"expression": "device.driver == 'nic.example.com'"}}]
        kind = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass"}
        asks = template(1, selector, device_class="nics")
        return {**kind, "metadata": {"name": "nics"}, "spec": {"selectors": driver}}, asks

    fast = adapters("device.attributes['nic.example.com'].speed == 'fast'")
    for gpus in ((node("a"), slice_of("a", 4)), (node("a", 4),)):
        answer = answered(cluster(*gpus, *fast), claiming(1))
        assert (answer.decision, answer.reason) == ("rejected", "NoSuchDevice")
        assert answer.message.endswith("and no node offers one, nor any other of this class.")
    slow = slice_of("a", 1)
    slow["metadata"]["name"] = "nics"
    slow["spec"] |= {"driver": "nic.example.com", "pool": {"name": "nics"}}
    slow["spec"]["devices"] = [{"name": "n", "attributes": {"speed": {"string": "slow"}}}]
    answer = answered(cluster(node("a"), slice_of("a", 4), slow, *fast), claiming(1))
    assert answer.message.endswith("and no node offers one. Would work: one of nic.example.com.")


def test_more_devices_than_any_node_has_are_refused_with_the_most() -> None:
    """Nine of four."""
    answer = answered(cluster(node("a"), slice_of("a", 4), template(9)), claiming(1))
    assert (answer.decision, answer.reason) == ("rejected", "NoSuchDevice")
    assert "no node has more than 4" in answer.message
    assert "4 or less a pod" in answer.message


def test_all_devices_of_a_node_are_as_many_as_its_nodes_have() -> None:
    """Of a node of 4 and one of 8 each pod gets all that its own node has."""
    everything = template(allocationMode="All")
    snapshot = cluster(node("a"), slice_of("a", 4), everything)
    assert answered(snapshot, claiming(2)).decision == "rejected"
    mixed = cluster(node("a"), node("b"), slice_of("a", 4), slice_of("b", 8), everything)
    answer = answered(mixed, claiming(2))
    assert (answer.decision, answer.warnings) == ("admitted", ())
    assert sorted(assignment.node for assignment in answer.assignments) == ["a", "b"]
    assert answered(mixed, claiming(3)).decision == "rejected"


def test_without_slices_all_devices_are_counted_where_nodes_have_the_same_number() -> None:
    """Else it is said that they are not."""
    everything = template(allocationMode="All")
    answer = answered(cluster(node("a", 4), node("b", 8), everything), claiming(2))
    assert answer.decision == "admitted"
    assert any("4, 8: not planned" in text for text in answer.warnings)


def test_a_first_alternative_that_no_node_has_is_passed_over() -> None:
    """The second is planned."""
    either = template()
    either["spec"]["spec"]["devices"]["requests"] = [
        {
            "name": "any",
            "firstAvailable": [
                {"deviceClassName": "mig.nvidia.com"},
                {"deviceClassName": "gpu.nvidia.com", "count": 2},
            ],
        }
    ]
    snapshot = cluster(node("a"), slice_of("a", 4), either)
    assert answered(snapshot, claiming(2)).decision == "admitted"
    assert answered(snapshot, claiming(3)).decision == "rejected"


def test_a_class_of_the_clusters_own_is_known_by_its_object() -> None:
    """Selectors of the class and of the request both hold."""
    own = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "big"},
        "spec": {
            "selectors": [
                {"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}},
                {
                    "cel": {
                        "expression": "device.capacity['gpu.nvidia.com'].memory"
                        ".compareTo(quantity('40Gi')) >= 0"
                    }
                },
            ]
        },
    }
    snapshot = cluster(node("a"), slice_of("a", 4), own, template(3, device_class="big"))
    assert answered(snapshot, claiming(1)).decision == "admitted"
    assert answered(snapshot, claiming(2)).decision == "rejected"


@pytest.mark.parametrize(
    ("objects", "source", "warning"),
    [
        ((template(1),), "other", "claim template other is not known in team"),
        ((template(1, device_class="nic.example"),), "gpus", "devices of class nic.example"),
        (
            (template(1, "device.attributes['gpu.nvidia.com'].size() > 3"),),
            "gpus",
            "cannot be evaluated",
        ),
    ],
)
def test_what_cannot_be_told_is_said(objects: tuple[Json, ...], source: str, warning: str) -> None:
    """And the gang is planned without it."""
    answer = answered(cluster(node("a"), slice_of("a", 4), *objects), claiming(1, source))
    assert answer.decision == "admitted"
    assert any(warning in text for text in answer.warnings)


def test_devices_whose_counters_no_slice_tells_are_not_there() -> None:
    """As Kubernetes has it: such a pool is invalid."""
    partitioned = slice_of("a", 7, type="mig", profile="1g.10gb")
    for device in partitioned["spec"]["devices"]:
        device["consumesCounters"] = [{"counterSet": "gpu-0", "counters": {"memory": {"value": "1"}}}]
    snapshot = cluster(
        node("a"), partitioned, template(1, MIG.format("1g.10gb"), device_class="mig.nvidia.com")
    )
    assert answered(snapshot, claiming(1)).reason == "NoSuchDevice"


def test_a_planned_gang_with_claims_keeps_its_place() -> None:
    """Asked again it is replayed; an administrator's look at devices takes none."""
    snapshot = cluster(node("a"), slice_of("a", 4), template(4))
    assert answered(after(snapshot, claiming(1)), claiming(1)).replayed
    looking = cluster(node("a"), slice_of("a", 4), template(4, adminAccess=True))
    assert answered(looking, claiming(9)).decision == "admitted"


H100_DEVICE = Device(
    "gpu.nvidia.com",
    (
        ("type", "gpu"),
        ("productName", "NVIDIA H100"),
        ("cudaComputeCapability", Version("9.0.0")),
        ("mig", True),
    ),
    (("memory", 80 * 2**30),),
)
OWN = "device.attributes['gpu.nvidia.com']"


def meets(expression: str, device: Device) -> bool | None:
    """Returns whether the CEL engine finds that the device satisfies the expression."""
    return meets_selector(DEVICE_SELECTORS, expression, device)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f"{OWN}.type == 'gpu'", True),
        (f"{OWN}.type != 'gpu'", False),
        ('device.attributes["gpu.nvidia.com/type"] == "gpu"', None),  # the API server refuses it
        (f"device.driver == 'gpu.nvidia.com' && {OWN}.type == 'mig'", False),
        (f"{OWN}.productName.lowerAscii().matches('^.*h100.*$')", True),
        (f"{OWN}.productName.startsWith('AMD') || {OWN}.productName.contains('H1')", True),
        (f"{OWN}.productName in ['NVIDIA A100', 'NVIDIA H100']", True),
        (f"!({OWN}.type == 'gpu')", False),
        (f"{OWN}.mig", True),
        ("device.capacity['gpu.nvidia.com'].memory.isGreaterThan(quantity('80Gi'))", False),
        ("device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0", True),
        (f"{OWN}.cudaComputeCapability.compareTo(semver('8.9.0')) > 0", True),
        (f"{OWN}.cudaComputeCapability.isLessThan(semver('8.9.0'))", False),
        (f"{OWN}.nothing == 'x'", None),
        (f"{OWN}.type == 'gpu' || {OWN}.nothing == 'x'", True),
        (f"{OWN}.type == 'gpu' && {OWN}.nothing == 'x'", None),
        (f"{OWN}.productName.matches('(')", None),
        ("has(device.x)", None),
        ("((((", None),
        ("", None),
        ("!" * 9000, None),
    ],
)
def test_simple_selectors_are_read_and_others_are_unknown(expression: str, expected: bool | None) -> None:
    """True, false, or None for what says more."""
    assert meets(expression, H100_DEVICE) is expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f"{OWN}.nothing == 'x'", False),
        (f"!({OWN}.nothing == 'x')", False),
        (f"{OWN}.nothing != 'x' || {OWN}.type == 'gpu'", True),
        (f"{OWN}.nothing == 'x' && {OWN}.type == 'mig'", False),
        (f"{OWN}.nothing == 'x' || has(device.x)", None),
        (f"{OWN}.nothing == 'x' && has(device.x)", None),
        (f"!({OWN}.nothing == 'x' && {OWN}.type == 'mig')", True),
        ("device.capacity['gpu.nvidia.com'].nothing.compareTo(quantity('1')) >= 0", False),
        (f"{OWN}.uuid == 'GPU-1'", None),
    ],
)
def test_a_device_without_the_attribute_is_never_given(expression: str, expected: bool | None) -> None:
    """A slice tells all of a device: a look at more is an error, which a decisive side of `||` hides."""
    assert meets(expression, replace(H100_DEVICE, complete=True)) is expected


def test_a_gang_of_slices_holds_no_whole_host_unless_it_says_so() -> None:
    """As with slices in limits."""
    mig = {"device_class": "mig.nvidia.com"}
    slices = slice_of("a", 7, type="mig", profile="1g.10gb")
    snapshot = cluster(node("a"), slices, template(1, **mig))
    stated = replace(claiming(1), reserve="domain")
    assert answered(snapshot, stated).reserves == (("a",),)
    assert answered(snapshot, replace(stated, reserve="auto")).reserves == ()


def sharing(count: int) -> PodGroup:
    """This many pods that name one ResourceClaim."""
    shape = PodShape({"pods": 1}, claims=(ClaimUse("shared", False),))
    return PodGroup("team/Job/share", (PodSet("main", count, shape),), reserve="nodes")


def shared_claim(**status: Any) -> Json:
    """The ResourceClaim `shared`, of one GPU."""
    claim = {**template(1), "kind": "ResourceClaim", "status": status}
    claim["spec"] = claim["spec"]["spec"]
    claim["metadata"] = {"name": "shared", "namespace": "team"}
    return claim


def test_pods_that_share_a_new_claim_are_kept_on_one_node() -> None:
    """Whose device it will be; how many devices it takes there is not counted, and a warning says so."""
    two = (node("a"), node("b"), slice_of("a", 4), slice_of("b", 4))
    answer = answered(cluster(*two, shared_claim()), sharing(3))
    assert {assignment.node for assignment in answer.assignments} == {"a"}
    assert any("3 pods share the claim shared" in text for text in answer.warnings)


def test_pods_that_share_an_allocated_claim_go_to_its_node() -> None:
    """And take no device besides."""
    results = [{"driver": "gpu.nvidia.com", "pool": "b", "device": "gpu-0"}]
    allocated_claim = shared_claim(allocation={"devices": {"results": results}})
    snapshot = cluster(node("a"), node("b"), slice_of("a", 4), slice_of("b", 1), allocated_claim)
    answer = answered(snapshot, sharing(2))
    assert ({assignment.node for assignment in answer.assignments}, answer.warnings) == ({"b"}, ())


def test_the_leaf_spine_rules_count_claimed_devices_too() -> None:
    """A gang that is spread by them finds its room by claim on every leaf."""
    topology = {
        "apiVersion": "kai.scheduler/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": "t"},
        "spec": {"levels": [{"nodeLabel": "leaf"}, {"nodeLabel": "kubernetes.io/hostname"}]},
    }
    nodes = [node(name, leaf=name[0]) for name in ("a1", "a2", "b1", "b2")]
    slices = [slice_of(name, 4) for name in ("a1", "a2", "b1", "b2")]
    spread = replace(claiming(2), fabric=FabricWish(strategy="distributed", stated=True))
    answer = answered(cluster(topology, *nodes, *slices, template(2)), spread)
    assert len({assignment.node[0] for assignment in answer.assignments}) == 2
    assert not any("leaf-spine" in text for text in answer.warnings)


def test_a_long_expression_costs_in_proportion() -> None:
    """Anybody may write one; it is looked at from left to right, without a second try."""

    def seconds(size: int) -> float:
        text = f"{OWN}.type.matches({'a' * size}"
        assert meets(text, H100_DEVICE) is None
        return cpu_seconds(lambda: meets(text, H100_DEVICE), tries=5)

    assert seconds(80_000) < seconds(4_000) * 100, (
        "twenty times the text; a second try at each place costs 400"
    )


def test_a_selector_is_not_questioned_for_devices_that_are_not_meant() -> None:
    """Slices have no such attribute; the claim is for whole GPUs."""
    asks = template(1, f"{OWN}.brand == 'Nvidia'")
    slices = (slice_of("a", 2, brand="Nvidia"), slice_of("a", 2, type="mig", profile="1g.10gb"))
    assert answered(cluster(node("a"), *slices, asks), claiming(2)).warnings == ()


def test_slices_of_other_drivers_tell_that_no_gpu_is_given_by_claim() -> None:
    """As where NVIDIA's driver runs for ComputeDomains only: GPUs are asked for by limits there."""
    channels = slice_of("a", 4, type="channel")
    channels["spec"]["driver"] = "compute-domain.nvidia.com"
    snapshot = cluster(node("a", 4), channels, template(1))
    assert answered(snapshot, claiming(1)).reason == "NoSuchDevice"
    assert answered(snapshot, asking(4)).decision == "admitted"
