"""Applies the topology policy of KAI's ConfigMap that a gang names."""

from __future__ import annotations

from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.model.podgroup import Constraint
from planner.model.resolved import ResolvedPodGroup
from planner.model.settings import LevelPolicy


def by_policy(snapshot: Snapshot, group: ResolvedPodGroup) -> ResolvedPodGroup:
    """Returns the gang with the level of the policy that it names: as required level if the policy's strategy
    is `pack`, else as preferred level.

    `group.policy` may list several names, separated by commas: the known policy with the greatest weight is
    used. A level in the gang itself takes precedence. If no name is known, a warning is added.
    """
    policies = snapshot.base.settings.policies
    names = [name.strip() for name in group.policy.split(",") if name.strip()]
    policies_named = [policies[name] for name in names if name in policies]
    if policies_named:
        heaviest = max(policies_named, key=lambda policy: (policy.weight, policy.name))
        return replace(group, constraint=_of_policy(heaviest, group.constraint))
    if not names:
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
