"""Tests the allocation of devices to claims: different devices, constraints between them, shared counters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.cluster.snapshot import Snapshot
from planner.manifests.reservation import reservation_manifest
from planner.model.pod import ClaimUse, PodShape
from planner.model.podgroup import PodGroup, PodSet
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import GPU
from tests.planner.devices.test_catalog import Json, asking, claiming, cluster, node, pod, slice_of, template
from webhook.policy.engine.device_selectors import read_cluster

PCIE = "resource.kubernetes.io/pcieRoot"
H100, A100 = "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB"


def device(name: str, kind: str = "gpu", driver: str = "gpu.nvidia.com", **fields: Any) -> Json:
    """A device of a slice: `root` is its PCIe root, `product` its product, the rest is copied."""
    identity = {"type": kind, "productName": fields.pop("product", H100), "uuid": name}
    attributes = {f"{driver}/{key}": {"string": value} for key, value in identity.items()}
    if root := fields.pop("root", ""):
        attributes[PCIE] = {"string": root}
    return {"name": name, "attributes": attributes, **fields}


def slice_with(
    on: str, *devices: Json, driver: str = "gpu.nvidia.com", generation: int = 1, **fields: Any
) -> Json:
    """A ResourceSlice of these devices."""
    pool = {"name": on, "generation": generation, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": on, "pool": pool, "devices": list(devices), **fields}
    metadata = {"name": f"{on}-{driver}-{generation}-{len(devices)}"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": metadata, "spec": spec}


def nics(on: str, *roots: str) -> Json:
    """The RDMA adapters of another driver, one at each PCIe root."""
    adapters = (device(f"nic-{place}", "nic", "nic.example", root=root) for place, root in enumerate(roots))
    return slice_with(on, *adapters, driver="nic.example")


NIC = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "rdma"},
    "spec": {"selectors": [{"cel": {"expression": "device.driver == 'nic.example'"}}]},
}


def request(
    name: str, count: int = 1, device_class: str = "gpu.nvidia.com", select: str = "", **fields: Any
) -> Json:
    """One request of a claim; `select` compares the product, or the profile of a slice."""
    exactly: Json = {"deviceClassName": device_class, "count": count, **fields}
    if select:
        key = "profile" if device_class.startswith("mig") else "productName"
        expression = f"device.attributes['gpu.nvidia.com'].{key} == '{select}'"
        exactly["selectors"] = [{"cel": {"expression": expression}}]
    return {"name": name, "exactly": exactly}


def claim(*requests: Json, name: str = "gpus", **constraint: Any) -> Json:
    """A template with these requests and one constraint over them."""
    document = template()
    document["metadata"] = {"name": name, "namespace": "team"}
    document["spec"]["spec"]["devices"] = {"requests": list(requests)}
    if constraint:
        document["spec"]["spec"]["devices"]["constraints"] = [constraint]
    return document


def decided(snapshot: Snapshot, count: int, source: str = "gpus") -> str:
    """The decision on this many pods with such a claim."""
    return plan(snapshot, claiming(count, source)).decision


def allocated_claim(name: str, on: str, *devices: str, driver: str = "gpu.nvidia.com") -> Json:
    """A ResourceClaim to which these devices of a node are allocated."""
    results = [{"driver": driver, "pool": on, "device": device} for device in devices]
    metadata = {"name": name, "namespace": "others"}
    status = {"allocation": {"devices": {"results": results}}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": {},
        "status": status,
    }


# -- unlike devices ------------------------------------------------------------------------------------------


def test_claims_for_unlike_gpus_of_one_node_are_told_apart() -> None:
    """Two H100 and two A100: a pod of each of two fits, two pods of H100 do not."""
    gpus = (device(f"gpu-{n}", product=H100 if n < 2 else A100) for n in range(4))
    snapshot = cluster(
        node("a"),
        slice_with("a", *gpus),
        claim(request("g", 2, select=H100), name="h100"),
        claim(request("g", 2, select=A100), name="a100"),
    )
    sets = tuple(
        PodSet(name, 1, PodShape({"pods": 1}, claims=(ClaimUse(name, True),))) for name in ("h100", "a100")
    )
    assert plan(snapshot, PodGroup("team/Job/both", sets, reserve="nodes")).decision == "admitted"
    assert decided(snapshot, 2, "h100") == "rejected"


def test_a_pod_that_takes_any_gpu_leaves_the_rare_one_to_who_needs_it() -> None:
    """The A100 goes to the claim that accepts any GPU, in either order."""
    snapshot = cluster(
        node("a"),
        slice_with("a", device("gpu-0", product=A100), device("gpu-1")),
        claim(request("g"), name="any"),
        claim(request("g", select=H100), name="h100"),
    )
    first = claiming(1, "any", "team/Job/first")
    reservation = reservation_for(snapshot, first, plan(snapshot, first))
    assert reservation is not None
    assert decided(snapshot.with_reservation(reservation), 1, "h100") == "admitted"
    assert decided(snapshot.with_reservation(reservation), 2, "any") == "queued"


def test_alternatives_are_chosen_pod_by_pod() -> None:
    """Of three pods that take an H100 or else two A100, two get the one and one the other."""
    either = {
        "name": "g",
        "firstAvailable": [
            {"name": "new", **request("", select=H100)["exactly"]},
            {"name": "old", **request("", 2, select=A100)["exactly"]},
        ],
    }
    gpus = [device(f"gpu-{n}", product=H100 if n < 2 else A100) for n in range(4)]
    snapshot = cluster(node("a"), slice_with("a", *gpus), claim(either))
    assert decided(snapshot, 3) == "admitted"
    assert decided(snapshot, 4) == "rejected"


def test_a_capacity_that_a_request_states_is_met() -> None:
    """Forty of a GPU's eighty GiB, and a hundred of them."""
    big = device("gpu-0", capacity={"memory": {"value": "80Gi"}})
    for asked, expected in (("40Gi", "admitted"), ("100Gi", "rejected")):
        wanted = request("g", capacity={"requests": {"memory": asked}})
        snapshot = cluster(node("a"), slice_with("a", big), claim(wanted))
        assert decided(snapshot, 1) == expected


