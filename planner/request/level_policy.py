"""A gang that names a topology policy of KAI's ConfigMap: the level that the policy gives it."""

from __future__ import annotations

from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.model.podgroup import Constraint
from planner.model.resolved import ResolvedPodGroup
from planner.model.settings import LevelPolicy


def by_policy(snapshot: Snapshot, group: ResolvedPodGroup) -> ResolvedPodGroup:
    """The gang with the level of the policy that it names: `pack` requires it, `prefer` prefers it.

    Of several names (comma-separated) the heaviest known one serves; what the gang states itself goes first.
    """
    policies = snapshot.base.settings.policies
    named = [name.strip() for name in group.policy.split(",") if name.strip()]
    known = [policies[name] for name in named if name in policies]
    if known:
        heaviest = max(known, key=lambda policy: (policy.weight, policy.name))
        return replace(group, constraint=_of_policy(heaviest, group.constraint))
    if not named:
        return group
    offered = ", ".join(sorted(policies)) or "none, as no kai-scheduler-config is known"
    warning = f"topology policy {group.policy!r} is not known; the policies are: {offered}"
    return replace(group, warnings=(*group.warnings, warning))


def _of_policy(policy: LevelPolicy, stated: Constraint) -> Constraint:
    if stated.required or stated.preferred:
        return stated
    if policy.strategy == "pack":
        return replace(stated, required=policy.level)
    return replace(stated, preferred=policy.level)
