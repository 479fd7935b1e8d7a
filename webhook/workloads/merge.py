"""Pods of one gang that stand in the same files, as the one gang that they are. Pure.

A pod alone knows only its own shape and its gang's size; together with its fellows the gang has a PodSet for
each shape: prefill, decode and router as three pods of one PodGroup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from planner.podgroup import PodGroup, PodShape
from webhook.workloads.read import Workload


def joined(workloads: Iterable[Workload]) -> list[Workload]:
    """The same workloads, where the first pod of a gang carries the whole gang and its fellows none.

    A gang that states more pods than stand here is filled up with pods like its most frequent one.
    """
    listed = list(workloads)
    fellows: dict[str, list[PodGroup]] = {}
    for one in listed:
        if one.kind == "Pod" and one.gangs:
            fellows.setdefault(one.gangs[0].name, []).append(one.gangs[0])
    result = []
    for one in listed:
        if one.kind == "Pod" and one.gangs:
            groups = fellows.pop(one.gangs[0].name, None)
            one = replace(one, gangs=(_whole(groups),) if groups else ())
        result.append(one)
    return result


def _whole(groups: list[PodGroup]) -> PodGroup:
    first = groups[0]
    if len(groups) == 1:
        return first
    kinds = [(group.pod_sets[0].name, _key(group.pod_sets[0].shape)) for group in groups]
    counts = Counter(kinds)
    shapes = {kind: group.pod_sets[0] for kind, group in zip(kinds, groups, strict=True)}
    missing = max(group.size for group in groups) - len(groups)
    notes: tuple[str, ...] = ()
    if missing > 0:
        counts[counts.most_common(1)[0][0]] += missing
        if len(counts) > 1:
            notes = (f"{missing} of {sum(counts.values())} pods are not here; taken to be like the others",)
    names = _names([name for name, _ in counts])
    named = zip(counts, names, strict=True)
    return replace(
        first,
        pod_sets=tuple(replace(shapes[kind], name=name, count=counts[kind]) for kind, name in named),
        origins=tuple(dict.fromkeys(origin for group in groups for origin in group.origins)),
        warnings=(*dict.fromkeys(warning for group in groups for warning in group.warnings), *notes),
    )


def _key(shape: PodShape) -> str:
    """Shapes hold mappings, so they are compared by what they say."""
    requests, selector = dict(sorted(shape.requests.items())), dict(sorted(shape.node_selector.items()))
    return repr(replace(shape, requests=requests, node_selector=selector))


def _names(wanted: list[str]) -> list[str]:
    """Distinct names: `main`, `main-2`, …"""
    seen: Counter[str] = Counter()
    names = []
    for name in wanted:
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return names
