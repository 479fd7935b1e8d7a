"""Counts a topology by domain: nodes, total and free GPUs, and the gangs that hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.cluster.snapshot import Snapshot
from planner.cluster.trees.subtree import Subtree
from planner.cluster.trees.tree import TopologyTree
from planner.model.natural_order import natural
from planner.model.resources import GPU_RESOURCES, Resources
from planner.model.topology import Domain


@dataclass(frozen=True, slots=True)
class Count:
    """The counts of one domain. `level`: its label key, "" for the whole topology. `gpus`: the whole GPUs of
    all its nodes, used or free, as device plugins offer them.

    `unusable`: nodes that are cordoned or not ready. `free`: GPUs that another gang could get now, on usable
    nodes that are not held whole. `pristine`: nothing runs in the domain and no gang holds a part of it.
    `holders`: the gangs that hold or use a part of the domain. `domains`: the counts of the domains directly
    inside.
    """

    level: str
    path: Domain
    nodes: int
    unusable: int
    gpus: int
    free: int
    pristine: bool
    holders: tuple[str, ...]
    domains: tuple[Count, ...]

    def to_json(self) -> dict[str, object]:
        """Returns the domain and those inside it as plain JSON."""
        return {
            "level": self.level or None,
            "domain": list(self.path),
            "nodes": self.nodes,
            "unusableNodes": self.unusable,
            "gpus": {"total": self.gpus, "free": self.free},
            "pristine": self.pristine,
            "holders": list(self.holders),
            "domains": [domain.to_json() for domain in self.domains],
        }


def census(snapshot: Snapshot, name: str) -> Count:
    """Returns the counts of the topology of this name. Raises `KeyError` if there is none."""
    tree = snapshot.base.trees[name]
    holders: dict[str, set[str]] = {}
    for reservation in snapshot.reservations:
        for node in snapshot.held_nodes(reservation):
            holders.setdefault(node, set()).add(reservation.gang)
    return _count(snapshot, tree, tree.root, holders)


def _count(snapshot: Snapshot, tree: TopologyTree, branch: Subtree, holders: Mapping[str, set[str]]) -> Count:
    inside = tuple(_count(snapshot, tree, child, holders) for child in branch.children)
    names = tree.names(branch)
    level = tree.topology.levels[branch.level] if branch.level >= 0 else ""
    if inside:
        return Count(
            level=level,
            path=branch.path,
            nodes=len(names),
            unusable=sum(domain.unusable for domain in inside),
            gpus=sum(domain.gpus for domain in inside),
            free=sum(domain.free for domain in inside),
            pristine=all(domain.pristine for domain in inside),
            holders=_sorted(holders, names),
            domains=inside,
        )
    return _host(snapshot, names, level, branch.path, holders)


def _host(
    snapshot: Snapshot, names: Sequence[str], level: str, path: Domain, holders: Mapping[str, set[str]]
) -> Count:
    nodes = [snapshot.nodes[name] for name in names]
    usable = [node for node in nodes if node.ready and not node.cordoned]
    free = (
        max(0, gpus_of(node.allocatable) - gpus_of(snapshot.taken.get(node.name, {})))
        for node in usable
        if node.name not in snapshot.holders
    )
    return Count(
        level=level,
        path=path,
        nodes=len(nodes),
        unusable=len(nodes) - len(usable),
        gpus=sum(gpus_of(node.allocatable) for node in nodes),
        free=sum(free),
        pristine=not any(name in snapshot.opened for name in names),
        holders=_sorted(holders, names),
        domains=(),
    )


def gpus_of(amounts: Resources) -> int:
    """Returns the number of whole GPUs of all vendors in these amounts."""
    return sum(amounts.get(name, 0) for name in GPU_RESOURCES)


def _sorted(holders: Mapping[str, set[str]], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({gang for name in names for gang in holders.get(name, ())}, key=natural))
