"""Which nodes of a tree a gang's pods may use by the nodes' labels, for all domains at once.

    b1: r1 (gpu=h100) r2 (gpu=h100)      b2: r3 (gpu=a100) r4 (gpu=h100)      nodeSelector gpu=h100

The map of b1 is a single object, which holds for all its nodes. Only the map of b2 has children, and that of
r3 contains the cause that excludes the pods. Most gangs have no selectors, and most selectors accept or
exclude whole domains, so a map usually consists of few objects. It depends on labels alone, so it stays valid
when pods and reservations change.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain
from weakref import WeakKeyDictionary, WeakValueDictionary

from planner.cluster.capacity import DomainCapacity, chunked
from planner.cluster.plan_cache import CacheSection, PlanCache
from planner.cluster.trees.subtree import Subtree
from planner.cluster.trees.tree import TopologyTree
from planner.model.labels import NODE_NAME_FIELD
from planner.model.node import Node
from planner.model.pod import PodShape
from planner.model.pod_class import PodClass
from planner.model.resources import GPU, PRODUCT_LABEL, SHARED_GPU
from planner.model.topology import ROOT
from planner.node.eligibility import is_excluded, label_obstacle, preference
from planner.search.domain_caps import CountCap, DomainCap, LevelCaps


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class EligibilityMap:
    """The eligibility of the nodes of one domain.

    `why`: for each pod class the cause that excludes its pods, "" if there is none. `penalty`: the weight of
    preferred node affinity that the nodes miss, summed over the pod classes. Without `children`, both hold
    for every node of the domain.
    """

    why: tuple[str, ...]
    penalty: int = 0
    children: tuple[EligibilityMap, ...] = ()
    chunks: tuple[EligibilityMap, ...] = ()
    """The maps of the domain's chunks, if it has any."""
    caps: tuple[CountCap, ...] = ()
    """Caps on the pods of the domain, which also hold for every domain inside it."""
    _capped: dict[tuple[CountCap, ...], EligibilityMap] = field(default_factory=dict, repr=False)
    """The results of `under`, as long as this map lives: an entry for each different list of caps, small
    numbers that the rules of many gangs have in common."""

    def of_children(self, count: int) -> Sequence[EligibilityMap]:
        """Returns the maps of a domain's `count` children."""
        if not self.children:
            return (self,) * count
        return [child.under(self.caps) for child in self.children] if self.caps else self.children

    def under(self, caps: tuple[CountCap, ...]) -> EligibilityMap:
        """Returns this map with additional caps; the same object each time, because maps are cache keys."""
        new_caps = tuple(cap for cap in caps if cap not in self.caps)
        if not new_caps:
            return self
        if new_caps not in self._capped:
            caps = (*self.caps, *new_caps)
            self._capped[new_caps] = EligibilityMap(self.why, self.penalty, self.children, self.chunks, caps)
        return self._capped[new_caps]


JoinedMaps = WeakValueDictionary[tuple[EligibilityMap, ...], EligibilityMap]

CAPPED: CacheSection[None, JoinedMaps] = CacheSection("capped domains", results=len)
"""A single entry: the maps of domains inside which `capped` has added caps, by the maps of their children. An
entry never becomes stale. Maps are cache keys by identity, so domains that get the same caps in several
searches, or for several gangs, must have the same map. A map that no other cache uses is dropped.
"""


def capped(
    cache: PlanCache, match: EligibilityMap, branch: Subtree, caps: Sequence[DomainCap]
) -> EligibilityMap:
    """Returns the map of a domain with these caps added, to the domain itself and to domains inside it."""
    levels: dict[int, list[DomainCap]] = {}
    for cap in caps:
        levels.setdefault(cap.level, []).append(cap)
    caps_at = {level: LevelCaps(caps) for level, caps in levels.items()}
    finest = max(levels, default=ROOT)
    joined_maps = cache.entry(CAPPED, None, WeakValueDictionary)

    def joined(children: tuple[EligibilityMap, ...]) -> EligibilityMap:
        match = joined_maps.get(children)
        if match is None:
            match = joined_maps[children] = EligibilityMap((), 0, children, chunked(children, joined))
        return match

    def within(match: EligibilityMap, branch: Subtree) -> EligibilityMap:
        if finest > branch.level and branch.children:
            former = match.of_children(len(branch.children))
            common = caps_at[finest].common(branch.children) if branch.level == finest - 1 else None
            if common is None:
                children = tuple(map(within, former, branch.children))
            elif match.children:
                children = tuple([child.under(common) for child in former])
            else:
                children = (match.under(common),) * len(former)
            if any(map(operator.is_not, children, former)):
                match = joined(children)
        level_caps = caps_at.get(branch.level)
        own_caps = level_caps.of(branch) if level_caps else ()
        return match.under(own_caps) if own_caps else match

    return within(match, branch) if caps else match


