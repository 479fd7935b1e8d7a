"""What keeps a gang's pods away from nodes: each node that takes none, counted by its first cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from planner.match import obstacle
from planner.podgroup import PodGroup
from planner.quantity import Resources
from planner.request import ROOT, Ask, Kind
from planner.snapshot import Snapshot
from planner.tree import Branch, Tree
from planner.view import View, most


def obstacles(snapshot: Snapshot, group: PodGroup, view: View, asked: Ask) -> dict[str, int]:
    """Nodes left out, by cause, most frequent first: "taint KEY", "cordoned", "insufficient RESOURCE" …"""
    causes: Counter[str] = Counter()
    foreign = _touched(snapshot, group, view) if view.now else {}
    for index in range(len(view.tree.nodes)):
        cause = _cause(view, asked, index, foreign)
        if cause:
            causes[cause] += 1
    return dict(sorted(causes.items(), key=lambda item: (-item[1], item[0])))


def _cause(view: View, asked: Ask, index: int, foreign: dict[str, str]) -> str:
    """Why the node takes no pod of any kind; "" where it takes one."""
    node = view.tree.nodes[index]
    path = view.tree.levels[view.tree.topology.host_index][index].path
    if asked.required > ROOT and not path[asked.required]:
        return f"no label {view.tree.topology.levels[asked.required]}"
    reasons = [obstacle(kind.shape, node, now=view.now) for kind in asked.kinds]
    if all(reasons):
        return reasons[0]
    if node.name in foreign:
        return f"reserved by {foreign[node.name]}"
    free = view.free(index)
    lacking = [short_of(free, kind) for kind, reason in zip(asked.kinds, reasons, strict=True) if not reason]
    return f"insufficient {lacking[0]}" if all(lacking) else ""


def short_of(free: Resources, kind: Kind) -> str:
    """The resource that keeps one pod from fitting, the scarcest kind (devices) first; "" where it fits."""
    if most(free, kind.shape):
        return ""
    lacking = [name for name, need in kind.shape.requests.items() if free.get(name, 0) < need]
    return min(lacking, key=lambda name: ("/" not in name, name))


def _touched(snapshot: Snapshot, group: PodGroup, view: View) -> dict[str, str]:
    """Nodes that another gang keeps from this one, with that gang's name."""
    if group.reserve != "domain":
        return snapshot.holders
    users = snapshot.users
    tree = view.tree
    found = {name: gang for name, gang in users.items() if name in tree.index}
    level = tree.topology.reservable_index
    for branch in tree.levels[level]:
        if branch.named and not view.clear(branch) and group.size > 1:
            gang = _gang_in(tree, branch, users)
            found.update({name: found.get(name, gang) for name in tree.names(branch)})
    return found


def _gang_in(tree: Tree, branch: Branch, users: dict[str, str]) -> str:
    return next(users[name] for name in tree.names(branch) if name in users)


def largest(views: Sequence[View], kind: Kind, resource: str) -> int:
    """The most of a resource that any node which the pod may be on has."""
    return max(
        (
            view.free(index).get(resource, 0)
            for view in views
            for index, node in enumerate(view.tree.nodes)
            if not obstacle(kind.shape, node, now=view.now)
        ),
        default=0,
    )