def test_a_tainted_device_is_for_claims_that_tolerate_it() -> None:
    """Of two GPUs one is sick; a taint without effect keeps nobody away."""
    sick = device("gpu-1", taints=[{"key": "sick", "effect": "NoSchedule"}])
    noted = device("gpu-0", taints=[{"key": "old", "effect": "None"}])
    gpus = slice_with("a", noted, sick)
    bears = request("g", tolerations=[{"key": "sick", "operator": "Exists"}])
    assert decided(cluster(node("a"), gpus, claim(request("g"))), 2) == "rejected"
    assert decided(cluster(node("a"), gpus, claim(request("g"))), 1) == "admitted"
    assert decided(cluster(node("a"), gpus, claim(bears)), 2) == "admitted"


def test_all_devices_are_those_in_use_too() -> None:
    """A claim for all devices waits while another claim has one."""
    everything = template(allocationMode="All")
    used = allocated_claim("other", "a", "gpu-0")
    snapshot = cluster(node("a"), slice_of("a", 4), everything, used)
    answer = plan(snapshot, claiming(1))
    assert answer.decision == "queued"
    assert "it needs all gpu.nvidia.com; the node has 3" in answer.message


def test_admin_access_uses_no_device_but_needs_one() -> None:
    """GPUs in use serve it as well."""
    looking = template(4, adminAccess=True)
    used = [allocated_claim(f"other-{n}", "a", f"gpu-{n}") for n in range(4)]
    assert decided(cluster(node("a"), slice_of("a", 4), looking, *used), 9) == "admitted"
    assert decided(cluster(node("a"), slice_of("a", 3), looking), 1) == "rejected"


# -- constraints ---------------------------------------------------------------------------------------------


def pairs(on: str, *roots: str) -> Json:
    """GPUs, one under each of these PCIe roots."""
    return slice_with(on, *(device(f"gpu-{n}", root=root) for n, root in enumerate(roots)))


def test_devices_of_a_claim_share_what_it_wants_them_to_share() -> None:
    """Two GPUs at one PCIe root: of three and one there is one pair, of two and two there are two."""
    two = claim(request("g", 2), matchAttribute=PCIE)
    assert decided(cluster(node("a"), pairs("a", "x", "x", "x", "y"), two), 1) == "admitted"
    assert decided(cluster(node("a"), pairs("a", "x", "x", "x", "y"), two), 2) == "rejected"
    assert decided(cluster(node("a"), pairs("a", "x", "x", "y", "y"), two), 2) == "admitted"


