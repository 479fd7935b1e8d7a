"""A topology's nodes as a tree of domains, shared by every snapshot.

Example, levels block, rack, hostname; node n4 has no label rack, n5 neither block nor rack:

    root
    ├── b1
    │   ├── r1 ── n1, n2
    │   ├── r2 ── n3
    │   └── (unnamed) ── n4
    └── (unnamed)
        └── (unnamed) ── n5

Nodes are in natural path order. A node that lacks a label is in no domain of that level, yet the levels below
still nest: the tree gives it an unnamed branch, which it shares only with nodes of the same next finer label.
A tree never changes: with a node more or less there is another one, which shares all branches but those on
the way from that node up to the root.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import accumulate, groupby
from operator import attrgetter
from typing import overload

from planner.cluster.persistent_map import PersistentMap
from planner.model.natural_order import natural
from planner.model.node import Node
from planner.model.topology import HOSTNAME, Domain, Topology

Place = tuple[str, ...]
"""A node's path with each absent value replaced by a mark ("\\0", its level, the next finer value), so that
the nodes under one finer label share an unnamed branch."""


SortKey = tuple[int, int, object]
"""The order among siblings: named before unnamed, and values in natural order."""


_MAX_VALUES = 2**16
"""Label values whose sort keys are remembered, some 20 MB at the most. A cluster of 60,000 nodes has about
that many values; beyond it the nodes that come and go still pass through few."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Subtree:
    """A domain. `level` -1 is the root; `key` its sort key among siblings; `size` its number of nodes.

    `path`: the label values from the coarsest level down. `has_name`: False where its own level's label is
    missing. A host has no children and has the `node`'s name.
    """

    level: int
    path: Domain
    key: SortKey
    has_name: bool
    size: int
    children: tuple[Subtree, ...] = ()
    node: str = ""
    _starts: tuple[int, ...] = ()
    """The memo of `starts`, filled in at the first look: a wide root has thousands, and of the trees between
    two plans, a tree for each changed node, only the last is looked at."""

    def __len__(self) -> int:
        return self.size

    @property
    def starts(self) -> tuple[int, ...]:
        """The index, among the branch's nodes, of each child's first node."""
        if len(self._starts) != len(self.children):
            starts = tuple(accumulate([child.size for child in self.children[:-1]], initial=0))
            object.__setattr__(
                self, "_starts", starts
            )  # the only write to a frozen record: a memo of a value that follows from its fields
        return self._starts

    def leaf(self, index: int) -> Subtree:
        """The host with this index among the branch's nodes."""
        branch = self
        while branch.children:
            starts = branch._starts or branch.starts
            child_index = bisect_right(starts, index) - 1
            branch, index = branch.children[child_index], index - starts[child_index]
        return branch

    def leaves_at(self, indexes: Iterable[int]) -> Iterator[Subtree]:
        """The hosts with these indexes. Searched from the root only where the parent changes."""
        parent, start = self, self.size
        for index in indexes:
            if not 0 <= index - start < parent.size:
                parent, start = self.above(index)
            yield parent.children[index - start]

    def above(self, index: int) -> tuple[Subtree, int]:
        """The domain directly above the host with this index, and the index of that domain's first host."""
        branch, start = self, 0
        while branch.children[0].children:
            child_index = branch.child_of(index - start)
            branch, start = branch.children[child_index], start + branch.starts[child_index]
        return branch, start

    def around(self, first: int, last: int) -> Subtree:
        """The finest named domain in here that holds the hosts with both of these indexes."""
        branch, domain = self, self
        while branch.children:
            child_index = branch.child_of(first)
            start, child = branch.starts[child_index], branch.children[child_index]
            if last >= start + child.size:
                break
            branch, first, last = child, first - start, last - start
            domain = branch if branch.has_name else domain
        return domain

    def domain_at(self, index: int, level: int) -> tuple[Subtree, int]:
        """The domain of the level that holds the host with this index, or the host itself where it is in none
        with a name; and the index after its last host."""
        branch, start = self, 0
        while branch.children and not (branch.level == level and branch.has_name):
            child_index = branch.child_of(index - start)
            branch, start = branch.children[child_index], start + branch.starts[child_index]
        return branch, start + branch.size

    def leaves(self) -> Iterator[Subtree]:
        """The hosts, in order."""
        if self.node:
            yield self
        for child in self.children:
            yield from child.leaves()

    def child_of(self, index: int) -> int:
        """The index of the child that holds the host with this index."""
        return bisect_right(self.starts, index) - 1

    def find(self, key: SortKey) -> tuple[int, bool]:
        """The index among the children where this key is or would be inserted; whether it is present."""
        index = bisect_left(self.children, key, key=_key_of)
        return index, index < len(self.children) and self.children[index].key == key

    def with_children(self, children: tuple[Subtree, ...], size: int | None = None) -> Subtree:
        """The same domain with other children; `size` where it is known."""
        whole = sum([child.size for child in children]) if size is None else size
        return Subtree(self.level, self.path, self.key, self.has_name, whole, children)

    def with_child(self, index: int, child: Subtree | None, *, instead: bool) -> Subtree:
        """The same domain with this child at the index, `instead` of the former one there; None for none."""
        former = self.children[index].size if instead else 0
        new = (child,) if child else ()
        children = (*self.children[:index], *new, *self.children[index + instead :])
        return self.with_children(children, self.size - former + (child.size if child else 0))


