"""Replaces the hardware, limits, settings and schedulers in a snapshot; its nodes and trees stay the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace

from planner.cluster.infrastructure import Infrastructure
from planner.cluster.snapshot import Snapshot
from planner.devices.claims import Claims, ResourceClaim, claim_names
from planner.devices.devices_by_node import DevicesByNode

_KEPT = ("topologies", "nodes", "resources_tolerated", "capacities", "plan_cache", "index")
"""Fields of `Infrastructure` that stay the same: the trees and what they are built from, the setting of
`with_stated_settings`, and caches.
"""


FACTS = tuple(row.name for row in fields(Infrastructure) if row.name not in _KEPT)
"""The fields that `with_hardware` replaces: links, NUMA zones, claims, volumes, limits, settings and more."""


def with_hardware(snapshot: Snapshot, hardware: Infrastructure) -> Snapshot:
    """Returns the snapshot with the `FACTS` of `hardware`. Its topologies, nodes, pods, reservations and
    caches stay the same.
    """
    base = snapshot.base
    changed = replace(base, **{name: getattr(hardware, name) for name in FACTS})
    changed_nodes = {
        name
        for name in {*base.numa, *hardware.numa}
        if base.numa.get(name) != hardware.numa.get(name) and name in base.nodes
    }
    changed_nodes |= _with_other_devices(snapshot, hardware.claims)
    _hand_over(base, changed)
    changed.index.empty = base.empty.with_changed_nodes(changed_nodes)
    return snapshot.evolve(base=changed, changed_nodes=changed_nodes)


def _hand_over(base: Infrastructure, changed: Infrastructure) -> None:
    """Copies those computed values to the new record that depend only on nodes, topologies and unchanged
    devices.
    """
    former, index = base.index, changed.index
    index.trees, index.wide_trees, index.divided = former.trees, former.wide_trees, former.divided
    if former.node_devices is not None:
        index.node_devices = DevicesByNode(changed.claims, former.node_devices)
    if former.devices is not None and base.claims.slices == changed.claims.slices:
        index.devices = former.devices.with_claims(changed.claims, changed.node_devices)


def _with_other_devices(snapshot: Snapshot, claims: Claims) -> set[str]:
    """Returns the names of the nodes on which these claims change the devices or what pods take of them."""
    old = snapshot.base.claims
    # Without ResourceSlices, node labels define the devices. Classes change what any node offers and what its
    # pods and gangs take (`extendedResourceName`); they rarely change.
    if bool(old.slices) != bool(claims.slices) or old.classes != claims.classes:
        return set(snapshot.nodes)
    before, after = old.slices.by_node, claims.slices.by_node
    changed_nodes = {
        name for name in {*before, *after} if before.get(name) != after.get(name) and name in snapshot.nodes
    }
    if changed := _changed(old.claims, claims.claims):
        changed_nodes |= _homes(snapshot, [old.claims.get(name) for name in changed])
        changed_nodes |= _homes(snapshot, [claims.claims.get(name) for name in changed])
    changed |= _changed(old.templates, claims.templates)
    if not changed:
        return changed_nodes
    return changed_nodes | {
        pod.node for pod in snapshot.bound if pod.claims and not changed.isdisjoint(claim_names(pod))
    }


def _homes(snapshot: Snapshot, claims: Iterable[ResourceClaim | None]) -> set[str]:
    """Returns the names of the nodes whose devices are allocated to these claims."""
    node_devices = snapshot.base.node_devices
    homes = {node_devices.node_of(device) for claim in claims if claim for device in claim.allocated}
    return {name for name in homes if name in snapshot.nodes}


def _changed(old: Mapping[str, ResourceClaim], new: Mapping[str, ResourceClaim]) -> set[str]:
    return {name for name in {*old, *new} if old.get(name) != new.get(name)}
