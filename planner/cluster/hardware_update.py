"""Replaces the facts in a snapshot: hardware, limits, settings, schedulers. Nodes and trees stay the same."""

from __future__ import annotations

from collections.abc import Iterable

from planner.cluster.facts import FACTS, VALUES, differ, differing, fact, with_facts
from planner.cluster.infrastructure import Infrastructure
from planner.cluster.snapshot import Snapshot
from planner.devices.claims import Claims, ResourceClaim
from planner.devices.devices_by_node import DevicesByNode


def with_hardware(snapshot: Snapshot, hardware: Infrastructure) -> Snapshot:
    """Returns the snapshot with the `FACTS` of `hardware`. Its topologies, nodes, pods, reservations and
    caches stay the same.
    """
    base = snapshot.base
    changed = with_facts(base, {path: fact(hardware, path) for path in FACTS})
    changed_nodes = {name for name in differing(base.numa, hardware.numa) if name in base.nodes}
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
    index.tolerating, index.tainted = former.tolerating, former.tainted
    if changed.numa is base.numa:
        index.aligns = former.aligns
    others = (differ(fact(base, path), fact(changed, path)) for path in VALUES if path != "settings")
    if changed.settings.differ_only_in_history(base.settings) and not any(others):
        index.node_values = former.node_values
    if former.node_devices is not None:
        index.node_devices = DevicesByNode(changed.claims, former.node_devices)
    if former.devices is not None and base.claims.slices == changed.claims.slices:
        index.devices = former.devices.with_claims(changed.claims, changed.node_devices)


def _with_other_devices(snapshot: Snapshot, claims: Claims) -> set[str]:
    """Returns the names of the nodes on which these claims change the devices or what pods take of them."""
    old = snapshot.base.claims
    # Without ResourceSlices, node labels define the devices. Classes change what any node offers and what its
    # pods and gangs take (`extendedResourceName`); they rarely change.
    if bool(old.slices) != bool(claims.slices) or differing(old.classes, claims.classes):
        return set(snapshot.nodes)
    slices = differing(old.slices.by_node, claims.slices.by_node)
    changed_nodes = {name for name in slices if name in snapshot.nodes}
    changed_claims = differing(old.claims, claims.claims)
    changed_nodes |= _homes(snapshot, (old.claims.get(name) for name in changed_claims))
    changed_nodes |= _homes(snapshot, changed_claims.values())
    for name in {*changed_claims, *differing(old.templates, claims.templates)}:
        changed_nodes |= snapshot.bound.claimants.get(name, frozenset())
    return changed_nodes


def _homes(snapshot: Snapshot, claims: Iterable[ResourceClaim | None]) -> set[str]:
    """Returns the names of the nodes whose devices are allocated to these claims."""
    node_devices = snapshot.base.node_devices
    homes = {node_devices.node_of(device) for claim in claims if claim for device in claim.allocated}
    return {name for name in homes if name in snapshot.nodes}