def test_a_gpu_and_an_adapter_of_another_driver_share_a_root() -> None:
    """The constraint spans two drivers."""
    joint_claim = claim(
        request("gpu"), request("nic", 1, "rdma"), matchAttribute=PCIE, requests=["gpu", "nic"]
    )
    near = cluster(node("a"), pairs("a", "x", "y"), nics("a", "y", "x"), NIC, joint_claim)
    far = cluster(node("a"), pairs("a", "x", "x"), nics("a", "x", "y"), NIC, joint_claim)
    assert decided(near, 2) == "admitted"
    assert decided(far, 1) == "admitted"
    assert decided(far, 2) == "rejected"


def test_a_constraint_over_one_request_leaves_the_others_alone() -> None:
    """The two GPUs share a root, the adapter is anywhere."""
    some = claim(request("gpu", 2), request("nic", 1, "rdma"), matchAttribute=PCIE, requests=["gpu"])
    assert decided(cluster(node("a"), pairs("a", "x", "x"), nics("a", "y"), NIC, some), 1) == "admitted"


def test_a_constraint_over_an_alternative_holds_where_that_is_chosen() -> None:
    """Two GPUs at one root, or else one anywhere."""
    either = {
        "name": "g",
        "firstAvailable": [
            {"name": "pair", "deviceClassName": "gpu.nvidia.com", "count": 2},
            {"name": "single", "deviceClassName": "gpu.nvidia.com"},
        ],
    }
    some = claim(either, matchAttribute=PCIE, requests=["g/pair"])
    assert decided(cluster(node("a"), pairs("a", "x", "y"), some), 2) == "admitted"
    assert decided(cluster(node("a"), pairs("a", "x", "y"), some), 3) == "rejected"


def test_devices_without_the_attribute_do_not_count() -> None:
    """A device that has no PCIe root shares it with none."""
    two = claim(request("g", 2), matchAttribute=PCIE)
    assert decided(cluster(node("a"), pairs("a", "", "", "x"), two), 1) == "rejected"


def test_distinct_devices_differ_in_what_the_claim_names() -> None:
    """One GPU at each of two roots: of two and one there is one such pair."""
    apart = claim(request("g", 2), distinctAttribute=PCIE)
    assert decided(cluster(node("a"), pairs("a", "x", "x", "y"), apart), 1) == "admitted"
    assert decided(cluster(node("a"), pairs("a", "x", "x", "y"), apart), 2) == "rejected"
    assert decided(cluster(node("a"), pairs("a", "x", "x"), apart), 1) == "rejected"


def test_what_no_node_has_together_is_refused_with_what_would_work() -> None:
    """Each GPU has a PCIe root of its own."""
    two = claim(request("g", 2), matchAttribute=PCIE)
    answer = plan(cluster(node("a"), pairs("a", "x", "y"), two), claiming(1))
    assert (answer.decision, answer.reason) == ("rejected", "NoSuchDevice")
    assert "2 × gpu.nvidia.com with the same pcieRoot" in answer.message
    assert "Would work: the same devices without the claim's constraints." in answer.message


def test_nodes_are_counted_by_what_their_devices_lack() -> None:
    """One has a single GPU left at each root, the other none at all."""
    two = claim(request("g", 2), matchAttribute=PCIE)
    used = [allocated_claim("one", "a", "gpu-0"), allocated_claim("two", "a", "gpu-2")]
    used += [allocated_claim(f"b-{n}", "b", f"gpu-{n}") for n in range(2)]
    snapshot = cluster(node("a"), node("b"), pairs("a", "x", "x", "y", "y"), pairs("b", "x", "x"), two, *used)
    answer = plan(snapshot, claiming(1))
    lacks = (
        "insufficient devices for a claim (it needs 2 × gpu.nvidia.com with the same pcieRoot; the node has"
    )
    assert answer.decision == "queued"
    assert answer.obstacles == {
        f"{lacks} 1 with the same pcieRoot)": 1,
        f"{lacks} none left)": 1,
    }


def test_a_constraint_names_a_request_of_its_claim() -> None:
    """Otherwise the claim is malformed, and the message lists its requests."""
    wrong = claim(request("gpu"), matchAttribute=PCIE, requests=["nic"])
    with pytest.raises(ValueError, match="no request of the claim is named 'nic'; there are gpu"):
        read_cluster([("claims", wrong)])


