"""Checks whether a gang of several classes fits on chosen hosts, and how many pods of each class each host
gets.

    hosts with 4 and 2 free GPUs; a pod of 4 GPUs and one of 2:   4 | 2
    with the pod of 2 on the first host, the second could not hold the pod of 4: this branch is not searched

A depth-first search goes over the hosts and chooses one packing for each. It backtracks if the remaining
hosts cannot hold the remaining pods in some direction, a weight for each pod class (`pooled_classes`). A
domain with a rule (for example that some pods must be together in it) first gets its pods as a whole; then
they are assigned to the hosts inside. If the directions describe everything that limits the hosts, the search
never backtracks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from planner.model.effort.deadline import poll
from planner.model.effort.work_budget import WorkBudget
from planner.search.packing.capacity_classes import CapacityClass, CapacityClasses
from planner.search.packing.pooled_classes import Direction, weight
from planner.search.pod_counts import CostBySum, PodCount

_FINE = 1 << 20
"""Ratios are compared as integers, in units of 1 / `_FINE`."""


@dataclass(frozen=True, slots=True)
class ChosenDomain:
    """A domain to use, by its capacity class. `inside`: indexes in `CapacityClass.children`, each with the
    chosen domain of that child; a host has none."""

    class_id: int
    inside: tuple[tuple[int, ChosenDomain], ...] = ()


@dataclass(frozen=True, slots=True)
class _PackingTarget:
    """A host, or a domain with a rule, that gets one packing: an *item* of the search.

    `options`: the packings to choose from. `path`: the child indexes (`ChosenDomain`) that lead to the item.
    `inside`: for a domain, the items among which its pods are then divided."""

    options: tuple[PodCount, ...]
    path: tuple[int, ...] = ()
    inside: tuple[_PackingTarget, ...] = ()


PodsByHost = dict[tuple[int, ...], PodCount]
"""The pods of each host, keyed by the child indexes (`ChosenDomain`) that lead to it."""


class HostAssignment:
    """Assigns the pods of one gang to chosen hosts. `along`: the directions that are checked."""

    def __init__(self, classes: CapacityClasses, along: Sequence[Direction], budget: WorkBudget) -> None:
        self._classes, self._counts, self._along, self._budget = classes, classes.counts, along, budget
        self._options_by_class: dict[int, tuple[PodCount, ...]] = {}
        self._peaks_by_options: dict[tuple[PodCount, ...], tuple[int, ...]] = {}

    def pods_by_host(self, chosen: ChosenDomain, goal: PodCount) -> PodsByHost | None:
        """Divides the pods of the goal among the chosen hosts; returns None if these cannot hold all pods."""
        return self._divided(self._items(chosen), goal)

    def lacking_directions(self, chosen: ChosenDomain, goal: PodCount) -> list[Direction]:
        """Returns the directions in which the chosen hosts hold less than the goal needs, the largest
        relative shortage first."""
        peaks, each = [self._peaks(item) for item in self._items(chosen)], self._counts.each(goal)
        lacking = []
        for index, direction in enumerate(self._along):
            need = weight(direction, each)
            held = sum(item_peaks[index] for item_peaks in peaks)
            if held < need:
                lacking.append((held * _FINE // need, index, direction))
        return [direction for *_, direction in sorted(lacking)]

    def _peaks(self, item: _PackingTarget) -> tuple[int, ...]:
        """Returns, for each direction, the weight of the item's heaviest option; cached by options, because
        all hosts of a class have the same options.
        """
        peaks = self._peaks_by_options.get(item.options)
        if peaks is None:
            highest = [0] * len(self._along)
            for counts in item.options:
                poll("search")  # hundreds of directions for each of some ten thousand options
                each = self._counts.each(counts)
                highest = list(map(max, highest, [weight(along, each) for along in self._along]))
            peaks = self._peaks_by_options[item.options] = tuple(highest)
        return peaks

    def _items(self, chosen: ChosenDomain) -> list[_PackingTarget]:
        """Returns the items of all chosen children of a domain that is to hold the whole goal."""
        return [item for index, child in chosen.inside for item in self._items_of(child, (index,))]

    def _items_of(self, chosen: ChosenDomain, path: tuple[int, ...]) -> list[_PackingTarget]:
        """Returns a host, or a domain with a rule, as a single item; for any other domain, the items inside
        it."""
        domain_class = self._classes.domain_classes[chosen.class_id]
        if domain_class is None:
            return [_PackingTarget(self._host_options(chosen.class_id), path)]
        items = [item for index, child in chosen.inside for item in self._items_of(child, (*path, index))]
        if not self._classes.is_limited(domain_class):
            return items
        return [_PackingTarget(self._joint_options(items, domain_class), path, tuple(items))]

    def _host_options(self, class_id: int) -> tuple[PodCount, ...]:
        if class_id not in self._options_by_class:
            options = self._classes.options[class_id]
            self._options_by_class[class_id] = tuple([counts for counts, _ in options])
        return self._options_by_class[class_id]

    def _joint_options(
        self, items: Sequence[_PackingTarget], domain_class: CapacityClass
    ) -> tuple[PodCount, ...]:
        """Returns the mixtures that these items can hold together, reduced to what the rules of a domain of
        the class allow.
        """
        counts, no_cost = self._counts, _NoCost()
        stage: CostBySum = {counts.zero: 0}
        for item in items:
            self._budget.spend(len(stage) * (len(item.options) + 1))
            stage = counts.undominated(
                counts.sums(stage, [(option, 0) for option in item.options], counts.full, no_cost)
            )
        kept = (
            kept_counts
            for held in stage
            for kept_counts in self._classes.each_kept(
                domain_class.level, held, has_name=domain_class.has_name, caps=domain_class.caps
            )
        )
        return tuple(sorted(dict.fromkeys(kept_counts for kept_counts in kept if kept_counts != counts.zero)))

    def _divided(self, items: Sequence[_PackingTarget], goal: PodCount) -> PodsByHost | None:
        """Divides the goal among the items by a depth-first search; None if that is not possible.

        `walk`: an iterator of choices for each item so far. `ahead`: for each index, the maximum weight that
        the items from there on hold in each direction. `dead`: pairs (index of the next item, remaining pods)
        without a solution.
        """
        counts = self._counts
        peaks = [self._peaks(item) for item in items]
        ahead = [(0,) * len(self._along)]
        for peak in reversed(peaks):
            ahead.append(tuple(map(int.__add__, ahead[-1], peak)))
        ahead.reverse()
        remaining, packings = [goal], list[PodCount]()
        walk = [self._choices(items[0], goal, ahead[1])] if items else []
        dead: set[tuple[int, PodCount]] = set()
        while walk and remaining[-1] != counts.zero:
            place = len(walk) - 1
            step = next(walk[-1], None)
            # No choice is left, or the last item cannot take all remaining pods.
            if step is None or (place == len(items) - 1 and counts.minus(remaining[-1], step) != counts.zero):
                dead.add((place, remaining[-1]))
                walk.pop()
                if packings:
                    packings.pop()
                    remaining.pop()
                continue
            rest = counts.minus(remaining[-1], step)
            if (place + 1, rest) in dead:
                continue
            packings.append(step)
            remaining.append(rest)
            if rest != counts.zero:
                walk.append(self._choices(items[place + 1], rest, ahead[place + 2]))
        if remaining[-1] != counts.zero:
            return None
        return self._inside(items, packings)

    def _choices(self, item: _PackingTarget, remaining: PodCount, ahead: Sequence[int]) -> Iterator[PodCount]:
        """Yields the packings of an item after which the following items can hold all remaining pods, by each
        direction; first the packing with the most spare weight in its scarcest direction.

        `ahead`: the maximum weight that the following items hold in each direction.
        """
        counts = self._counts
        room_by_packing: dict[PodCount, int] = {}
        self._budget.spend(len(item.options) + 1)
        for option in (*item.options, counts.zero):
            packing = counts.smaller(option, remaining)
            if packing in room_by_packing:
                continue
            poll("search")
            each = counts.each(counts.minus(remaining, packing))
            needs = [weight(along, each) for along in self._along]
            if all(map(int.__le__, needs, ahead)):
                room = [
                    (held - need) * _FINE // held for need, held in zip(needs, ahead, strict=True) if held
                ]
                room_by_packing[packing] = min(room, default=0)
        return iter(sorted(room_by_packing, key=lambda packing: (-room_by_packing[packing], -packing)))

    def _inside(self, items: Sequence[_PackingTarget], packings: Sequence[PodCount]) -> PodsByHost | None:
        """Returns the pods of each host: the packings of the items, those of domains divided among the items
        inside; None if a domain's packing cannot be divided.
        """
        pods_by_host: PodsByHost = {}
        for item, counts in zip(items, packings, strict=False):
            if not item.inside:
                pods_by_host[item.path] = counts
                continue
            inner = self._divided(item.inside, counts)
            if inner is None:
                return None
            pods_by_host |= inner
        return pods_by_host


class _NoCost(dict[PodCount, int]):
    """The highest allowed cost of each sum, always 0: for sums of options that cost nothing."""

    def __missing__(self, counts: PodCount) -> int:
        return 0
