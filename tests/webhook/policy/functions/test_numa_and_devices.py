"""The named functions of the policies over NUMA zones, claims and RDMA adapters."""

from __future__ import annotations

import pytest

from planner.manifests.numa import is_guaranteed
from planner.model.errors import Where
from webhook.policy.functions.devices import claimed, rdma, with_capability
from webhook.policy.functions.numa import numa_misfit

GPU = "nvidia.com/gpu"
ZONE = {"cpu": 55_000, "memory": 500 * 2**30, GPU: 4}


def node(name="n1", policy="single-numa-node", scope="container", available=None, **labels):
    """An entry of `cluster.numa`: two zones of four GPUs."""
    zones = [{"name": f"node-{n}", "allocatable": ZONE, "available": available or ZONE} for n in (0, 1)]
    return {
        "node": name,
        "labels": labels,
        "taints": [],
        "allocatable": {"cpu": 110_000, "memory": 1000 * 2**30, GPU: 8, "pods": 110},
        "policy": policy,
        "scope": scope,
        "zones": zones,
    }


def pod(*containers, init=(), **spec):
    """A Guaranteed pod: (GPUs, CPUs) of each container, 8Gi of memory."""
    specs = [
        [
            {
                "name": f"{kind}{n}",
                "resources": {"limits": {GPU: gpus, "cpu": str(cpu), "memory": "8Gi"}},
            }
            for n, (gpus, cpu) in enumerate(listed)
        ]
        for kind, listed in (("c", containers), ("i", init))
    ]
    return {"spec": {"containers": specs[0], "initContainers": specs[1], **spec}}


def test_a_pod_that_no_empty_node_aligns_is_told_what_one_zone_has():
    """Both nodes refuse; the numbers are those of one zone."""
    misfit = numa_misfit(pod((8, 64)), [node("n1"), node("n2")], [])
    assert misfit == {
        "node": "n1",
        "nodes": 2,
        "policy": "single-numa-node",
        "scope": "container",
        "container": "c0",
        "asked": "64 cpu, 8Gi memory, 8 × nvidia.com/gpu",
        "fits": "55 cpu, 500Gi memory, 4 × nvidia.com/gpu",
        "zones": "",
    }


def test_what_is_told_is_in_one_zone():
    """No zone has both four GPUs and 55 CPUs; the first has three quarters of the GPUs."""
    entry = node()
    for zone, amounts in zip(entry["zones"], ({GPU: 3, "cpu": 55_000}, {GPU: 4, "cpu": 6_000}), strict=True):
        zone["allocatable"] = {**ZONE, **amounts}
    assert numa_misfit(pod((4, 55)), [entry], [])["fits"] == "55 cpu, 500Gi memory, 3 × nvidia.com/gpu"


def test_a_container_is_told_what_those_before_it_leave():
    """Two containers of three GPUs leave one in each zone."""
    assert numa_misfit(pod((3, 8), (3, 8), (2, 8)), [node()], [])["fits"] == (
        "47 cpu, 492Gi memory, 1 × nvidia.com/gpu left beside the containers before it"
    )


def test_one_node_that_would_take_it_is_enough():
    """A node without a NodeResourceTopology counts as one."""
    assert numa_misfit(pod((8, 64)), [node("n1"), node("n2", policy="none")], []) == {}


def test_nodes_that_the_pod_cannot_go_to_do_not_count():
    """By selector, by taint, and by what they have in sum."""
    small = {**node("n3", policy="none"), "allocatable": {"cpu": 1000}}
    tainted = {**node("n4", policy="none"), "taints": [{"key": "x", "value": "", "effect": "NoSchedule"}]}
    entries = [node("n1", pool="a"), node("n2", policy="none", pool="b"), small, tainted]
    assert numa_misfit(pod((8, 64), nodeSelector={"pool": "a"}), entries, [])["nodes"] == 1
    assert numa_misfit(pod((8, 64)), [small, tainted], []) == {}


def test_a_pod_template_goes_where_its_runtime_class_sends_its_pods():
    """Where its node selector and tolerations allow, and with the class's overhead."""
    tainted = {**node("n2", policy="none"), "taints": [{"key": "x", "value": "", "effect": "NoSchedule"}]}
    template = pod((8, 64), runtimeClassName="kata")

    def misfit(entries, **added):
        added = {"overhead": {}, "nodeSelector": {}, "tolerations": [], **added}
        return numa_misfit(template, entries, [], {"kata": added})

    entries = [node("n1", pool="a"), node("n3", policy="none", pool="b")]
    assert misfit(entries) == {}
    assert misfit(entries, nodeSelector={"pool": "a"})["node"] == "n1"
    assert misfit([node("n1"), tainted])["node"] == "n1"
    assert misfit([node("n1"), tainted], tolerations=[{"key": "x", "operator": "Exists"}]) == {}
    smaller = {
        **node("n2", policy="none"),
        "allocatable": {"cpu": 100_000, "memory": 2**40, GPU: 8, "pods": 9},
    }
    assert misfit([node("n1"), smaller]) == {}
    assert misfit([node("n1"), smaller], overhead={"cpu": 40_000})["node"] == "n1"


