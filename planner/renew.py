"""A snapshot with new words about its hardware and limits: its nodes and their places stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from planner.claiming import claim_names
from planner.claims import Claim, Claims
from planner.fabric import Fabric
from planner.snapshot import Snapshot

_SAME = ("trees", "wide_trees", "divided")
"""What was worked out from nodes and topologies alone."""


def with_hardware(there: Snapshot, hardware: Fabric) -> Snapshot:
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
        settings=hardware.settings,
    )
    stirred = {
        name
        for name in {*base.numa, *hardware.numa}
        if base.numa.get(name) != hardware.numa.get(name) and name in base.nodes
    }
    stirred |= _with_other_devices(there, hardware.claims)
    made.__dict__.update({name: base.__dict__[name] for name in _SAME if name in base.__dict__})
    if "devices" in base.__dict__ and base.claims.devices == hardware.claims.devices:
        made.__dict__["devices"] = base.devices.told(hardware.claims)
    made.__dict__["empty"] = base.empty.after(stirred)
    return there.over(made, stirred)


def _with_other_devices(there: Snapshot, claims: Claims) -> set[str]:
    """Nodes whose devices, or the devices of whose pods, these claims tell anew."""
    old = there.base.claims
    if bool(old.devices) != bool(claims.devices):
        return set(there.nodes)  # without any slice, labels tell the devices
    moved = {
        name
        for name in {*old.devices, *claims.devices}
        if old.devices.get(name) != claims.devices.get(name) and name in there.nodes
    }
    if old.classes != claims.classes:
        return moved | {pod.node for pod in there.bound if pod.claims}
    told = _changed(old.claims, claims.claims) | _changed(old.templates, claims.templates)
    if not told:
        return moved
    return moved | {pod.node for pod in there.bound if pod.claims and not told.isdisjoint(claim_names(pod))}


def _changed(old: Mapping[str, Claim], new: Mapping[str, Claim]) -> set[str]:
    return {name for name in {*old, *new} if old.get(name) != new.get(name)}
