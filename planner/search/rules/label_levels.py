"""A tree made finer by labels that are no level: their domains become levels of their own.

    b1: r1 r2 r3 r4     power supply p: r1 r2    q: r3 r4       block ─ p, q ─ racks: p and q become a level

A label's domains are put just above the coarsest level none of whose domains they cut: power supplies that
feed whole racks above the racks, slots above the hosts. Such a level costs nothing and is no place for a gang
to be; rules over the label then hold inside the tree like those over any level. A label *recurs* where one of
its values lies under several parents: there the tree sees to the rule inside each parent only.

`under_values` puts a label's domains above everything instead, each with its part of the tree: for pods all
of which must be in one of them. What a domain costs hangs on the whole of it, not on the part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from planner.cluster.capacity import DomainCapacity
from planner.cluster.capacity_cache import CapacityPool
from planner.cluster.plan_cache import CacheSection
from planner.cluster.subtree import Subtree
from planner.cluster.tree import TopologyTree
from planner.model.cached_property import cached_property
from planner.model.natural_order import natural
from planner.model.topology import ROOT, Topology
from planner.search.space import SearchSpace

_MIXED = "\0"


@dataclass(frozen=True, eq=False)
class RefinedTree:
    """The finer tree. `levels`: where each level of the plain tree is now; `keys`: where each label is;
    `recurring`: labels of which a value lies under several parents."""

    plain: TopologyTree
    tree: TopologyTree
    levels: tuple[int, ...]
    keys: dict[str, int]
    recurring: frozenset[str]
    steps: tuple[_Step, ...]

    def space(self, plain: SearchSpace) -> SearchSpace:
        """The search space of the finer tree that belongs to one of the plain tree."""
        capacity = plain.capacity
        for step in self.steps:
            capacity = step.content(plain.base.capacities, capacity)
        extra = frozenset(self.keys.values())
        return replace(plain, tree=self.tree, capacity=capacity, extra=extra, plain=self.plain)

    def level(self, level: int) -> int:
        """Where a level of the plain tree is."""
        return level if level == ROOT else self.levels[level]

    def level_of(self, key: str) -> int:
        """Where the domains of a rule's label are, be it a level of its own or one of the plain tree."""
        return self.keys[key] if key in self.keys else self.levels[self.plain.topology.index(key)]

    def recurs(self, key: str) -> bool:
        """Whether a value of the label lies under several parents."""
        return key in self.recurring or self.plain.repeats(key)

    def place(self, name: str) -> int:
        """Where a node is in the plain tree."""
        return self._places[name]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.plain.names(self.plain.root))}

    def around(self, space: SearchSpace, branch: Subtree) -> Subtree:
        """The plain tree's domain that a domain of a search space of the finer tree is, or is in."""
        level = branch.level - sum(extra <= branch.level for extra in space.extra)
        return self.plain.root if level == ROOT else self.plain.ancestor(next(branch.leaves()).node, level)


@dataclass(frozen=True, eq=False)
class _Step:
    """One label's domains put in as `level`, in the place of `before`."""

    level: int
    before: Subtree
    after: Subtree
    _deeper: WeakKeyDictionary[DomainCapacity, DomainCapacity]

    def content(self, pool: CapacityPool, capacity: DomainCapacity) -> DomainCapacity:
        """The capacity of the finer tree."""
        return self._inserted(pool, capacity, self.before, self.after)

    def _inserted(
        self, pool: CapacityPool, capacity: DomainCapacity, before: Subtree, after: Subtree
    ) -> DomainCapacity:
        if before.level < self.level - 1:
            rows = zip(capacity.children, before.children, after.children, strict=True)
            return pool.domain(after, tuple([self._inserted(pool, *row) for row in rows]))
        by_key = dict(zip((child.key for child in before.children), capacity.children, strict=True))
        groups = []
        for group in after.children:
            inside = [self._shifted(pool, by_key[child.key], child) for child in group.children]
            groups.append(pool.domain(group, tuple(inside)))
        return pool.domain(after, tuple(groups))

    def _shifted(self, pool: CapacityPool, capacity: DomainCapacity, branch: Subtree) -> DomainCapacity:
        """The capacity one level deeper."""
        deeper = self._deeper.get(capacity)
        if deeper is None:
            if capacity.free is not None:
                deeper = pool.deeper(capacity)
            else:
                pairs = zip(capacity.children, branch.children, strict=True)
                deeper = pool.domain(branch, tuple([self._shifted(pool, *pair) for pair in pairs]))
            self._deeper[capacity] = deeper
        return deeper


REFINED_TREES: CacheSection[tuple[object, tuple[str, ...]], RefinedTree] = CacheSection("refined trees")
"""By the tree's lasting identity and the labels. Stale when the tree has another root: a node came, went or
was labelled anew; then it is made again in the same place, so that former trees do not add up."""


def refined(
    space: SearchSpace, keys: Iterable[str], drawn: Mapping[str, Mapping[str, str]] | None = None
) -> RefinedTree:
    """The search space's tree with these labels' domains as levels; remembered until a node changes.

    `drawn`: labels that no node carries, by node their values.
    """
    sorted_keys = tuple(sorted(set(keys)))
    if drawn:
        return _refined(space.tree, sorted_keys, drawn)
    return space.base.plan_cache.entry(
        REFINED_TREES,
        (space.tree.lasting, sorted_keys),
        lambda: _refined(space.tree, sorted_keys, {}),
        fresh=lambda tree: tree.plain.root is space.tree.root,
    )


