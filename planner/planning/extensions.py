"""Requests beyond constraints, each followed by plans of ordinary ones.

Policies by name, an elastic number of pods, equal slices, and the leaf-spine interface.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.explain.alternatives import Steps
from planner.leafspine.rules import in_fabric
from planner.model.answer import Answer
from planner.model.podgroup import Constraint, PodGroup, PodSet
from planner.model.settings import LevelPolicy
from planner.model.topology import HOSTNAME


def follow(snapshot: Snapshot, group: PodGroup, steps: Steps) -> Answer:
    """The answer that follows every wish of the gang; `steps` answer ordinary groups."""
    group = by_policy(snapshot, group)

    def placed(asked: PodGroup, steps: Steps) -> Answer:
        if asked.fabric:
            return in_fabric(snapshot, asked, steps)
        return balanced(snapshot, asked, steps) if asked.balanced else steps.plan(snapshot, asked)

    return elastic(group, steps, placed)


def by_policy(snapshot: Snapshot, group: PodGroup) -> PodGroup:
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
    there = ", ".join(sorted(policies)) or "none, as no kai-scheduler-config is known"
    said = f"topology policy {group.policy!r} is not known; the policies are: {there}"
    return replace(group, warnings=(*group.warnings, said))


def _of_policy(policy: LevelPolicy, stated: Constraint) -> Constraint:
    if stated.required or stated.preferred:
        return stated
    if policy.strategy == "pack":
        return replace(stated, required=policy.level)
    return replace(stated, preferred=policy.level)


def elastic(group: PodGroup, steps: Steps, plan: Callable[[PodGroup, Steps], Answer]) -> Answer:
    """The most pods that fit, found by halving; where not even the least fit, the answer for these.

    Where it is only asked whether the gang has a place, the least are enough.
    """
    least = plan(group, steps)
    more = sum(max(0, pod_set.most - pod_set.count) for pod_set in group.pod_sets)
    if least.decision != "admitted" or not more or steps.near is None:
        return least
    best, low, high = least, 0, more
    middle = more  # all of them first, which is the likeliest
    while low < high:
        answer = plan(grown(group, middle), steps.silent)
        if answer.decision == "admitted":
            best, low = answer, middle
        else:
            high = middle - 1
        middle = (low + high + 1) // 2
    placed = sum(one.count for one in best.assignments)
    said = f"Elastic: {placed} pods of {group.size} to {group.size + more} have a place."
    return replace(best, message=f"{best.message} {said}")


def grown(group: PodGroup, extra: int) -> PodGroup:
    """The gang with so many pods more, given to its elastic sets in order."""
    sets: list[PodSet] = []
    for pod_set in group.pod_sets:
        more = min(extra, max(0, pod_set.most - pod_set.count))
        extra -= more
        more -= more % max(1, pod_set.constraint.slice_size or group.constraint.slice_size)
        sets.append(replace(pod_set, count=pod_set.count + more, most=0))
    return replace(group, pod_sets=tuple(sets))


def balanced(snapshot: Snapshot, group: PodGroup, steps: Steps) -> Answer:
    """A plan with the same number of pods in each domain that it uses of the level above the host.

    More domains than the fewest are taken if only they can hold equal parts; where none can, the plan is as
    without the wish, and a warning says so.
    """
    plain = steps.plan(snapshot, group)
    if plain.decision != "admitted":
        return plain
    topology = next(t for t in snapshot.topologies if t.name == plain.topology)
    level = topology.levels[topology.reservable_index]
    largest = max(group.pod_sets, key=lambda pod_set: pod_set.count)
    parts = shares(snapshot, plain, largest.name)
    if level == HOSTNAME or len(set(parts.values())) < 2 or largest.constraint.slice_level:
        return plain
    for count in range(len(parts), largest.count + 1):
        if largest.count % count:
            continue
        answer = steps.seek(snapshot, _sliced(group, largest.name, level, largest.count // count))
        if answer.decision == "admitted" and len(set(shares(snapshot, answer, largest.name).values())) == 1:
            return answer
    said = f"balanced slices: no equal parts of {largest.count} pods have a place; placed as {_list(parts)}"
    return replace(plain, warnings=(*plain.warnings, said))


def shares(snapshot: Snapshot, answer: Answer, pod_set: str) -> dict[tuple[str, ...], int]:
    """Pods of a PodSet in each domain of the reservable level, in the order of the topology."""
    topology = next(t for t in snapshot.topologies if t.name == answer.topology)
    found: dict[tuple[str, ...], int] = {}
    for one in answer.assignments:
        if one.pod_set == pod_set:
            path = topology.path(one.node, snapshot.nodes[one.node].labels)[: topology.reservable_index + 1]
            found[path] = found.get(path, 0) + one.count
    return found


def _sliced(group: PodGroup, name: str, level: str, size: int) -> PodGroup:
    sets = (
        replace(one, constraint=replace(one.constraint, slice_level=level, slice_size=size))
        if one.name == name
        else one
        for one in group.pod_sets
    )
    return replace(group, pod_sets=tuple(sets))


def _list(parts: dict[tuple[str, ...], int]) -> str:
    return " + ".join(str(count) for count in parts.values())