_key_of: Callable[[Subtree], SortKey] = attrgetter("key")


class Row(Sequence[Node]):
    """The nodes of a branch in order, looked up on access, so a change copies no list."""

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
    """A topology over its nodes. `places` gives each node's place; `cluster` its nodes by name.

    `lasting`: the identity that a tree shares with the trees made from it by changes; caches use it as key.
    `clashing`: two nodes have the same hostname label, so a change needs a new tree.
    """

    topology: Topology
    cluster: Mapping[str, Node]
    root: Subtree
    places: PersistentMap[str, Place]
    clashing: bool = False
    lasting: object = field(default_factory=object, repr=False)

    @property
    def nodes(self) -> Row:
        """The nodes, in order."""
        return Row(self.root, self.cluster)

    @property
    def index(self) -> Mapping[str, Place]:
        """The index of each node, by name."""
        return self.places

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
        """Whether two domains of this level have the same label value, such as rack 1 of each zone.

        Kubernetes' rules over that label treat them as one domain. False for the hostname and for a key that
        is no level.
        """
        if key == HOSTNAME or key not in self.topology.levels:
            return False
        domains = [branch.path for branch in self.levels[self.topology.index(key)] if branch.has_name]
        return len({path[-1] for path in domains}) < len(domains)

    def branch(self, domain: Domain) -> Subtree | None:
        """The named branch of a domain (`()` is the root), or None where there is none."""
        return _down(self.root, domain)

    def names(self, branch: Subtree) -> list[str]:
        """The names of the nodes in a branch, in order."""
        return [leaf.node for leaf in branch.leaves()]

    def over(self, cluster: Mapping[str, Node]) -> TopologyTree:
        """The same tree over these nodes, which have the same names."""
        return self._become(cluster, self.root, self.places)

    def ancestor(self, name: str, level: int) -> Subtree:
        """The branch of a level (-1 the root) that holds a node of the tree."""
        return next(branch for branch in self.way(name) if branch.level == level)

    @property
    def leads(self) -> bool:
        """Whether `places` are valid paths to the nodes; not so in a tree with added levels
        (search/rules/label_levels.py).
        """
        name = next(iter(self.places), None)
        return name is None or len(self.places[name]) == len(self.topology.levels)

    def way(self, name: str) -> Iterator[Subtree]:
        """The branches that hold a node, from the root down to its host."""
        place, branch = self.places[name], self.root
        yield branch
        while branch.children:
            branch = branch.children[branch.find(key_at(place, branch))[0]]
            yield branch

    def place_of(self, member: Node) -> Place:
        """The place that a node's labels give it."""
        return _place(self.topology.path(member.name, member.labels), self.topology.host_index)

    def without(self, name: str, cluster: Mapping[str, Node]) -> TopologyTree:
        """The tree without a node that is in it."""
        place = self.places[name]
        root = _pruned(self.root, place) or self.root.with_children(())
        return self._become(cluster, root, self.places.changed(name, None))

    def anew(self, name: str, cluster: Mapping[str, Node]) -> TopologyTree:
        """The tree with new branch objects on the path to this node, at the same place."""
        return self._become(cluster, _anew(self.root, self.places[name]), self.places)

    def with_member(self, member: Node, cluster: Mapping[str, Node]) -> TopologyTree | None:
        """The tree with one more node, at the place of its labels; None where another node is there."""
        path = self.topology.path(member.name, member.labels)
        place = _place(path, self.topology.host_index)
        root = _grafted(self.root, path, place, member.name)
        if root is None:
            return None
        return self._become(cluster, root, self.places.changed(member.name, place))

    def _become(
        self, cluster: Mapping[str, Node], root: Subtree, places: PersistentMap[str, Place]
    ) -> TopologyTree:
        return TopologyTree(self.topology, cluster, root, places, self.clashing, self.lasting)


