"""Which nodes of a tree a gang's pods may be on by the nodes' labels, for every domain at once.

    b1: r1 (gpu=h100) r2 (gpu=h100)      b2: r3 (gpu=a100) r4 (gpu=h100)      nodeSelector gpu=h100

b1 is one object for all its nodes; only b2 has children, and r3 says why pods are kept away. Most gangs have
no selectors, and most selectors take or leave whole domains, so a map is mostly a few objects. It depends on
labels alone and stays while pods and reservations come and go.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from planner.cluster.capacity import DomainCapacity, chunked
from planner.cluster.plan_cache import CacheSection, PlanCache
from planner.cluster.tree import Subtree, TopologyTree
from planner.model.labels import NODE_NAME_FIELD
from planner.model.node import Node
from planner.model.pod import PodShape
from planner.model.pod_class import PodClass
from planner.model.resolved import ResolvedShape
from planner.model.resources import GPU, PRODUCT_LABEL, SHARED_GPU
from planner.node.eligibility import label_obstacle, preference
from planner.search.rules.domain_caps import CountCap, DomainCap


@dataclass(frozen=True, slots=True, eq=False)
class EligibilityMap:
    """`why`: for each kind of pods what keeps them away, "" where they may be; `penalty`: how far the nodes
    fall short of the pods' preferred affinity. Both hold for every node where there are no children.
    """

    why: tuple[str, ...]
    penalty: int = 0
    children: tuple[EligibilityMap, ...] = ()
    parts: tuple[EligibilityMap, ...] = ()
    """Those of the domain's parts, where it has some."""
    caps: tuple[CountCap, ...] = ()
    """How many pods the domain may hold at the most; so may every domain inside it."""
    _capped: dict[tuple[CountCap, ...], EligibilityMap] = field(default_factory=dict, repr=False)

    def inside(self, count: int) -> Sequence[EligibilityMap]:
        """The matches of a domain's children, of which there are so many."""
        if not self.children:
            return (self,) * count
        return [child.under(self.caps) for child in self.children] if self.caps else self.children

    def under(self, caps: tuple[CountCap, ...]) -> EligibilityMap:
        """The same in a domain that may hold no more than this; the same object every time."""
        more = tuple(cap for cap in caps if cap not in self.caps)
        if not more:
            return self
        if more not in self._capped:
            caps = (*self.caps, *more)
            self._capped[more] = EligibilityMap(self.why, self.penalty, self.children, self.parts, caps)
        return self._capped[more]


def capped(match: EligibilityMap, branch: Subtree, caps: Sequence[DomainCap]) -> EligibilityMap:
    """The match of a domain that these caps hold in, or inside of it."""
    known: dict[tuple[EligibilityMap, ...], EligibilityMap] = {}

    def joined(children: tuple[EligibilityMap, ...]) -> EligibilityMap:
        return known.setdefault(children, EligibilityMap((), 0, children, chunked(children, joined)))

    def within(match: EligibilityMap, branch: Subtree, caps: Sequence[DomainCap]) -> EligibilityMap:
        below = [cap for cap in caps if cap.level > branch.level]
        if below and branch.children:
            before = match.inside(len(branch.children))
            pairs = zip(before, branch.children, strict=True)
            children = tuple([within(its, child, below) for its, child in pairs])
            if any(map(operator.is_not, children, before)):
                match = joined(children)
        here = tuple(most for cap in caps if cap.level == branch.level and (most := cap.of(branch)))
        return match.under(here) if here else match

    return within(match, branch, caps) if caps else match


def inside(
    content: DomainCapacity, match: EligibilityMap
) -> Iterator[tuple[int, DomainCapacity, EligibilityMap]]:
    """What a domain is looked at by, its children or its parts, with the place of the first child in each."""
    row = content.chunks or content.children
    matches: Sequence[EligibilityMap] = (match.parts if content.chunks else match.children) or (match,) * len(
        row
    )
    if match.caps and matches[0] is not match:
        matches = [its.under(match.caps) for its in matches]
    place = 0
    for one, its in zip(row, matches, strict=True):
        yield place, one, its
        place += one.span


UNNAMED = Node("", {}, {})
"""In the place of every node that is not asked for by name."""


def match_of(
    cache: PlanCache, tree: TopologyTree, kinds: Sequence[PodClass], *, divided: bool
) -> EligibilityMap:
    """The match of the whole tree for these kinds, worked out once for all that ask for the same labels."""
    asked = tuple(_asked(kind, divided=divided) for kind in kinds)
    if not any(asked):
        return cache.entry(UNRESTRICTED, len(kinds), lambda: EligibilityMap(("",) * len(kinds)))
    matching = cache.entry(ELIGIBILITY, (tree.lasting, asked), lambda: _Matching(kinds, divided=divided))
    return cache.exclusively(lambda: matching.whole(tree))


