"""A topology's nodes as a tree of domains, shared by all snapshots.

Example with the levels block, rack, hostname. Node n4 has no rack label, n5 neither a block nor a rack label:

    root
    ├── b1
    │   ├── r1 ── n1, n2
    │   ├── r2 ── n3
    │   └── (unnamed) ── n4
    └── (unnamed)
        └── (unnamed) ── n5

Nodes are in natural path order. A node without a label is in no domain of that level, but still in domains of
the other levels. The tree puts it into an unnamed branch, which it shares only with nodes that have the same
next finer label. A tree never changes. Adding or removing a node gives another tree, which shares all
branches except those on the path from the root to that node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import overload

from planner.cluster.trees.subtree import (
    Place,
    Subtree,
    grafted,
    key_at,
    named_branch,
    place_at,
    pruned,
    renewed,
    sort_key,
)
from planner.model.cached_property import cached_property
from planner.model.natural_order import natural
from planner.model.node import Node
from planner.model.topology import HOSTNAME, Domain, Topology
from planner.persistent.persistent_map import PersistentMap


class Row(Sequence[Node]):
    """A view of a branch's nodes, in order: a node is looked up on access, so a change copies no list."""

    __slots__ = ("_branch", "_cluster")

    def __init__(self, branch: Subtree, cluster: Mapping[str, Node]) -> None:
        self._branch, self._cluster = branch, cluster

    def __len__(self) -> int:
        return len(self._branch)

    def __iter__(self) -> Iterator[Node]:
        return (self._cluster[leaf.node] for leaf in self._branch.leaves())

    @overload
    def __getitem__(self, index: int) -> Node: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Node]: ...
    def __getitem__(self, index: int | slice) -> Node | Sequence[Node]:
        if isinstance(index, slice):
            return list(self)[index]
        return self._cluster[self._branch.leaf(index).node]


@dataclass(frozen=True, eq=False)
class TopologyTree:
    """The tree of a topology over its nodes. `places`: the place of each node by name.

    `cluster`: all nodes of the cluster by name. `lasting`: an identity that a tree shares with all trees
    derived from it; caches use it as key. `clashing`: two nodes have the same hostname label, so a change
    requires a new tree.
    """

    topology: Topology
    cluster: Mapping[str, Node]
    root: Subtree
    places: PersistentMap[str, Place]
    clashing: bool = False
    lasting: object = field(default_factory=object, repr=False)

    @property
    def nodes(self) -> Row:
        """The nodes of the tree, in order."""
        return Row(self.root, self.cluster)

    @cached_property
    def levels(self) -> tuple[tuple[Subtree, ...], ...]:
        """The branches of each level, in order; hosts are the last."""
        levels: list[tuple[Subtree, ...]] = []
        row: tuple[Subtree, ...] = (self.root,)
        for _ in self.topology.levels:
            row = tuple([child for branch in row for child in branch.children])
            levels.append(row)
        return tuple(levels)

    def repeats(self, key: str) -> bool:
        """Reports whether two domains of this level have the same label value, such as rack 1 of each zone,
        or may have (`hides`).

        Kubernetes' rules over that label treat them as one domain. False for the hostname and for a key that
        is not a level.
        """
        if key == HOSTNAME or key not in self.topology.levels:
            return False
        domains = [branch.path for branch in self.levels[self.topology.index(key)] if branch.has_name]
        return len({path[-1] for path in domains}) < len(domains) or self.hides(key)

    def hides(self, key: str) -> bool:
        """Reports whether a node that is in no domain of this level has its label all the same: in a tree
        over all nodes (`Infrastructure.wide_trees`), one to which the topology does not apply.
        """
        return any(
            self.cluster[leaf.node].labels.get(key)
            for branch in self.levels[self.topology.index(key)]
            if not branch.has_name
            for leaf in branch.leaves()
        )

    def branch(self, domain: Domain) -> Subtree | None:
        """Returns the named branch of a domain (`()` is the root), None if there is none."""
        return named_branch(self.root, domain)

    def names(self, branch: Subtree) -> list[str]:
        """Returns the names of the nodes in a branch, in order."""
        return [leaf.node for leaf in branch.leaves()]

    def with_records(self, cluster: Mapping[str, Node]) -> TopologyTree:
        """Returns this tree with the node records of `cluster`, in which the nodes of the tree must have the
        same topology labels.
        """
        return self._become(cluster, self.root, self.places)

    def ancestor(self, name: str, level: int) -> Subtree:
        """Returns the branch of a level (-1 for the root) that contains a node of the tree."""
        return next(branch for branch in self.branches_to(name) if branch.level == level)

    @property
    def places_are_paths(self) -> bool:
        """Whether `places` are valid paths to the nodes. False for a tree with added levels
        (search/rules/label_levels.py).
        """
        name = next(iter(self.places), None)
        return name is None or len(self.places[name]) == len(self.topology.levels)

    def branches_to(self, name: str) -> Iterator[Subtree]:
        """Yields the branches that contain a node, from the root down to its host."""
        place, branch = self.places[name], self.root
        yield branch
        while branch.children:
            branch = branch.children[branch.find(key_at(place, branch))[0]]
            yield branch

    def place_of(self, node: Node) -> Place:
        """Returns the place of a node by its labels."""
        return place_at(self.topology.path(node.name, node.labels), self.topology.host_index)

    def without(self, name: str, cluster: Mapping[str, Node]) -> TopologyTree:
        """Returns the tree without a node that it contains."""
        place = self.places[name]
        root = pruned(self.root, place) or self.root.with_children(())
        return self._become(cluster, root, self.places.changed(name, None))

    def with_renewed_path(self, name: str, cluster: Mapping[str, Node]) -> TopologyTree:
        """Returns the tree with new branch objects on the path to this node, which keeps its place."""
        return self._become(cluster, renewed(self.root, self.places[name]), self.places)

    def with_node(self, node: Node, cluster: Mapping[str, Node]) -> TopologyTree | None:
        """Returns the tree with one more node at the place of its labels; None if another node is there."""
        path = self.topology.path(node.name, node.labels)
        place = place_at(path, self.topology.host_index)
        root = grafted(self.root, path, place, node.name)
        if root is None:
            return None
        return self._become(cluster, root, self.places.changed(node.name, place))

    def _become(
        self, cluster: Mapping[str, Node], root: Subtree, places: PersistentMap[str, Place]
    ) -> TopologyTree:
        return TopologyTree(self.topology, cluster, root, places, self.clashing, self.lasting)


