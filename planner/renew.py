"""A snapshot with new words about its hardware and limits: its nodes and their places stay."""

from __future__ import annotations

from dataclasses import replace

from planner.snapshot import Fabric, Snapshot

_SAME = ("trees", "wide_trees", "labelled", "divided")
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
    made.__dict__.update({name: base.__dict__[name] for name in _SAME if name in base.__dict__})
    made.__dict__["empty"] = base.empty.after(stirred)
    return there.over(made, stirred)
