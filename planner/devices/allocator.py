"""Which claims the devices of one node can serve together: exact, by what each claim comes to on the layout.

Each choice among a claim's alternatives is a number of groups: devices that rules tie together, or single
ones. The node's devices fall into cells that have nothing to do with one another; the largest sets of groups
that each cell holds are added up until all is covered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, product

from planner.devices.node_devices import NodeDevices, bits
from planner.devices.partitions import MOST_STEPS, Cell, Item, Tie, Vector, fills, options
from planner.model.claim_spec import ClaimSpec, DeviceRequest
from planner.model.work_budget import BudgetEnded, WorkBudget

_MOST_FORMS = 512
"""Ways to choose among the alternatives of requests that a rule ties together; more are not looked at."""


Wanted = tuple[tuple[ClaimSpec, int], ...]
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
def fits(layout: NodeDevices, busy: int, wanted: Wanted, plugged: int) -> bool:
    """Whether all these claims can be given devices that are not in use, each its own."""
    groups: Counter[tuple[Demand, ...]] = Counter()
    for bundle, count in wanted:
        for forms in _forms(layout, bundle):
            groups[forms] += count
    demand: Counter[Group] = Counter()
    if plugged:
        demand[Group((layout.gpus(),), (1,))] = plugged
    try:
        by_forms = sorted(groups.items(), key=lambda one: len(one[0]))
        return all(groups) and _chosen(layout, busy, by_forms, demand, WorkBudget(MOST_STEPS))
    except BudgetEnded:
        return False


def _chosen(
    layout: NodeDevices,
    busy: int,
    groups: Sequence[tuple[tuple[Demand, ...], int]],
    demand: Counter[Group],
    budget: WorkBudget,
) -> bool:
    """Whether some choice among the claims' alternatives has a place; the smallest ones are tried first."""
    if not groups:
        return _placed(layout, busy, tuple(sorted(demand.items())), budget)
    (forms, count), rest = groups[0], groups[1:]
    for split in _splits(count, len(forms)):
        budget.spend(1 + len(forms) // 16)
        more = Counter(demand)
        for form, times in zip(forms, split, strict=True):
            if times:
                more.update({group: each * times for group, each in form})
        if len(forms) > 1 and rest and not _placed(layout, busy, tuple(sorted(more.items())), budget):
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


@lru_cache(maxsize=16_384)
def _forms(layout: NodeDevices, bundle: ClaimSpec) -> tuple[tuple[Demand, ...], ...]:
    """For each part of the claim that no rule ties to another, what each choice among its alternatives comes
    to here; those that never fit are left out."""
    rules = [sorted({request for request, _ in rule.whose}) for rule in bundle.rules if rule.whose]
    if any(not rule.whose for rule in bundle.rules):
        rules.append(list(range(len(bundle.choices))))
    found = []
    for members in _linked(range(len(bundle.choices)), rules):
        places = product(*(_alternatives(layout, bundle, one) for one in members))
        forms = (
            _form(layout, bundle, dict(zip(members, chosen, strict=True)))
            for chosen in islice(places, _MOST_FORMS)
        )
        found.append(_telling(_possible_forms(layout, [form for form in forms if form is not None])))
    return tuple(found)


def _alternatives(layout: NodeDevices, bundle: ClaimSpec, request: int) -> list[tuple[int, ...]]:
    """The alternatives of a request. Those that take one device each are one: any of their devices; and those
    that take more of the same devices are never better."""
    choice = bundle.choices[request]
    taking = [
        place
        for place, want in enumerate(choice)
        if not want.watching and not free_to_share(layout, layout.meeting(want)[1])
    ]

    def ruled(place: int) -> tuple[bool, ...]:
        return tuple(rule.means(request, place) for rule in bundle.rules)

    found: dict[tuple[int, ...], None] = {}
    for place, want in enumerate(choice):
        alike = [one for one in taking if ruled(one) == ruled(place) and layout.count(choice[one]) == 1]
        any_of = _any_of(layout, choice, alike)
        if place in alike:
            found[tuple(alike)] = None
        elif place not in taking or not alike or layout.meeting(want)[1] & ~any_of:
            found[(place,)] = None
    return list(found)


def _any_of(layout: NodeDevices, choice: Sequence[DeviceRequest], places: Sequence[int]) -> int:
    """The devices that any of these alternatives may have."""
    found = 0
    for place in places:
        found |= layout.meeting(choice[place])[1]
    return found


def _possible_forms(layout: NodeDevices, forms: Sequence[Demand]) -> list[Demand]:
    """The forms that the devices serve when nothing is in use, those of the fewest devices first; where this
    takes long to tell, the rest too."""
    left, found = MOST_STEPS, []
    for form in sorted(forms, key=_size):
        fit, steps = _placing(layout, 0, form) if left > 0 else (None, 0)
        left -= steps
        if fit is not False:
            found.append(form)
    return found


def _size(form: Demand) -> int:
    return sum(sum(group.counts) * number for group, number in form)


def _telling(forms: Sequence[Demand]) -> tuple[Demand, ...]:
    """The forms without those that another one's devices always serve for. Alternatives of one device each
    are one of any of their devices."""
    if () in forms:
        return ((),)  # one of them takes nothing
    any_of = 0
    for form in forms:
        if _single(form) and form[0][1] == 1:
            any_of |= form[0][0].masks[0]
    kept: dict[Demand, None] = {((Group((any_of,), (1,)), 1),): None} if any_of else {}
    kept.update({form: None for form in forms if not _single(form) or form[0][0].masks[0] & ~any_of})
    return tuple(kept)


def _single(form: Demand) -> bool:
    """Whether it asks for single devices of one mask."""
    return len(form) == 1 and not form[0][0].rules


def _form(layout: NodeDevices, bundle: ClaimSpec, chosen: Mapping[int, tuple[int, ...]]) -> Demand | None:
    """What these requests come to, each with one of these alternatives; None where they never fit."""
    wants = {request: bundle.choices[request][places[0]] for request, places in chosen.items()}
    rules = [
        (rule, [request for request, places in chosen.items() if rule.means(request, places[0])])
        for rule in bundle.rules
    ]
    masks: dict[int, int] = {}
    for request, want in wants.items():
        mask = _any_of(layout, bundle.choices[request], chosen[request])
        for rule, whose in rules:
            if request in whose:
                mask &= _having(layout, rule.attribute)
        if mask.bit_count() < layout.count(want):
            return None
        masks[request] = mask
    taking = [
        request
        for request, want in wants.items()
        if not want.watching and not free_to_share(layout, masks[request])
    ]
    tied = [
        (rule.attribute, rule.distinct, some)
        for rule, whose in rules
        if (some := [one for one in whose if one in taking])
        and not (rule.distinct and _all_differ(layout, [masks[one] for one in some], rule.attribute))
    ]
    demand: Counter[Group] = Counter()
    for members in _linked(taking, [whose for _, _, whose in tied]):
        counts = [layout.count(wants[one]) for one in members]
        own = [
            (attribute, distinct, tuple(sorted(map(members.index, whose))))
            for attribute, distinct, whose in tied
            if whose[0] in members and sum(counts[members.index(one)] for one in whose) > 1
        ]
        if own:
            demand[Group(tuple(masks[one] for one in members), tuple(counts), tuple(sorted(own)))] += 1
        else:
            for one, count in zip(members, counts, strict=True):
                demand[Group((masks[one],), (1,))] += count
    return tuple(sorted(demand.items()))


def _having(layout: NodeDevices, attribute: str) -> int:
    return sum(1 << place for place, unit in enumerate(layout.units) if unit.value(attribute) is not None)


def _all_differ(layout: NodeDevices, masks: Sequence[int], attribute: str) -> bool:
    """Whether no two of the devices have the same value, so that any of them are distinct."""
    every = 0
    for mask in masks:
        every |= mask
    values = [layout.units[unit].value(attribute) for unit in bits(every)]
    return len(set(values)) == len(values)


def free_to_share(layout: NodeDevices, mask: int) -> bool:
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


def _placed(layout: NodeDevices, busy: int, demand: Demand, budget: WorkBudget) -> bool:
    """Whether all of it has devices, each its own. Raises `BudgetEnded`."""
    found, steps = _placing(layout, busy, demand)
    budget.spend(steps + 1)
    if found is None:
        raise BudgetEnded
    return found


@lru_cache(maxsize=65_536)
def _placing(layout: NodeDevices, busy: int, demand: Demand) -> tuple[bool | None, int]:
    budget = WorkBudget(MOST_STEPS)
    try:
        found = _covered(layout, busy, demand, budget)
    except BudgetEnded:
        return None, MOST_STEPS
    return found, MOST_STEPS - budget.left


def _covered(layout: NodeDevices, busy: int, demand: Demand, budget: WorkBudget) -> bool:
    """The cells' largest sets, added up until all is covered."""
    free = layout.open(busy)
    groups = [(_within(group, free), number) for group, number in demand]
    if not all(_possible(group, number) for group, number in groups):
        return False
    cells = _cells(layout, busy, free, [group for group, _ in groups])
    wanted = tuple(number for _, number in groups)
    if len(cells) == 1:
        return fills(cells[0], wanted, budget)
    caps = [tuple(min(n, cell.most(i)) for i, n in enumerate(wanted)) for cell in cells]
    frontier = {wanted}
    for place, (cell, cap) in enumerate(zip(cells, caps, strict=True)):
        later = tuple(map(sum, zip(*caps[place + 1 :], strict=True))) or (0,) * len(wanted)
        largest, steps = options(cell, cap)
        budget.spend(steps + len(frontier) * len(largest or ()))
        if largest is None:
            raise BudgetEnded
        after = {
            tuple(max(0, n - s) for n, s in zip(left, chosen, strict=True))
            for left in frontier
            for chosen in largest
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


def _cells(layout: NodeDevices, busy: int, free: int, groups: Sequence[Group]) -> list[Cell]:
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
    layout: NodeDevices,
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