def test_without_slices_nothing_tells_what_devices_share() -> None:
    """The plan says so, and counts the GPUs."""
    two = claim(request("g", 2), matchAttribute=PCIE)
    answer = plan(cluster(node("a", 4), two), claiming(2))
    assert answer.decision == "admitted"
    assert any(
        "no ResourceSlice tells which devices have the same pcieRoot" in warning
        for warning in answer.warnings
    )


# -- what is promised and what is given ----------------------------------------------------------------------


def test_a_reservation_says_what_its_claims_are_for() -> None:
    """Written and read back, it keeps the same devices from others."""
    snapshot = cluster(
        node("a"),
        slice_with("a", device("gpu-0", product=A100), device("gpu-1")),
        claim(request("g", select=H100)),
    )
    first = claiming(1, name="team/Job/first")
    reservation = reservation_for(snapshot, first, plan(snapshot, first))
    assert reservation is not None
    again = read_cluster([("book", reservation_manifest(reservation))]).reservations
    assert again == (reservation,)
    assert decided(snapshot.with_reservation(again[0]), 1) == "queued"


def test_a_seat_is_counted_once_when_its_claim_has_a_device() -> None:
    """The bound pod's GPU is the one that was promised."""
    two = (node("a"), slice_of("a", 2), template(1))
    empty = cluster(*two)
    reservation = reservation_for(empty, claiming(1, name="team/Job/first"), plan(empty, claiming(1)))
    assert reservation is not None
    bound = pod("x", "a", annotations={"bayplan.dev/reservation": reservation.id})
    bound["status"] = {"resourceClaimStatuses": [{"name": "g", "resourceClaimName": "x-g"}]}
    resource_claim = allocated_claim("x-g", "a", "gpu-1")
    resource_claim["metadata"]["namespace"] = "team"
    resource_claim["spec"] = template(1)["spec"]["spec"]
    snapshot = cluster(*two, bound, resource_claim).with_reservation(reservation)
    assert snapshot.taken_on("a")["gpu.nvidia.com"] == 1
    assert (decided(snapshot, 1), decided(snapshot, 2)) == ("admitted", "queued")


def test_a_claim_with_the_name_of_a_template_is_not_that_of_its_pods() -> None:
    """The pod's own claim, which is not known yet, takes a GPU beside the two of the other claim."""
    other = allocated_claim("gpus", "a", "gpu-0", "gpu-1")
    other["metadata"]["namespace"] = "team"
    snapshot = cluster(node("a"), slice_of("a", 4), template(1), other, pod("x", "a"))
    assert (decided(snapshot, 1), decided(snapshot, 2)) == ("admitted", "queued")


def test_claims_and_limits_share_the_gpus_of_a_node_whatever_the_alternative() -> None:
    """One of four GPUs is the plugin's; a pod that takes two slices instead leaves a GPU to limits."""
    either = {
        "name": "g",
        "firstAvailable": [
            {"name": "small", "deviceClassName": "mig.nvidia.com"},
            {"name": "big", "deviceClassName": "gpu.nvidia.com"},
        ],
    }
    slices = (slice_of("a", 2), slice_of("a", 1, type="mig", profile="1g.10gb"))
    snapshot = cluster(node("a", 2), *slices, claim(either))
    assert decided(snapshot, 3) == "admitted"
    first = claiming(2, name="team/Job/first")
    reservation = reservation_for(snapshot, first, plan(snapshot, first))
    assert reservation is not None
    held = snapshot.with_reservation(reservation)
    assert plan(held, asking(1)).decision == "admitted"
    assert plan(held, asking(2)).decision == "queued"
    mixed_group = replace(
        claiming(2), pod_sets=(*claiming(2).pod_sets, replace(asking(1).pod_sets[0], name="limits"))
    )
    assert plan(snapshot, mixed_group).decision == "admitted"
    assert (
        plan(
            snapshot,
            replace(
                mixed_group, pod_sets=(replace(mixed_group.pod_sets[0], count=3), mixed_group.pod_sets[1])
            ),
        ).decision
        == "rejected"
    )


def gpu_class(**fields: Any) -> Json:
    """NVIDIA's DeviceClass for GPUs as its chart installs it: these devices also serve `nvidia.com/gpu`."""
    expression = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"
    spec = {"extendedResourceName": "nvidia.com/gpu", "selectors": [{"cel": {"expression": expression}}]}
    metadata = {"name": "gpu.nvidia.com", **fields}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": metadata, "spec": spec}


