"""Tests fractions of GPUs: read, packed GPU by GPU, and counted as used."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.manifests.pods.gpu_sharing import share_asked
from planner.model.errors import InputError, Where
from planner.model.node import Node
from planner.model.pod import BoundPod, PodShape
from planner.model.podgroup import PodGroup
from planner.model.resources import MEMORY_LABEL
from planner.node.gpu_sharing import MARKER, Share, packs, share_named
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import GPU, gang, node, pod_set, topology

H100 = {MEMORY_LABEL: "81559"}


def part(name: str, **requests: int) -> PodShape:
    """A pod that requests a fraction of a GPU."""
    return PodShape({"cpu": 1000, "pods": 1, name: 1} | requests)


def hosts(*gpus: int, pods: tuple[BoundPod, ...] = (), labels: dict[str, str] = H100) -> Snapshot:
    """Nodes n0, n1, … with this many GPUs each."""
    nodes: list[Node] = [
        node(f"n{place}", labels={"rack": "r1", **labels}, gpu=count) for place, count in enumerate(gpus)
    ]
    return snapshot(nodes, [topology("rack")], pods)


def decided(cluster: Snapshot, group: PodGroup) -> str:
    """The decision."""
    return plan(cluster, group).decision


def shared(name: str, group: str, share: str = "gpu-fraction/0.5", on: str = "n0") -> BoundPod:
    """A bound pod on the GPU with KAI's GPU group `group`."""
    return BoundPod(f"a/{name}", on, {share: 1, "pods": 1}, gpu_groups=(group,))


def marker(group: str) -> BoundPod:
    """KAI's own pod that reserves the GPU from the device plugin."""
    return BoundPod(f"kai-resource-reservation/{group}", "n0", {MARKER: 1, "pods": 1}, gpu_groups=(group,))


def test_two_halves_share_a_gpu_and_three_do_not() -> None:
    """On a host of one GPU."""
    half = part("gpu-fraction/0.5")
    assert decided(hosts(1), gang(pod_set(2, half))) == "admitted"
    assert decided(hosts(1), gang(pod_set(3, half))) == "rejected"


def test_a_part_lies_on_one_gpu_whatever_the_sum() -> None:
    """Three times 0.6 is 1.8, and needs three GPUs."""
    group = gang(pod_set(3, part("gpu-fraction/0.6")))
    assert decided(hosts(2), group) == "rejected"
    assert decided(hosts(3), group) == "admitted"


def test_unlike_parts_are_packed_exactly() -> None:
    """0.7+0.3 and 0.6+0.4 fill two GPUs; with 0.5 for 0.4 they do not fit."""
    parts = [pod_set(1, part(f"gpu-fraction/{x}"), name=f"p{x}") for x in ("0.4", "0.3", "0.6", "0.7")]
    assert decided(hosts(2), gang(*parts)) == "admitted"
    larger = [*parts[1:], pod_set(1, part("gpu-fraction/0.5"), name="half")]
    assert decided(hosts(2), gang(*larger)) == "rejected"


def test_memory_is_counted_by_the_label_of_the_node() -> None:
    """Two times 40000 MiB fit 81559; on a GPU of 40 GB only one; without the label none."""
    group = gang(pod_set(2, part("gpu-memory/40000")))
    assert decided(hosts(1), group) == "admitted"
    assert decided(hosts(1, labels={MEMORY_LABEL: "40960"}), group) == "rejected"
    assert decided(hosts(1, labels={}), group) == "rejected"


def test_fractions_need_no_label() -> None:
    """They are hundredths then."""
    assert decided(hosts(1, labels={}), gang(pod_set(2, part("gpu-fraction/0.5")))) == "admitted"


def test_several_devices_are_different_gpus() -> None:
    """Half of two GPUs is not one whole GPU."""
    twice = part("gpu-fraction/0.5x2")
    assert decided(hosts(1), gang(pod_set(1, twice))) == "rejected"
    assert decided(hosts(2), gang(pod_set(2, twice))) == "admitted"
    assert decided(hosts(2), gang(pod_set(3, twice))) == "rejected"


def test_a_whole_gpu_is_never_one_that_is_partly_used() -> None:
    """A host of two GPUs, half of one in use."""
    used = hosts(2, pods=(marker("g1"), shared("x", "g1")))
    assert decided(used, gang(1, gpu=1)) == "admitted"
    assert decided(used, gang(1, gpu=2)) == "queued"
    assert decided(used, gang(pod_set(3, part("gpu-fraction/0.5")))) == "admitted"
    assert decided(used, gang(pod_set(4, part("gpu-fraction/0.5")))) == "queued"


def test_bound_parts_stay_on_the_gpus_that_they_have() -> None:
    """Two halves on two GPUs leave room for two halves, and for nothing whole; on one GPU they leave one."""
    apart = hosts(2, pods=(shared("x", "g1"), shared("y", "g2")))
    together = hosts(2, pods=(shared("x", "g1"), shared("y", "g1")))
    assert decided(apart, gang(1, gpu=1)) == "queued"
    assert decided(apart, gang(pod_set(1, part("gpu-fraction/0.6")))) == "queued"
    assert decided(together, gang(1, gpu=1)) == "admitted"
    assert apart.taken_on("n0")[GPU] == 2
    assert together.taken_on("n0")[GPU] == 1


