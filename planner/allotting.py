"""Which claims the devices of one node can serve together: exact, by what each claim comes to on the layout.

Each choice among a claim's alternatives is a number of groups: devices that rules tie together, or single
ones. The node's devices fall into cells that have nothing to do with one another; the largest sets of groups
that each cell holds are added up until all is covered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, product

from planner.bundles import Bundle
from planner.cells import Cell, Item, Tie, Vector, holds, options
from planner.layouts import Layout, bits

_MOST_FORMS = 64
"""Ways to choose among one claim's alternatives that are looked at."""
_MOST_SPLITS = 2_000
"""Ways to choose among those of many claims; past them they count as not fitting."""

Wanted = tuple[tuple[Bundle, int], ...]
"""Claims, each so many times, by name."""
Demand = tuple[tuple["Group", int], ...]


@dataclass(frozen=True, slots=True, order=True)
class Group:
    """Devices that are given together: `masks` and `counts` by part, and the rules as (attribute, distinct,
    parts)."""

    masks: tuple[int, ...]
    counts: tuple[int, ...]
    rules: tuple[tuple[str, bool, tuple[int, ...]], ...] = ()


@lru_cache(maxsize=65_536)
def fits(layout: Layout, busy: int, wanted: Wanted, plugged: int) -> bool:
    """Whether all these claims can be given devices that are not in use, each its own."""
    groups = [(_forms(layout, bundle), count) for bundle, count in wanted]
    if not all(forms for forms, _ in groups):
        return False
    demand: Counter[Group] = Counter()
    if plugged:
        demand[Group((layout.gpus(),), (1,))] = plugged
    budget = [_MOST_SPLITS]
    return _chosen(layout, busy, sorted(groups, key=lambda one: len(one[0])), demand, budget)


def _chosen(
    layout: Layout,
    busy: int,
    groups: Sequence[tuple[tuple[Demand, ...], int]],
    demand: Counter[Group],
    budget: list[int],
) -> bool:
    """Whether some choice among the claims' alternatives has a place; the first ones are tried first."""
    if not groups:
        return _placed(layout, busy, tuple(sorted(demand.items())))
    (forms, count), rest = groups[0], groups[1:]
    for split in _splits(count, len(forms)):
        budget[0] -= 1
        if budget[0] < 0:
            return False
        more = Counter(demand)
        for form, times in zip(forms, split, strict=True):
            for group, each in form:
                more[group] += each * times if times else 0
        more = Counter({group: number for group, number in more.items() if number})
        if len(forms) > 1 and rest and not _placed(layout, busy, tuple(sorted(more.items()))):
            continue
        if _chosen(layout, busy, rest, more, budget):
            return True
    return False


def _splits(count: int, ways: int) -> Iterator[Vector]:
    """Each way to deal so many to so many ways, the first ways preferred."""
    if ways == 1:
        yield (count,)
        return
    for first in range(count, -1, -1):
        for others in _splits(count - first, ways - 1):
            yield (first, *others)


# -- a claim on a layout -------------------------------------------------------------------------------------


@lru_cache(maxsize=16_384)
def _forms(layout: Layout, bundle: Bundle) -> tuple[Demand, ...]:
    """What each choice among the claim's alternatives comes to here; those that never fit are left out."""
    places = product(*(range(len(choice)) for choice in bundle.choices))
    found: dict[Demand, None] = {}
    for chosen in islice(places, _MOST_FORMS):
        form = _form(layout, bundle, chosen)
        if form is not None:
            found[form] = None
    return tuple(found)


def _form(layout: Layout, bundle: Bundle, chosen: Sequence[int]) -> Demand | None:
    wants = [choice[place] for choice, place in zip(bundle.choices, chosen, strict=True)]
    rules = [
        (rule, [request for request, place in enumerate(chosen) if rule.means(request, place)])
        for rule in bundle.rules
    ]
    masks: list[int] = []
    for request, want in enumerate(wants):
        _, mask = layout.meeting(want)
        for rule, whose in rules:
            if request in whose:
                mask &= _having(layout, rule.attribute)
        if mask.bit_count() < layout.count(want):
            return None
        masks.append(mask)
    taking = [
        request
        for request, want in enumerate(wants)
        if not want.watching and not free_to_share(layout, masks[request])
    ]
    tied = [(r.attribute, r.distinct, [one for one in whose if one in taking]) for r, whose in rules]
    demand: Counter[Group] = Counter()
    for members in _linked(taking, [whose for _, _, whose in tied]):
        counts = [layout.count(wants[one]) for one in members]
        own = [
            (attribute, distinct, tuple(sorted(map(members.index, whose))))
            for attribute, distinct, whose in tied
            if whose and whose[0] in members and sum(counts[members.index(one)] for one in whose) > 1
        ]
        if own:
            demand[Group(tuple(masks[one] for one in members), tuple(counts), tuple(sorted(own)))] += 1
        else:
            for one, count in zip(members, counts, strict=True):
                demand[Group((masks[one],), (1,))] += count
    return tuple(sorted(demand.items()))