def limits(count: int, gpus: int) -> PodGroup:
    """This many pods with GPUs in their limits."""
    return replace(asking(gpus), pod_sets=(replace(asking(gpus).pod_sets[0], count=count),))


def test_limits_are_served_by_claims_where_no_plugin_runs() -> None:
    """One node has the plugin, one the driver and a count of none; without the class one serves."""
    left = node("b")
    left["status"]["allocatable"]["nvidia.com/gpu"] = "0"
    two = (node("a", 4), slice_of("a", 4), left, slice_of("b", 4))
    snapshot = cluster(*two, gpu_class())
    answer = plan(snapshot, limits(4, 2))
    assert answer.decision == "admitted"
    assert {assignment.node: assignment.count for assignment in answer.assignments} == {"a": 2, "b": 2}
    assert plan(snapshot, limits(5, 2)).decision == "rejected"
    assert plan(cluster(*two), limits(3, 2)).decision == "rejected"


def test_parts_of_gpus_and_whole_gpus_that_are_claimed_are_never_the_same() -> None:
    """The plugin and the driver of the node offer the same two GPUs, to pods of one kind or of two."""
    snapshot = cluster(node("a", 2), slice_of("a", 2), claim(request("gpu", 1)))
    whole, half = claiming(1).pod_sets[0], PodSet("half", 2, PodShape({"gpu-fraction/0.5": 1, "pods": 1}))
    beside = replace(claiming(1), pod_sets=(half, whole))
    assert plan(snapshot, beside).decision == "admitted"
    assert plan(snapshot, replace(beside, pod_sets=(replace(half, count=4), whole))).decision == "rejected"
    assert plan(snapshot, claiming(1, **{"gpu-fraction/0.5": 1})).decision == "admitted"
    assert plan(snapshot, claiming(2, **{"gpu-fraction/0.5": 1})).decision == "rejected"


def test_gpus_of_the_plugin_go_with_adapters_that_are_claimed() -> None:
    """The slices of the node list no GPU; two adapters and eight GPUs serve two pods of four."""
    snapshot = cluster(NIC, node("a", 8), nics("a", "0", "1"), claim(request("nic", 1, "rdma")))
    assert plan(snapshot, claiming(2, **{GPU: 4})).decision == "admitted"
    assert plan(snapshot, claiming(3, **{GPU: 2})).decision == "rejected"
    assert plan(snapshot, claiming(1, **{GPU: 9})).decision == "rejected"


def test_pods_with_a_part_of_a_gpu_also_need_the_devices_that_they_claim() -> None:
    """The two GPUs have room for four halves, but there are three adapters."""
    snapshot = cluster(NIC, node("a", 2), nics("a", "0", "1", "2"), claim(request("nic", 1, "rdma")))
    half = {"gpu-fraction/0.5": 1}
    assert plan(snapshot, claiming(3, **half)).decision == "admitted"
    assert plan(snapshot, claiming(4, **half)).decision == "rejected"


def test_limits_are_served_by_the_plugin_of_a_node_without_a_driver() -> None:
    """The nodes are moved to the driver one by one: a pod runs on those that were not moved yet, too."""
    snapshot = cluster(node("a", 4), node("b"), slice_of("b", 4), gpu_class())
    assert plan(snapshot, limits(4, 2)).decision == "admitted"
    assert plan(snapshot, limits(5, 2)).decision == "rejected"


def test_limits_are_served_by_the_devices_of_a_driver_that_the_planner_does_not_count_as_gpus() -> None:
    """A node's worth has none of them, and the gang has its place all the same."""
    other = gpu_class()
    other["spec"]["selectors"] = [{"cel": {"expression": "device.driver == 'gpu.example'"}}]
    driver = "gpu.example"
    gpus = [device(f"gpu-{place}", driver=driver) for place in range(4)]
    snapshot = cluster(node("a"), slice_with("a", *gpus, driver=driver), other)
    assert plan(snapshot, limits(2, 2)).decision == "admitted"
    assert plan(snapshot, limits(3, 2)).decision == "rejected"


