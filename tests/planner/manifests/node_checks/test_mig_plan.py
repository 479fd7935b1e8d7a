"""Tests how idle nodes are partitioned for requested MIG slices."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.manifests.node_checks.mig_plan import MigPlan, plan_mig
from planner.model.labels import Requirement, Taint, Toleration
from planner.model.pod import BoundPod, PodShape
from planner.model.podgroup import PodGroup, PodSet
from planner.model.topology import HOSTNAME
from planner.node.mig import BOARDS, fits, geometry, gpus_needed
from tests.builders import node, topology


def nodes(*names: str, gpus: int = 2, busy: str = "") -> Snapshot:
    """Nodes of H100s, one of them in use."""
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    pods = [BoundPod("default/x", busy, {"pods": 1})] if busy else []
    return snapshot([node(name, labels=labels, gpu=gpus) for name in names], [topology()], pods)


def asking(count: int, **profiles: int) -> PodGroup:
    """This many pods of these slices; `one_10` is 1g.10gb, `three_40` is 3g.40gb."""
    words = {"one_10": "1g.10gb", "three_40": "3g.40gb", "seven_80": "7g.80gb"}
    requests = {f"nvidia.com/mig-{words[word]}": amount for word, amount in profiles.items()}
    return PodGroup("team/Deployment/chat", (PodSet("main", count, PodShape({**requests, "pods": 1})),))


def test_slices_are_cut_from_as_few_gpus_as_can_be():
    """Nine of seven a GPU take two GPUs, which are cut full; a third stays whole."""
    plan = plan_mig(nodes("a", gpus=3), [asking(9, one_10=1)])
    assert plan.by_node == {"a": "bayplan-1"}
    assert plan.configs["bayplan-1"] == [
        {"devices": [0, 1], "mig-enabled": True, "mig-devices": {"1g.10gb": 7}},
        {"devices": [2], "mig-enabled": False},
    ]


def test_nodes_that_are_cut_alike_share_a_configuration():
    """MIG manager chooses it by a label of the node."""
    plan = plan_mig(nodes("a", "b"), [asking(4, seven_80=1)])
    assert plan.by_node == {"a": "bayplan-1", "b": "bayplan-1"}


def test_a_node_in_use_is_not_cut():
    """Repartitioning a GPU ends the pods on it."""
    plan = plan_mig(nodes("a", "b", busy="a"), [asking(1, one_10=1)])
    assert plan.by_node == {"b": "bayplan-1"}


def test_a_pods_slices_come_from_one_node():
    """Three of 3g.40gb need two GPUs of the same node, and no node has two."""
    plan = plan_mig(nodes("a", "b", gpus=1), [asking(1, three_40=3)])
    assert plan.by_node == {}
    assert plan.unplaced == ("team/Deployment/chat: no idle node can be cut for 1 pod of 3 × 3g.40gb",)


def test_slices_are_cut_only_where_their_pods_may_be():
    """Selectors, required affinity and taints count; labels that partitioning adds are no obstacle."""
    a, b = nodes("a", "b").nodes.values()
    cluster = snapshot([a, replace(b, taints=(Taint("team", "x"),))], [topology()])
    slices = {"nvidia.com/mig-1g.10gb": 1, "pods": 1}

    def on(**fields: Any) -> MigPlan:
        pods = PodSet("main", 2, PodShape(slices, **fields))
        return plan_mig(cluster, [PodGroup("team/Job/x", (pods,))])

    words = "no idle node meets the node selector, node affinity and tolerations of 2 pods of 1 × 1g.10gb"
    refused = (f"team/Job/x: {words}",)
    assert on(node_selector={HOSTNAME: "b"}).unplaced == refused
    assert on(affinity=((Requirement("zone", "In", ("z",)),),)).unplaced == refused
    assert on(node_selector={HOSTNAME: "b"}, tolerations=(Toleration("team", "Exists"),)).by_node == {
        "b": "bayplan-1"
    }
    assert on(affinity=((Requirement("nvidia.com/mig-1g.10gb.count", "Gt", ("0",)),),)).unplaced == ()


def test_pods_that_may_be_on_few_nodes_come_first():
    """The pod with more slices may be on any node, and leaves the only node of the other one."""
    bound = PodShape({"nvidia.com/mig-3g.40gb": 1, "pods": 1}, {HOSTNAME: "a"})
    group = PodGroup("team/Job/x", (PodSet("one", 1, bound),))
    plan = plan_mig(nodes("a", "b", gpus=1), [asking(1, one_10=5), group])
    assert (plan.unplaced, list(plan.by_node)) == ((), ["a", "b"])


def relabelled(*, gpu: int = 0, **labels: str) -> Snapshot:
    """The node `a` with other labels of GPU feature discovery, by the last word of their name."""
    fields = {f"nvidia.com/{name.replace('_', '.')}": value for name, value in labels.items()}
    return snapshot([node("a", labels=fields, gpu=gpu)], [topology()])


def test_under_the_strategy_single_the_count_is_of_slices():
    """56 slices of 1g.10gb are eight GPUs, and a configuration names no GPU beyond them."""
    cluster = relabelled(gpu_product="NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", gpu_count="56", gpu=56)
    assert plan_mig(cluster, [asking(1, seven_80=9)]).by_node == {}
    (config,) = plan_mig(cluster, [asking(8, seven_80=1)]).configs.values()
    assert config == [{"devices": [*range(8)], "mig-enabled": True, "mig-devices": {"7g.80gb": 1}}]


def test_a_node_of_the_strategy_single_is_told():
    """Its slices would be offered as nvidia.com/gpu, or not at all if they are not alike."""
    cluster = relabelled(gpu_product="NVIDIA-H100-80GB-HBM3", gpu_count="8", mig_strategy="single", gpu=8)
    (warning,) = plan_mig(cluster, [asking(1, one_10=1)]).warnings
    assert warning.startswith("a: the MIG strategy is single, which offers slices as nvidia.com/gpu; set")
    mixed = relabelled(gpu_product="NVIDIA-H100-80GB-HBM3", gpu_count="8", mig_strategy="mixed")
    assert plan_mig(mixed, [asking(1, one_10=1)]).warnings == ()


def test_a_count_that_no_node_has_is_not_believed():
    """It would make an endless configuration."""
    cluster = relabelled(gpu_product="NVIDIA-H100-80GB-HBM3", gpu_count="9" * 12, gpu=2)
    (config,) = plan_mig(cluster, [asking(1, one_10=1)]).configs.values()
    assert [entry["devices"] for entry in config] == [[0], [1]]


def test_a_profile_that_the_board_has_not_is_told():
    """1g.5gb is a profile of A100-40 only."""
    shape = PodShape({"nvidia.com/mig-1g.5gb": 1, "pods": 1})
    plan = plan_mig(nodes("a"), [PodGroup("team/Job/x", (PodSet("main", 2, shape),))])
    assert plan.unplaced == ("team/Job/x: no idle node can be cut for 2 pods of 1 × 1g.5gb",)


@settings(max_examples=100)
@given(st.integers(0, 10**9), st.sampled_from(sorted(BOARDS)))
def test_a_geometry_holds_what_is_wanted_on_the_fewest_gpus(seed: int, board_name: str):
    """Each set fits on a GPU, together they have all slices, and there are no more than needed."""
    random, board = Random(seed), BOARDS[board_name]
    names = random.sample(sorted(board.profiles), 3)
    wanted = {name: random.randint(0, 5) for name in names}
    sets = geometry(board, wanted)
    assert all(fits(board, cut) for cut in sets)
    assert len(sets) == (gpus_needed(board, wanted) if any(wanted.values()) else 0)
    assert all(sum(cut.get(name, 0) for cut in sets) >= count for name, count in wanted.items())


def test_a_geometry_of_an_unknown_profile_is_refused():
    """By name."""
    with pytest.raises(KeyError, match=r"9g\.1gb"):
        geometry(BOARDS["A30"], {"9g.1gb": 1})
