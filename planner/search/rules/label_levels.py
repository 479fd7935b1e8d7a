"""Refines a tree by labels that are not levels: the domains of each label become a level of their own.

    b1: r1 r2 r3 r4     power supply p: r1 r2    q: r3 r4       block ─ p, q ─ racks: p and q become a level

The domains of a label are inserted directly above the coarsest level of which every domain has a single value
of the label: power supplies that feed whole racks above the racks, positions in a rack above the hosts. Such
a level costs nothing, and no gang is placed at it. Rules over the label then hold in the tree like rules over
any level. A label is *recurring* if one of its values occurs under several parents: a search of the tree then
enforces the rule only inside each parent.

`under_values` instead puts the domains of a label above all levels, each with its part of the tree, for pods
that must all be in one of them. The part of a rack in such a domain costs as much as the whole rack.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from planner.cluster.capacity import DomainCapacity
from planner.cluster.capacity_cache import CapacityPool
from planner.cluster.plan_cache import CacheSection
from planner.cluster.trees.subtree import Subtree
from planner.cluster.trees.tree import TopologyTree
from planner.model.cached_property import cached_property
from planner.model.natural_order import natural
from planner.model.topology import ROOT, Topology
from planner.search.space import SearchSpace

_MIXED = "\0"
"""The mark of a domain whose nodes have several values of the label."""


@dataclass(frozen=True, eq=False)
class RefinedTree:
    """The refined tree, and the `plain` tree without label levels.

    `levels`: by level of the plain tree, its index in the refined tree. `keys`: by label, the index of its
    level. `recurring`: labels with a value under several parents. `steps`: the insertions, in order. `drawn`:
    for labels that no node has, by label, the value of each node.
    """

    plain: TopologyTree
    tree: TopologyTree
    levels: tuple[int, ...]
    keys: dict[str, int]
    recurring: frozenset[str]
    steps: tuple[_Step, ...]
    drawn: Mapping[str, Mapping[str, str]]

    def space(self, plain: SearchSpace) -> SearchSpace:
        """Returns the search space of the refined tree for a search space of the plain tree.

        The space keeps its own plain tree: that of this record may have older nodes, with the same labels but
        other taints or amounts, and the capacity of the empty cluster is computed from them.
        """
        capacity = plain.capacity
        for step in self.steps:
            capacity = step.after_insertion(plain.base.capacities, capacity)
        extra = frozenset(self.keys.values())
        limit = plain.gpu_limit and plain.gpu_limit._replace(level=self.level(plain.gpu_limit.level))
        return replace(
            plain, tree=self.tree, capacity=capacity, extra=extra, plain=plain.tree, gpu_limit=limit
        )

    def level(self, level: int) -> int:
        """Returns the index of a level of the plain tree in the refined tree."""
        return level if level == ROOT else self.levels[level]

    def level_of(self, key: str) -> int:
        """Returns the index of a label's level in the refined tree, be it inserted or a level of the plain
        tree.
        """
        return self.keys[key] if key in self.keys else self.levels[self.plain.topology.index(key)]

    def recurs(self, key: str) -> bool:
        """Reports whether a value of the label occurs under several parents."""
        return key in self.recurring if key in self.keys else self.plain.repeats(key)

    def place(self, name: str) -> int:
        """Returns the index in the plain tree of the node with this name."""
        return self._places[name]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.plain.names(self.plain.root))}

    def plain_domain_of(self, space: SearchSpace, branch: Subtree) -> Subtree:
        """Returns the finest domain of the plain tree that contains this domain of a refined tree.

        `space`: the search space of the refined tree.
        """
        level = branch.level - sum(extra <= branch.level for extra in space.extra)
        return self.plain.root if level == ROOT else self.plain.ancestor(next(branch.leaves()).node, level)


@dataclass(frozen=True, eq=False)
class _Step:
    """The insertion of one label's domains as `level`, which turns the tree `before` into `after`.

    `_deeper`: by capacity of a domain below the new level, the same capacity one level deeper.
    """

    level: int
    before: Subtree
    after: Subtree
    _deeper: WeakKeyDictionary[DomainCapacity, DomainCapacity]

    def after_insertion(self, pool: CapacityPool, capacity: DomainCapacity) -> DomainCapacity:
        """Returns the capacity of the tree `after`; `capacity`: that of `before`."""
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
        """Returns the capacity of a domain, moved one level deeper; `branch`: the moved domain."""
        deeper = self._deeper.get(capacity)
        if deeper is None:
            if capacity.free is not None:
                deeper = pool.one_level_deeper(capacity)
            else:
                pairs = zip(capacity.children, branch.children, strict=True)
                deeper = pool.domain(branch, tuple([self._shifted(pool, *pair) for pair in pairs]))
            self._deeper[capacity] = deeper
        return deeper


REFINED_TREES: CacheSection[tuple[object, tuple[str, ...]], RefinedTree] = CacheSection("refined trees")
"""Keyed by `TopologyTree.lasting` and the labels. An entry is stale if the tree has another root, because a
node was added, removed or relabelled, or if a drawn label has another mapping. It is then computed again
under the same key, so that old trees do not accumulate. Of its nodes, only the labels are read.
"""


def refined(space: SearchSpace, keys: Iterable[str], drawn: Mapping[str, Mapping[str, str]]) -> RefinedTree:
    """Returns the tree of the search space with the domains of the labels `keys` as additional levels, cached
    until a node changes.

    `drawn`: for labels that no node has, by label, the value of each node. The searches for a gang draw the
    same mappings each time; these are compared by identity, because they have an entry for each node.
    """
    sorted_keys = tuple(sorted(set(keys)))
    return space.base.plan_cache.entry(
        REFINED_TREES,
        (space.tree.lasting, sorted_keys),
        lambda: _refined(space.tree, sorted_keys, drawn),
        fresh=lambda tree: (
            tree.plain.root is space.tree.root
            and all(tree.drawn[key] is values for key, values in drawn.items())
        ),
    )


def _refined(tree: TopologyTree, keys: Sequence[str], drawn: Mapping[str, Mapping[str, str]]) -> RefinedTree:
    levels, label_levels = list(range(len(tree.topology.levels))), dict[str, int]()
    recurring: set[str] = set()
    steps: list[_Step] = []
    finer = tree
    for key in keys:
        if key in finer.topology.levels and not tree.hides(key):
            continue
        values = drawn[key] if key in drawn else values_of(finer, key)
        marks: dict[Subtree, str] = {}
        cut = _mark(finer.root, values, marks)
        level = max(0, min(finer.topology.host_index, cut + 1))
        root, parents = _grown(finer.root, level, marks)
        if any(len(under) > 1 for value, under in parents.items() if value):
            recurring.add(key)
        steps.append(_Step(level, finer.root, root, WeakKeyDictionary()))
        # Levels at the index of the inserted level, and finer ones, move to the next index.
        levels = [old_level + (old_level >= level) for old_level in levels]
        label_levels = {
            label: old_level + (old_level >= level) for label, old_level in label_levels.items()
        } | {key: level}
        # The level of the topology keeps its name; no label has the other one.
        name = f"{key}\0label" if key in finer.topology.levels else key
        finer = TopologyTree(_with_level(finer.topology, name, level), tree.cluster, root, finer.places)
    return RefinedTree(tree, finer, tuple(levels), label_levels, frozenset(recurring), tuple(steps), drawn)


def values_of(tree: TopologyTree, key: str) -> dict[str, str]:
    """Returns the value of the label by node; "" for nodes without the label."""
    return {name: tree.cluster[name].labels.get(key, "") for name in tree.places}


def _mark(branch: Subtree, values: Mapping[str, str], marks: dict[Subtree, str]) -> int:
    """Stores in `marks` the label value of each domain, or `_MIXED` if its nodes have several values.

    Returns the finest level with a mixed domain; `ROOT` - 1 if there is none.
    """
    if branch.node:
        marks[branch] = values.get(branch.node, "")
        return ROOT - 1
    cut = max(_mark(child, values, marks) for child in branch.children) if branch.children else ROOT - 1
    values_inside = {marks[child] for child in branch.children}
    marks[branch] = values_inside.pop() if len(values_inside) == 1 else _MIXED
    return max(cut, branch.level) if marks[branch] == _MIXED else cut


def _grown(root: Subtree, level: int, marks: dict[Subtree, str]) -> tuple[Subtree, dict[str, set[Subtree]]]:
    """Returns the tree with the domains of the values in `marks` inserted as this level, and, by value, the
    parents under which it occurs.
    """
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
    reservable = topology.levels[topology.reservable_index]  # stays the same level, at another index
    levels = (*topology.levels[:level], key, *topology.levels[level:])
    return replace(topology, levels=levels, reservable=reservable)


def under_values(pool: CapacityPool, space: SearchSpace, key: str, values: Mapping[str, str]) -> SearchSpace:
    """Returns the search space with the label's domains as the coarsest level. `values`: by node, the value
    of the label; nodes without a value are left out.
    """
    parts = _Parts(pool, values)
    rows = parts.of(space.tree.root, space.capacity)
    branches, contents = [], []
    for value in sorted(rows, key=natural):
        branch, capacity = rows[value]
        branches.append(Subtree(0, (value,), (0, 0, value), True, 0).with_children(branch.children))
        contents.append(pool.domain(branches[-1], capacity.children))
    root = Subtree(ROOT, (), (0, 0, ""), True, 0).with_children(tuple(branches))
    # The key ends with a null character, which no label has: attempts at this level are recognized by it.
    tree = TopologyTree(
        _with_level(space.tree.topology, f"{key}\0", 0), space.tree.cluster, root, space.tree.places
    )
    extra = frozenset({0, *(level + 1 for level in space.extra)})
    limit = space.gpu_limit and space.gpu_limit._replace(level=space.gpu_limit.level + 1)
    capacity = pool.domain(root, tuple(contents))
    return replace(space, tree=tree, capacity=capacity, extra=extra, gpu_limit=limit)


class _Parts:
    """The part of a tree in each domain of a label, moved one level deeper."""

    def __init__(self, pool: CapacityPool, values: Mapping[str, str]) -> None:
        self._pool, self._values = pool, values
        self._capacities: dict[tuple[DomainCapacity, tuple[DomainCapacity, ...]], DomainCapacity] = {}

    def of(self, branch: Subtree, capacity: DomainCapacity) -> dict[str, tuple[Subtree, DomainCapacity]]:
        """Returns by label value the part of a domain whose nodes have this value, with the capacity of the
        part.

        Costs depend on properties of a capacity that are copied from the complete domain to each part, for
        example whether the domain is in use. So using a part costs as much as using the complete domain.
        """
        if branch.node:
            value = self._values.get(branch.node, "")
            return {value: (_deeper(branch), self._pool.one_level_deeper(capacity))} if value else {}
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
