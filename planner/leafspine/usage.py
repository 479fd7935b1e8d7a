"""Utilization and fragmentation of leaves by GPUs: the values of the metrics of nod-ai's scheduler.

A leaf is a domain of the leaf level: the level with a name such as leaf, else the level above the host
(`switch_graph.leaf_level`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.cluster.census.domains import gpus_of
from planner.cluster.snapshot import Snapshot
from planner.cluster.switch_graph import leaf_level
from planner.model.topology import HOSTNAME, Domain


@dataclass(frozen=True, slots=True)
class DomainUse:
    """The counts of one leaf. Ratios are 0 if it has no GPUs or nodes.

    `gpus`: its GPUs. `allocated`: GPUs that bound pods request or gangs have reserved. `unavailable`: these,
    and all other GPUs of nodes that a gang holds whole. `partly`: nodes with both allocated and free GPUs.
    """

    topology: str
    path: Domain
    nodes: int
    gpus: int
    allocated: int
    unavailable: int
    partly: int

    @property
    def allocation(self) -> float:
        """The share of the leaf's GPUs that bound pods request or gangs have reserved."""
        return self.allocated / self.gpus if self.gpus else 0.0

    @property
    def utilization(self) -> float:
        """The share of the leaf's GPUs that no other gang can get, because they are allocated or held."""
        return self.unavailable / self.gpus if self.gpus else 0.0

    @property
    def fragmentation(self) -> float:
        """The share of the leaf's nodes that are partly allocated (nod-ai: fragmentation, over all nodes)."""
        return self.partly / self.nodes if self.nodes else 0.0


def domain_uses(snapshot: Snapshot) -> Iterator[DomainUse]:
    """Yields the counts of each named leaf of topologies with a level above the host, in tree order."""
    for topology in snapshot.topologies:
        if topology.levels[0] == HOSTNAME:
            continue
        tree = snapshot.base.trees[topology.name]
        for branch in tree.levels[leaf_level(topology)]:
            if branch.has_name:
                yield _use(snapshot, topology.name, branch.path, tree.names(branch))


def _use(snapshot: Snapshot, topology: str, path: Domain, names: list[str]) -> DomainUse:
    gpus = allocated = unavailable = partly = 0
    for name in names:
        offered = gpus_of(snapshot.nodes[name].allocatable)
        used = min(offered, gpus_of(snapshot.taken.get(name, {})))
        gpus, allocated = gpus + offered, allocated + used
        unavailable += offered if name in snapshot.holders else used
        partly += 0 < used < offered
    return DomainUse(topology, path, len(names), gpus, allocated, unavailable, partly)