def key_at(place: Place, branch: Subtree) -> SortKey:
    """The sort key of the child that the path to a place goes through."""
    return _key(place[branch.level + 1])


def _down(branch: Subtree, domain: Domain) -> Subtree | None:
    depth = branch.level + 1
    if depth == len(domain):
        return branch if branch.has_name else None
    if value := domain[depth]:
        index, is_there = branch.find(_key(value))
        return _down(branch.children[index], domain) if is_there else None
    unnamed = (child for child in branch.children if not child.has_name)
    return next((inside for child in unnamed if (inside := _down(child, domain))), None)


def _pruned(branch: Subtree, place: Place) -> Subtree | None:
    """The branch without the host at this place; None where it is then empty."""
    if branch.node:
        return None
    index, _ = branch.find(key_at(place, branch))
    rest = _pruned(branch.children[index], place)
    return branch.with_child(index, rest, instead=True) if rest or len(branch.children) > 1 else None


def _anew(branch: Subtree, place: Place) -> Subtree:
    if branch.node:
        return replace(branch)
    index, _ = branch.find(key_at(place, branch))
    return branch.with_child(index, _anew(branch.children[index], place), instead=True)


def _grafted(branch: Subtree, path: Domain, place: Place, name: str) -> Subtree | None:
    """The branch with a host added at this place; None where there is a host already."""
    if branch.node:
        return None
    depth = branch.level + 1
    index, is_there = branch.find(_key(place[depth]))
    child = branch.children[index] if is_there else _chain(path, place, depth, name)
    if is_there:
        grown = _grafted(child, path, place, name)
        if grown is None:
            return None
        child = grown
    return branch.with_child(index, child, instead=is_there)


def _chain(path: Domain, place: Place, depth: int, name: str) -> Subtree:
    """A branch of this level that holds one host only."""
    host = len(path) - 1
    branch = Subtree(host, path, _key(place[host]), True, 1, node=name)
    for level in range(host - 1, depth - 1, -1):
        bare = Subtree(level, path[: level + 1], _key(place[level]), bool(path[level]), 0)
        branch = bare.with_children((branch,), 1)
    return branch


def _place(path: Domain, host: int) -> Place:
    place = list(path)
    for level in range(host - 1, -1, -1):
        if not place[level]:
            place[level] = f"\0{level + 1}{place[level + 1]}"
    return tuple(place)


@lru_cache(maxsize=_MAX_VALUES)
def _key(value: str) -> SortKey:
    return (1 if value[:1] == "\0" else 0, 0, natural(value))


def grow(topology: Topology, members: Iterable[Node], cluster: Mapping[str, Node]) -> TopologyTree:
    """The tree of these nodes; each node has its own host domain.

    `members` gives the labels that place a node, `cluster` the node itself.
    """
    host = topology.host_index
    clashing, paths = _paths(topology, members)
    rows = [(_place(path, host), path, name) for path, name in paths]
    rows.sort(key=lambda row: (tuple(map(_key, row[0])), row[2]))

    def build(level: int, start: int, end: int, path: Domain) -> Subtree:
        key = _key(rows[start][0][level]) if level >= 0 else (0, 0, "")
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
    """Each node's path, and whether two nodes would have had the same one."""
    taken: set[Domain] = set()
    paths: list[tuple[Domain, str]] = []
    clashing = False
    for node in sorted(nodes, key=lambda node: natural(node.name)):
        path = topology.path(node.name, node.labels)
        if (
            path in taken
        ):  # two nodes with the same hostname label would share a host; the node's name separates them
            clashing, path = True, (*path[:-1], node.name)
        taken.add(path)
        paths.append((path, node.name))
    return clashing, paths