def test_a_pod_without_a_group_counts_as_well_packed() -> None:
    """It was bound by another scheduler, or just now."""
    loose = BoundPod("a/x", "n0", {"gpu-fraction/0.5": 1, "pods": 1})
    assert hosts(2, pods=(loose,)).taken_on("n0")[GPU] == 1
    assert decided(hosts(2, pods=(loose,)), gang(1, gpu=2)) == "queued"
    assert decided(hosts(1, pods=(loose,)), gang(pod_set(1, part("gpu-fraction/0.5")))) == "admitted"


def test_reserved_parts_leave_room_for_others_beside_them() -> None:
    """Each gang takes a half of the only GPU; the third has to wait."""
    cluster = hosts(1)
    for name in ("a/Job/one", "a/Job/two"):
        group = gang(pod_set(1, part("gpu-fraction/0.5")), name=name, reserve="nodes")
        reservation = reservation_for(cluster, group, plan(cluster, group))
        assert reservation is not None
        cluster = cluster.with_reservation(reservation)
    third = gang(pod_set(1, part("gpu-fraction/0.5")), name="a/Job/three", reserve="nodes")
    assert decided(cluster, third) == "queued"
    assert cluster.taken_on("n0")[GPU] == 1


@pytest.mark.parametrize("devices", [64, 999_999_999])
def test_a_bound_pod_shares_no_more_gpus_than_its_node_has(devices: int) -> None:
    """Anybody may write the annotation onto a pod that is bound: each packing of it took for ever."""
    names = [f"gpu-fraction/0.{size}x{devices}" for size in (3, 45, 5, 6, 85, 9)]
    pods = tuple(BoundPod(f"a/{name}", "n0", {name: 1, "pods": 1}) for name in names)
    assert decided(hosts(2, pods=pods[:1]), gang(1, gpu=1)) == "queued"
    assert decided(hosts(2, pods=pods), gang(1, gpu=1)) == "queued"
    assert decided(hosts(2, pods=pods[:1]), gang(pod_set(1, part("gpu-fraction/0.6")))) == "admitted"


def test_labels_of_more_gpu_groups_than_gpus_are_as_many_as_these() -> None:
    """They are the labels of a pod, which anybody may write."""
    groups = tuple(f"g{number}" for number in range(5000))
    pods = (BoundPod("a/x", "n0", {"gpu-fraction/0.5": 1, "pods": 1}, gpu_groups=groups),)
    assert decided(hosts(2, pods=pods), gang(1, gpu=1)) == "queued"
    assert decided(hosts(2, pods=pods), gang(pod_set(2, part("gpu-fraction/0.5")))) == "admitted"


def test_a_reserved_part_is_counted_once_when_its_pod_is_bound() -> None:
    """And on the GPU that it got."""
    cluster = hosts(2)
    group = gang(pod_set(2, part("gpu-fraction/0.5")), name="a/Job/one", reserve="nodes")
    held = reservation_for(cluster, group, plan(cluster, group))
    assert held is not None
    bound = [
        BoundPod(f"a/one-{g}", "n0", {"gpu-fraction/0.5": 1, "pods": 1}, held.id, gpu_groups=(g,))
        for g in ("g1", "g2")
    ]
    cluster = cluster.with_reservation(held)
    assert cluster.taken_on("n0")[GPU] == 1
    assert cluster.with_pod(bound[0]).taken_on("n0")[GPU] == 1
    assert cluster.with_pod(bound[0]).with_pod(bound[1]).taken_on("n0")[GPU] == 2


def test_whole_gpus_and_parts_of_one_gang_are_packed_together() -> None:
    """Three whole GPUs and two halves need four GPUs of one host."""
    group = gang(
        pod_set(1, PodShape({GPU: 3, "pods": 1}), name="whole"),
        pod_set(2, part("gpu-fraction/0.5"), name="half"),
        required="kubernetes.io/hostname",
    )
    assert decided(hosts(3, 3), group) == "rejected"
    assert decided(hosts(4), group) == "admitted"


@pytest.mark.parametrize(
    ("annotations", "share"),
    [
        ({"gpu-fraction": "0.5"}, Share("0.5")),
        ({"gpu-fraction": "0.250"}, Share("0.25")),
        ({"gpu-fraction": "5e-1"}, Share("0.5")),
        ({"gpu-memory": "20480"}, Share("", 20480)),
        ({"gpu-fraction": ".5", "gpu-fraction-num-devices": "2"}, Share("0.5", 0, 2)),
        ({}, None),
    ],
)
def test_annotations_are_read(annotations: dict[str, str], share: Share | None) -> None:
    """And the resource's name tells the same."""
    assert share_asked(annotations, Where()) == share
    assert share is None or share_named(share.name) == share


