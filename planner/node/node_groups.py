"""Nodes grouped by GPU product, taints and amounts (*kinds of nodes*), and which kinds could take a pod.

Policies see the kinds as the CEL variable `cluster.nodeKinds`; an expression can only pass it to functions
that accept kinds. A cluster of thousands of nodes has a few kinds, so a question about all nodes costs a few
comparisons.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from planner.model.labels import NODE_NAME_FIELD, Requirement, Taint
from planner.model.node import Node
from planner.model.pod import PodShape
from planner.model.resources import COUNT_LABEL, GPU_RESOURCES, MIG_PREFIX, PRODUCT_LABEL, Resources
from planner.model.topology import HOSTNAME
from planner.node.eligibility import obstacle

RESERVE_CPU = 2_000
"""Millicores of each node that are left to DaemonSets (drivers, exporters, network agents) when the node is
divided among its GPUs.
"""


RESERVE_MEMORY = 4 * 2**30
"""Bytes of each node that are left to DaemonSets when the node is divided among its GPUs."""


_GIBIBYTE = 2**30


_BYTES = ("memory", "ephemeral-storage")
"""Resources whose amounts differ by a few KiB between nodes of one kind, so they are compared in GiB."""


_MOST_REMEMBERED = 32
"""Maximum number of sets of label keys for which a kind caches its distinct nodes. Users select by a few
labels; the bound limits memory if requests use many keys (each entry refers to every node at most once).
"""


@dataclass(frozen=True, slots=True, eq=False)
class NodeGroup:
    """A kind of nodes: those with the same product, lasting taints and amounts.

    `allocatable`: by resource, the amount of the node that has least of it, including what a MIG
    reconfiguration in progress will offer. `claimable`: how many GPUs one node has that only device claims
    can use.
    """

    product: str
    taints: tuple[Taint, ...]
    allocatable: Resources
    claimable: int
    nodes: tuple[Node, ...]
    _distinct: dict[frozenset[str], tuple[tuple[Node, int], ...]] = field(default_factory=dict)
    _hosts: dict[tuple[str, str], list[Node]] = field(default_factory=dict)
    """The nodes by name and by hostname label, filled on first use: several policies evaluate a pod that is
    pinned to its nodes, and iterating over 5,000 nodes each time took three quarters of the decision.
    """

    @property
    def gpus(self) -> int:
        """The whole GPUs of one node: those of its device plugin, else those that can be claimed."""
        return sum(self.allocatable.get(name, 0) for name in GPU_RESOURCES) or self.claimable

    def takes(self, shape: PodShape) -> bool:
        """Reports whether some empty node of this kind could take the pod."""
        return self.has_amounts(shape.requests) and self.admits(shape)

    def has_amounts(self, requests: Resources) -> bool:
        """Reports whether each empty node of this kind has these amounts."""
        return all(self.allocatable.get(name, 0) >= amount for name, amount in requests.items())

    def admits(self, shape: PodShape) -> bool:
        """Reports whether the labels and taints of some node of this kind allow the pod; ignores requests."""
        return any(not obstacle(shape, node, occupied=False) for node, _ in self._representatives(shape))

    def admitting(self, shape: PodShape) -> int:
        """Returns the number of nodes of this kind whose labels and taints allow the pod."""
        pairs = self._representatives(shape)
        return sum(count for node, count in pairs if not obstacle(shape, node, occupied=False))

    def _representatives(self, shape: PodShape) -> Iterable[tuple[Node, int]]:
        """Returns nodes that represent all nodes of this kind for the labels that the pod reads, each with
        the number of equal nodes.

        If all affinity terms of the pod name hosts, these are only the named hosts.
        """
        pins = [next(filter(_names_hosts, term), None) for term in shape.affinity]
        if not pins or not all(pins):
            return self.distinct(_keys(shape))
        if not self._hosts:
            for node in self.nodes:
                self._hosts.setdefault((NODE_NAME_FIELD, node.name), []).append(node)
                self._hosts.setdefault((HOSTNAME, node.labels.get(HOSTNAME, "")), []).append(node)
        pinned_to = ((pin.key, value) for pin in pins if pin for value in pin.values)
        nodes = {node.name: node for place in pinned_to for node in self._hosts.get(place, ())}
        return [(node, 1) for node in nodes.values()]

    def distinct(self, keys: frozenset[str]) -> tuple[tuple[Node, int], ...]:
        """Returns a node for each combination of values of these labels, with the number of equal nodes."""
        if NODE_NAME_FIELD in keys:
            return tuple((node, 1) for node in self.nodes)
        groups = self._distinct.get(keys)
        if groups is None:
            groups = _distinct(self.nodes, sorted(keys))
            if len(self._distinct) < _MOST_REMEMBERED:
                self._distinct[keys] = groups
        return groups


def _names_hosts(requirement: Requirement) -> bool:
    return requirement.operator == "In" and requirement.key in (HOSTNAME, NODE_NAME_FIELD)


def _distinct(nodes: Iterable[Node], keys: list[str]) -> tuple[tuple[Node, int], ...]:
    first: dict[tuple[str | None, ...], Node] = {}
    count: dict[tuple[str | None, ...], int] = {}
    for node in nodes:
        values = tuple(node.labels.get(key) for key in keys)
        first.setdefault(values, node)
        count[values] = count.get(values, 0) + 1
    return tuple((node, count[values]) for values, node in first.items())


def _keys(shape: PodShape) -> frozenset[str]:
    """Returns the keys of the labels that this pod's node selector and affinity read."""
    required = (requirement.key for term in shape.affinity for requirement in term)
    return frozenset((*shape.node_selector, *required))


