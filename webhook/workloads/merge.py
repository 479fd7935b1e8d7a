"""Pods of one gang that stand in the same files, as the one gang that they are. Pure.

A pod alone knows only its own shape and its gang's size; together with the other pods the gang has a PodSet
for each shape: prefill, decode and router as three pods of one PodGroup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from planner.model.pod import PodShape
from planner.model.podgroup import PodGroup, PodSet
from webhook.workloads.pod_groups import OTHERS
from webhook.workloads.workload import Workload


def joined(workloads: Iterable[Workload]) -> list[Workload]:
    """The same workloads, where the first pod of a gang carries the whole gang and its other pods none.

    A gang, or a subgroup, that states more pods than stand here is filled up with pods like its most frequent
    one.
    """
    listed = list(workloads)
    by_gang: dict[str, list[PodGroup]] = {}
    for workload in listed:
        if workload.kind == "Pod" and workload.gangs:
            by_gang.setdefault(workload.gangs[0].name, []).append(workload.gangs[0])
    result = []
    for workload in listed:
        if workload.kind == "Pod" and workload.gangs:
            groups = by_gang.pop(workload.gangs[0].name, None)
            workload = replace(workload, gangs=(_whole(groups),) if groups else ())
        result.append(workload)
    return result


def _whole(groups: list[PodGroup]) -> PodGroup:
    first = groups[0]
    if len(groups) == 1:
        return first
    kinds = [(group.pod_sets[0].name, _key(group.pod_sets[0].shape)) for group in groups]
    counts = Counter(kinds)
    shapes = {kind: group.pod_sets[0] for kind, group in zip(kinds, groups, strict=True)}
    stated = len(groups)
    for kind, count in _missing(groups, counts):
        counts[kind] += count
        shapes.setdefault(kind, _like(groups, kind))
    missing = counts.total() - stated
    notes: tuple[str, ...] = ()
    if missing > 0 and len(counts) > 1:
        notes = (f"{missing} of {counts.total()} pods are not here; taken to be like the others",)
    names = _names([name for name, _ in counts])
    names_by_kind = dict(zip(counts, names, strict=True))
    return replace(
        first,
        pod_sets=tuple(
            replace(shapes[kind], name=name, count=counts[kind]) for kind, name in names_by_kind.items()
        ),
        within=_within(first, shapes, names_by_kind),
        origins=tuple(dict.fromkeys(origin for group in groups for origin in group.origins)),
        warnings=(*dict.fromkeys(warning for group in groups for warning in group.warnings), *notes),
    )


_Kind = tuple[str, str]
"""The name of a PodSet, and its shape in words."""


def _missing(groups: list[PodGroup], counts: Counter[_Kind]) -> list[tuple[_Kind, int]]:
    """Pods that are not here, by kind: those of each subgroup that has a size, else of the whole gang."""
    often = [kind for kind, _ in counts.most_common()]
    if all(len({pod_set.name for pod_set in group.pod_sets} - {OTHERS}) == 1 for group in groups):
        return [(often[0], max(0, max(group.size for group in groups) - len(groups)))]
    missing = []
    for pod_set in groups[0].pod_sets:
        kinds = [kind for kind in often if kind[0] == pod_set.name] or [(pod_set.name, often[0][1])]
        missing.append((kinds[0], max(0, pod_set.count - sum(counts[kind] for kind in kinds))))
    return [(kind, count) for kind, count in missing if count]


def _like(groups: list[PodGroup], kind: _Kind) -> PodSet:
    """A PodSet of this name, of which no pod is here, with the shape of those that are."""
    alike = next(group for group in groups if _key(group.pod_sets[0].shape) == kind[1])
    return next(pod_set for pod_set in alike.pod_sets if pod_set.name == kind[0])


def _within(
    group: PodGroup, shapes: Mapping[_Kind, PodSet], names_by_kind: Mapping[_Kind, str]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What PodSets are required together, where one may have become several of unlike shapes."""
    several = {kind[0] for kind, name in names_by_kind.items() if name != kind[0]}
    own = {name: pod_set.constraint.required for (name, _), pod_set in shapes.items() if name in several}
    ties = []
    for level, sets in (*group.within, *((level, (name,)) for name, level in own.items())):
        names = tuple(name for kind, name in names_by_kind.items() if kind[0] in sets)
        if level and names:
            ties.append((level, names))
    return tuple(ties)


def _key(shape: PodShape) -> str:
    """Shapes hold mappings, so they are compared by what they say."""
    requests, labels = dict(sorted(shape.requests.items())), dict(sorted(shape.labels.items()))
    selector = dict(sorted(shape.node_selector.items()))
    return repr(replace(shape, requests=requests, labels=labels, node_selector=selector))


def _names(candidates: list[str]) -> list[str]:
    """Distinct names: `main`, `main-2`, …"""
    seen: Counter[str] = Counter()
    names = []
    for name in candidates:
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return names
