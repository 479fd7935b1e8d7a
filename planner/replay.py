"""The same gang asked again: is it the same request, and does its former plan still stand?"""

from __future__ import annotations

import hashlib
import json

from planner.answer import Answer
from planner.match import affinity_matches, selects
from planner.podgroup import Constraint, PodGroup, PodSet
from planner.reservation import Reservation
from planner.snapshot import Snapshot


def fingerprint(group: PodGroup) -> str:
    """A digest of what was asked for: PodSets, requests, constraints and the mode.

    Node selectors and affinity are left out, for the mutating pass adds to them what the plan says.
    """
    asked = {
        "podSets": [
            [p.name, p.count, sorted(p.shape.requests.items()), _constraint(p.constraint)]
            for p in sorted(group.pod_sets, key=lambda p: p.name)
        ],
        "constraint": _constraint(group.constraint),
        "reserve": group.reserve,
    }
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:32]


def _constraint(asked: Constraint) -> list[str | int]:
    return [asked.topology, asked.required, asked.preferred, asked.slice_level, asked.slice_size]


def replay(snapshot: Snapshot, group: PodGroup, own: Reservation) -> Answer | None:
    """The answer that the gang's reservation stands for, or None where it no longer holds."""
    if own.fingerprint != fingerprint(group):
        return None
    sets = {pod_set.name: pod_set for pod_set in group.pod_sets}
    if not own.assignments or not all(_stands(snapshot, sets[a.pod_set], a.node) for a in own.assignments):
        return None
    return Answer(
        gang=group.name,
        decision="admitted",
        topology=own.topology,
        level=own.level,
        domain=own.domain,
        reserves=own.domains,
        assignments=own.assignments,
        reason="AlreadyReserved",
        message=f"{group.size} pods keep the place that was reserved for them"
        f"{' in ' + '/'.join(own.domain) if own.domain else ''}.",
        warnings=group.warnings,
        replayed=True,
    )


def _stands(snapshot: Snapshot, pod_set: PodSet, name: str) -> bool:
    node = snapshot.nodes.get(name)
    if node is None or not selects(pod_set.shape.node_selector, node.labels):
        return False
    return affinity_matches(pod_set.shape, node)