def _asked(kind: PodClass, *, divided: bool) -> Hashable:
    """What the kind wants of labels, as a key; () for nothing."""
    shape = kind.shape
    gpus = min(shape.requests.get(GPU, 0), 2) if divided else 0
    parts = gpus > 1 or (gpus and kind.linked) or shape.requests.get(SHARED_GPU, 0) > 1
    if not (shape.node_selector or shape.affinity or shape.preferences or parts or shape.exclusions):
        return ()
    selector = tuple(sorted(shape.node_selector.items()))
    weighed = shape.preferences and not kind.is_split
    return (
        selector,
        shape.affinity,
        shape.preferences,
        weighed,
        gpus,
        parts and kind.linked,
        parts,
        shape.exclusions,
    )


class _Matching:
    """Nodes that carry the same values of the labels that matter are looked at once, and domains until one of
    their nodes comes, goes or is labelled anew: then the tree has another branch for them."""

    def __init__(self, kinds: Sequence[PodClass], *, divided: bool) -> None:
        self._kinds = kinds
        asked = {key for kind in kinds for key in _keys(kind.shape)}
        self._keys = sorted(asked | ({PRODUCT_LABEL} if divided else set()))
        self._named = _names(kinds)
        self._by_value: dict[tuple[str | None, ...], EligibilityMap] = {}
        self._known: dict[object, EligibilityMap] = {}
        self._of: WeakKeyDictionary[Subtree, EligibilityMap] = WeakKeyDictionary()

    def whole(self, tree: TopologyTree) -> EligibilityMap:
        """The match of a whole tree. Where only names are asked for, all domains without one are alike."""
        found = self._of.get(tree.root)
        if found is not None:
            return found
        if self._named is None or self._keys != [NODE_NAME_FIELD] or not tree.leads:
            return self._match(tree, tree.root, None)
        reached = {branch for name in self._named if name in tree.places for branch in tree.way(name)}
        return self._match(tree, tree.root, reached)

    def _match(self, tree: TopologyTree, branch: Subtree, reached: Set[Subtree] | None) -> EligibilityMap:
        """The match of one domain; `reached`: the only ones that must be looked at, None for all."""
        if reached is not None and branch not in reached:
            return self._host(UNNAMED)
        if branch.node:
            return self._host(tree.cluster[branch.node])
        found = self._of.get(branch)
        if found is None:
            children = tuple([self._match(tree, child, reached) for child in branch.children])
            found = self._of[branch] = self._joined(children)
        return found

    def _joined(self, children: tuple[EligibilityMap, ...]) -> EligibilityMap:
        first = children[0] if children else EligibilityMap(("",) * len(self._kinds))
        if not first.children and all(child is first for child in children):
            return first
        parts = chunked(children, self._joined)
        return self._known.setdefault(children, EligibilityMap((), 0, children, parts))

    def _host(self, node: Node) -> EligibilityMap:
        # Nodes that are asked for by name are told apart by it; all others are alike.
        name = node.name if self._named is None or node.name in self._named else ""
        values = tuple([name if k == NODE_NAME_FIELD else node.labels.get(k) for k in self._keys])
        found = self._by_value.get(values)
        if found is None:
            why = tuple(label_obstacle(kind.shape, node, linked=kind.linked) for kind in self._kinds)
            weighed = [kind.shape for kind in self._kinds if kind.shape.preferences and not kind.is_split]
            short = sum(_penalty(shape, node) for shape in weighed)
            found = self._by_value[values] = self._known.setdefault((why, short), EligibilityMap(why, short))
        return found


UNRESTRICTED: CacheSection[int, EligibilityMap] = CacheSection("unrestricted pods")
"""By how many pod classes there are. Never stale. One object for all such requests, because other sections
remember by the map's identity."""

ELIGIBILITY: CacheSection[tuple[object, tuple[Hashable, ...]], _Matching] = CacheSection("eligibility")
"""By the tree's lasting identity and what each pod class asks of labels. Stale in parts: subtrees whose nodes
came, went or were labelled anew are other objects, and the weak keys of the former ones go with them; wholly
when the tree is grown anew."""


def _names(kinds: Sequence[PodClass]) -> frozenset[str] | None:
    """The names of nodes in terms and bars; None where a term asks more of a name than to be in a list."""
    shapes = [kind.shape for kind in kinds]
    terms = [term for shape in shapes for term in (*shape.affinity, *(term for _, term in shape.preferences))]
    asked = [r for term in terms for r in term if r.key == NODE_NAME_FIELD]
    if any(r.operator not in ("In", "NotIn") for r in asked):
        return None
    barred = (bar.values for shape in shapes for bar in shape.exclusions if bar.key == NODE_NAME_FIELD)
    return frozenset(name for r in asked for name in r.values).union(*barred)


def _keys(shape: ResolvedShape) -> set[str]:
    terms = (*shape.affinity, *(term for _, term in shape.preferences))
    return {
        *shape.node_selector,
        *(requirement.key for term in terms for requirement in term),
        *(bar.key for bar in shape.exclusions),
    }


def _penalty(shape: PodShape, node: Node) -> int:
    return sum(weight for weight, _ in shape.preferences) - preference(shape, node)
