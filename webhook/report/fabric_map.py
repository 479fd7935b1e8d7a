"""Makes the map of a topology: a row for each domain, with its nodes and their gangs. Pure.

`fabric_text`, `html.fabric` and the live page draw the map.
"""

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
"""The state of a node. `placed`: the reservation of a gang assigns pods to the node. `held`: a gang has
reserved the node, but assigns no pods to it. `full`, `partly`: other pods use all or some of its GPUs.
`free`: no pods but those of DaemonSets run on it. `unusable`: the node is cordoned or not ready.
"""
WITHOUT_LABELS = "(without labels)"
"""The title of a row for nodes that lack the labels of the topology's levels."""
ALL_NODES = "all nodes"
"""The title of the only row of a topology without a level above hosts."""


@dataclass(frozen=True, slots=True)
class NodeCell:
    """A node on the map: its state, the gang that uses or holds it ("" for none), and its counts of GPUs."""

    node: str
    state: NodeState
    gang: str
    count: Count


@dataclass(frozen=True, slots=True)
class MapRow:
    """A domain on the map.

    `depth`: the indent, 0 for the coarsest level. `cells`: the nodes of the domain, if it is of the finest
    level above hosts; otherwise empty. Nested domains with the same nodes (a rack and its NVLink domain)
    are one row, whose title names them all.
    """

    title: str
    depth: int
    count: Count
    cells: tuple[NodeCell, ...] = ()


@dataclass(frozen=True, slots=True)
class FabricMap:
    """The map of a topology.

    `title`: its name, and the domains that contain all of its nodes (for example, its only zone). `count`:
    its totals. `rows`: its domains in tree order. `gangs`: the gangs on its nodes, in the order of the
    nodes.
    """

    title: str
    topology: Topology
    count: Count
    rows: tuple[MapRow, ...]
    gangs: tuple[str, ...]


def fabric_maps(snapshot: Snapshot) -> tuple[FabricMap, ...]:
    """Returns the maps of all topologies of a cluster."""
    return tuple(fabric_map(snapshot, topology) for topology in snapshot.topologies)


def fabric_map(snapshot: Snapshot, topology: Topology) -> FabricMap:
    """Returns the map of one topology of the cluster."""
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
    """Descends from the root while there is only one child domain, at most to the level above racks.
    Returns the domain that is reached, as count and as subtree, and the names of the domains below the root
    on the way to it, including its own.
    """
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
    """Reports whether the children of the domain are hosts."""
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
    """Returns the gang and the state of each node that a reservation holds or uses.

    If reservations assign pods of several gangs to a node, the last of these gangs is returned; if they
    assign none, the first gang that holds the node.
    """
    by_node: dict[str, tuple[str, NodeState]] = {}
    for reservation in snapshot.reservations:
        for node in snapshot.held_nodes(reservation):
            by_node.setdefault(node, (reservation.gang, "held"))
    for reservation in snapshot.reservations:
        for assignment in reservation.assignments:
            by_node[assignment.node] = (reservation.gang, "placed")
    return by_node


def _in_line(text: str) -> str:
    """Returns the text on one line, with unprintable characters replaced."""
    return " ".join(printable(text).split())
