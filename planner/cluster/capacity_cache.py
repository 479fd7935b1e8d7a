"""What a domain holds at one moment, as a value: equal contents are one object, wherever they lie.

A tree says where domains are, its contents what is free in them. Contents never change. When a node does,
the contents on the way from it up to the root are made anew and all others shared; so what a plan worked out
about a content serves every later plan, and 500 equal racks are looked at once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from threading import RLock
from weakref import WeakValueDictionary

from planner.cluster.capacity import DomainCapacity, T, chunked, worth
from planner.cluster.tree import Place, Subtree, TopologyTree, key_at
from planner.devices.availability import AvailableDevices
from planner.model.node import Node
from planner.model.quantity import Resources
from planner.node.gpu_sharing import Gpus
from planner.node.numa_state import NumaState
from planner.node.nvlink import stated_size

_MOST_KEPT = 64
"""Requests of which something is remembered; the one that was asked for longest ago is forgotten first."""


MOST_ENTRIES = 1_500_000
"""Entries of what is remembered of all of them, of about 200 bytes each."""


def _one(_: object) -> int:
    return 1


class PlanCache:
    """What plans share: the contents there are, and what was worked out about them. Hold `lock` meanwhile."""

    def __init__(self) -> None:
        self.lock = RLock()
        self._contents: WeakValueDictionary[object, DomainCapacity] = WeakValueDictionary()
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()

    def host(
        self,
        branch: Subtree,
        node: Node,
        free: Resources,
        *,
        opened: bool,
        gang: str,
        held: str,
        gpus: Gpus | None = None,
        zones: NumaState | None = None,
        stock: AvailableDevices | None = None,
    ) -> DomainCapacity:
        """The content of a host of these; `node` says its taints, cordon and readiness."""
        amounts = tuple(sorted(free.items()))
        inner = stated_size(node)
        key = (
            branch.named,
            amounts,
            node.taints,
            node.cordoned,
            node.ready,
            opened,
            gang,
            held,
            branch.level,
            gpus,
            zones,
            stock,
            inner,
        )
        found = self._contents.get(key)
        if found is None:
            found = self._contents[key] = DomainCapacity(
                branch.level, branch.named, 1, opened, gang, worth(free), (), free,
                held, node.taints, node.cordoned, node.ready, gpus, zones, stock, inner,
            )  # fmt: skip
        return found

    def domain(self, branch: Subtree, children: tuple[DomainCapacity, ...]) -> DomainCapacity:
        """The content of a domain with these inside."""
        parts = chunked(children, partial(self._joined, branch, parts=(), part=True))
        return self._joined(branch, children, parts=parts, part=False)

    def _joined(
        self,
        branch: Subtree,
        children: tuple[DomainCapacity, ...],
        *,
        parts: tuple[DomainCapacity, ...],
        part: bool,
    ) -> DomainCapacity:
        key = (branch.level, branch.named, part, parts or children)
        found = self._contents.get(key)
        if found is None:
            row = parts or children
            found = self._contents[key] = DomainCapacity(
                branch.level,
                branch.named,
                sum([one.size for one in row]),
                any(one.opened for one in row),
                next((one.gang for one in row if one.gang), ""),
                sum([one.worth for one in row]),
                children,
                parts=parts,
                part=part,
                span=sum([one.span for one in row]) if part else 1,
            )
        return found

    def deeper(self, host: DomainCapacity) -> DomainCapacity:
        """The same host one level deeper."""
        key = ("deeper", host)
        found = self._contents.get(key)
        if found is None:
            found = self._contents[key] = replace(host, level=host.level + 1)
        return found

    def keep(self, key: Hashable, make: Callable[[], T], *, size: Callable[[T], int] = _one) -> T:
        """What is remembered under the key; made where nothing is, or where it has grown too large.

        `size` tells how much that is; what was asked for longest ago gives way.
        """
        if self._kept:
            next(reversed(self._kept.values())).measure()  # it may have grown since it was given away
        kept = self._kept.get(key)
        if kept is None or kept.measure() > MOST_ENTRIES:
            made = make()
            kept = self._kept[key] = _Kept(made, lambda: size(made))
        self._kept.move_to_end(key)
        while len(self._kept) > _MOST_KEPT or (self.entries > MOST_ENTRIES and len(self._kept) > 1):
            self._kept.popitem(last=False)
        return kept.value  # type: ignore[return-value]

    @property
    def entries(self) -> int:
        """How much is remembered of all requests."""
        return sum([kept.entries for kept in self._kept.values()])


@dataclass(slots=True)
class _Kept:
    """Something that is remembered, and how much it had come to when it was last measured."""

    value: object
    size: Callable[[], int]
    entries: int = 0

    def measure(self) -> int:
        self.entries = self.size()
        return self.entries


class CapacityIndex:
    """The contents of trees at one moment, worked out when they are asked for.

    After a change they are another `CapacityIndex`: the roots of before, with the nodes that have changed
    since.
    """

    __slots__ = ("_memory", "_roots")

    def __init__(self, memory: PlanCache, roots: dict[object, _Root] | None = None) -> None:
        self._memory = memory
        self._roots = roots or {}

    def of(self, tree: TopologyTree, host: Callable[[Subtree], DomainCapacity]) -> DomainCapacity:
        """The content of a whole tree; `host` makes that of one host."""
        with self._memory.lock:
            known = self._roots.get(tree.lasting)
            if known is None:
                content = build(self._memory, tree.root, host)
            else:
                former, content, stirred = known
                places = [tree.places[name] for name in stirred if name in tree.places]
                content = rebuild(self._memory, former, tree.root, content, places, host)
            self._roots[tree.lasting] = (tree.root, content, frozenset())
            return content

    def after(self, stirred: Set[str]) -> CapacityIndex:
        """After something has changed on these nodes, or they have come or gone."""
        with self._memory.lock:
            roots = {at: (root, c, before | stirred) for at, (root, c, before) in self._roots.items()}
        return CapacityIndex(self._memory, roots)


_Root = tuple[Subtree, DomainCapacity, frozenset[str]]
"""A tree's root at one time, its content then, and the nodes that have changed since."""