def _having(layout: Layout, attribute: str) -> int:
    return sum(1 << place for place, unit in enumerate(layout.units) if unit.value(attribute) is not None)


def free_to_share(layout: Layout, mask: int) -> bool:
    """Whether some of the devices may be given to several claims; these are never used up here."""
    return any(layout.units[unit].device.shareable for unit in bits(mask))


def _linked(requests: Sequence[int], rules: Sequence[Sequence[int]]) -> list[list[int]]:
    """The requests, those that rules link together."""
    found: list[list[int]] = [[one] for one in requests]
    for whose in rules:
        met = [group for group in found if any(one in group for one in whose)]
        if len(met) > 1:
            found = [group for group in found if group not in met]
            found.append(sorted(one for group in met for one in group))
    return found


# -- what is asked for on the devices ------------------------------------------------------------------------


@lru_cache(maxsize=65_536)
def _placed(layout: Layout, busy: int, demand: Demand) -> bool:
    """Whether all of it has devices, each its own: the cells' largest sets, added up until all is covered."""
    free = layout.open(busy)
    groups = [(_within(group, free), number) for group, number in demand]
    if not all(_possible(group, number) for group, number in groups):
        return False
    cells = _cells(layout, busy, free, [group for group, _ in groups])
    wanted = tuple(number for _, number in groups)
    if len(cells) == 1:
        return holds(cells[0], wanted)
    caps = [tuple(min(n, cell.most(i)) for i, n in enumerate(wanted)) for cell in cells]
    frontier = {wanted}
    for place, (cell, cap) in enumerate(zip(cells, caps, strict=True)):
        later = tuple(map(sum, zip(*caps[place + 1 :], strict=True))) or (0,) * len(wanted)
        after = {
            tuple(max(0, n - s) for n, s in zip(left, chosen, strict=True))
            for left in frontier
            for chosen in options(cell, cap)
        }
        frontier = _least_left({left for left in after if all(map(int.__le__, left, later))})
    return bool(frontier)


def _within(group: Group, free: int) -> Group:
    return Group(tuple(mask & free for mask in group.masks), group.counts, group.rules)


def _possible(group: Group, number: int) -> bool:
    return all(
        mask.bit_count() >= count * number for mask, count in zip(group.masks, group.counts, strict=True)
    )


def _least_left(found: set[Vector]) -> set[Vector]:
    """The remainders that no other remainder is within."""
    kept: list[Vector] = []
    for left in sorted(found, key=lambda left: (sum(left), left)):
        if not any(all(map(int.__le__, other, left)) for other in kept):
            kept.append(left)
    return set(kept)


def _cells(layout: Layout, busy: int, free: int, groups: Sequence[Group]) -> list[Cell]:
    """The devices that are asked for, those together that counters or rules tie."""
    asked = 0
    for group in groups:
        for mask in group.masks:
            asked |= mask
    ties = _Ties()
    for unit in bits(asked & free):
        ties.join(("unit", unit), *(("counter", counter) for counter, _ in layout.units[unit].draws))
    for group in groups:
        for attribute, distinct, parts in group.rules:
            for part in parts:
                for unit in bits(group.masks[part]):
                    value = None if distinct else layout.units[unit].value(attribute)
                    ties.join(("unit", unit), ("value", attribute, value))
    found: dict[object, list[int]] = {}
    for unit in bits(asked & free):
        found.setdefault(ties.root(("unit", unit)), []).append(unit)
    attributes = sorted({attribute for group in groups for attribute, _, _ in group.rules})
    left = layout.left(busy)
    return [_cell(layout, units, attributes, left, groups) for units in found.values()]


def _cell(
    layout: Layout,
    units: Sequence[int],
    attributes: Sequence[str],
    left: Sequence[int],
    groups: Sequence[Group],
) -> Cell:
    counters: dict[int, int] = {}
    values: dict[object, int] = {}
    rows = []
    for unit in units:
        one = layout.units[unit]
        draws = tuple((counters.setdefault(counter, len(counters)), n) for counter, n in one.draws)
        marks = []
        for attribute in attributes:
            value = one.value(attribute)
            marks.append(-1 if value is None else values.setdefault((attribute, value), len(values)))
        rows.append((draws, tuple(marks)))
    items = tuple(
        Item(
            tuple(
                sum((mask >> unit & 1) << place for place, unit in enumerate(units)) for mask in group.masks
            ),
            group.counts,
            tuple(Tie(attributes.index(a), distinct, parts) for a, distinct, parts in group.rules),
        )
        for group in groups
    )
    return Cell(tuple(rows), tuple(left[counter] for counter in counters), items)


class _Ties:
    """Things that are tied together, directly or through others."""

    def __init__(self) -> None:
        self._over: dict[object, object] = {}

    def root(self, one: object) -> object:
        """What stands for all that is tied to it."""
        while (over := self._over.get(one, one)) != one:
            one = over
        return one

    def join(self, one: object, *others: object) -> None:
        """Ties them together."""
        for other in others:
            self._over[self.root(other)] = self.root(one)
