"""What domains come to for a gang's classes of pods: domains that come to the same are of one capacity class.

    r1: nodes with 8, 8, 8, 2 free GPUs        r2: nodes with 2, 8, 8, 8 free GPUs        pods of 4 GPUs

The nodes are of two classes: "takes two pods", and `EMPTY`. Both racks are of one class, then: three children
that take two pods each, whatever their order. What racks of a class hold at
most is six pods, and what each level inside holds at most (the peaks) two pods a node. So 500 racks that come
to the same are worked out once.

A class says how much its domains could hold, by level, and (of hosts) what packings cost. Classes depend on
contents alone, so they serve every snapshot. `PeaksByClass` sums the peaks up: the most that one, two, …
domains of a level hold together, from which `bounds` tells how many a gang needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, Protocol

from planner.cluster.capacity import DomainCapacity
from planner.model.pod_class import PodClass
from planner.model.topology import ROOT
from planner.node.eligibility import condition_obstacle
from planner.node.gpu_sharing import share_in
from planner.node.numa_state import alignment_for
from planner.node.nvlink import max_pods_in_groups
from planner.node.packing import HostFit, max_pods, opens_gpus
from planner.search.bounds import Peaks, single_peaks
from planner.search.eligibility_map import EligibilityMap, inside
from planner.search.objective import Weights
from planner.search.pod_counts import (
    CountAlgebra,
    Measure,
    Option,
    PodCount,
    algebra,
    projections,
    splits,
    unions,
)
from planner.search.rules.domain_caps import CapTrimmer, CountCap

Exclusivity = Literal["shared", "clear", "apart"]
"""Which nodes may be used: those that no gang holds whole; those that no gang touches; or of these only those
whose reservable domain no gang touches either, for it will be held."""


EMPTY = 0
"""The class of a domain that can hold nothing."""


@dataclass(frozen=True, slots=True)
class CapacityClass:
    """What domains of equal contents have in common: level, children's classes, own cost.

    The children of a wide one are parts of it, which cost nothing of their own and may hold what their
    children do.
    """

    level: int
    named: bool
    children: tuple[int, ...]
    own: int
    part: bool = False
    caps: tuple[CountCap, ...] = ()

    @property
    def ordered(self) -> bool:
        """Whether the children are in the order of the nodes: those of a root and of a part hardly have
        another like it. Those of others are not, so that what differs only in the order is of one class."""
        return self.part or self.level == ROOT


class CapacityClasses:
    """The classes of the domains of one topology for these kinds. By class: `made` (None of a host), the
    `options` of a host, the `reach` (at least as many of each kind as it holds; exact for a single kind), and
    the `peaks`, the most that one domain of each level holds, from the class's own level to the hosts."""

    def __init__(self, kinds: tuple[PodClass, ...], use: Exclusivity, weights: Weights) -> None:
        self._kinds, self._use, self._weights = kinds, use, weights
        self._levels = len(weights.domains)
        self._sharing = any(share_in(kind.shape.requests) for kind in kinds)
        self.counts: CountAlgebra = algebra(kinds)
        self._wanted = self.counts.measure(self.counts.full)
        self._project = projections(kinds, self.counts, self._levels)
        self._split = splits(kinds, self.counts, self._levels)
        self._united = unions(kinds, self.counts, self._levels)
        self._trim = CapTrimmer(kinds, self.counts)
        self.made: list[CapacityClass | None] = [None]
        self.options: list[list[Option]] = [[]]
        self.reach: list[PodCount] = [self.counts.zero]
        self.peaks: list[tuple[Measure, ...]] = [()]
        self._known: dict[object, int] = {}
        self._of: dict[tuple[DomainCapacity, EligibilityMap], int] = {}
        self._fit = HostFit(kinds, self._levels - 1)
        self._order: list[tuple[PodCount, int]] = [(self.counts.zero, 0)]
        self.highest = PeaksByClass()

    def __len__(self) -> int:
        return len(self._of) + len(self.highest)

    def of(self, content: DomainCapacity, match: EligibilityMap) -> int:
        """The class of a domain; `EMPTY` where it can hold nothing."""
        known = self._of.get((content, match))
        if known is None:
            made = self._host if content.free is not None else self._domain
            known = self._of[content, match] = made(content, match)
        return known

    def held(self, known: int) -> Measure:
        """The most that a domain of the class holds of what is measured."""
        return self.peaks[known][0]

    def peak(self, known: int, level: int) -> Measure:
        """The most that one domain of the level in here holds; () where none holds anything."""
        made = self.made[known]
        return self.peaks[known][level - made.level if made else 0] if known else ()

    def kept(self, made: CapacityClass, counts: PodCount) -> PodCount:
        """What a domain may hold of what its nodes could."""
        project = self._project[made.level] if made.level >= 0 else None
        counts = project(counts, made.named) if project else counts
        counts = self._trim.bound(made.level, counts, made.caps) if made.caps else counts
        united = self._united[made.level] if made.level >= 0 else None
        return united(counts, made.named) if united else counts

    def unites(self, level: int) -> bool:
        """Whether a domain of the level has all pods of some kinds, or none of them."""
        return level >= 0 and self._united[level] is not None

    def each_kept(
        self, level: int, counts: PodCount, *, named: bool, caps: tuple[CountCap, ...] = ()
    ) -> tuple[PodCount, ...]:
        """The same, as the counts that no other exceed: of kinds that shun each other there is one."""
        if level < 0:
            return (counts,)
        project, split = self._project[level], self._split[level]
        counts = project(counts, named) if project else counts
        each = split(counts) if split and named else (counts,)
        each = self._trim.each(level, each, caps) if caps else each
        united = self._united[level]
        return tuple([united(one, named) for one in each]) if united else each

    def binds(self, made: CapacityClass) -> bool:
        """Whether a domain of the class may not hold all that its children could together."""
        if made.part or made.level < 0:
            return False
        rules = (self._project, self._split, self._united)
        return bool(made.caps) or any(rule[made.level] for rule in rules)

    def _usable(self, content: DomainCapacity) -> bool:
        if self._use == "shared":
            return not content.held
        return not content.gang

    def _host(self, content: DomainCapacity, match: EligibilityMap) -> int:
        best = self._packings(content, match) if self._usable(content) else ()
        rules = (self._project, self._split, self._united)
        if match.caps or any(rule[content.level] for rule in rules):
            kept = (
                one
                for counts in best
                for one in self.each_kept(content.level, counts, named=content.named, caps=match.caps)
                if one != self.counts.zero
            )
            best = tuple(dict.fromkeys(kept))
        if not best:
            return EMPTY
        short = match.penalty + (opens_gpus(self._kinds, content.gpus) if self._sharing else 0)
        own = self._weights.own(content) + self._weights.penalty * short
        known = self._known.get((best, own))
        if known is None:
            measures = [self.counts.measure(counts) for counts in best]
            peak = tuple(max(column) for column in zip(*measures, strict=True))
            reach = self.counts.pack(peak[: len(self._kinds)])
            options = [(counts, own) for counts in sorted(best)]  # so that ties hang on no other node
            known = self._new((best, own), None, options, reach, (peak,))
        return known

    def _packings(self, content: DomainCapacity, match: EligibilityMap) -> tuple[PodCount, ...]:
        """What the host could hold of the kinds, empty where nothing fits."""
        allowed = tuple(
            not why and not condition_obstacle(kind.shape, content)
            for kind, why in zip(self._kinds, match.why, strict=True)
        )
        if not any(allowed):
            return ()
        assert content.free is not None, "only hosts are packed"
        if len(self._kinds) > 1:
            best = self._fit.best(
                content.free,
                allowed,
                content.gpus,
                content.numa_state,
                content.available_devices,
                content.nvlink_size,
            )
            return tuple([self.counts.pack(counts) for counts in best])
        kind = self._kinds[0]
        wanted = 1 if self._levels - 1 in kind.anti_affinity_levels else kind.count
        room = min(
            wanted, max_pods(content.free, kind.shape, content.gpus, wanted, content.available_devices)
        )
        if content.nvlink_size and kind.shape.nvlink_group:
            room = max_pods_in_groups(content.nvlink_size, content.free, kind.shape, room)
        if content.numa_state is not None:
            room = content.numa_state.max_pods(alignment_for(kind.shape), room)
        return (room,) if room else ()

    def _domain(self, content: DomainCapacity, match: EligibilityMap) -> int:
        held = content.level == self._weights.reservable and content.named and content.gang
        if held and self._use == "apart":
            return EMPTY
        of = self._of
        classes = [of.get((one, its)) or self.of(one, its) for _, one, its in inside(content, match)]
        children = [one for one in classes if one]
        if not children:
            return EMPTY
        if content.level > ROOT and not content.is_chunk:
            children.sort(key=self._order.__getitem__)
        own = self._weights.own(content) if content.level > ROOT and not content.is_chunk else 0
        caps = () if content.is_chunk else match.caps
        key = CapacityClass(content.level, content.named, tuple(children), own, content.is_chunk, caps)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._of_children(key)
        return known

    def _of_children(self, key: CapacityClass) -> int:
        """A class that is new."""
        tops = [self.peaks[child][0] for child in key.children]
        whole = map(min, map(sum, zip(*tops, strict=True)), self._wanted)
        measure = tuple(whole)
        reach = self.counts.pack(measure[: len(self._kinds)])
        reach = reach if key.part else self.kept(key, reach)
        if reach == self.counts.zero:
            return EMPTY
        measure = tuple(map(min, measure, self.counts.measure(reach)))
        rows = [self._domain_peaks(child) for child in set(key.children)]
        below = tuple(
            tuple(max(column) for column in zip(*level, strict=True)) for level in zip(*rows, strict=True)
        )
        return self._new(key, key, [], reach, (measure, *below))

    def _domain_peaks(self, known: int) -> tuple[Measure, ...]:
        """The peaks of what is inside a domain of which this is a child, or a part."""
        made = self.made[known]
        return self.peaks[known][1:] if made and made.part else self.peaks[known]

    def _new(
        self,
        key: object,
        made: CapacityClass | None,
        options: list[Option],
        reach: PodCount,
        peaks: tuple[Measure, ...],
    ) -> int:
        self.made.append(made)
        self.options.append(options)
        self.reach.append(reach)
        self.peaks.append(peaks)
        self._order.append((reach, made.own if made else options[0][1]))
        self._known[key] = len(self.made) - 1
        return self._known[key]