@pytest.mark.parametrize(
    "text", ["1.5", "-0.2", "abc", "0", "1", "NaN", "inf", "0.5.5", "9" * 400, "1e-99999999"]
)
def test_a_bad_fraction_names_the_field_and_the_valid_values(text: str) -> None:
    """In words."""
    with pytest.raises(InputError, match=r"annotations\.gpu-fraction.*above 0 and below 1"):
        share_asked({"gpu-fraction": text}, Where(field="metadata.annotations"))


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        ({"gpu-memory": "16Gi"}, "gpu-memory.*MiB of one GPU"),
        ({"gpu-memory": "-1"}, "gpu-memory.*1 or more"),
        ({"gpu-fraction": "0.5", "gpu-memory": "100"}, "contradicts gpu-fraction: 0.5"),
        ({"gpu-fraction-num-devices": "2"}, "needs gpu-fraction or gpu-memory"),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "0"}, "num-devices.*1 or more"),
    ],
)
def test_other_contradictions_too(annotations: dict[str, str], message: str) -> None:
    """With the field first."""
    with pytest.raises(InputError, match=message):
        share_asked(annotations, Where(field="metadata.annotations"))


def test_packing_agrees_with_trying_everything() -> None:
    """A thousand small cases: rooms, empty GPUs and parts on one or two devices."""
    random = Random(7)
    for _ in range(1000):
        rooms = tuple(sorted(random.randint(1, 9) for _ in range(random.randint(0, 2))))
        empty = random.randint(0, 2)
        parts = [(random.randint(1, 9), random.choice((1, 1, 1, 2))) for _ in range(random.randint(1, 4))]
        ordered = tuple(sorted(parts, key=lambda part: (-part[1], -part[0])))
        assert packs(rooms, empty, 10, ordered) == _tried([*rooms, *[10] * empty], parts), (
            rooms,
            empty,
            parts,
        )


def _tried(bins: list[int], parts: list[tuple[int, int]]) -> bool:
    choices = [[c for c in product((0, 1), repeat=len(bins)) if sum(c) == devices] for _, devices in parts]
    return any(
        all(
            sum(size for (size, _), choice in zip(parts, chosen, strict=True) if choice[place]) <= room
            for place, room in enumerate(bins)
        )
        for chosen in product(*choices)
    )


def message_for(cluster: Snapshot, shape: PodShape) -> str:
    """The message to a gang of one such pod."""
    return plan(cluster, gang(pod_set(1, shape, name="main"))).message


def test_a_refused_part_says_what_would_fit() -> None:
    """Less memory, fewer devices, a label, another kind of node."""
    assert "the largest GPU of a node that it may use has 81500 MiB" in message_for(
        hosts(2), part("gpu-memory/90000")
    )
    assert "gpu-fraction-num-devices of 2 or less" in message_for(hosts(2), part("gpu-fraction/0.5x3"))
    assert "label nvidia.com/gpu.memory" in message_for(hosts(2, labels={}), part("gpu-memory/90"))
    assert "no node that it may use has GPUs to share" in message_for(hosts(0), part("gpu-fraction/0.5"))


def test_nodes_that_are_divided_already_take_no_parts() -> None:
    """MIG of strategy single and time slices by their product, strategy mixed by its slices."""
    half = part("gpu-fraction/0.5")
    for name in ("NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "NVIDIA-H100-80GB-HBM3-SHARED"):
        assert (
            decided(hosts(4, labels={"nvidia.com/gpu.product": name}), gang(pod_set(1, half))) == "rejected"
        )
    mixed = Node("n0", {"rack": "r1"}, {GPU: 4, "nvidia.com/mig-1g.10gb": 7, "cpu": 8000, "pods": 9})
    assert decided(snapshot([mixed], [topology("rack")]), gang(pod_set(1, half))) == "rejected"


def test_a_part_and_a_whole_gpu_in_one_pod_contradict_each_other() -> None:
    """With a reason and what would work."""
    answer = plan(hosts(2), gang(pod_set(1, part("gpu-fraction/0.5", **{GPU: 1}))))
    assert (answer.decision, answer.reason) == ("rejected", "PartAndWholeGpu")
    assert "without the annotation" in answer.message


def test_a_full_gpu_is_named_as_what_is_in_the_way() -> None:
    """By the part that does not fit."""
    full = hosts(1, pods=(shared("x", "g1"),))
    answer = plan(full, gang(pod_set(1, part("gpu-fraction/0.6"))))
    assert (answer.decision, answer.obstacles) == ("queued", {"insufficient gpu-fraction 0.6": 1})


def test_a_gpu_in_use_serves_before_a_whole_one_is_broken_into() -> None:
    """A half goes beside a half, though another opened host has fewer GPUs left."""
    full = BoundPod("b/whole", "n0", {GPU: 3, "pods": 1})
    cluster = hosts(4, 4, pods=(full, shared("x", "g1", on="n1")))
    (assignment,) = plan(cluster, gang(pod_set(1, part("gpu-fraction/0.5")), reserve="nodes")).assignments
    assert assignment.node == "n1"
    (other,) = plan(cluster, gang(pod_set(1, part("gpu-fraction/0.6")), reserve="nodes")).assignments
    assert other.node == "n0"
