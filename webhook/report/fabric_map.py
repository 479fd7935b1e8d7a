"""A topology as rows of nodes with the gangs in them: what a terminal and a page draw. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from planner.cluster.census.domains import Count, census
from planner.cluster.snapshot import Snapshot
from planner.cluster.trees.subtree import Subtree
from planner.model.topology import Topology
from webhook.report.printable import printable

NodeState = Literal["placed", "held", "full", "partly", "free", "unusable"]
"""Of a gang: its pods are placed on the node, or it holds the node beside them. Of pods in no gang: they
leave no GPU, or some. `free`: nothing but DaemonSets is on it; `unusable`: cordoned or not ready."""
WITHOUT_LABELS = "(without labels)"
ALL_NODES = "all nodes"
"""The title of the only row where a topology has no level above the hosts."""


@dataclass(frozen=True, slots=True)
class NodeCell:
    """A node on the map: what is on it, the gang that has it ("" for none), and its GPUs."""

    node: str
    state: NodeState
    gang: str
    count: Count


@dataclass(frozen=True, slots=True)
class MapRow:
    """A domain: `depth` from 0 below the topology, `cells` its nodes where it is the last level above them.

    A chain of domains that hold the very same nodes (a rack and its NVLink domain) is one row, whose title
    names all of them.
    """

    title: str
    depth: int
    count: Count
    cells: tuple[NodeCell, ...] = ()


@dataclass(frozen=True, slots=True)
class FabricMap:
    """A topology with its totals, its domains from the coarsest down, and the gangs in it as they stand.

    `title`: its name, with the domains that hold all of it (its only zone).
    """

    title: str
    topology: Topology
    count: Count
    rows: tuple[MapRow, ...]
    gangs: tuple[str, ...]


def fabric_maps(snapshot: Snapshot) -> tuple[FabricMap, ...]:
    """Every topology of a cluster."""
    return tuple(fabric_map(snapshot, topology) for topology in snapshot.topologies)


def fabric_map(snapshot: Snapshot, topology: Topology) -> FabricMap:
    """The topology as it stands in the snapshot."""
    count = census(snapshot, topology.name)
    gang_nodes = _gang_nodes(snapshot)
    root = snapshot.base.trees[topology.name].root
    domain, branch, titles = _narrowed(count, root)
    if count.domains and _is_last(count):
        rows = [MapRow(ALL_NODES, 0, count, _cells(snapshot, count, root, gang_nodes))]
    else:
        rows = list(_rows(snapshot, domain, branch, gang_nodes, 0))
    title = _in_line(", ".join([topology.title, *filter(None, titles)]))
    return FabricMap(title, topology, count, tuple(rows), count.holders)


def _narrowed(domain: Count, branch: Subtree) -> tuple[Count, Subtree, list[str]]:
    """The finest domain that holds the very same nodes, is above racks, and the names passed on the way."""
    titles = []
    while len(domain.domains) == 1 and not _is_last(domain) and not _is_last(domain.domains[0]):
        domain, branch = domain.domains[0], branch.children[0]
        titles.append(domain.path[-1])
    return domain, branch, titles


def _rows(
    snapshot: Snapshot,
    above: Count,
    branch: Subtree,
    gang_nodes: Mapping[str, tuple[str, NodeState]],
    depth: int,
) -> Iterator[MapRow]:
    for domain, subtree in zip(above.domains, branch.children, strict=True):
        titles = [domain.path[-1]]
        while len(domain.domains) == 1 and not _is_last(domain):
            domain, subtree = domain.domains[0], subtree.children[0]
            titles.append(domain.path[-1])
        title = _in_line("/".join(filter(None, titles)) or WITHOUT_LABELS)
        if _is_last(domain):
            yield MapRow(title, depth, domain, _cells(snapshot, domain, subtree, gang_nodes))
        else:
            yield MapRow(title, depth, domain)
            yield from _rows(snapshot, domain, subtree, gang_nodes, depth + 1)


def _is_last(domain: Count) -> bool:
    """Whether hosts stand directly below."""
    return all(not inside.domains for inside in domain.domains)


def _cells(
    snapshot: Snapshot, domain: Count, branch: Subtree, gang_nodes: Mapping[str, tuple[str, NodeState]]
) -> tuple[NodeCell, ...]:
    cells = []
    for leaf, count in zip(branch.leaves(), domain.domains, strict=True):
        gang, state = gang_nodes.get(leaf.node) or ("", _state(snapshot, leaf.node, count))
        cells.append(NodeCell(leaf.node, state, gang, count))
    return tuple(cells)


def _state(snapshot: Snapshot, node: str, count: Count) -> NodeState:
    if count.unusable:
        return "unusable"
    if node not in snapshot.opened:
        return "free"
    return "full" if count.gpus and not count.free else "partly"


def _gang_nodes(snapshot: Snapshot) -> dict[str, tuple[str, NodeState]]:
    """The gang on each node that has any: of several the last whose pods are there, else who holds it."""
    by_node: dict[str, tuple[str, NodeState]] = {}
    for reservation in snapshot.reservations:
        for node in snapshot.held_nodes(reservation):
            by_node.setdefault(node, (reservation.gang, "held"))
    for reservation in snapshot.reservations:
        for assignment in reservation.assignments:
            by_node[assignment.node] = (reservation.gang, "placed")
    return by_node


def _in_line(text: str) -> str:
    """A name as part of a line."""
    return " ".join(printable(text).split())
