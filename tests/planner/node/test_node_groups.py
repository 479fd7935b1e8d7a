"""Tests groups of equal nodes, and the share of CPU and memory per GPU on nodes that could take a pod."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.labels import Requirement, Taint, Toleration
from planner.model.node import Node
from planner.model.pod import PodShape
from planner.node.eligibility import obstacle
from planner.node.node_groups import NodeGroup, node_groups
from webhook.policy.functions.gpu_shares import GpuPortion, share_of

GI = 2**30
GPU = "nvidia.com/gpu"
DGX = Node(
    name="dgx-1",
    labels={"nvidia.com/gpu.product": "H100", "rack": "r1"},
    allocatable={"cpu": 220_000, "memory": 1980 * GI, GPU: 8, "pods": 110},
)
T4 = Node(
    name="t4",
    labels={"nvidia.com/gpu.product": "T4", "rack": "r9"},
    allocatable={"cpu": 4_000, "memory": 15 * GI, GPU: 1, "pods": 110},
)


def asking(gpus: int, **fields: object) -> PodShape:
    """A pod with this many GPUs."""
    return replace(PodShape(requests={GPU: gpus, "pods": 1}), **fields)


def test_nodes_that_differ_by_a_few_kib_are_of_one_kind_with_the_least_of_it() -> None:
    """A thousand nodes are a few kinds, whatever their names and racks are."""
    nodes = [
        replace(
            DGX,
            name=f"dgx-{number}",
            labels={**DGX.labels, "rack": f"r{number % 7}", "kubernetes.io/hostname": f"dgx-{number}"},
            allocatable={**DGX.allocatable, "memory": 1980 * GI + number * 1024},
        )
        for number in range(1000)
    ]
    (kind,) = node_groups(nodes)
    assert (len(kind.nodes), kind.allocatable["memory"], kind.gpus) == (1000, 1980 * GI, 8)
    assert kind.admitting(asking(8)) == 1000
    assert kind.admitting(asking(8, node_selector={"rack": "r1"})) == 143
    assert len(kind.distinct(frozenset({"rack"}))) == 7
    assert not kind.admits(asking(8, node_selector={"rack": "r8"}))
    by_name = ((Requirement("metadata.name", "In", ("dgx-5",)),),)
    assert kind.admitting(asking(8, affinity=by_name)) == 1


HOST = "kubernetes.io/hostname"


def farm(count: int) -> NodeGroup:
    """This many equal nodes in racks of seven; the hostname labels differ from the node names."""
    nodes = [
        replace(DGX, name=f"n{number}", labels={**DGX.labels, HOST: f"h{number}", "rack": f"r{number // 7}"})
        for number in range(count)
    ]
    (kind,) = node_groups(nodes)
    return kind


_TERMS = st.lists(
    st.builds(
        Requirement,
        st.sampled_from((HOST, "metadata.name", "rack")),
        st.sampled_from(("In", "NotIn")),
        st.lists(st.sampled_from(("h1", "n1", "n2", "h9", "h30", "r0", "r1", "no")), max_size=3).map(tuple),
    ),
    min_size=1,
    max_size=2,
).map(tuple)


@given(st.lists(_TERMS, max_size=3).map(tuple))
def test_a_pod_that_names_hosts_is_let_onto_the_nodes_that_a_look_at_each_finds(
    affinity: tuple[tuple[Requirement, ...], ...],
) -> None:
    """In whatever terms it names them."""
    kind, pod = farm(21), asking(1, affinity=affinity)
    plain = sum(not obstacle(pod, node, occupied=False) for node in kind.nodes)
    assert (kind.admitting(pod), kind.admits(pod)) == (plain, plain > 0)


@pytest.mark.parametrize("key", [HOST, "metadata.name"])
def test_a_pod_that_is_pinned_to_its_place_costs_no_look_at_other_nodes(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each mutated pod is: with 5,000 nodes that look was three quarters of its decision."""
    kind, looked = farm(1000), []

    def counted(shape: PodShape, node: Node, *, occupied: bool) -> str:
        looked.append(node.name)
        return obstacle(shape, node, occupied=occupied)

    monkeypatch.setattr("planner.node.node_groups.obstacle", counted)
    pinned = asking(1, affinity=((Requirement(key, "In", ("h3", "n3", "h5")),),))
    assert kind.admits(pinned)
    assert set(looked) <= {"n3", "n5"}


def test_a_node_with_too_few_gpus_has_no_say() -> None:
    """A job that only a DGX can take gets a DGX's share, one that a T4 node could take the smaller."""
    kinds = node_groups([T4, DGX])
    assert share_of(asking(8), 0, kinds) == GpuPortion(27, 247 * GI)
    assert share_of(asking(1), 0, kinds) == GpuPortion(2, 11 * GI)
    assert share_of(asking(1, node_selector={"rack": "r1"}), 0, kinds) == GpuPortion(27, 247 * GI)


def test_a_tainted_node_has_no_say_unless_tolerated() -> None:
    """The pods do not run there."""
    tainted = replace(T4, taints=(Taint("team", "red"),))
    kinds = node_groups([tainted, DGX])
    assert share_of(asking(1), 0, kinds) == GpuPortion(27, 247 * GI)
    assert share_of(asking(1, tolerations=(Toleration("team", "Exists"),)), 0, kinds) == GpuPortion(
        2, 11 * GI
    )


def test_a_node_that_lacks_what_else_the_pod_asks_for_has_no_say() -> None:
    """Devices, and cpu or memory that another container states."""
    kinds = node_groups([T4, DGX])
    stated = PodShape(requests={GPU: 1, "cpu": 8_000, "pods": 1})
    assert share_of(stated, 0, kinds) == GpuPortion(27, 247 * GI)


def test_the_overhead_of_as_many_pods_as_the_node_takes_is_left_out_of_the_shares() -> None:
    """Eight pods of one GPU have it eight times, a pod of all eight once."""
    kinds, overhead = node_groups([DGX]), {"cpu": 1000, "memory": 4 * GI}
    assert share_of(replace(asking(1), overhead=overhead), 0, kinds) == GpuPortion(26, 243 * GI)
    whole = share_of(replace(asking(8), overhead=overhead), 0, kinds)
    assert whole == GpuPortion(27, 247 * GI - 4 * GI // 8)


def test_too_many_gpus_share_the_whole_of_the_node_so_that_only_they_are_too_many() -> None:
    """Sixteen GPUs' shares together are no more than the node has."""
    share = share_of(asking(16), 0, node_groups([T4, DGX]))
    assert share is not None
    assert 16 * share.cpu <= 220
    assert 16 * share.memory <= 1980 * GI


def test_where_labels_exclude_all_nodes_nothing_is_known() -> None:
    """A pool that is to grow from zero: the parameters say what a GPU gets."""
    assert share_of(asking(1, node_selector={"rack": "r5"}), 0, node_groups([T4, DGX])) is None
    assert share_of(asking(0), 0, node_groups([DGX])) is None


def test_claimed_gpus_count_on_nodes_whose_plugin_offers_none() -> None:
    """They are known by the label of GPU feature discovery."""
    labels = {**DGX.labels, "nvidia.com/gpu.count": "8"}
    claimable = replace(DGX, labels=labels, allocatable={"cpu": 98_000, "memory": 1028 * GI, "pods": 110})
    assert share_of(asking(0), 8, node_groups([T4, claimable])) == GpuPortion(12, 128 * GI)
