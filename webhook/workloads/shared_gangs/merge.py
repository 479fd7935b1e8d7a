"""Combines the known members of a gang that consists of several objects. Pure.

The pods of known members (objects that were read) form PodSets, one for each part (for example prefill, see
`subgroups.py`) and shape. Of the other members only the number of pods is known: *placeholders* keep room for
them. The request of a placeholder is the first of these that is known:

- the request that the gang states for its part (`bayplan.dev/gang-resources`), if no pod of the part is known
- the request that the gang states for each pod (the same annotation)
- its share of the total in the PodGroup (`minResources`), less the requests of the known pods
- the request of the largest known pod, of its part if there is one

The same members give the same gang in any order, for example prefill, decode and router as two Jobs and a pod
of one PodGroup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from planner.model.pod import PodShape
from planner.model.podgroup import PodGroup, PodSet
from planner.model.resources import Resources
from webhook.workloads.shared_gangs.pod_groups import MAIN, OTHERS
from webhook.workloads.workload import GangShare, Workload

_Kind = tuple[str, str]
"""The name of a PodSet, and its shape as text."""


def joined(workloads: Iterable[Workload]) -> list[Workload]:
    """Returns the same workloads; of a gang's members, the first has the whole gang, the others have none.

    A suspended workload creates no pods yet, and joins no gang.
    """
    listed = list(workloads)
    by_gang: dict[str, list[Workload]] = {}
    for workload in listed:
        if _joins(workload):
            by_gang.setdefault(workload.gangs[0].name, []).append(workload)
    result = []
    for workload in listed:
        if _joins(workload):
            members = by_gang.pop(workload.gangs[0].name, None)
            workload = with_whole_gang(workload, members) if members else replace(workload, gangs=())
        result.append(workload)
    return result


def _joins(workload: Workload) -> bool:
    return workload.share is not None and bool(workload.gangs) and not workload.suspended


def with_whole_gang(workload: Workload, members: Iterable[Workload]) -> Workload:
    """Returns the workload with its whole gang: all its `members`, including this one, and placeholders for
    the others.
    """
    ordered = sorted(members, key=lambda member: member.name)
    groups = [member.gangs[0] for member in ordered]
    shares = [member.share for member in ordered if member.share is not None]
    counts, sets = _known_members(shares)
    known_counts = counts.copy()
    for placeholder in _placeholders(shares, counts, sets):
        kind = name_and_shape(placeholder)
        counts[kind] += placeholder.count
        sets.setdefault(kind, placeholder)
    missing = counts.total() - known_counts.total()
    kinds = sorted(sets)
    notes: tuple[str, ...] = ()
    if missing and len(ordered) > 1 and len({shape for _, shape in kinds}) > 1:
        notes = (f"{missing} of {counts.total()} pods are not here; taken to be like the others",)
    elif missing and ordered[0].kind != "Pod":  # single pods arrive one by one: some are missing at first
        title = groups[0].name.partition("/")[2]
        notes = (
            f"{title} starts with {counts.total()} pods, this {ordered[0].kind} makes {known_counts.total()}",
        )
    names = dict(zip(kinds, _names([name for name, _ in kinds]), strict=True))
    gang = replace(
        groups[0],
        pod_sets=tuple(replace(sets[kind], name=names[kind], count=counts[kind]) for kind in kinds),
        within=_within(shares[0], sets, names),
        origins=tuple(dict.fromkeys(origin for group in groups for origin in group.origins)),
        warnings=(*dict.fromkeys(warning for share in shares for warning in share.warnings), *notes),
    )
    share = workload.share
    known_sets = tuple(
        replace(sets[kind], name=names[kind], count=known_counts[kind])
        for kind in kinds
        if known_counts[kind]
    )
    return replace(workload, gangs=(gang,), share=share and replace(share, known_sets=known_sets))


def pod_set_in(gang: PodGroup, own: PodSet) -> str:
    """Returns the name of a member's PodSet in the combined gang (see `_names`); "" if the gang lacks it."""
    key = _key(own.shape)
    names = [pod_set.name for pod_set in gang.pod_sets if _key(pod_set.shape) == key]
    return next((name for name in names if name == own.name or name.startswith(f"{own.name}-")), "")


def _known_members(shares: Iterable[GangShare]) -> tuple[Counter[_Kind], dict[_Kind, PodSet]]:
    """Returns how many pods of each kind (name and shape of a PodSet) are known, and a PodSet of each."""
    counts: Counter[_Kind] = Counter()
    sets: dict[_Kind, PodSet] = {}
    for pod_set in (own for share in shares for own in share.own):
        kind = name_and_shape(pod_set)
        counts[kind] += pod_set.count
        sets.setdefault(kind, pod_set)
    return counts, sets