MAX_LISTED = 64
"""Domains of a level whose sums are listed; further ones are taken to hold as much as the last. A gang of
more racks than that is bounded a little weaker, never wrongly."""


class _Classes(Protocol):
    """What is asked of classes: see `CapacityClasses`."""

    @property
    def made(self) -> Sequence[CapacityClass | None]: ...

    def held(self, known: int, /) -> Measure:
        """The most that a domain of the class holds."""
        ...


class PeaksByClass:
    """The tops of the levels inside the domains of each class, down to the hosts."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Peaks, ...]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def inside(self, classes: _Classes, known: int) -> tuple[Peaks, ...]:
        """The tops of the levels inside a domain of the class; () of a host."""
        found = self._known.get(known)
        if found is None:
            made = classes.made[known]
            rows = [self._row(classes, child) for child in made.children] if made else []
            found = tuple([_joined(level) for level in zip(*rows, strict=True)])
            self._known[known] = found
        return found

    def _row(self, classes: _Classes, known: int) -> tuple[Peaks, ...]:
        """A child's own level and those inside it; of a part only these."""
        made, inside = classes.made[known], self.inside(classes, known)
        return inside if made and made.part else (single_peaks(classes.held(known)), *inside)


def _joined(tops: Iterable[Peaks]) -> Peaks:
    return tuple([_summed(column) for column in zip(*tops, strict=True)])


def _summed(column: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """The highest of what one more domain adds to any of these sums."""
    each = sorted([more for sums in column for more in map(int.__sub__, sums, (0, *sums))], reverse=True)
    return tuple(accumulate([more for place, more in enumerate(each[:MAX_LISTED]) if more or not place]))