def _refined(tree: TopologyTree, keys: Sequence[str], drawn: Mapping[str, Mapping[str, str]]) -> RefinedTree:
    levels, label_levels = list(range(len(tree.topology.levels))), dict[str, int]()
    recurring: set[str] = set()
    steps: list[_Step] = []
    finer = tree
    for key in keys:
        if key in finer.topology.levels:
            continue
        labels = (finer.cluster[name].labels.get(key, "") for name in finer.places)
        values = drawn[key] if key in drawn else dict(zip(finer.places, labels, strict=True))
        marks: dict[Subtree, str] = {}
        cut = _mark(finer.root, values, marks)
        level = max(0, min(finer.topology.host_index, cut + 1))
        root, parents = _grown(finer.root, level, marks)
        if any(len(under) > 1 for value, under in parents.items() if value):
            recurring.add(key)
        steps.append(_Step(level, finer.root, root, WeakKeyDictionary()))
        levels = [old_level + (old_level >= level) for old_level in levels]
        label_levels = {
            label: old_level + (old_level >= level) for label, old_level in label_levels.items()
        } | {key: level}
        finer = TopologyTree(_with_level(finer.topology, key, level), tree.cluster, root, finer.places)
    return RefinedTree(tree, finer, tuple(levels), label_levels, frozenset(recurring), tuple(steps))


def _mark(branch: Subtree, values: Mapping[str, str], marks: dict[Subtree, str]) -> int:
    """Notes each domain's one value; the finest level of which a domain has several, `ROOT` - 1 for none."""
    if branch.node:
        marks[branch] = values.get(branch.node, "")
        return ROOT - 1
    cut = max(_mark(child, values, marks) for child in branch.children) if branch.children else ROOT - 1
    values_inside = {marks[child] for child in branch.children}
    marks[branch] = values_inside.pop() if len(values_inside) == 1 else _MIXED
    return max(cut, branch.level) if marks[branch] == _MIXED else cut


def _grown(root: Subtree, level: int, marks: dict[Subtree, str]) -> tuple[Subtree, dict[str, set[Subtree]]]:
    """The tree with the values' domains as this level, and the parents under which each value lies."""
    parents: dict[str, set[Subtree]] = {}

    def inserted(branch: Subtree) -> Subtree:
        if branch.level < level - 1:
            return branch.with_children(tuple(map(inserted, branch.children)), branch.size)
        groups: dict[str, list[Subtree]] = {}
        for child in branch.children:
            groups.setdefault(marks[child], []).append(child)
            parents.setdefault(marks[child], set()).add(branch)
        return branch.with_children(
            tuple(
                Subtree(level, (*branch.path, value), (0, 0, value), bool(value), 0).with_children(
                    tuple(map(_deeper, members))
                )
                for value, members in groups.items()
            ),
            branch.size,
        )

    return inserted(root), parents


def _deeper(branch: Subtree) -> Subtree:
    return replace(branch, level=branch.level + 1, children=tuple(map(_deeper, branch.children)))


def _with_level(topology: Topology, key: str, level: int) -> Topology:
    reservable = topology.levels[topology.reservable_index]
    levels = (*topology.levels[:level], key, *topology.levels[level:])
    return replace(topology, levels=levels, reservable=reservable)


def under_values(pool: CapacityPool, space: SearchSpace, key: str) -> SearchSpace:
    """The search space with the label's domains above everything; nodes without it are left out."""
    parts = _Parts(pool, space.tree, key)
    rows = parts.of(space.tree.root, space.capacity)
    branches, contents = [], []
    for value in sorted(rows, key=natural):
        branch, capacity = rows[value]
        branches.append(Subtree(0, (value,), (0, 0, value), True, 0).with_children(branch.children))
        contents.append(pool.domain(branches[-1], capacity.children))
    root = Subtree(ROOT, (), (0, 0, ""), True, 0).with_children(tuple(branches))
    tree = TopologyTree(
        _with_level(space.tree.topology, f"{key}\0", 0), space.tree.cluster, root, space.tree.places
    )
    extra = frozenset({0, *(level + 1 for level in space.extra)})
    return replace(space, tree=tree, capacity=pool.domain(root, tuple(contents)), extra=extra)


class _Parts:
    """The parts of a tree that lie in each domain of a label, one level deeper."""

    def __init__(self, pool: CapacityPool, tree: TopologyTree, key: str) -> None:
        self._pool, self._tree, self._key = pool, tree, key
        self._capacities: dict[tuple[DomainCapacity, tuple[DomainCapacity, ...]], DomainCapacity] = {}

    def of(self, branch: Subtree, capacity: DomainCapacity) -> dict[str, tuple[Subtree, DomainCapacity]]:
        """By value the part of one domain, and what it holds; what it costs is that of the whole."""
        if branch.node:
            value = self._tree.cluster[branch.node].labels.get(self._key, "")
            return {value: (_deeper(branch), self._pool.deeper(capacity))} if value else {}
        by_value: dict[str, list[tuple[Subtree, DomainCapacity]]] = {}
        for child, child_capacity in zip(branch.children, capacity.children, strict=True):
            for value, part in self.of(child, child_capacity).items():
                by_value.setdefault(value, []).append(part)
        return {value: self._part(branch, capacity, parts) for value, parts in by_value.items()}

    def _part(
        self, branch: Subtree, capacity: DomainCapacity, parts: Sequence[tuple[Subtree, DomainCapacity]]
    ) -> tuple[Subtree, DomainCapacity]:
        children = tuple(part for part, _ in parts)
        held = tuple(child_capacity for _, child_capacity in parts)
        size = sum(child.size for child in children)
        joined = self._capacities.get((capacity, held))
        if joined is None:
            joined = replace(capacity, level=capacity.level + 1, size=size, children=held, chunks=())
            self._capacities[capacity, held] = joined
        return replace(branch.with_children(children, size), level=branch.level + 1), joined
