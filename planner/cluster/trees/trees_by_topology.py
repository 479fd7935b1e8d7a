"""The trees of all topologies of a cluster, by name: from all nodes, and after one node has changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from planner.cluster.trees.topology_membership import topologies_of
from planner.cluster.trees.tree import TopologyTree, grow
from planner.model.node import Node
from planner.model.topology import HOSTNAME, Topology


def trees_of(topologies: Iterable[Topology], nodes: Mapping[str, Node]) -> dict[str, TopologyTree]:
    """Returns the tree of each topology over the nodes that belong to it."""
    every = tuple(topologies)
    members: dict[str, list[Node]] = {topology.name: [] for topology in every}
    for node in nodes.values():
        for topology in topologies_of(node, every):
            members[topology.name].append(node)
    return {topology.name: grow(topology, members[topology.name], nodes) for topology in every}


def wide_trees_of(
    topologies: Iterable[Topology], nodes: Mapping[str, Node], trees: Mapping[str, TopologyTree]
) -> dict[str, TopologyTree]:
    """Returns the tree of each topology over all nodes. `trees`: those of `trees_of`."""
    wide_trees: dict[str, TopologyTree] = {}
    for topology in topologies:
        tree = trees[topology.name]
        outside = (_without_level_labels(node) for node in nodes.values() if node.name not in tree.places)
        wide_trees[topology.name] = grow(topology, (*tree.nodes, *outside), nodes)
    return wide_trees


def trees_after(
    trees: Mapping[str, TopologyTree],
    topologies: tuple[Topology, ...],
    nodes: Mapping[str, Node],
    old: Node | None,
    new: Node | None,
    *,
    wide: bool,
) -> dict[str, TopologyTree] | None:
    """Returns the trees after `new` has replaced `old` (None: no node), None if they must be rebuilt from all
    nodes. `nodes`: all nodes now. `wide`: whether these are the trees of `wide_trees_of`.
    """
    if old and new and old.labels == new.labels:
        return {name: tree.with_records(nodes) for name, tree in trees.items()}
    own_topologies = topologies_of(new, topologies) if new else []
    trees_by_name: dict[str, TopologyTree] = {}
    for topology in topologies:
        node = new if topology in own_topologies else _without_level_labels(new) if new and wide else None
        tree = _with(trees[topology.name], nodes, old.name if old else "", node)
        if tree is None:
            return None
        trees_by_name[topology.name] = tree
    return trees_by_name


def _with(
    tree: TopologyTree, cluster: Mapping[str, Node], name: str, node: Node | None
) -> TopologyTree | None:
    """Returns the tree with `node` instead of the node `name`, None if it must be rebuilt from scratch."""
    is_in_tree = name in tree.places
    if not is_in_tree and node is None:
        return tree.with_records(cluster)
    if tree.clashing:  # two nodes have the same hostname label
        return None
    if is_in_tree and node and tree.place_of(node) == tree.places[name]:
        return tree.with_renewed_path(name, cluster)
    without = tree.without(name, cluster) if is_in_tree else tree
    return without.with_node(node, cluster) if node else without


def _without_level_labels(node: Node) -> Node:
    """Returns the node with only its hostname label: a tree has it as a host that is in no named domain."""
    return replace(node, labels={HOSTNAME: node.labels.get(HOSTNAME) or node.name})
