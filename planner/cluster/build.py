"""Builds a snapshot from the objects of a cluster, in any order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from planner.cluster.infrastructure import NO_TOPOLOGY, Infrastructure, ordered
from planner.cluster.snapshot import Snapshot
from planner.devices.claims import NO_CLAIMS, Claims
from planner.model.growth import AutoscalerGroup, GrowingPool
from planner.model.natural_order import natural
from planner.model.node import Node
from planner.model.pod import BoundPod
from planner.model.priority import NO_CLASSES, PriorityClasses
from planner.model.reservation import Reservation
from planner.model.resources import Resources
from planner.model.schedulers import NOTHING_SEEN, SchedulersSeen
from planner.model.settings import DEFAULTS, Bound, Quota, SchedulerSettings
from planner.model.topology import Link, Topology
from planner.model.volumes import NO_VOLUMES, Volumes
from planner.node.runtime_class import NO_RUNTIME_CLASSES, RuntimeClasses
from planner.node.topology_manager import NumaNode


def _sharing(node: Node, offers: dict[tuple[tuple[str, int], ...], Resources]) -> Node:
    """Returns the node with one `allocatable` mapping shared by all equal nodes, to save memory."""
    shared = offers.setdefault(tuple(sorted(node.allocatable.items())), node.allocatable)
    return node if shared is node.allocatable else replace(node, allocatable=shared)


def snapshot(
    nodes: Iterable[Node],
    topologies: Iterable[Topology] = (),
    pods: Iterable[BoundPod] = (),
    reservations: Iterable[Reservation] = (),
    *,
    links: Mapping[str, tuple[Link, ...]] | None = None,
    ignored: Mapping[str, int] | None = None,
    numa: Mapping[str, NumaNode] | None = None,
    claims: Claims = NO_CLAIMS,
    bounds: Mapping[str, tuple[Bound, ...]] | None = None,
    quotas: Mapping[str, Quota] | None = None,
    spaces: Mapping[str, Mapping[str, str]] | None = None,
    priorities: PriorityClasses = NO_CLASSES,
    runtime_classes: RuntimeClasses = NO_RUNTIME_CLASSES,
    volumes: Volumes = NO_VOLUMES,
    growth: Iterable[GrowingPool | AutoscalerGroup] = (),
    settings: SchedulerSettings = DEFAULTS,
    schedulers: SchedulersSeen = NOTHING_SEEN,
) -> Snapshot:
    """Returns a snapshot of these objects; without a topology, all nodes are hosts directly below the root.

    The mappings have the same keys as the fields of `Infrastructure`.
    """
    offers: dict[tuple[tuple[str, int], ...], Resources] = {}
    by_name = ordered(_sharing(node, offers) for node in nodes)
    sorted_topologies = tuple(sorted(topologies, key=lambda t: natural(t.name))) or (NO_TOPOLOGY,)
    base = Infrastructure(
        sorted_topologies,
        by_name,
        links or {},
        ignored or {},
        numa=numa or {},
        claims=claims,
        bounds=bounds or {},
        quotas=quotas or {},
        spaces=spaces or {},
        priorities=priorities,
        runtime_classes=runtime_classes,
        volumes=volumes,
        growth=tuple(growth),
        settings=settings,
        schedulers=schedulers,
    )
    return Snapshot(base, tuple(pods), tuple(reservations))