def matched_children(
    capacity: DomainCapacity, match: EligibilityMap
) -> Iterator[tuple[int, DomainCapacity, EligibilityMap]]:
    """Yields the children of a domain: index, capacity and map. If the domain has chunks, yields these
    instead, each with the index of its first child.
    """
    row = capacity.chunks or capacity.children
    matches: Sequence[EligibilityMap] = (match.chunks if capacity.chunks else match.children) or (
        match,
    ) * len(row)
    if match.caps and matches[0] is not match:
        matches = [child_match.under(match.caps) for child_match in matches]
    place = 0
    for child, child_match in zip(row, matches, strict=True):
        yield place, child, child_match
        place += child.span


_HOSTS = 2**31
"""Stands for a level finer than all: each host is evaluated."""

_OTHER = "\0"
"""Stands for every label value that no constraint mentions; no label has it."""

UNNAMED = Node("", {}, {})
"""Represents every node that the request does not name."""


def match_of(
    cache: PlanCache, tree: TopologyTree, pod_classes: Sequence[PodClass], *, divided: bool
) -> EligibilityMap:
    """Returns the map of the whole tree for these pod classes, cached by their label constraints.

    `divided`: whether some node advertises parts of GPUs under the GPU resource name.
    """
    label_keys = tuple(_label_key(pod_class, divided=divided) for pod_class in pod_classes)
    if not any(label_keys):
        return cache.entry(UNRESTRICTED, len(pod_classes), lambda: EligibilityMap(("",) * len(pod_classes)))
    matching = cache.entry(
        ELIGIBILITY, (tree.lasting, label_keys), lambda: _Matching(pod_classes, divided=divided)
    )
    return cache.exclusively(lambda: matching.of_tree(tree))


def _label_key(pod_class: PodClass, *, divided: bool) -> Hashable:
    """Returns the label constraints of the pod class as a cache key; () for none."""
    shape = pod_class.shape
    gpus = min(shape.requests.get(GPU, 0), 2) if divided else 0  # only none, one or several matters
    linked = bool(gpus) and pod_class.linked
    several_slices = shape.requests.get(SHARED_GPU, 0) > 1  # no node gives a pod more than one time slice
    parts = gpus > 1 or linked or several_slices
    if not (shape.node_selector or shape.affinity or shape.preferences or parts or shape.exclusions):
        return ()
    selector = tuple(sorted(shape.node_selector.items()))
    # Of a class in several pieces, only the first (not `is_split`) counts the preferences.
    weighed = shape.preferences and not pod_class.is_split
    return (
        selector,
        shape.affinity,
        shape.preferences,
        weighed,
        gpus,
        linked,
        several_slices,
        shape.exclusions,
    )