def test_limits_and_claims_share_the_devices_of_a_driver() -> None:
    """Three of four GPUs in limits leave one to a claim, promised or bound, with its claim known or not."""
    snapshot = cluster(node("a"), slice_of("a", 4), gpu_class(), template(1))
    first = replace(limits(1, 3), name="team/Job/first")
    reservation = reservation_for(snapshot, first, plan(snapshot, first))
    assert reservation is not None
    held = snapshot.with_reservation(reservation)
    assert (decided(held, 1), decided(held, 2)) == ("admitted", "queued")
    assert (plan(held, limits(1, 1)).decision, plan(held, limits(1, 2)).decision) == ("admitted", "queued")
    bound = pod("x", "a")
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "3"}}}
    bound["spec"] = {"nodeName": "a", "containers": [container]}
    pod_with_status = {
        **bound,
        "status": {"extendedResourceClaimStatus": {"resourceClaimName": "x-extended"}},
    }
    resource_claim = allocated_claim("x-extended", "a", "gpu-0", "gpu-1", "gpu-3")
    resource_claim["metadata"]["namespace"] = "team"
    for some in ((bound,), (pod_with_status, resource_claim)):
        snapshot = cluster(node("a"), slice_of("a", 4), gpu_class(), template(1), *some)
        assert (decided(snapshot, 1), decided(snapshot, 2)) == ("admitted", "queued")
        assert snapshot.usage.free_on(snapshot.nodes["a"])[0]["gpu.nvidia.com"] == 1


def test_claims_and_limits_for_one_device_each_add_up() -> None:
    """They ask for the very same, and are two."""
    snapshot = cluster(node("a"), slice_of("a", 4), gpu_class(), template(1))
    for first in (claiming(2, name="team/Job/claims"), replace(limits(1, 1), name="team/Job/limits")):
        reservation = reservation_for(snapshot, first, plan(snapshot, first))
        assert reservation is not None
        snapshot = snapshot.with_reservation(reservation)
    assert (decided(snapshot, 1), decided(snapshot, 2)) == ("admitted", "queued")


def test_of_two_classes_for_one_resource_the_younger_holds() -> None:
    """The younger one means H100 only."""
    old, new = gpu_class(creationTimestamp="2026-01-01"), gpu_class(creationTimestamp="2026-02-01")
    new["metadata"]["name"] = "h100"
    only = f"device.attributes['gpu.nvidia.com'].productName == '{H100}'"
    new["spec"]["selectors"] = [{"cel": {"expression": only}}]
    gpus = slice_with("a", device("gpu-0"), device("gpu-1", product=A100))
    assert plan(cluster(node("a"), gpus, old, new), limits(1, 2)).decision == "rejected"
    assert plan(cluster(node("a"), gpus, old), limits(1, 2)).decision == "admitted"


def test_what_limits_lack_is_said_by_its_name() -> None:
    """On a node without GPUs, and on one without free GPUs."""
    used = allocated_claim("one", "b", "gpu-0")
    snapshot = cluster(node("a"), node("b"), slice_of("b", 1), gpu_class(), used)
    answer = plan(snapshot, limits(1, 1))
    assert answer.decision == "queued"
    assert answer.obstacles == {
        "insufficient devices for a claim (it needs 1 × gpu.nvidia.com; the node has none left)": 1,
        "insufficient nvidia.com/gpu": 1,
    }


def test_devices_that_are_no_nodes_own_are_said_not_to_be_planned() -> None:
    """Such as those of a fabric that all nodes reach."""
    fabric = slice_with("", device("lane-0", "lane", "nic.example"), driver="nic.example", allNodes=True)
    del fabric["spec"]["nodeName"]
    joint_claim = claim(request("gpu"), request("nic", 1, "rdma"))
    answer = plan(cluster(node("a"), slice_of("a", 1), fabric, NIC, joint_claim), claiming(1))
    assert answer.decision == "admitted"
    assert any("devices of class rdma" in text and "not planned" in text for text in answer.warnings)


def test_devices_that_several_claims_may_share_are_never_used_up() -> None:
    """A warning says that they count as unlimited."""
    shared = slice_with(
        "a", device("nic-0", "nic", "nic.example", allowMultipleAllocations=True), driver="nic.example"
    )
    answer = plan(cluster(node("a"), shared, NIC, claim(request("nic", 1, "rdma"))), claiming(5))
    assert answer.decision == "admitted"
    assert any("planned as if never used up" in text for text in answer.warnings)