def _placeholders(
    shares: Sequence[GangShare], counts: Mapping[_Kind, int], sets: Mapping[_Kind, PodSet]
) -> Iterable[PodSet]:
    """Returns PodSets for the pods that are known only by number: of each subgroup, and of the whole gang."""
    parts = {name: part for share in shares for name, part in share.parts.items()}
    stated = {name: seat for share in shares for name, seat in share.seats.items()}
    by_name: Counter[str] = Counter()
    for (name, _), count in counts.items():
        by_name[name] += count
    absent = {name: max(0, part.count - by_name[name]) for name, part in parts.items()}
    size = max(share.size for share in shares)
    rest = size - sum(absent.values()) - sum(by_name.values())
    rest_name = MAIN if parts or set(by_name) == {MAIN} else OTHERS
    wanted = {**absent, rest_name: absent.get(rest_name, 0) + max(0, rest)}
    total = sum(wanted.values())
    seat = _seat(shares, counts, sets, total)
    alike: dict[str, list[PodSet]] = {}
    for (name, _), pod_set in sets.items():
        alike.setdefault(name, []).append(pod_set)
    largest = _largest(sets.values())  # of the members, and of the placeholders so far
    for name, count in wanted.items():
        if count:
            like = _largest(alike[name]) if name in alike else largest
            # The request stated for the part is used only if no pod of the part is known.
            room = seat if name in alike or name not in stated else stated[name]
            shape = like.shape if room is None else _asking(like.shape, room)
            constraint = parts[name].constraint if name in parts else PodSet(name, count, shape).constraint
            placeholder = PodSet(name, count, shape, constraint)
            largest = _largest((largest, placeholder))
            yield placeholder


def _seat(
    shares: Sequence[GangShare],
    counts: Mapping[_Kind, int],
    sets: Mapping[_Kind, PodSet],
    absent: int,
) -> Resources | None:
    """Returns the request of each of the `absent` unknown pods, stated or as a share; None if not stated."""
    stated = next((share.seat for share in shares if share.seat is not None), None)
    total = next((share.total for share in shares if share.total is not None), None)
    if stated is not None or total is None or not absent:
        return stated
    used: Counter[str] = Counter()
    for kind, count in counts.items():
        used.update({name: amount * count for name, amount in sets[kind].shape.requests.items()})
    return {name: -(-max(0, amount - used[name]) // absent) for name, amount in total.items()}


def _asking(shape: PodShape, seat: Resources) -> PodShape:
    """Returns the shape with only these requests; its node selection (labels, affinity, …) stays."""
    return replace(shape, requests={**seat, "pods": 1}, alignment=None, claims=(), volumes=(), stated=None)


def _largest(sets: Iterable[PodSet]) -> PodSet:
    """Returns the PodSet with the largest pods; GPUs count first."""
    return max(sets, key=lambda own: (own.shape.gpus, sorted(own.shape.requests.items()), _key(own.shape)))


def _within(
    share: GangShare, sets: Mapping[_Kind, PodSet], names: Mapping[_Kind, str]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Returns levels, each with the PodSets that are required in one domain of it (`PodGroup.within`).

    If a PodSet was split by shape, all resulting PodSets are listed, and the level that the PodSet required
    is required for them together.
    """
    several = {kind[0] for kind, name in names.items() if name != kind[0]}
    own = {name: pod_set.constraint.required for (name, _), pod_set in sets.items() if name in several}
    ties = []
    for level, parts in (*share.within, *((level, (name,)) for name, level in own.items())):
        tied = tuple(name for part in parts for kind, name in names.items() if kind[0] == part)
        if level and tied:
            ties.append((level, tied))
    return tuple(ties)


def name_and_shape(pod_set: PodSet) -> _Kind:
    """Returns name and shape of a PodSet."""
    return pod_set.name, _key(pod_set.shape)


def _key(shape: PodShape) -> str:
    """Returns a shape as text: shapes contain mappings, which are not hashable."""
    requests, labels = dict(sorted(shape.requests.items())), dict(sorted(shape.labels.items()))
    selector = dict(sorted(shape.node_selector.items()))
    return repr(replace(shape, requests=requests, labels=labels, node_selector=selector))


def _names(candidates: list[str]) -> list[str]:
    """Returns distinct names for PodSets of one part with several shapes: `main`, `main-2`, …, without names
    that another part has.
    """
    seen: Counter[str] = Counter()
    names: list[str] = []
    for name in candidates:
        seen[name] += 1
        while seen[name] > 1 and f"{name}-{seen[name]}" in {*candidates, *names}:
            seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return names
