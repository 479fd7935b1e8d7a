"""Determines which topologies a node belongs to, by node selectors and level labels."""

from __future__ import annotations

from collections.abc import Iterable

from planner.model.labels import selects
from planner.model.node import Node
from planner.model.topology import HOSTNAME, NODE_LABELS, Topology


def topologies_of(node: Node, topologies: Iterable[Topology]) -> list[Topology]:
    """Returns the topologies that a node belongs to.

    The Topologies of each API group are considered separately. A node belongs to the topology derived from
    node labels only if it belongs to no Topology object, and then even if it lacks some of the labels. For
    Topology objects the first rule that applies decides:

    1. topologies whose node selector matches the node;
    2. topologies without a selector of which the node has all level labels (except the hostname), unless the
       hostname is their only level;
    3. topologies without a selector of which the node has the most labels, so that the node at least belongs
       to domains of the levels whose labels it has.

    Topologies without a selector whose only level is the hostname are added to those of rule 2 or 3.
    """
    by_source: dict[str, list[Topology]] = {}
    for topology in topologies:
        by_source.setdefault(topology.source, []).append(topology)
    in_labels = by_source.pop(NODE_LABELS, [])
    of_objects = [own for same_source in by_source.values() for own in _topologies_of(node, same_source)]
    return of_objects or in_labels


def _topologies_of(node: Node, topologies: list[Topology]) -> list[Topology]:
    pools = [t for t in topologies if t.node_selector and selects(t.node_selector, node.labels)]
    if pools:
        return pools
    carried = {
        t.name: sum(1 for level in t.levels if level != HOSTNAME and node.labels.get(level))
        for t in topologies
        if not t.node_selector
    }
    with_all_labels = [t for t in topologies if t.name in carried and carried[t.name] == t.host_index]
    if any(t.host_index for t in with_all_labels):
        return with_all_labels
    max_labels = max(carried.values(), default=0)
    with_most_labels = [t for t in topologies if max_labels and carried.get(t.name) == max_labels]
    return [t for t in topologies if t in with_all_labels or t in with_most_labels]
