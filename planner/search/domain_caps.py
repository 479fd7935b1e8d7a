"""Caps, maximum numbers of pods of certain classes in one domain, and the reduction of counts to caps.

    classes 0 and 1, cap ((0,), (0, 1), 2): a domain with a pod of class 0 has at most 2 pods of both classes
    a domain with room for 3 of class 0 and 1 of class 1 may hold (2, 0), (1, 1) or (0, 1): three counts

A `CountCap` (keepers, counted, maximum) is a rule for a domain: if it has a pod of the classes `keepers`, it
has at most `maximum` pods of the classes `counted` in total; a negative maximum allows no pod of the keepers.
For pods with anti-affinity over a label, keepers and counted are their class and the maximum is 1; for pods
under a spread constraint, the maximum is the number of pods that the skew allows. If `counted` lists a class
n times, each of its pods counts as n: `gpu_cap` uses this for pods with different numbers of GPUs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import gcd

from planner.cluster.trees.subtree import Subtree
from planner.model.pod_class import PodClass
from planner.search.pod_counts import CountAlgebra, PodCount

CountCap = tuple[tuple[int, ...], tuple[int, ...], int]
"""The keepers, the counted (both indexes of pod classes; the counted may repeat), and the maximum."""

MAX_CUTS = 4096
"""Maximum number of cached results of `CapTrimmer`, which may live as long as the plan cache."""


@dataclass(frozen=True, slots=True)
class DomainCap:
    """The maximums of a `CountCap` for all named domains of a level.

    The maximum of a domain is that in `by_domain`, else that of its label value in `values` (for a host, of
    its name), else `default_cap`. None means no cap.
    """

    level: int
    keepers: tuple[int, ...]
    counted: tuple[int, ...]
    values: Mapping[str, int] = field(default_factory=dict)
    default_cap: int | None = None
    by_domain: Mapping[Subtree, int] = field(default_factory=dict)

    def of(self, branch: Subtree) -> CountCap | None:
        """Returns the cap of one domain of the level, or None."""
        if not branch.has_name:
            return None
        max_pods = self.by_domain.get(branch, self.by_value(value_of(branch)))
        return None if max_pods is None else (self.keepers, self.counted, max_pods)

    def by_value(self, value: str) -> int | None:
        """Returns the maximum of the domains with this label value; None for no cap."""
        return self.values.get(value, self.default_cap)

    def named_values(self) -> set[str]:
        """Returns the label values whose domains may have another maximum than `default_cap`."""
        return {*self.values, *map(value_of, self.by_domain)}


def gpu_cap(
    level: int, gpus: int, used: Mapping[Subtree, int], pod_classes: Sequence[PodClass]
) -> tuple[DomainCap, ...]:
    """Returns the cap that allows pods with at most `gpus` GPUs in total in each named domain of the level,
    less the GPUs in `used`, by domain. Returns () if no pod requests GPUs.

    For example, under a limit of 12 GPUs a pod of 8 GPUs weighs 2, a pod of 4 GPUs 1, and the maximum is 3.
    """
    # A pod with more GPUs than the limit is never placed, so the number of its GPUs does not matter.
    needs = [min(pod_class.shape.gpus, gpus + 1) for pod_class in pod_classes]
    unit = gcd(*needs)
    if not unit:
        return ()
    counted = tuple([index for index, need in enumerate(needs) for _ in range(need // unit)])
    keepers = tuple(dict.fromkeys(counted))
    left = {domain: (gpus - taken) // unit for domain, taken in used.items()}
    return (DomainCap(level, keepers, counted, default_cap=gpus // unit, by_domain=left),)


class LevelCaps:
    """The caps of one level, indexed by label value, so that a domain is checked only against its own caps.

    There may be many: the repairs of rules over labels add a cap for each value with too many pods.
    """

    def __init__(self, caps: Iterable[DomainCap]) -> None:
        self._by_value: dict[str, list[DomainCap]] = {}
        self._of_others: list[DomainCap] = []  # caps with a default: they apply to values that no cap names
        self._default: tuple[CountCap, ...] = ()
        for cap in caps:
            own_values = cap.named_values()
            for value in own_values:
                self._by_value.setdefault(value, list(self._of_others)).append(cap)
            if cap.default_cap is not None:
                self._of_others.append(cap)
                self._default = (*self._default, (cap.keepers, cap.counted, cap.default_cap))
                for value in self._by_value.keys() - own_values:
                    self._by_value[value].append(cap)

    def common(self, branches: Sequence[Subtree]) -> tuple[CountCap, ...] | None:
        """Returns the caps of each of these domains if no cap names any of them; None if one is named, or has
        no name of its own.

        Most hosts of a large tree are equal under a spread constraint over hosts.
        """
        are_equal = all(branch.has_name for branch in branches) and self._by_value.keys().isdisjoint(
            map(value_of, branches)
        )
        return self._default if are_equal else None

    def of(self, branch: Subtree) -> tuple[CountCap, ...]:
        """Returns the caps of one domain of the level, in the order in which they were given."""
        if not branch.has_name:
            return ()
        caps = self._by_value.get(value_of(branch))
        if caps is None:
            return self._default
        return tuple([count_cap for cap in caps if (count_cap := cap.of(branch))])


def value_of(branch: Subtree) -> str:
    """Returns the domain's value of the label of its level; for a host, the node's name."""
    return branch.node or branch.path[-1]


class CapTrimmer:
    """Reduces counts (numbers of pods by class) to caps, without splitting pods that must be together."""

    def __init__(self, pod_classes: Sequence[PodClass], counts: CountAlgebra) -> None:
        self._pod_classes, self._counts = pod_classes, counts
        self._cuts: dict[tuple[int, PodCount, CountCap], tuple[PodCount, ...]] = {}

    def bound(self, level: int, counts: PodCount, caps: Iterable[CountCap]) -> PodCount:
        """Returns, for each pod class, an upper bound of its pods within the caps; exact for a single class.

        `level`: the level of the domain that has the caps. `counts`: the counts to reduce.
        """
        each = list(self._counts.each(counts))
        for keepers, counted, max_pods in caps:
            for index in keepers:
                if max_pods < 0:
                    each[index] = 0
                elif index in counted:
                    max_count = max_pods // counted.count(index)
                    each[index] = self._whole_units(level, index, min(each[index], max_count))
        return self._counts.pack(each)

    def each(self, level: int, each: tuple[PodCount, ...], caps: Iterable[CountCap]) -> tuple[PodCount, ...]:
        """Returns counts within the caps. All that cannot be increased are among them: several, if fewer pods
        of one class leave room for another.

        `level`: the level of the domain that has the caps. `each`: the counts to reduce.
        """
        for cap in caps:
            if len(each) == 1:
                each = self._cut_once(level, each[0], cap)
            else:
                each = tuple(dict.fromkeys(chain.from_iterable(self._cut_once(level, c, cap) for c in each)))
        return each

    def _cut_once(self, level: int, counts: PodCount, cap: CountCap) -> tuple[PodCount, ...]:
        """Returns the result of `_cut`, cached because the domains of a level have few distinct counts."""
        cuts = self._cuts.get((level, counts, cap))
        if cuts is None:
            if len(self._cuts) >= MAX_CUTS:  # capacity classes and their trimmer outlive a plan
                self._cuts.clear()
            cuts = self._cuts[level, counts, cap] = tuple(dict.fromkeys(self._cut(level, counts, cap)))
        return cuts

    def _cut(self, level: int, counts: PodCount, cap: CountCap) -> Iterator[PodCount]:
        keepers, counted, max_pods = cap
        each = self._counts.each(counts)
        if not any(each[index] for index in keepers) or sum(each[index] for index in counted) <= max_pods:
            yield counts
            return
        if max_pods >= 0:
            for numbers in self._within(level, counted, each, max_pods):
                yield self._counts.pack([numbers.get(index, n) for index, n in enumerate(each)])
        # Without pods of the keepers, the domain may keep all other pods.
        if max_pods < 0 or not set(counted) <= set(keepers):
            yield self._counts.pack([0 if index in keepers else n for index, n in enumerate(each)])

    def _within(
        self, level: int, counted: Sequence[int], each: Sequence[int], max_pods: int
    ) -> Iterator[dict[int, int]]:
        """Yields counts of the counted pod classes, by class index, that are within `max_pods`. All counts
        that cannot be increased are among them, and others with fewer pods.

        `each`: the counts to reduce, by class index. A pod counts n times if `counted` lists its class n
        times. Pods that must be together are not split, so a sum may be less than `max_pods`.
        """
        first, weight = counted[0], counted.count(counted[0])
        rest = [index for index in counted if index != first]
        max_count = min(each[first], max_pods // weight)
        if not rest:
            yield {first: self._whole_units(level, first, max_count)}
            return
        for count in range(max_count, -1, -1):
            if count == self._whole_units(level, first, count):
                for others in self._within(level, rest, each, max_pods - count * weight):
                    yield {first: count, **others}

    def _whole_units(self, level: int, index: int, count: int) -> int:
        """Returns the largest count up to `count` that splits no pods of the class that must be together, in
        this domain or in a finer one.
        """
        pod_class = self._pod_classes[index]
        # A class that requires no level has `required` ROOT, which is below 0; the same for `slice_level`.
        if pod_class.required >= max(level, 0):
            return count if count == pod_class.count else 0
        return (
            count // pod_class.slice_size * pod_class.slice_size
            if pod_class.slice_level >= max(level, 0)
            else count
        )
