"""A tree as one gang sees it: what each node could take of its pods, and what touching it would cost.

`now` is the cluster as it is; otherwise it is the cluster when empty: no bound pods, no reservations, no
cordons, every node ready. Costs look only at the nodes and never at the gang's selectors, so that a plan
made again within its own node affinity comes out the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from planner.match import obstacle, preference
from planner.node import Node
from planner.podgroup import GPU_RESOURCES, MIG_PREFIX, PodShape
from planner.quantity import Resources
from planner.request import Kind
from planner.snapshot import Snapshot
from planner.tree import Branch, Tree

_NOTHING: Resources = {}
_MOST_CORES = 4095


@dataclass(frozen=True, slots=True)
class View:
    """One tree at one moment (`now`) or when empty. Sequences are by node, in the tree's order.

    `opened`, `foreign` and `worth` are running sums: the first `n` nodes' number of opened nodes, of nodes
    touched by another gang, and free devices (in 4096ths, the rest being free cores).
    """

    tree: Tree
    now: bool
    free: Callable[[int], Resources]
    held: Sequence[str]
    foreign: Sequence[int]
    opened: Sequence[int]
    worth: Sequence[int]

    def pristine(self, branch: Branch) -> bool:
        """Whether nothing has been opened in the branch."""
        return self.opened[branch.start] == self.opened[branch.end]

    def clear(self, branch: Branch) -> bool:
        """Whether no other gang touches the branch."""
        return self.foreign[branch.start] == self.foreign[branch.end]

    def measure(self, branch: Branch) -> int:
        """What is free in the branch, devices first."""
        return self.worth[branch.end] - self.worth[branch.start]


def look(snapshot: Snapshot, tree: Tree, *, now: bool) -> View:
    """The view of a tree in a snapshot that does not hold the gang itself; worked out once."""
    kept = snapshot.kept if now else snapshot.base.kept
    view = kept.get(tree)
    if not isinstance(view, View):
        view = kept[tree] = _look(snapshot, tree, now=now)
    return view


def _look(snapshot: Snapshot, tree: Tree, *, now: bool) -> View:
    taken = snapshot.taken if now else {}
    holders = snapshot.holders if now else {}
    users = snapshot.users if now else {}
    opened = snapshot.opened if now else frozenset()
    nodes = tree.nodes

    def free(index: int) -> Resources:
        node = nodes[index]
        offered = node.allocatable if now or not node.pending else _sum(node.allocatable, node.pending)
        used = taken.get(node.name)
        if not used:
            return offered
        return {name: amount - used.get(name, 0) for name, amount in offered.items()}

    return View(
        tree=tree,
        now=now,
        free=free,
        held=[holders.get(node.name, "") for node in nodes],
        foreign=[0, *accumulate(node.name in users for node in nodes)],
        opened=[0, *accumulate(node.name in opened for node in nodes)],
        worth=[0, *accumulate(_worths(nodes, free))],
    )


def _worths(nodes: Sequence[Node], free: Callable[[int], Resources]) -> Iterator[int]:
    """What is free on each node; nodes that give the same and of which nothing is used share the sum."""
    known: dict[int, int] = {}
    for index, node in enumerate(nodes):
        amounts = free(index)
        if amounts is not node.allocatable:
            yield _worth(amounts)
            continue
        if id(amounts) not in known:
            known[id(amounts)] = _worth(amounts)
        yield known[id(amounts)]


def _sum(one: Resources, other: Resources) -> Resources:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


def _worth(free: Resources) -> int:
    devices = sum(
        amount
        for name, amount in free.items()
        if amount > 0 and (name in GPU_RESOURCES or name.startswith(MIG_PREFIX))
    )
    return devices * (_MOST_CORES + 1) + max(0, min(_MOST_CORES, free.get("cpu", 0) // 1000))


def most(free: Resources, shape: PodShape) -> int:
    """Pods of this shape that the free amounts hold."""
    return max(0, min((free.get(name, 0) // need for name, need in shape.requests.items()), default=0))


def matches(kinds: Sequence[Kind], node: Node, *, now: bool) -> tuple[bool, ...]:
    """For each kind, whether its pods may be on the node whatever its capacity."""
    return tuple(not obstacle(kind.shape, node, now=now) for kind in kinds)


def penalty(kinds: Sequence[Kind], node: Node) -> int:
    """How far the node falls short of the pods' preferred node affinity; 0 is best."""
    return sum(
        sum(weight for weight, _ in kind.shape.preferences) - preference(kind.shape, node)
        for kind in kinds
        if kind.shape.preferences
    )


class HostFit:
    """What one node could hold of several kinds at a time: the counts that no other exceed."""

    def __init__(self, kinds: Sequence[Kind], host_level: int) -> None:
        self._requests = [kind.shape.requests for kind in kinds]
        self._caps = [1 if host_level in kind.apart else kind.count for kind in kinds]
        self._resources = sorted({name for request in self._requests for name in request})
        self._memo: dict[tuple[tuple[int, ...], tuple[bool, ...]], tuple[tuple[int, ...], ...]] = {}

    def best(self, free: Resources, allowed: tuple[bool, ...]) -> tuple[tuple[int, ...], ...]:
        """The largest possible counts, in descending order; empty where not one pod fits."""
        key = (tuple(free.get(name, 0) for name in self._resources), allowed)
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self._search(dict(zip(self._resources, key[0], strict=True)), allowed)
        return found

    def _search(self, free: Mapping[str, int], allowed: tuple[bool, ...]) -> tuple[tuple[int, ...], ...]:
        found: list[tuple[int, ...]] = []
        last = len(self._requests) - 1

        def extend(kind: int, left: Mapping[str, int], counts: tuple[int, ...]) -> None:
            request = self._requests[kind]
            room = self._caps[kind] if allowed[kind] else 0
            room = max(0, min([room, *(left.get(name, 0) // need for name, need in request.items())]))
            if kind == last:
                whole = (*counts, room)
                if not any(all(map(int.__ge__, other, whole)) for other in found):
                    found.append(whole)
                return
            for count in range(room, -1, -1):
                rest = {name: amount - request.get(name, 0) * count for name, amount in left.items()}
                extend(kind + 1, rest, (*counts, count))

        extend(0, free, ())
        return tuple(counts for counts in found if any(counts))