def test_a_chosen_node_is_looked_at_as_it_is_now():
    """Two GPUs are left in each zone."""
    busy = node("n1", available={**ZONE, GPU: 2})
    assert numa_misfit(pod((4, 8)), [busy], []) == {}
    assert numa_misfit(pod((4, 8)), [busy, node("n2")], ["n1"])["node"] == "n1"
    assert numa_misfit(pod((4, 8)), [busy, node("n2")], ["n2"]) == {}


def test_the_pods_scope_looks_at_its_sum():
    """Two containers of three GPUs fit two zones one by one, but no zone together."""
    two = pod((3, 8), (3, 8))
    assert numa_misfit(two, [node()], []) == {}
    assert numa_misfit(two, [node(scope="pod")], [])["container"] == ""


def test_restricted_tells_how_many_zones_each_resource_takes():
    """So that a person can see which ones do not match."""
    assert numa_misfit(pod((8, 8)), [node(policy="restricted")], [])["zones"] == (
        "cpu 1, memory 1, nvidia.com/gpu 2"
    )


def test_shared_cpus_and_pods_that_are_not_guaranteed_are_not_aligned():
    """Then only devices count."""
    assert numa_misfit(pod((4, "60500m")), [node()], []) == {}
    burstable = pod((4, 60))
    burstable["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "50"}
    assert not is_guaranteed(burstable["spec"], Where())
    assert numa_misfit(burstable, [node()], []) == {}
    assert numa_misfit(pod((4, 60)), [node()], []) != {}


def test_an_init_container_is_looked_at_too():
    """And gives back what it took."""
    assert numa_misfit(pod((4, 8), init=[(4, 8)]), [node()], []) == {}
    assert numa_misfit(pod((4, 8), init=[(8, 8)]), [node()], [])["container"] == "i0"


CLAIMS = {
    "claims": {"team/one": [{"class": "gpu.nvidia.com", "count": 1}]},
    "templates": {
        "team/eight": [{"class": "gpu.nvidia.com", "count": 8}],
        "team/all": [{"class": "gpu.nvidia.com", "count": -1}],
        "team/channel": [{"class": "compute-domain-default-channel.nvidia.com", "count": 1}],
        "team/slices": [{"class": "mig.nvidia.com", "count": 2}],
    },
    "domains": {"team/train": "train-channel"},
}


def claiming(**entry):
    """A pod with one claim, which its container uses."""
    return {
        "spec": {
            "containers": [{"name": "main", "resources": {"claims": [{"name": "gpu"}]}}],
            "resourceClaims": [{"name": "gpu", **entry}],
        }
    }


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"resourceClaimTemplateName": "eight"}, {"gpus": 8, "slices": 0, "channel": False, "all": False}),
        ({"resourceClaimName": "one"}, {"gpus": 1, "known": True}),
        ({"resourceClaimTemplateName": "one"}, {"gpus": 0, "known": False}),
        ({"resourceClaimTemplateName": "all"}, {"gpus": 0, "all": True}),
        ({"resourceClaimTemplateName": "slices"}, {"slices": 2}),
        ({"resourceClaimTemplateName": "channel"}, {"channel": True, "gpus": 0}),
        ({"resourceClaimTemplateName": "train-channel"}, {"channel": True, "known": True}),
        ({}, {"source": "", "known": False}),
    ],
)
def test_a_claim_is_counted_by_its_class(entry, expected):
    """GPUs, slices, a channel, or all that the node has."""
    (claim,) = claimed(claiming(**entry), CLAIMS, "team")
    assert expected.items() <= claim.items()
    assert claim["containers"]


def test_a_claim_of_another_namespace_is_not_known():
    """Claims and templates belong to one."""
    assert not claimed(claiming(resourceClaimTemplateName="eight"), CLAIMS, "other")[0]["known"]


@pytest.mark.parametrize(
    "name",
    [
        "rdma/hca_shared_devices_a", "rdma/ib", "openshift.io/mlnxnics", "vpc.amazonaws.com/efa",
        "networking.gke.io.networks/rdma-0", "nvidia.com/sriov-rdma-vf", "nvidia.com/hostdev",
    ],
)  # fmt: skip
def test_rdma_resources_of_each_platform_are_known(name):
    """Requests and limits of one container are the same adapters."""
    assert rdma({"resources": {"limits": {name: "2", "cpu": 4}, "requests": {name: 2}}}) == {name: 2}


@pytest.mark.parametrize("name", [GPU, "nvidia.com/mig-1g.10gb", "nvidia.com/gpu.shared", "cpu", "rdma/"])
def test_other_resources_are_no_rdma(name):
    """GPUs and slices carry the same maker's name."""
    assert rdma({"resources": {"limits": {name: "2"}}}) == {}


def test_a_capability_is_added_once():
    """What stands there stays; ALL contains it."""
    assert with_capability(None, "IPC_LOCK") == {"capabilities": {"add": ["IPC_LOCK"]}}
    full = {"runAsUser": 5, "capabilities": {"drop": ["ALL"], "add": ["SYS_PTRACE"]}}
    once = with_capability(full, "IPC_LOCK")
    assert once["capabilities"] == {"drop": ["ALL"], "add": ["SYS_PTRACE", "IPC_LOCK"]}
    assert with_capability(once, "IPC_LOCK") == once
    assert with_capability({"capabilities": {"add": ["ALL"]}}, "IPC_LOCK")["capabilities"]["add"] == ["ALL"]
