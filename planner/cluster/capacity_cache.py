"""Keeps equal capacities as one object (`CapacityPool`), and a tree's capacities across changes
(`CapacityIndex`).

When a node changes, only the capacities from its host to the root are rebuilt. With 64 blocks of 8 racks of
18 nodes these are a host, a rack, a block and the root: their 90 children (18 + 8 + 64) are visited, not
9,216 nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from threading import RLock
from typing import NamedTuple
from weakref import WeakValueDictionary

from planner.cluster.capacity import DomainCapacity, chunked, worth_of
from planner.cluster.trees.subtree import Place, Subtree, key_at
from planner.cluster.trees.tree import TopologyTree
from planner.devices.availability import AvailableDevices
from planner.model.node import Node
from planner.model.resources import Resources
from planner.node.gpu_sharing import SharedGpus
from planner.node.numa_state import NumaState
from planner.node.nvlink import stated_size


class CapacityPool:
    """All `DomainCapacity` objects in use, equal ones as one object.

    The pool holds weak references. A capacity is dropped when no snapshot and no cached result uses it, so
    the pool needs no size bound.
    """

    def __init__(self) -> None:
        self.lock = (
            RLock()
        )  # reentrant: building the capacity of a tree asks for the capacities of its domains
        self._capacities: WeakValueDictionary[object, DomainCapacity] = WeakValueDictionary()

    def host(
        self,
        branch: Subtree,
        node: Node,
        free: Resources,
        *,
        opened: bool,
        gang: str,
        held: str,
        gpus: SharedGpus | None = None,
        numa_state: NumaState | None = None,
        available_devices: AvailableDevices | None = None,
    ) -> DomainCapacity:
        """Returns the capacity of a host with these free amounts and the taints, cordon and readiness of
        `node`. The other arguments are fields of `DomainCapacity`.
        """
        amounts = tuple(sorted(free.items()))
        nvlink_size = stated_size(node)
        key = (
            branch.has_name, amounts, node.taints, node.cordoned, node.ready, opened, gang, held,
            branch.level, gpus, numa_state, available_devices, nvlink_size,
        )  # fmt: skip
        with self.lock:
            capacity = self._capacities.get(key)
            if capacity is None:
                capacity = self._capacities[key] = DomainCapacity(
                    branch.level, branch.has_name, 1, opened, gang, worth_of(free), (), free,
                    held, node.taints, node.cordoned, node.ready,
                    gpus, numa_state, available_devices, nvlink_size,
                )  # fmt: skip
            return capacity

    def domain(self, branch: Subtree, children: tuple[DomainCapacity, ...]) -> DomainCapacity:
        """Returns the capacity of a domain with these children."""
        chunks = chunked(children, partial(self._joined, branch, chunks=(), is_chunk=True))
        return self._joined(branch, children, chunks=chunks, is_chunk=False)

    def _joined(
        self,
        branch: Subtree,
        children: tuple[DomainCapacity, ...],
        *,
        chunks: tuple[DomainCapacity, ...],
        is_chunk: bool,
    ) -> DomainCapacity:
        row = chunks or children
        key = (branch.level, branch.has_name, is_chunk, row)
        with self.lock:
            capacity = self._capacities.get(key)
            if capacity is None:
                worths = [inner.worth for inner in row]
                inner_worths = tuple(map(max, zip(*[inner.inner_worths for inner in row], strict=True)))
                if row and not row[0].is_chunk:  # a chunk is no domain, so only what is inside it counts
                    inner_worths = (max(worths), *inner_worths)
                capacity = self._capacities[key] = DomainCapacity(
                    branch.level,
                    branch.has_name,
                    sum([inner.size for inner in row]),
                    any(inner.opened for inner in row),
                    next((inner.gang for inner in row if inner.gang), ""),
                    sum(worths),
                    children,
                    chunks=chunks,
                    is_chunk=is_chunk,
                    span=sum([inner.span for inner in row]) if is_chunk else 1,
                    inner_worths=inner_worths,
                )
            return capacity

    def one_level_deeper(self, host: DomainCapacity) -> DomainCapacity:
        """Returns the same host capacity one level deeper, for a tree in which a level is added above it."""
        key = ("deeper", host)
        with self.lock:
            capacity = self._capacities.get(key)
            if capacity is None:
                capacity = self._capacities[key] = replace(host, level=host.level + 1)
            return capacity


class _Root(NamedTuple):
    """A tree's root at an earlier moment, its capacity then, with which `common` that was computed
    (`CapacityIndex.of`), and the nodes that have changed since.
    """

    root: Subtree
    capacity: DomainCapacity
    changed_nodes: frozenset[str]
    common: object


class CapacityIndex:
    """The capacities of trees at one moment, computed on demand.

    A change gives another `CapacityIndex`, which keeps the former roots and the names of the nodes that have
    changed since. A root is rebuilt only when its capacity is requested, so ten events between two plans cost
    one rebuild.
    """

    __slots__ = ("_pool", "_roots")

    def __init__(self, pool: CapacityPool, roots: dict[object, _Root] | None = None) -> None:
        self._pool = pool
        self._roots = roots or {}

    def of(
        self, tree: TopologyTree, host: Callable[[Subtree], DomainCapacity], common: object = None
    ) -> DomainCapacity:
        """Returns the capacity of a tree's root. `host` computes the capacity of one host; after the first
        call for a tree, it is called only for hosts that are new or have changed. `common`: a value on which
        the capacities of all hosts depend; after another value, all are computed again.
        """
        with self._pool.lock:
            remembered = self._roots.get(tree.lasting)
            if remembered is None or remembered.common != common:
                capacity = build(self._pool, tree.root, host)
            else:
                former, capacity, changed_nodes, _ = remembered
                if former is tree.root and not changed_nodes:  # a plan reads the capacity several times
                    return capacity
                places = [tree.places[name] for name in changed_nodes if name in tree.places]
                capacity = rebuild(self._pool, former, tree.root, capacity, places, host)
            self._roots[tree.lasting] = _Root(tree.root, capacity, frozenset(), common)
            return capacity

    def with_changed_nodes(self, changed_nodes: Set[str]) -> CapacityIndex:
        """Returns the index after these nodes were changed, added or removed."""
        with self._pool.lock:
            roots = {
                tree: root._replace(changed_nodes=root.changed_nodes | changed_nodes)
                for tree, root in self._roots.items()
            }
        return CapacityIndex(self._pool, roots)


def build(pool: CapacityPool, branch: Subtree, host: Callable[[Subtree], DomainCapacity]) -> DomainCapacity:
    """Returns the capacity of a branch, built from its hosts."""
    if branch.node:
        return host(branch)
    return pool.domain(branch, tuple([build(pool, child, host) for child in branch.children]))


def rebuild(
    pool: CapacityPool,
    former: Subtree,
    branch: Subtree,
    old: DomainCapacity,
    places: Sequence[Place],
    host: Callable[[Subtree], DomainCapacity],
) -> DomainCapacity:
    """Returns the capacity of a branch from its former capacity and the changed hosts at `places`.

    `former`: the branch whose capacity is `old`.
    """
    if branch.node:
        return host(branch)
    if former is branch and not places:
        return old
    inside: dict[int, list[Place]] = {}
    for place in places:
        inside.setdefault(branch.find(key_at(place, branch))[0], []).append(place)
    if former is branch:  # the same children: only those with changed hosts are looked at
        children = list(old.children)
        for index, changed in inside.items():
            child = branch.children[index]
            children[index] = rebuild(pool, child, child, children[index], changed, host)
        return pool.domain(branch, tuple(children))
    before = dict(zip(former.children, old.children, strict=True))
    return pool.domain(
        branch,
        tuple(
            [
                before[child]
                if child in before and index not in inside
                else _renewed(pool, former, child, before, inside.get(index, ()), host)
                for index, child in enumerate(branch.children)
            ]
        ),
    )


def _renewed(
    pool: CapacityPool,
    parent: Subtree,
    child: Subtree,
    before: Mapping[Subtree, DomainCapacity],
    places: Sequence[Place],
    host: Callable[[Subtree], DomainCapacity],
) -> DomainCapacity:
    """Returns the capacity of a child that is new or has changed. `parent`: the former parent, whose children
    have the capacities `before`.
    """
    index, is_there = parent.find(child.key)
    if not is_there:
        return build(pool, child, host)
    former = parent.children[index]
    return rebuild(pool, former, child, before[former], places, host)
