"""Plans how to divide the GPUs of idle nodes for requested MIG slices, in the format of MIG manager.

A pod gets all of its slices (MIG devices) from one node that its node selector, required node affinity and
tolerations allow. Pods with the fewest such nodes are assigned first, and of these the ones with the most
slices, each to the first such node whose GPUs can hold its slices in addition to those assigned before. The
slices of a node are then placed on as few of its GPUs as possible; the other GPUs stay whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model.node import Node
from planner.model.pod import PodShape
from planner.model.podgroup import PodGroup
from planner.model.resources import COUNT_LABEL, GPU, MIG_PREFIX, MIG_STRATEGY_LABEL, PRODUCT_LABEL
from planner.model.words import counted, listed
from planner.node.eligibility import affinity_allows, untolerated
from planner.node.mig import Board, board_of, geometry, gpus_needed

_MOST_NAMED = 6
"""Maximum number of nodes that a warning names; it only counts the others."""


@dataclass(frozen=True, slots=True)
class MigPlan:
    """How to divide the GPUs of idle nodes.

    `configs`: nvidia-mig-parted configurations by name. `by_node`: the name of the configuration of each node
    to divide. `unplaced`: a sentence for each workload and set of slices that no idle node can serve.
    `warnings`: what else the nodes to divide need before pods get these slices.
    """

    configs: Mapping[str, list[dict[str, Any]]]
    by_node: Mapping[str, str]
    unplaced: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class _IdleNode:
    """A node on which only DaemonSets run, with the slices that are assigned to it."""

    node: Node
    board: Board
    gpus: int
    slices: Counter[str] = field(default_factory=Counter)

    def takes(self, wanted: Mapping[str, int]) -> bool:
        """Assigns a pod's slices to the node if they fit beside the others; returns whether it did."""
        together = self.slices + Counter(wanted)
        needed = gpus_needed(self.board, together)
        if needed is None or needed > self.gpus:
            return False
        self.slices = together
        return True

    def config(self) -> list[dict[str, Any]]:
        """Returns the node's GPUs as entries of an nvidia-mig-parted configuration: one entry with the
        indexes of all GPUs that are divided in the same way, and one for the GPUs that stay whole.
        """
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


@dataclass(frozen=True, slots=True)
class _SlicedPod:
    """A pod with its slices by profile, and the idle nodes that its selectors and tolerations allow."""

    workload: str
    slices: Mapping[str, int]
    nodes: list[_IdleNode]

    def order(self) -> tuple[object, ...]:
        """Returns the sort key by which pods are assigned."""
        return len(self.nodes), -sum(self.slices.values()), self.workload, sorted(self.slices.items())


def plan_mig(snapshot: Snapshot, groups: Iterable[PodGroup]) -> MigPlan:
    """Returns the plan for the pods of these gangs; pods without MIG requests are ignored."""
    idle = [
        _IdleNode(node, board, gpus)
        for node in snapshot.nodes.values()
        if (board := board_of(node.labels.get(PRODUCT_LABEL, ""))) is not None
        and (gpus := _gpus(node))
        and node.ready
        and not node.cordoned
        and node.name not in snapshot.opened
    ]
    pods = [
        _SlicedPod(
            _workload(group),
            {name.replace(".me", "+me"): n for name, n in shape.mig_slices.items()},
            [item for item in idle if _allows(item.node, shape)],
        )
        for group in groups
        for shape, count in ((pod_set.shape, pod_set.count) for pod_set in group.pod_sets)
        if shape.mig_slices
        for _ in range(count)
    ]
    lacking: Counter[tuple[str, str, bool]] = Counter()
    for pod in sorted(pods, key=_SlicedPod.order):
        if not any(item.takes(pod.slices) for item in pod.nodes):
            slices = ", ".join(f"{n} × {profile}" for profile, n in sorted(pod.slices.items()))
            lacking[pod.workload, slices, bool(pod.nodes)] += 1
    configs: dict[str, list[dict[str, Any]]] = {}
    by_node = {}
    for item in idle:
        if item.slices:
            config = item.config()
            title = next((name for name, other in configs.items() if other == config), "")
            by_node[item.node.name] = title or f"bayplan-{len(configs) + 1}"
            configs[by_node[item.node.name]] = config
    unplaced = tuple(_words(key, count) for key, count in lacking.items())
    return MigPlan(configs, by_node, unplaced, _warnings(snapshot, by_node))


def _allows(node: Node, shape: PodShape) -> bool:
    """Reports whether the pod may be on the node once it has the pod's slices.

    GPU feature discovery then labels the node with the number of slices of each profile (strategy `mixed`).
    """
    counts = {f"{MIG_PREFIX}{name}.count": str(n) for name, n in shape.mig_slices.items()}
    divided = replace(node, labels={**node.labels, **counts})
    return affinity_allows(shape, divided) and untolerated(shape, node.taints, passing=True) is None


def _gpus(node: Node) -> int:
    """Returns the node's number of GPUs: from its label, which includes divided GPUs, else the allocatable
    amount. Under the MIG strategy `single` both are the number of slices: then the fewest GPUs for these.
    """
    stated = node.labels.get(COUNT_LABEL, "")
    listed_count = stated.isascii() and stated.isdecimal() and len(stated) < 5
    count = int(stated) if listed_count else node.allocatable.get(GPU, 0)
    product, _, profile = node.labels.get(PRODUCT_LABEL, "").partition("-MIG-")
    board = board_of(product) if profile else None
    if board is None:
        return count
    return gpus_needed(board, {profile.removesuffix("-SHARED").replace(".me", "+me"): count}) or 0


def _warnings(snapshot: Snapshot, names: Iterable[str]) -> tuple[str, ...]:
    """Returns a warning about those of these nodes whose device plugin will not offer slices by profile."""
    single = [name for name in names if snapshot.nodes[name].labels.get(MIG_STRATEGY_LABEL) == "single"]
    if not single:
        return ()
    subject = f"{listed(single, _MOST_NAMED)}: the MIG strategy is single, which offers slices as {GPU}"
    return (f"{subject}; set mig.strategy of the GPU operator or device plugin to mixed",)


def _workload(group: PodGroup) -> str:
    """Returns NAMESPACE/KIND/NAME, without the index of a replica that is a separate gang."""
    return "/".join(group.name.split("/")[:3])


def _words(key: tuple[str, str, bool], count: int) -> str:
    name, slices, allowed = key
    pods = f"{counted(count, 'pod')} of {slices}"
    if allowed:
        return f"{name}: no idle node can be cut for {pods}"
    return f"{name}: no idle node meets the node selector, node affinity and tolerations of {pods}"
