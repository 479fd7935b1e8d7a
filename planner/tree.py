"""A topology's nodes as a tree of domains, built once and shared by every snapshot.

Nodes lie in natural path order, so a domain is a range of them. A node that lacks a label is in no domain
of that level, yet the levels below still nest: the tree gives it an unnamed branch, which it shares only
with nodes of the same next finer label.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import overload

from planner.match import selects
from planner.node import Node
from planner.order import natural
from planner.topology import HOSTNAME, Domain, Topology


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """A domain: nodes `start` to `end` (exclusive) of its tree. `level` -1 is the root.

    `path` is the domain's path of label values, `named` False where its own level's label is absent.
    """

    level: int
    path: Domain
    start: int
    end: int
    named: bool
    children: tuple[Branch, ...]
    starts: tuple[int, ...] = ()
    """Where each child starts."""

    def child_of(self, node: int) -> int:
        """Which child holds the node."""
        return bisect_right(self.starts, node) - 1

    def __len__(self) -> int:
        return self.end - self.start


class Row(Sequence[Node]):
    """Nodes in the order of these names, looked up as they are asked for."""

    __slots__ = ("_nodes", "names")

    def __init__(self, names: tuple[str, ...], nodes: Mapping[str, Node]) -> None:
        self.names, self._nodes = names, nodes

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, place: int) -> Node: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Node]: ...
    def __getitem__(self, place: int | slice) -> Node | Sequence[Node]:
        if isinstance(place, slice):
            return Row(self.names[place], self._nodes)
        return self._nodes[self.names[place]]


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """A topology over its nodes. `levels[l]` are the branches of level l, in order; hosts are the last."""

    topology: Topology
    nodes: Row
    root: Branch
    levels: tuple[tuple[Branch, ...], ...]
    index: Mapping[str, int]
    domains: Mapping[Domain, Branch] = field(repr=False)

    def branch(self, domain: Domain) -> Branch | None:
        """The branch of a domain (`()` is the root), or None where there is none."""
        return self.root if not domain else self.domains.get(domain)

    def names(self, branch: Branch) -> list[str]:
        """The names of the nodes in a branch, in order."""
        return list(self.nodes.names[branch.start : branch.end])

    def over(self, nodes: Mapping[str, Node]) -> Tree:
        """The same places with these nodes, of the same names."""
        return replace(self, nodes=Row(self.nodes.names, nodes))

    def ancestor(self, node: int, level: int) -> Branch:
        """The branch of a level (-1 the root) that holds a node."""
        branch = self.root
        while branch.level < level:
            branch = branch.children[branch.child_of(node)]
        return branch


_Sort = tuple[tuple[int, int, object], ...]


def _place(path: Domain, host: int) -> tuple[str, ...]:
    """The path with each absent value replaced by a mark that the nodes under one finer label share."""
    place = list(path)
    for level in range(host - 1, -1, -1):
        if not place[level]:
            place[level] = f"\0{level + 1}{place[level + 1]}"
    return tuple(place)


def _key(place: tuple[str, ...]) -> _Sort:
    return tuple((1 if value[:1] == "\0" else 0, 0, natural(value)) for value in place)


def grow(topology: Topology, members: Iterable[Node], nodes: Mapping[str, Node]) -> Tree:
    """The tree of these nodes; a node's host value is its own, so that no two nodes share a host.

    The labels of `members` say where a node is, `nodes` what it is otherwise.
    """
    rows = sorted(
        ((_place(path, topology.host_index), path, node) for path, node in _paths(topology, members)),
        key=lambda row: (_key(row[0]), row[2].name),
    )
    levels: list[list[Branch]] = [[] for _ in topology.levels]

    def build(level: int, start: int, end: int, path: Domain, named: bool) -> Branch:
        children: list[Branch] = []
        if level < topology.host_index:
            at = start
            for _, members in groupby(rows[start:end], key=lambda row: row[0][: level + 2]):
                below = list(members)
                whole = below[0][1][: level + 2]
                children.append(build(level + 1, at, at + len(below), whole, bool(whole[-1])))
                at += len(below)
        starts = tuple(child.start for child in children)
        branch = Branch(level, path, start, end, named, tuple(children), starts)
        if level >= 0:
            levels[level].append(branch)
        return branch

    root = build(-1, 0, len(rows), (), True)
    names = tuple(node.name for _, _, node in rows)
    return Tree(
        topology=topology,
        nodes=Row(names, nodes),
        root=root,
        levels=tuple(tuple(branches) for branches in levels),
        index={name: place for place, name in enumerate(names)},
        domains={branch.path: branch for branches in levels for branch in branches if branch.named},
    )


def _paths(topology: Topology, nodes: Iterable[Node]) -> Iterable[tuple[Domain, Node]]:
    taken: set[Domain] = set()
    for node in sorted(nodes, key=lambda node: natural(node.name)):
        path = topology.path(node.name, node.labels)
        if path in taken:  # two nodes with one hostname label would share a host; the node's name tells them
            path = (*path[:-1], node.name)
        taken.add(path)
        yield path, node


def belongs(node: Node, topologies: Iterable[Topology]) -> list[Topology]:
    """The topologies that a node is part of; each scheduler's own are looked at by themselves.

    Those whose node selector picks it; where none does, those without a selector all of whose level labels
    (the hostname aside) it carries; where there is none either, those of which it carries the most labels, so
    that it still serves their coarser levels.
    """
    by_source: dict[str, list[Topology]] = {}
    for topology in topologies:
        by_source.setdefault(topology.source, []).append(topology)
    return [topology for kin in by_source.values() for topology in _belongs(node, kin)]


def _belongs(node: Node, topologies: list[Topology]) -> list[Topology]:
    pools = [t for t in topologies if t.node_selector and selects(t.node_selector, node.labels)]
    if pools:
        return pools
    carried = {
        t.name: sum(1 for level in t.levels if level != HOSTNAME and node.labels.get(level))
        for t in topologies
        if not t.node_selector
    }
    whole = [t for t in topologies if t.name in carried and carried[t.name] == t.host_index]
    if any(t.host_index for t in whole):
        return whole
    most = max(carried.values(), default=0)
    partly = [t for t in topologies if most and carried.get(t.name) == most]
    return [t for t in topologies if t in whole or t in partly]