def grow(topology: Topology, members: Iterable[Node], cluster: Mapping[str, Node]) -> TopologyTree:
    """Returns the tree of the nodes in `members`; each node has its own host domain.

    The labels in `members` determine a node's place. `cluster` has all nodes with all their labels; the nodes
    in `members` may lack some (`trees_by_topology.wide_trees_of`).
    """
    host = topology.host_index
    clashing, paths = _paths(topology, members)
    rows = [(place_at(path, host), path, name) for path, name in paths]
    rows.sort(key=lambda row: (tuple(map(sort_key, row[0])), row[2]))

    def build(level: int, start: int, end: int, path: Domain) -> Subtree:
        key = sort_key(rows[start][0][level]) if level >= 0 else (0, 0, "")
        if level == host:
            return Subtree(level, path, key, True, 1, node=rows[start][2])
        children: list[Subtree] = []
        first = start
        for _, below in groupby(rows[start:end], key=lambda row: row[0][: level + 2]):
            members_inside = list(below)
            children.append(
                build(level + 1, first, first + len(members_inside), members_inside[0][1][: level + 2])
            )
            first += len(members_inside)
        has_name = level < 0 or bool(path[-1])
        return Subtree(level, path, key, has_name, 0).with_children(tuple(children))

    root = build(-1, 0, len(rows), ())
    return TopologyTree(
        topology, cluster, root, PersistentMap({name: place for place, _, name in rows}), clashing
    )


def _paths(topology: Topology, nodes: Iterable[Node]) -> tuple[bool, list[tuple[Domain, str]]]:
    """Returns whether two nodes had the same path, and each node's path with its name."""
    taken: set[Domain] = set()
    paths: list[tuple[Domain, str]] = []
    clashing = False
    for node in sorted(nodes, key=lambda node: natural(node.name)):
        path = topology.path(node.name, node.labels)
        if (
            path in taken
        ):  # two nodes with the same hostname label would share a host, so the node name is used instead
            clashing, path = True, (*path[:-1], node.name)
        taken.add(path)
        paths.append((path, node.name))
    return clashing, paths
