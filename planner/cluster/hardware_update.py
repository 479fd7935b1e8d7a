"""A snapshot with new words about its hardware and limits: its nodes and their places stay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from planner.cluster.infrastructure import Infrastructure
from planner.cluster.snapshot import Snapshot
from planner.devices.bound_claims import claim_names
from planner.devices.claims import Claims, ResourceClaim
from planner.devices.node_devices import NodeDevicesByName

_SAME = ("trees", "wide_trees", "divided")
"""What was worked out from nodes and topologies alone."""


def with_hardware(there: Snapshot, hardware: Infrastructure) -> Snapshot:
    """The same nodes, pods and reservations, with NUMA zones, claims, limits and settings of `hardware`."""
    base = there.base
    made = replace(
        base,
        links=hardware.links,
        ignored=hardware.ignored,
        numa=hardware.numa,
        claims=hardware.claims,
        bounds=hardware.bounds,
        quotas=hardware.quotas,
        spaces=hardware.spaces,
        settings=hardware.settings,
    )
    stirred = {
        name
        for name in {*base.numa, *hardware.numa}
        if base.numa.get(name) != hardware.numa.get(name) and name in base.nodes
    }
    stirred |= _with_other_devices(there, hardware.claims)
    made.__dict__.update({name: base.__dict__[name] for name in _SAME if name in base.__dict__})
    if "layouts" in base.__dict__:
        made.__dict__["layouts"] = NodeDevicesByName(hardware.claims, base.layouts)
    if "devices" in base.__dict__ and base.claims.slices == hardware.claims.slices:
        made.__dict__["devices"] = base.devices.told(hardware.claims, made.layouts)
    made.__dict__["empty"] = base.empty.after(stirred)
    return there.over(made, stirred)


def _with_other_devices(there: Snapshot, claims: Claims) -> set[str]:
    """Nodes whose devices, or the devices of whose pods, these claims tell anew."""
    old = there.base.claims
    if bool(old.slices) != bool(claims.slices):
        return set(there.nodes)  # without any slice, labels tell the devices
    before, after = old.slices.by_node, claims.slices.by_node
    moved = {
        name for name in {*before, *after} if before.get(name) != after.get(name) and name in there.nodes
    }
    if old.classes != claims.classes:
        moved |= {pod.node for pod in there.bound if pod.claims}
    if told := _changed(old.claims, claims.claims):
        moved |= _homes(there, [old.claims.get(name) for name in told])
        moved |= _homes(there, [claims.claims.get(name) for name in told])
    told |= _changed(old.templates, claims.templates)
    if not told:
        return moved
    return moved | {pod.node for pod in there.bound if pod.claims and not told.isdisjoint(claim_names(pod))}


def _homes(there: Snapshot, claims: Iterable[ResourceClaim | None]) -> set[str]:
    """The nodes whose devices these claims have been given."""
    layouts = there.base.layouts
    homes = {layouts.home(one) for claim in claims if claim for one in claim.allocated}
    return {name for name in homes if name in there.nodes}


def _changed(old: Mapping[str, ResourceClaim], new: Mapping[str, ResourceClaim]) -> set[str]:
    return {name for name in {*old, *new} if old.get(name) != new.get(name)}
