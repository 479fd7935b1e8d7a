"""Finds the best domain of a level for a gang, or the domain that holds the most pods, without visiting each
domain.

    b1: r1 ...   r2 ...      a dot is a free node; three pods that use a whole node each, level rack
    b2: r3 ....

r1 and r2 are equal, so only r1 is examined. r1 and r3 cost one rack and three nodes each; r3 would leave a
node free and r1 none, so r1 is the best rack of the whole tree. The best domain inside a parent is the best
of its children's best domains. These results are cached by capacity: after a change only the path from the
changed node to the root is computed again.

A domain with fewer free devices than the gang takes is left out before anything is computed for it. So the
first plan of a gang that needs a whole rack computes nothing for the used racks, which have few equal nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from planner.cluster.capacity import DomainCapacity
from planner.model.pod_class import PodClass, separated
from planner.model.topology import ROOT
from planner.search.domain_caps import CountCap
from planner.search.eligibility_map import EligibilityMap, matched_children
from planner.search.objective import device_worth
from planner.search.packing.domain_packing import DomainPacking

ChildPath = tuple[int, ...]
"""The child indexes that lead from a domain down to a domain inside it."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """The best domain inside another domain, at `path`.

    `key` orders candidates, the smallest first: the cost of the placement and of opening the domains around
    it, then the free capacity of the surrounding domains, the nearest first."""

    key: tuple[int, ...]
    path: ChildPath


@dataclass(frozen=True, slots=True)
class BestPartialFit:
    """The domain that holds the most pods of a gang that fits in no domain. `fits`: the number of pods; with
    several pod classes, an upper bound."""

    fits: int
    path: ChildPath


class DomainRanking:
    """Ranks the domains of a topology for the pod classes of a gang and its required level."""

    def __init__(self, packing: DomainPacking, pod_classes: tuple[PodClass, ...], required: int) -> None:
        self.packing, self._pod_classes = packing, pod_classes
        # Levels at which some pods must be in one domain, which must have a name: a domain without a name
        # consists of nodes that lack the label of the level.
        named_levels = {
            required,
            *(pod_class.required for pod_class in pod_classes),
            *(pod_class.slice_level for pod_class in pod_classes),
        }
        self._named_levels = frozenset(named_levels - {ROOT})
        # Levels of anti-affinity: one domain of such a level cannot hold the whole gang.
        alone = {
            level
            for pod_class in pod_classes
            if pod_class.count > 1
            for level in pod_class.anti_affinity_levels
        }
        pairs = [
            (pod_class, other)
            for pod_class in pod_classes
            if pod_class.anti_affinity_with  # true of few classes, so the number of pairs is not quadratic
            for other in pod_classes
            if pod_class is not other
        ]
        self._apart = frozenset(alone.union(*(separated(pod_class, other) for pod_class, other in pairs)))
        worths = [device_worth(pod_class.shape) for pod_class in pod_classes]
        # The lowest worth of a domain that holds all pods, and of one that holds a pod of a single class.
        self._gang_worth = sum(
            worth * pod_class.count for worth, pod_class in zip(worths, pod_classes, strict=True)
        )
        self._pod_worth = worths[0] if len(worths) == 1 else 0
        self._bests: dict[tuple[DomainCapacity, EligibilityMap, int, bool], Candidate | None] = {}
        self._nearests: dict[tuple[DomainCapacity, EligibilityMap, int, bool], BestPartialFit | None] = {}
        self._ceilings: dict[int, int] = {}

    @property
    def size(self) -> int:
        """The number of cached results."""
        return len(self._bests) + len(self._nearests) + self.packing.size

    def best(
        self, capacity: DomainCapacity, match: EligibilityMap, level: int, *, clear: bool
    ) -> Candidate | None:
        """Returns the best domain of the level in this capacity that holds the whole gang; None if there is
        none.

        `clear`: only domains of the level that no other gang uses or holds.
        """
        key = (capacity, match, level, clear)
        if key in self._bests:  # looked up first: after a change in the cluster most domains are unchanged
            return self._bests[key]
        if not capacity.is_chunk and (
            not self._may(capacity, level, clear=clear) or self._breaks_anti_affinity(capacity)
        ):
            return None
        if match.caps and self._exceeds(match.caps):
            return None
        if self._lacks_devices(capacity, level) or self._cannot_hold_all(capacity, match, level):
            return None
        if capacity.level == level and not capacity.is_chunk:
            cost = self.packing.cost(capacity, match, self._ceilings.get(level))
            best = None if cost is None else Candidate((cost,), ())
            if cost is not None:
                self._lower(level, cost)
        else:
            best = self._best_inside(capacity, match, level, clear=clear)
            if best is not None and capacity.level > ROOT and not capacity.is_chunk:
                cost, *around = best.key
                breaks = self.packing.weights.breaks(capacity)
                best = Candidate((cost + breaks, *around, capacity.worth), best.path)
        self._bests[key] = best
        return best

    def _best_inside(
        self, capacity: DomainCapacity, match: EligibilityMap, level: int, *, clear: bool
    ) -> Candidate | None:
        best: Candidate | None = None
        for index, child, child_match in _different(capacity, match):
            if self._lacks_devices(child, level):
                continue
            # The lower bound contains the cost of the child itself, so it is not valid for a finer level.
            if best is not None and child.coarsest == level and self._dearer(child, child_match, best.key[0]):
                continue
            candidate = self.best(child, child_match, level, clear=clear)
            if candidate is not None and (best is None or candidate.key < best.key):
                best = Candidate(candidate.key, _path_through(index, child, candidate.path))
                if capacity.level == ROOT:  # the cost contains that of opening all domains around the domain
                    self._ceilings[level] = min(candidate.key[0], self._ceilings[level])
        return best

    def _lacks_devices(self, capacity: DomainCapacity, level: int) -> bool:
        """Reports whether no domain of the level in this capacity has as many free devices as the gang takes.

        This needs no capacity classes, so of the used racks only those with enough devices are classified.
        """
        return capacity.highest_worth(level) < self._gang_worth

    def _cannot_hold_all(self, capacity: DomainCapacity, match: EligibilityMap, level: int) -> bool:
        """Reports whether no domain of the level in this capacity may hold the gang, by the capacity classes
        of all its nodes. For one pod class with devices, these are looked at in the domains of the level
        only: `best` applies the rules of coarser levels to each domain around them.
        """
        if self._pod_worth and capacity.level != level:
            return False
        return not self.packing.may_hold_all(capacity, match, level)

    def _lower(self, level: int, cost: int) -> None:
        """Lowers the cost limit of the level after a domain with this cost was found: a domain above the
        limit cannot be the best, even if it opens no pristine domain around it."""
        weights = self.packing.weights
        around = sum(weights.opened[: max(level, 0)]) + weights.unheld * (weights.reservable < level)
        self._ceilings[level] = min(cost + around, self._ceilings.get(level, cost + around))

    def _dearer(self, capacity: DomainCapacity, match: EligibilityMap, cost: int) -> bool:
        return self.packing.least_cost(capacity, match) >= cost

    def nearest(
        self, capacity: DomainCapacity, match: EligibilityMap, level: int, *, clear: bool
    ) -> BestPartialFit | None:
        """Returns the domain of the level in this capacity that holds the most pods of the gang; None if no
        domain may be used.
        """
        if not capacity.is_chunk and not self._may(capacity, level, clear=clear):
            return None
        if capacity.level == level and not capacity.is_chunk:
            return BestPartialFit(self.packing.counts.size(self.packing.reach(capacity, match)), ())
        key = (capacity, match, level, clear)
        if key not in self._nearests:
            best: BestPartialFit | None = None
            for index, child, child_match in _different(capacity, match):
                if best is not None and self._holds_no_more(child, child_match, level, best.fits):
                    continue
                fit = self.nearest(child, child_match, level, clear=clear)
                if fit is not None and (best is None or fit.fits > best.fits):
                    best = BestPartialFit(fit.fits, _path_through(index, child, fit.path))
            self._nearests[key] = best
        return self._nearests[key]

    def _holds_no_more(
        self, capacity: DomainCapacity, match: EligibilityMap, level: int, max_pods: int
    ) -> bool:
        """Reports whether no domain of the level in this capacity holds more than `max_pods` pods, by upper
        bounds: the free devices, which need no capacity classes, then the classes of all nodes.

        `packing.bound` returns a `Measure`, which begins with the number of pods of each class.
        """
        if self._pod_worth and capacity.highest_worth(level) // self._pod_worth <= max_pods:
            return True
        return sum(self.packing.bound(capacity, match, level)[: len(self._pod_classes)]) <= max_pods

    def _may(self, capacity: DomainCapacity, level: int, *, clear: bool) -> bool:
        """Reports whether the gang may use this domain: the domain must have a name if pods are required to
        be together in it, and if it has to be `clear`, no other gang may be in it.
        """
        if capacity.level in self._named_levels and not capacity.has_name:
            return False
        return not (clear and capacity.level == level and capacity.gang)

    def _breaks_anti_affinity(self, capacity: DomainCapacity) -> bool:
        """Reports whether placing the whole gang in this domain would break an anti-affinity over its
        level.
        """
        return capacity.has_name and capacity.level in self._apart

    def _exceeds(self, caps: Iterable[CountCap]) -> bool:
        """Reports whether the whole gang in a domain would exceed one of the domain's caps.

        The packing applies caps on several classes only to the domains inside this one, which hold parts of
        the gang. For this domain it has only an upper bound, which looks at each pod class alone.
        """
        counts = [pod_class.count for pod_class in self._pod_classes]
        return any(
            any(counts[index] for index in keepers) and sum(counts[index] for index in counted) > max_pods
            for keepers, counted, max_pods in caps
        )


def _different(
    capacity: DomainCapacity, match: EligibilityMap
) -> Iterator[tuple[int, DomainCapacity, EligibilityMap]]:
    """Yields the children or chunks with their indexes and maps; only the first of several equal ones, since
    the others cannot be better."""
    seen: set[tuple[DomainCapacity, EligibilityMap]] = set()
    for index, child, child_match in matched_children(capacity, match):
        if (child, child_match) not in seen:
            seen.add((child, child_match))
            yield index, child, child_match


def _path_through(place: int, child: DomainCapacity, path: ChildPath) -> ChildPath:
    """Returns the path that begins with the child at this index; for a chunk that begins at this index, the
    path inside the chunk with the index added, because a chunk is not a domain.
    """
    return (place + path[0], *path[1:]) if child.is_chunk else (place, *path)