def build(memory: PlanCache, branch: Subtree, host: Callable[[Subtree], DomainCapacity]) -> DomainCapacity:
    """The content of a branch from those of its hosts."""
    if branch.node:
        return host(branch)
    return memory.domain(branch, tuple([build(memory, child, host) for child in branch.children]))


def rebuild(
    memory: PlanCache,
    former: Subtree,
    branch: Subtree,
    old: DomainCapacity,
    places: Sequence[Place],
    host: Callable[[Subtree], DomainCapacity],
) -> DomainCapacity:
    """The content of what a former branch with the old content has become, with changed hosts at places."""
    if branch.node:
        return host(branch)
    if former is branch and not places:
        return old
    inside: dict[int, list[Place]] = {}
    for place in places:
        inside.setdefault(branch.find(key_at(place, branch))[0], []).append(place)
    if former is branch:
        children = list(old.children)
        for at, some in inside.items():
            child = branch.children[at]
            children[at] = rebuild(memory, child, child, children[at], some, host)
        return memory.domain(branch, tuple(children))
    before = dict(zip(former.children, old.children, strict=True))
    return memory.domain(
        branch,
        tuple(
            [
                before[child]
                if child in before and at not in inside
                else _renewed(memory, former, child, before, inside.get(at, ()), host)
                for at, child in enumerate(branch.children)
            ]
        ),
    )


def _renewed(
    memory: PlanCache,
    parent: Subtree,
    child: Subtree,
    before: Mapping[Subtree, DomainCapacity],
    places: Sequence[Place],
    host: Callable[[Subtree], DomainCapacity],
) -> DomainCapacity:
    """The content of a child that is new in its parent, or not as it was."""
    at, there = parent.find(child.key)
    if not there:
        return build(memory, child, host)
    former = parent.children[at]
    return rebuild(memory, former, child, before[former], places, host)
