"""Capacity classes: domains that can hold the same pods of a gang form one class, which is computed once.

    r1: nodes with 8, 8, 8, 2 free GPUs        r2: nodes with 2, 8, 8, 8 free GPUs        pods of 4 GPUs

The nodes form two classes: "holds two pods", and `EMPTY`. Both racks are in one class: three children that
hold two pods each, in any order. A rack of this class holds at most six pods, and a node at most two (the
peaks). 500 such racks are computed once.

A class contains how many pods its domains can hold, by level, and for hosts what each packing costs. Classes
depend on capacities alone, so they are valid in every snapshot. `PeaksByClass` adds up the peaks: the maximum
that one, two, … domains of a level hold together, from which `bounds` derives how many domains a gang needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, Protocol, TypeVar

from planner.cluster.capacity import DomainCapacity
from planner.model.pod_class import PodClass
from planner.model.topology import ROOT
from planner.node.eligibility import condition_obstacle
from planner.node.gpu_sharing import share_in
from planner.node.packing import host_fit, opens_gpus
from planner.search.domain_caps import CapTrimmer, CountCap
from planner.search.eligibility_map import EligibilityMap, matched_children
from planner.search.objective import Weights, device_worth
from planner.search.packing.bounds import Peaks, single_peaks
from planner.search.packing.kept_counts import projections, splits, unions
from planner.search.pod_counts import CountAlgebra, Measure, Option, PodCount, algebra

Exclusivity = Literal["shared", "clear", "apart"]
"""Which nodes a gang may use. `shared`: nodes that no other gang holds whole. `clear`: nodes that no other
gang uses or holds. `apart`: `clear` nodes in domains of the reservable level that no other gang uses or
holds, because the gang will hold these domains.
"""


EMPTY = 0
"""The class of domains that can hold no pod."""


@dataclass(frozen=True, slots=True)
class CapacityClass:
    """The common properties of the domains of a class: the level, `children` (the ids of the classes of the
    children that can hold a pod), `own_cost` (the cost of the domain without its children), and its caps.

    A domain with very many children has chunks as its children. A chunk itself costs nothing, and no rule
    limits what it holds.
    """

    level: int
    has_name: bool
    children: tuple[int, ...]
    own_cost: int
    is_chunk: bool = False
    caps: tuple[CountCap, ...] = ()

    @property
    def ordered(self) -> bool:
        """Whether the children are in the order of the nodes: true for roots and chunks, of which equal ones
        are rare, so that sorting would save nothing.

        The children of other domains are sorted, so that domains which differ only in their order are in one
        class.
        """
        return self.is_chunk or self.level == ROOT


_T_co = TypeVar("_T_co", covariant=True)


class _ByClassId(Protocol[_T_co]):
    def __getitem__(self, class_id: int, /) -> _T_co: ...


class DomainClasses(Protocol):
    """Classes of domains, for pods that are counted one by one (`CapacityClasses`) or pooled
    (`PooledClasses`). The attributes are those of `CapacityClasses`.
    """

    counts: CountAlgebra
    highest: PeaksByClass

    @property
    def domain_classes(self) -> Sequence[CapacityClass | None]: ...
    @property
    def options(self) -> _ByClassId[list[Option]]: ...
    @property
    def reach(self) -> _ByClassId[PodCount]: ...

    def of(self, capacity: DomainCapacity, match: EligibilityMap, /) -> int:
        """Returns the class of a domain."""
        ...

    def maximum(self, class_id: int, /) -> Measure:
        """Returns the maximum of each measure that a domain of the class holds."""
        ...

    def uniform(self, class_id: int, /) -> bool:
        """Reports whether there is a single pod class, no rule limits the pods of the domain or of a domain
        inside it, and at each level inside it all domains are in one class.
        """
        ...

    def is_limited(self, domain_class: CapacityClass, /) -> bool:
        """Reports whether a rule may allow a domain of the class fewer pods than its children can hold."""
        ...

    def each_kept(
        self, level: int, counts: PodCount, *, has_name: bool, caps: tuple[CountCap, ...] = ()
    ) -> tuple[PodCount, ...]:
        """Returns the largest counts that the rules and `caps` allow in a domain of the level whose children
        can hold `counts`. `has_name`: whether the domain has the label of the level.
        """
        ...


class CapacityClasses:
    """The capacity classes of the domains of one topology for these pod classes.

    Lists are indexed by the id of a class. `domain_classes`: the properties of a class; None for a class of
    hosts. `options`: of a class of hosts only. `reach`: an upper bound of the pods of each pod class (exact
    for a single pod class). `peaks`: the maximum that one domain of each level holds, from the level of the
    domain itself to the hosts. `highest`: what one, two, … domains of each inner level hold together.
    """

    def __init__(self, pod_classes: tuple[PodClass, ...], use: Exclusivity, weights: Weights) -> None:
        self._pod_classes, self._use, self._weights = pod_classes, use, weights
        self._levels = len(weights.domains)
        self._shapes = [pod_class.shape for pod_class in pod_classes]
        self._pod_worth = min(map(device_worth, self._shapes))
        self._sharing = any(share_in(pod_class.shape.requests) for pod_class in pod_classes)
        self.counts: CountAlgebra = algebra(pod_classes)
        self._wanted = self.counts.measure(self.counts.full)
        self._project = projections(pod_classes, self.counts, self._levels)
        self._split = splits(pod_classes, self.counts, self._levels)
        self._united = unions(pod_classes, self.counts, self._levels)
        self._trim = CapTrimmer(pod_classes, self.counts)
        self.domain_classes: list[CapacityClass | None] = [None]
        self.options: list[list[Option]] = [[]]
        self.reach: list[PodCount] = [self.counts.zero]
        self.peaks: list[tuple[Measure, ...]] = [()]
        self._class_ids: dict[object, int] = {}
        self._class_of: dict[EligibilityMap, dict[DomainCapacity, int]] = {}
        self._fit = host_fit(pod_classes, self._levels - 1)
        # By level, the host level last: whether a rule limits the pods of a domain.
        self._has_rules = [any(rules) for rules in zip(self._project, self._split, self._united, strict=True)]
        # The sort key of each class among the children of a domain: its reach and cost.
        self._order: list[tuple[PodCount, int]] = [(self.counts.zero, 0)]
        self.highest = PeaksByClass()

    def __len__(self) -> int:
        return sum(map(len, self._class_of.values())) + len(self.highest)

    def of(self, capacity: DomainCapacity, match: EligibilityMap) -> int:
        """Returns the class of a domain; `EMPTY` if it can hold no pod."""
        class_of = self._class_of.get(match)
        if class_of is None:
            class_of = self._class_of[match] = {}
        class_id = class_of.get(capacity)
        if class_id is None:
            classify = self._host if capacity.free is not None else self._domain
            worth = (capacity.inner_worths or (capacity.worth,))[-1]  # the highest of one host
            class_id = class_of[capacity] = classify(capacity, match) if worth >= self._pod_worth else EMPTY
        return class_id

    def _inside(self, capacity: DomainCapacity, match: EligibilityMap) -> list[int]:
        """Returns the classes of the children or chunks that can hold a pod, in order."""
        classes: Sequence[int | None]
        if match.children or match.caps:
            classes = [
                self.of(child, child_match) for _, child, child_match in matched_children(capacity, match)
            ]
        else:  # most gangs have one map for all children: one lookup per child is enough
            row = capacity.chunks or capacity.children
            classes = list(map(self._class_of[match].get, row))
            if None in classes:
                classes = [
                    self.of(child, match) if class_id is None else class_id
                    for class_id, child in zip(classes, row, strict=True)
                ]
        return list(filter(None, classes))

    def maximum(self, class_id: int) -> Measure:
        """Returns the maximum of each measure (`pod_counts.Measure`) that a domain of the class holds."""
        return self.peaks[class_id][0]

    def peak(self, class_id: int, level: int) -> Measure:
        """Returns the maximum of each measure that one domain of the level holds, inside a domain of the
        class; () if no pod fits.
        """
        domain_class = self.domain_classes[class_id]
        return self.peaks[class_id][level - domain_class.level if domain_class else 0] if class_id else ()

    def allowed_counts(self, domain_class: CapacityClass, counts: PodCount) -> PodCount:
        """Returns an upper bound of the counts that the rules allow in a domain whose children can hold
        `counts`.
        """
        project = self._project[domain_class.level] if domain_class.level > ROOT else None
        counts = project(counts, domain_class.has_name) if project else counts
        counts = (
            self._trim.bound(domain_class.level, counts, domain_class.caps) if domain_class.caps else counts
        )
        united = self._united[domain_class.level] if domain_class.level > ROOT else None
        return united(counts, domain_class.has_name) if united else counts

    def uniform(self, class_id: int, /) -> bool:
        """See `DomainClasses`."""
        if len(self._pod_classes) > 1:
            return False
        domain_class = self.domain_classes[class_id]
        while domain_class is not None:
            if self.is_limited(domain_class) or len(set(domain_class.children)) > 1:
                return False
            domain_class = self.domain_classes[domain_class.children[0]]
        return True

    def unites(self, level: int) -> bool:
        """Reports whether some pod classes must be in a domain of the level with all their pods or none."""
        return level > ROOT and self._united[level] is not None

    def each_kept(
        self, level: int, counts: PodCount, *, has_name: bool, caps: tuple[CountCap, ...] = ()
    ) -> tuple[PodCount, ...]:
        """See `DomainClasses`. If two pod classes have anti-affinity to each other, there is one count
        without the first and one without the second.
        """
        if level == ROOT:
            return (counts,)
        project, split = self._project[level], self._split[level]
        counts = project(counts, has_name) if project else counts
        each = split(counts) if split and has_name else (counts,)
        each = self._trim.each(level, each, caps) if caps else each
        united = self._united[level]
        return tuple([united(kept, has_name) for kept in each]) if united else each

    def is_limited(self, domain_class: CapacityClass, /) -> bool:
        """See `DomainClasses`."""
        if domain_class.is_chunk or domain_class.level == ROOT:
            return False
        return bool(domain_class.caps) or self._has_rules[domain_class.level]

    def _usable(self, capacity: DomainCapacity) -> bool:
        if self._use == "shared":
            return not capacity.held
        return not capacity.gang

    def _host(self, capacity: DomainCapacity, match: EligibilityMap) -> int:
        best = self._packings(capacity, match) if self._usable(capacity) else ()
        if best and (match.caps or self._has_rules[-1]):
            kept = (
                kept_counts
                for counts in best
                for kept_counts in self.each_kept(
                    capacity.level, counts, has_name=capacity.has_name, caps=match.caps
                )
                if kept_counts != self.counts.zero
            )
            best = tuple(dict.fromkeys(kept))
        if not best:
            return EMPTY
        shortfall = match.penalty + (opens_gpus(self._pod_classes, capacity.gpus) if self._sharing else 0)
        own_cost = self._weights.own(capacity) + self._weights.penalty * shortfall
        class_id = self._class_ids.get((best, own_cost))
        if class_id is None:
            measures = [self.counts.measure(counts) for counts in best]
            peak = tuple(max(column) for column in zip(*measures, strict=True))
            reach = self.counts.pack(peak[: len(self._pod_classes)])
            # Sorted, so that the choice between options of equal cost does not depend on the other nodes.
            options = [(counts, own_cost) for counts in sorted(best)]
            class_id = self._class_ids[best, own_cost] = self._new(None, options, reach, (peak,))
        return class_id

    def _packings(self, capacity: DomainCapacity, match: EligibilityMap) -> tuple[PodCount, ...]:
        """Returns the largest counts that the host could hold; empty if no pod fits."""
        allowed = (True,) * len(self._shapes)
        if capacity.taints or capacity.cordoned or not capacity.ready or any(match.why):  # of few hosts
            reasons = zip(self._shapes, match.why, strict=True)
            allowed = tuple([not why and not condition_obstacle(shape, capacity) for shape, why in reasons])
            if True not in allowed:
                return ()
        return tuple(map(self.counts.pack, self._fit.best(capacity, allowed)))

    def _domain(self, capacity: DomainCapacity, match: EligibilityMap) -> int:
        taken = capacity.level == self._weights.reservable and capacity.has_name and capacity.gang
        if taken and self._use == "apart":
            return EMPTY
        children = self._inside(capacity, match)
        if not children:
            return EMPTY
        own_cost = 0
        if capacity.level > ROOT and not capacity.is_chunk:
            children.sort(key=self._order.__getitem__)
            own_cost = self._weights.own(capacity)
        caps = () if capacity.is_chunk else match.caps
        key = (capacity.level, capacity.has_name, tuple(children), own_cost, capacity.is_chunk, caps)
        class_id = self._class_ids.get(key)
        if class_id is None:
            class_id = self._class_ids[key] = self._of_children(CapacityClass(*key))
        return class_id

    def _of_children(self, domain_class: CapacityClass) -> int:
        """Creates the class of domains with these properties and returns its id; `EMPTY` if the rules allow
        no pod.
        """
        maxima = [self.peaks[child][0] for child in domain_class.children]
        measure = tuple(map(min, map(sum, zip(*maxima, strict=True)), self._wanted))
        reach = self.counts.pack(measure[: len(self._pod_classes)])
        reach = reach if domain_class.is_chunk else self.allowed_counts(domain_class, reach)
        if reach == self.counts.zero:
            return EMPTY
        measure = tuple(map(min, measure, self.counts.measure(reach)))
        rows = [self._domain_peaks(child) for child in set(domain_class.children)]
        inside = tuple([tuple(map(max, zip(*level, strict=True))) for level in zip(*rows, strict=True)])
        return self._new(domain_class, [], reach, (measure, *inside))

    def _domain_peaks(self, class_id: int) -> tuple[Measure, ...]:
        """Returns the peaks by level of this child of a domain, or of the children of this chunk."""
        domain_class = self.domain_classes[class_id]
        return self.peaks[class_id][1:] if domain_class and domain_class.is_chunk else self.peaks[class_id]

    def _new(
        self,
        domain_class: CapacityClass | None,
        options: list[Option],
        reach: PodCount,
        peaks: tuple[Measure, ...],
    ) -> int:
        self.domain_classes.append(domain_class)
        self.options.append(options)
        self.reach.append(reach)
        self.peaks.append(peaks)
        self._order.append((reach, domain_class.own_cost if domain_class else options[0][1]))
        return len(self.domain_classes) - 1


MAX_LISTED = 64
"""Maximum number of domains of a level for which `Peaks` lists what they hold together; each further domain
is assumed to add as much as the last one listed. For a gang that needs more racks the bound is slightly
weaker, but not wrong.
"""


class PeaksByClass:
    """The peaks of the levels inside the domains of each class, down to the hosts."""

    def __init__(self) -> None:
        self._peaks: dict[int, tuple[Peaks, ...]] = {}

    def __len__(self) -> int:
        return len(self._peaks)

    def inner_peaks(self, classes: DomainClasses, class_id: int) -> tuple[Peaks, ...]:
        """Returns the peaks of the levels inside a domain of the class; () for a host."""
        peaks = self._peaks.get(class_id)
        if peaks is None:
            domain_class = classes.domain_classes[class_id]
            children = domain_class.children if domain_class else ()
            if children and classes.domain_classes[children[0]] is None:
                maxima = zip(*map(classes.maximum, children), strict=True)
                peaks = (tuple([_highest(list(column)) for column in maxima]),)
            else:
                rows = [self._row(classes, child) for child in children]
                peaks = tuple([_joined(level) for level in zip(*rows, strict=True)])
            self._peaks[class_id] = peaks
        return peaks

    def _row(self, classes: DomainClasses, class_id: int) -> tuple[Peaks, ...]:
        """Returns the peaks of a child's own level and of the levels inside it; a chunk has no own level."""
        domain_class, inside = classes.domain_classes[class_id], self.inner_peaks(classes, class_id)
        return (
            inside
            if domain_class and domain_class.is_chunk
            else (single_peaks(classes.maximum(class_id)), *inside)
        )


def _joined(peaks: Iterable[Peaks]) -> Peaks:
    return tuple([_summed(column) for column in zip(*peaks, strict=True)])


def _summed(column: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """Returns the peaks of a level over several parents, from the peaks inside each parent. For example, for
    (4, 6) and (3, 5) the domains add 4, 2, 3 and 2 pods; the highest of these, added up, give 4, 7, 9, 11.
    """
    additions: list[int] = []
    for sums in column:
        additions += map(int.__sub__, sums, (0, *sums)) if len(sums) > 1 else sums
    return _highest(additions)


def _highest(additions: list[int]) -> tuple[int, ...]:
    """Returns the sums of the highest, the two highest, … additions. Additions of 0 are left out, but the
    result has at least one sum (0)."""
    additions.sort(reverse=True)
    useful = additions.index(0) if not additions[-1] else len(additions)
    return tuple(accumulate(additions[: min(useful, MAX_LISTED) or 1]))