class _Matching:
    """Evaluates the label constraints of pod classes for nodes and domains.

    Nodes with the same values of the relevant labels are evaluated once. Values that no term mentions count
    as the same value, and of exclusions, which may list thousands of nodes, it matters only which of them
    keep pods away. So a constraint on host names is evaluated for the hosts that it names, not for each node.

    A domain is evaluated again only if one of its nodes was added, removed or relabelled, because the tree
    then has another branch for it.
    """

    def __init__(self, pod_classes: Sequence[PodClass], *, divided: bool) -> None:
        self._pod_classes = pod_classes
        shapes = [pod_class.shape for pod_class in pod_classes]
        self._exclusions = list(dict.fromkeys(chain.from_iterable(shape.exclusions for shape in shapes)))
        self._mentioned = _mentioned(shapes)
        if divided:
            self._mentioned[PRODUCT_LABEL] = None
        self._by_value: dict[tuple[str | bool | None, ...], EligibilityMap] = {}
        self._maps: dict[object, EligibilityMap] = {}
        self._map_of: WeakKeyDictionary[Subtree, EligibilityMap] = WeakKeyDictionary()

    def of_tree(self, tree: TopologyTree) -> EligibilityMap:
        """Returns the map of a whole tree.

        If the constraints are on node names alone, only the domains with a named node are evaluated; all
        others are equal.
        """
        match = self._map_of.get(tree.root)
        if match is not None:
            return match
        names = self._mentioned.get(NODE_NAME_FIELD, frozenset())
        keys = {*self._mentioned, *(exclusion.key for exclusion in self._exclusions)}
        if names is None or keys != {NODE_NAME_FIELD} or not tree.places_are_paths:
            return self._match(tree, tree.root, None, _finest_level(tree, keys))
        names = names.union(*(exclusion.values for exclusion in self._exclusions))
        reached = {branch for name in names if name in tree.places for branch in tree.branches_to(name)}
        return self._match(tree, tree.root, reached, _HOSTS)

    def _match(
        self, tree: TopologyTree, branch: Subtree, reached: Set[Subtree] | None, finest: int
    ) -> EligibilityMap:
        """Returns the map of one domain. `reached`: the only domains to evaluate, None for all. `finest`:
        from this level on, all nodes of a named domain are alike."""
        if reached is not None and branch not in reached:
            return self._host(UNNAMED)
        if branch.node:
            return self._host(tree.cluster[branch.node])
        match = self._map_of.get(branch)
        if match is None and branch.level >= finest and all(branch.path):
            match = self._map_of[branch] = self._host(tree.cluster[branch.leaf(0).node])
        if match is None:
            children = tuple([self._match(tree, child, reached, finest) for child in branch.children])
            match = self._map_of[branch] = self._joined(children)
        return match

    def _joined(self, children: tuple[EligibilityMap, ...]) -> EligibilityMap:
        first = children[0] if children else EligibilityMap(("",) * len(self._pod_classes))
        if not first.children and all(child is first for child in children):
            return first
        chunks = chunked(children, self._joined)
        return self._maps.setdefault(children, EligibilityMap((), 0, children, chunks))

    def _host(self, node: Node) -> EligibilityMap:
        values: list[str | bool | None] = []
        for key, mentioned in self._mentioned.items():
            value = node.name if key == NODE_NAME_FIELD else node.labels.get(key)
            is_other = mentioned is not None and value is not None and value not in mentioned
            values.append(_OTHER if is_other else value)
        values += [is_excluded(exclusion, node) for exclusion in self._exclusions]
        return self._of_values(tuple(values), node)

    def _of_values(self, values: tuple[str | bool | None, ...], node: Node) -> EligibilityMap:
        """Returns the map of all nodes with these values; `node`: any of them."""
        match = self._by_value.get(values)
        if match is None:
            reasons = tuple(
                label_obstacle(pod_class.shape, node, linked=pod_class.linked)
                for pod_class in self._pod_classes
            )
            weighed = [
                pod_class.shape
                for pod_class in self._pod_classes
                if pod_class.shape.preferences and not pod_class.is_split
            ]
            penalty = sum(_penalty(shape, node) for shape in weighed)
            match = self._by_value[values] = self._maps.setdefault(
                (reasons, penalty), EligibilityMap(reasons, penalty)
            )
        return match


def _finest_level(tree: TopologyTree, keys: Set[str]) -> int:
    """Returns the finest of the levels that these labels are, `_HOSTS` if one of them is none."""
    levels = tree.topology.levels
    return max(map(levels.index, keys), default=_HOSTS) if keys <= set(levels) else _HOSTS


UNRESTRICTED: CacheSection[int, EligibilityMap] = CacheSection("unrestricted pods")
"""Keyed by the number of pod classes; entries never become stale. All requests without label constraints
share one object, because other sections of the cache use the map's identity as a key.
"""

ELIGIBILITY: CacheSection[tuple[object, tuple[Hashable, ...]], _Matching] = CacheSection("eligibility")
"""Keyed by `TopologyTree.lasting` and the label constraints of each pod class. A subtree whose nodes
changed is another object, so its map is dropped with the old subtree (weak keys). The whole entry is stale
when the tree is rebuilt.
"""


def _mentioned(shapes: Iterable[PodShape]) -> dict[str, frozenset[str] | None]:
    """Returns by label key the values that node selectors and affinity terms mention; None if a term compares
    numbers, so that each value matters.
    """
    mentioned: dict[str, set[str]] = {}
    compared: set[str] = set()
    for shape in shapes:
        for key, value in shape.node_selector.items():
            mentioned.setdefault(key, set()).add(value)
        for term in (*shape.affinity, *(term for _, term in shape.preferences)):
            for requirement in term:
                mentioned.setdefault(requirement.key, set()).update(requirement.values)
                if requirement.operator in ("Gt", "Lt"):
                    compared.add(requirement.key)
    return {key: None if key in compared else frozenset(values) for key, values in sorted(mentioned.items())}


def _penalty(shape: PodShape, node: Node) -> int:
    return sum(weight for weight, _ in shape.preferences) - preference(shape, node)
