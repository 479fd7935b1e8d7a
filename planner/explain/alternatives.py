"""The nearest requests that have a place: small changes to a request, each planned before it is told. Pure.

A change is made to the request as it came, with all its wishes, and not to what a search made of it: so what
is told is admitted when it is asked for, by leaf-spine rules, slices and policies too. All searches for one
answer share a budget; what could not be tried within it is not told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from planner.cluster.snapshot import Snapshot
from planner.cluster.switch_graph import leaf_spine
from planner.explain.messages import pods
from planner.explain.obstacles import largest
from planner.model.answer import Answer
from planner.model.natural_order import natural
from planner.model.podgroup import Constraint, PodGroup, PodSet
from planner.model.quantity import show
from planner.model.topology import ROOT, Topology
from planner.model.work_budget import WorkBudget
from planner.request.levels import constraints, inside_host, resolve
from planner.search.result import SearchResult
from planner.search.space import search_space

_BUDGET = 1_000_000


_MOST_RELEASED = 16
"""Gangs whose end is tried for room, the smallest first."""


_MOST_SPEEDS = 4
"""Speeds of links that are tried, the fastest first."""


class Trial(Protocol):
    """Plans a request to see whether it is admitted, without words where it is not."""

    def __call__(self, snapshot: Snapshot, group: PodGroup, budget: WorkBudget, *, now: bool) -> Answer: ...


@dataclass(frozen=True, slots=True)
class Alternative:
    """A request that is admitted, and the words for what differs in it; `ended`: once that gang has ended."""

    words: str
    group: PodGroup
    ended: str = ""


@dataclass(frozen=True, slots=True)
class Shortfall:
    """What has no place: these PodSets (all of them where no single one is at fault), by this search.

    `fits`: no more of their pods have a place at once.
    """

    names: tuple[str, ...]
    tried: SearchResult
    fits: int


@dataclass(frozen=True, slots=True)
class Alternatives:
    """A request as it came, and the cluster in which it has no place."""

    snapshot: Snapshot
    group: PodGroup
    trial: Trial

    def ways(self, tight: Shortfall, *, now: bool) -> tuple[Alternative, ...]:
        """What is nearest to the request and admitted, now or in the empty cluster: fewer pods, a coarser
        level; else other slices or slower links; else what would make room; else smaller pods."""
        budget = WorkBudget(_BUDGET, hard=True)

        def admits(group: PodGroup, snapshot: Snapshot = self.snapshot) -> Answer | None:
            answer = self.trial(snapshot, group, budget, now=now)
            return answer if answer.decision == "admitted" else None

        found = [*_fewer(self.group, tight.names, tight.fits, admits), *_coarser(self.group, tight, admits)]
        found = found or [*_other_slices(self.group, tight, admits), *self.slower(now=now)]
        attempts = tight.tried.attempts
        if now and not (attempts and attempts[-1].fits):
            found += self._room(admits)
        return tuple(found or self._smaller(tight, admits, now=now))

    def stands(self, *, now: bool) -> bool:
        """Whether the request is admitted as it is, now or in the empty cluster, so far as can be told."""
        answer = self.trial(self.snapshot, self.group, WorkBudget(_BUDGET, hard=True), now=now)
        return answer.decision == "admitted"

    def fewer(self, names: Sequence[str], fits: int, *, now: bool) -> tuple[Alternative, ...]:
        """The most pods of these PodSets, up to `fits`, that are admitted."""
        budget = WorkBudget(_BUDGET, hard=True)

        def admits(group: PodGroup) -> bool:
            return self.trial(self.snapshot, group, budget, now=now).decision == "admitted"

        return tuple(_fewer(self.group, names, fits, admits))

    def slower(self, *, now: bool) -> Iterator[Alternative]:
        """The fastest links between nodes with which it is admitted, where it asks for faster ones."""
        wanted, budget = self.group.fabric.gbps, WorkBudget(_BUDGET, hard=True)
        spines = (leaf_spine(self.snapshot, topology) for topology in self.snapshot.topologies)
        speeds = {speed for spine in spines if spine is not None for speed in spine.speeds if speed < wanted}
        for gbps in sorted(speeds, reverse=True)[:_MOST_SPEEDS]:
            group = replace(self.group, fabric=replace(self.group.fabric, gbps=gbps))
            if self.trial(self.snapshot, group, budget, now=now).decision == "admitted":
                yield Alternative(f"links of {gbps:g} Gb/s (topology.scheduler/network-bandwidth)", group)
                return

    def _room(self, admits: Callable[[PodGroup, Snapshot], object]) -> Iterator[Alternative]:
        """The end of one gang, the smallest that helps, or a reservation of single nodes."""
        by_size = sorted(self.snapshot.reservations, key=lambda r: (len(r.touched), natural(r.gang)))
        for reservation in by_size[:_MOST_RELEASED]:
            if admits(self.group, self.snapshot.ended(reservation.gang)):
                yield Alternative(f"the end of {reservation.gang}", self.group, reservation.gang)
                break
        nodes = replace(self.group, reserve="nodes")
        if self.group.reserve == "domain" and admits(nodes, self.snapshot):
            yield Alternative("bayplan.dev/reserve: nodes, which holds no more than the gang uses", nodes)

    def _smaller(
        self, tight: Shortfall, admits: Callable[[PodGroup], object], *, now: bool
    ) -> Iterator[Alternative]:
        """As many pods, which ask for no more of what they lack than the most that a node of theirs has."""
        view = search_space(self.snapshot, tight.tried.tree, now=now)
        most = {
            (name, resource): largest([view], kind, resource)
            for kind in tight.tried.asked.kinds
            for name, _ in kind.parts
            for resource, amount in kind.shape.requests.items()
            if largest([view], kind, resource) < amount
        }
        if not most or not all(most.values()):
            return

        def reduced(pod_set: PodSet) -> PodSet:
            requests = {r: most.get((pod_set.name, r), n) for r, n in pod_set.shape.requests.items()}
            return replace(pod_set, shape=replace(pod_set.shape, requests=requests))

        group = replace(self.group, pod_sets=tuple(map(reduced, self.group.pod_sets)))
        if admits(group):
            several = len(group.pod_sets) > 1
            parts = [
                f"{show(r, n)} {r} a pod{f' of {name}' if several else ''}" for (name, r), n in most.items()
            ]
            yield Alternative(f"at most {', '.join(parts)}", group)


Plan = Callable[[Snapshot, PodGroup], Answer]


@dataclass(frozen=True, slots=True)
class Steps:
    """How ordinary groups are answered on the way to a gang's answer: `plan` tells why there is no place,
    `seek` only whether there is one, and so does `plan` where `near` is None. `now`: as the cluster is, or
    as if it were empty."""

    plan: Plan
    seek: Plan
    near: Alternatives | None
    now: bool = True

    @property
    def silent(self) -> Steps:
        """The same without words."""
        return Steps(self.seek, self.seek, None, self.now)


def _fewer(
    group: PodGroup, names: Sequence[str], fits: int, admits: Callable[[PodGroup], object]
) -> Iterator[Alternative]:
    """The most pods with a place: fewer of one PodSet, the largest that helps; else fewer of each."""
    sets = sorted((one for one in group.pod_sets if one.name in names), key=lambda one: -one.count)
    size = sum(one.count for one in sets)
    for one in sets:
        step, room = _step(group, one), min(one.count - 1, fits - (size - one.count))
        counts = _most(room // step, partial(_of_one, one, step), group, admits)
        if counts:
            yield _fewer_words(group, counts)
            return
    if len(sets) > 1:
        counts = _most(sets[0].count - 1, partial(_of_each, group, sets), group, admits)
        if counts:
            yield _fewer_words(group, counts)


def _of_one(one: PodSet, step: int, number: int) -> dict[str, int]:
    """So many steps of one PodSet."""
    return {one.name: number * step}


def _of_each(group: PodGroup, sets: Sequence[PodSet], number: int) -> dict[str, int]:
    """So many pods of the largest PodSet, of the others as large a share, of each one slice at least."""
    widest = sets[0].count
    each = ((one, _step(group, one)) for one in sets)
    return {one.name: max(1, one.count * number // widest // step) * step for one, step in each}


def _step(group: PodGroup, one: PodSet) -> int:
    """Pods that come and go together: a slice."""
    return max(1, one.constraint.slice_size or group.constraint.slice_size)


def _most(
    high: int,
    counts: Callable[[int], dict[str, int]],
    group: PodGroup,
    admits: Callable[[PodGroup], object],
) -> dict[str, int]:
    """The pods of the largest number up to `high` that is admitted, where all below it are; {} for none."""
    low, middle = 0, high
    while low < high:
        if admits(_cut(group, counts(middle))):
            low = middle
        else:
            high = middle - 1
        middle = (low + high + 1) // 2
    return counts(low) if low else {}


def _cut(group: PodGroup, counts: dict[str, int]) -> PodGroup:
    return replace(
        group, pod_sets=tuple(replace(one, count=counts.get(one.name, one.count)) for one in group.pod_sets)
    )


def _fewer_words(group: PodGroup, counts: dict[str, int]) -> Alternative:
    whose = {one.name: f" of {one.name}" if _several(group) else "" for one in group.pod_sets}
    parts = [
        f"{'a minimum of ' if one.most > one.count else ''}{pods(counts[one.name])}{whose[one.name]}"
        for one in group.pod_sets
        if counts.get(one.name, one.count) != one.count
    ]
    return Alternative(" and ".join(parts), _cut(group, counts))


def _coarser(
    group: PodGroup, tight: Shortfall, admits: Callable[[PodGroup], Answer | None]
) -> Iterator[Alternative]:
    """The finest coarser level at which it has a place, or none; of one PodSet where that is at fault."""
    topology, required = tight.tried.tree.topology, _strictest(tight)
    own = tight.names if _is_own(group, tight) else ()
    if required == ROOT:
        return
    loose = _required_at(group, "", own)
    answer = admits(loose)
    if answer is None:
        return
    whose = f" of {' and '.join(own)}" if own and _several(group) else ""
    finest = required if _inside_host(group, own) else required - 1
    if not own:
        finest = topology.index(answer.level) if answer.level else ROOT
    for level in range(finest, ROOT, -1):
        tighter = _required_at(group, topology.levels[level], own)
        # Where nothing else is wished, the placement that was found shows that the level serves.
        if (not own and not group.wishes) or admits(tighter):
            yield Alternative(f"required at {topology.levels[level]}{whose}", tighter)
            return
    yield Alternative(f"no required level{whose}", loose)


def _inside_host(group: PodGroup, own: Sequence[str]) -> bool:
    """Whether a level inside the host is asked for, to which the host itself is coarser."""
    return any(inside_host(one.constraint.required) for one in group.pod_sets if one.name in own)


def _strictest(tight: Shortfall) -> int:
    """The finest level that is required of what has no place."""
    return max([tight.tried.asked.required, *(kind.required for kind in tight.tried.asked.kinds)])


def _is_own(group: PodGroup, tight: Shortfall) -> bool:
    return len(tight.names) < sum(1 for one in group.pod_sets if one.count)


def _several(group: PodGroup) -> bool:
    return sum(1 for one in group.pod_sets if one.count) > 1


def _required_at(group: PodGroup, level: str, own: Sequence[str]) -> PodGroup:
    """The request with this required level, "" for none: the PodSets' of these names, or the gang's alone."""

    def loose(pod_set: PodSet, key: str) -> PodSet:
        return replace(pod_set, constraint=replace(pod_set.constraint, required=key))

    if own:
        sets = tuple(loose(one, level) if one.name in own else one for one in group.pod_sets)
        within = tuple(one for one in group.within if not set(one[1]) & set(own))
        return replace(group, pod_sets=sets, within=within)
    sets = tuple(loose(one, "") for one in group.pod_sets)
    return replace(
        group, pod_sets=sets, within=(), policy="", constraint=replace(group.constraint, required=level)
    )


def _other_slices(
    group: PodGroup, tight: Shortfall, admits: Callable[[PodGroup], object]
) -> Iterator[Alternative]:
    """Slices within a coarser level, or none."""
    topology = tight.tried.tree.topology
    named = {one.slice_level for _, one in constraints(group) if one.slice_level}
    level = max((topology.index(resolve(topology, one)) for one in named), default=ROOT)
    for coarser in range(level - 1, ROOT - 1, -1):
        changed = _sliced_at(group, topology, coarser)
        if changed != group and admits(changed):
            yield Alternative(
                f"slices at {topology.levels[coarser]}" if coarser > ROOT else "no slices", changed
            )
            return


def _sliced_at(group: PodGroup, topology: Topology, level: int) -> PodGroup:
    def changed(constraint: Constraint) -> Constraint:
        if not constraint.slice_level:
            return constraint
        if level == ROOT:
            return replace(constraint, slice_level="", slice_size=0)
        return replace(constraint, slice_level=topology.levels[level])

    return replace(
        group,
        constraint=changed(group.constraint),
        pod_sets=tuple(replace(one, constraint=changed(one.constraint)) for one in group.pod_sets),
    )
