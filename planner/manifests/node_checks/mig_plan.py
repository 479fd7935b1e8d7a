"""How the GPUs of idle nodes are cut for MIG slices that are asked for, as MIG manager reads it. Pure.

A pod gets all of its slices from one node. The pods with the most slices are dealt first, each to the first
idle node on whose GPUs it fits beside those dealt before; the slices of a node are then cut from as few of
its GPUs as can be, and the others stay whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model.node import Node
from planner.model.podgroup import PodGroup
from planner.model.resources import COUNT_LABEL, GPU, PRODUCT_LABEL
from planner.model.words import counted
from planner.node.mig import Board, board_of, geometry, gpus_needed


@dataclass(frozen=True, slots=True)
class MigPlan:
    """`configs`: configurations of nvidia-mig-parted by name. `by_node`: the one of each node that is cut.
    `unplaced`: a sentence for each kind of pods that no idle node can serve."""

    configs: Mapping[str, list[dict[str, Any]]]
    by_node: Mapping[str, str]
    unplaced: tuple[str, ...] = ()


@dataclass(slots=True)
class _IdleNode:
    """A node on which nothing runs but DaemonSets, and the slices that are dealt to it."""

    name: str
    board: Board
    gpus: int
    slices: Counter[str] = field(default_factory=Counter)

    def takes(self, wanted: Mapping[str, int]) -> bool:
        """Deal a pod's slices to the node where they fit beside the others."""
        together = self.slices + Counter(wanted)
        needed = gpus_needed(self.board, together)
        if needed is None or needed > self.gpus:
            return False
        self.slices = together
        return True

    def config(self) -> list[dict[str, Any]]:
        """The node's GPUs by index: those that are cut alike together, then the whole ones."""
        sets = geometry(self.board, self.slices)
        alike: dict[tuple[tuple[str, int], ...], list[int]] = {}
        for index in range(self.gpus):
            cut = tuple(sorted(sets[index].items())) if index < len(sets) else ()
            alike.setdefault(cut, []).append(index)
        return [
            {"devices": devices, "mig-enabled": True, "mig-devices": dict(cut)}
            if cut
            else {"devices": devices, "mig-enabled": False}
            for cut, devices in alike.items()
        ]


def plan_mig(snapshot: Snapshot, groups: Iterable[PodGroup]) -> MigPlan:
    """The cut for the pods of these gangs; pods that ask for no slices are left aside."""
    idle = [
        _IdleNode(node.name, board, gpus)
        for node in snapshot.nodes.values()
        if (board := board_of(node.labels.get(PRODUCT_LABEL, ""))) is not None
        and (gpus := _gpus(node))
        and node.ready
        and not node.cordoned
        and node.name not in snapshot.opened
    ]
    pods = [
        (_workload(group), {name.replace(".me", "+me"): n for name, n in pod_set.shape.mig_slices.items()})
        for group in groups
        for pod_set in group.pod_sets
        for _ in range(pod_set.count)
        if pod_set.shape.mig_slices
    ]
    lacking: Counter[tuple[str, str]] = Counter()
    for name, wanted in sorted(pods, key=lambda pod: (-sum(pod[1].values()), pod[0], sorted(pod[1].items()))):
        if not any(node.takes(wanted) for node in idle):
            lacking[name, ", ".join(f"{n} × {profile}" for profile, n in sorted(wanted.items()))] += 1
    configs: dict[str, list[dict[str, Any]]] = {}
    by_node = {}
    for node in idle:
        if node.slices:
            config = node.config()
            title = next((name for name, other in configs.items() if other == config), "")
            by_node[node.name] = title or f"bayplan-{len(configs) + 1}"
            configs[by_node[node.name]] = config
    return MigPlan(configs, by_node, tuple(_words(key, count) for key, count in lacking.items()))


def _gpus(node: Node) -> int:
    """Its GPUs by the label, which counts those that are cut already too, else those that it offers."""
    stated = node.labels.get(COUNT_LABEL, "")
    return int(stated) if stated.isdecimal() else node.allocatable.get(GPU, 0)


def _workload(group: PodGroup) -> str:
    """NAMESPACE/KIND/NAME; replicas that are gangs of their own have an index after it."""
    return "/".join(group.name.split("/")[:3])


def _words(key: tuple[str, str], count: int) -> str:
    name, slices = key
    pods = counted(count, "pod")
    return f"{name}: no idle node can be cut for {pods} of {slices}"