def node_groups(nodes: Iterable[Node], *, resources_tolerated: bool = False) -> list[NodeGroup]:
    """Returns the kinds of these nodes, in the order of the first node of each kind.

    `resources_tolerated`: the API server makes pods tolerate taints with the name of a resource that they
    request. Such taints are then removed, because they keep no pod away that requests the resource.
    """
    groups: dict[tuple[object, ...], list[Node]] = {}
    for node in nodes:
        if resources_tolerated and any(taint.key in node.allocatable for taint in node.taints):
            node = replace(node, taints=tuple(t for t in node.taints if t.key not in node.allocatable))
        offers = {**node.allocatable, **node.pending}
        amounts = tuple(sorted((name, _rounded(name, amount)) for name, amount in offers.items()))
        key = (node.labels.get(PRODUCT_LABEL, ""), node.lasting_taints, claimable(node), amounts)
        groups.setdefault(key, []).append(node)
    return [_kind(members) for members in groups.values()]


def _kind(members: list[Node]) -> NodeGroup:
    first = members[0]
    offers = [{**node.allocatable, **node.pending} for node in members]
    smallest = {name: min(offer[name] for offer in offers) for name in offers[0]}
    return NodeGroup(
        first.labels.get(PRODUCT_LABEL, ""), first.lasting_taints, smallest, claimable(first), tuple(members)
    )


def _rounded(resource: str, amount: int) -> int:
    return amount // _GIBIBYTE if resource in _BYTES else amount


def claimable(node: Node) -> int:
    """Returns the number of GPUs that a node has by its label if no device plugin offers any, else 0.

    Such GPUs can only be used by device claims.
    """
    offered = any(name in GPU_RESOURCES or name.startswith(MIG_PREFIX) for name in node.allocatable)
    count = node.labels.get(COUNT_LABEL, "")
    return int(count) if count.isdecimal() and len(count) < 4 and not offered else 0


def could_take(kinds: Iterable[NodeGroup], shape: PodShape, claimed: int) -> list[NodeGroup]:
    """Returns the kinds of nodes of which an empty node could take a pod of this shape that, in addition to
    its requests, claims `claimed` GPUs.
    """
    return [kind for kind in kinds if (not claimed or kind.gpus >= claimed) and kind.takes(shape)]


def requested_gpus(requests: Resources) -> Mapping[str, int]:
    """Returns the whole GPUs in the requests, by resource."""
    return {name: requests[name] for name in GPU_RESOURCES if requests.get(name, 0) > 0}
