"""A second solver, for instances too large to try every placement: every sum of every packing, none pruned.

For each host all counts of pods that it can hold; for each rack and block all sums of those, each with the
fewest racks and hosts that reach it. `test_exact.py` holds it to the first solver where both can answer.
"""

from __future__ import annotations

from itertools import product

from planner.cluster.snapshot import Snapshot
from planner.model.podgroup import Constraint, PodGroup
from planner.model.topology import Domain
from tests.exact.solver import Instance, path

Sums = dict[tuple[int, ...], tuple[int, int, int]]
"""By counts of each PodSet, the least (blocks, racks, hosts)."""
DEPTH = {"": 0, "block": 1, "rack": 2, "host": 3}


def best(instance: Instance, *, empty: bool = False) -> tuple[int, int, int] | None:
    """The least (blocks, racks, hosts) of any valid placement, None where there is none."""
    moment = Snapshot(instance.snapshot.base) if empty else instance.snapshot
    wanted = tuple(pod_set.count for pod_set in instance.group.pod_sets)
    costs = [
        sums[wanted]
        for usable in _scopes(moment, instance.group)
        if wanted in (sums := _inside(moment, instance.group, usable))
    ]
    return min(costs, default=None)


def _scopes(moment: Snapshot, group: PodGroup) -> list[set[str]]:
    """The hosts that may be used of each domain that may hold the whole gang."""
    paths = {name: path(moment, name) for name in moment.nodes}
    required_depth = DEPTH[group.constraint.required]
    labelled = [p for p in paths.values() if not required_depth or p[required_depth - 1]]
    domains = {p[:depth] for p in labelled for depth in range(required_depth, 4) if not depth or p[depth - 1]}
    scopes = []
    for domain in domains:
        inside = {name for name, p in paths.items() if p[: len(domain)] == domain}
        usable = _usable(moment, group, inside, paths, domain)
        if usable:
            scopes.append(usable)
    return scopes


def _usable(
    moment: Snapshot, group: PodGroup, inside: set[str], paths: dict[str, Domain], domain: Domain
) -> set[str]:
    if not moment.reservations:
        return inside
    other = moment.reservations[0]
    if group.reserve != "domain":
        return inside - other.nodes
    reservable = moment.topologies[0].reservable_index
    if len(domain) - 1 >= reservable:  # the domain itself, or one within it, will be held
        return set() if inside & other.touched else inside
    touched = {paths[name][: reservable + 1] for name in other.touched if paths[name][reservable]}
    return {
        name
        for name in inside
        if (paths[name][: reservable + 1] not in touched)
        and (paths[name][reservable] or name not in other.touched)
    }


def _inside(moment: Snapshot, group: PodGroup, usable: set[str]) -> Sums:
    paths = {name: path(moment, name) for name in usable}
    wanted = tuple(pod_set.count for pod_set in group.pod_sets)
    racks: dict[Domain, Sums] = {}
    for name in sorted(usable):
        place = paths[name]
        rack = place[:2] if place[1] else place
        host = _kept(_packings(moment, group, name), group, "host", True)
        racks[rack] = _sums(racks.get(rack, {_none(group): (0, 0, 0)}), host, (0, 0, 1), wanted)
    blocks: dict[Domain, Sums] = {}
    for rack, sums in sorted(racks.items()):
        kept = _kept(sums, group, "rack", bool(rack[1]))
        block = rack[:1]
        blocks[block] = _sums(blocks.get(block, {_none(group): (0, 0, 0)}), kept, (0, 1, 0), wanted)
    whole: Sums = {_none(group): (0, 0, 0)}
    for _, sums in sorted(blocks.items()):
        whole = _sums(whole, _kept(sums, group, "block", True), (1, 0, 0), wanted)
    return whole


def _none(group: PodGroup) -> tuple[int, ...]:
    return (0,) * len(group.pod_sets)


def _packings(moment: Snapshot, group: PodGroup, name: str) -> Sums:
    """All counts of pods that the host can hold together."""
    taken = moment.taken.get(name, {})
    free = {r: a - taken.get(r, 0) for r, a in moment.nodes[name].allocatable.items()}
    caps = [1 if p.shape.anti_affinity else p.count for p in group.pod_sets]
    packings: Sums = {}
    for counts in product(*(range(cap + 1) for cap in caps)):
        need: dict[str, int] = {}
        for pod_set, count in zip(group.pod_sets, counts, strict=True):
            for resource, amount in pod_set.shape.requests.items() if count else ():
                need[resource] = need.get(resource, 0) + amount * count
        if all(amount <= free.get(resource, 0) for resource, amount in need.items()):
            packings[counts] = (0, 0, 0)
    return packings


def _kept(sums: Sums, group: PodGroup, level: str, has_name: bool) -> Sums:
    """The sums that one domain of the level may hold: required PodSets wholly, slices wholly."""
    return {
        counts: cost
        for counts, cost in sums.items()
        if all(
            _allowed(p.constraint, count, p.count, level, has_name)
            for p, count in zip(group.pod_sets, counts, strict=True)
        )
    }


def _allowed(asked: Constraint, count: int, all_of_it: int, level: str, has_name: bool) -> bool:
    if not count:
        return True
    if asked.required == level and not (has_name and count == all_of_it):
        return False
    return asked.slice_level != level or (has_name and count % asked.slice_size == 0)


def _sums(sums: Sums, other: Sums, cost: tuple[int, int, int], wanted: tuple[int, ...]) -> Sums:
    """Each sum of one and one; whatever is not zero costs one domain more."""
    combined = dict(sums)
    for left, paid in sums.items():
        for right, price in other.items():
            if any(right):
                total = tuple(map(int.__add__, left, right))
                if any(map(int.__gt__, total, wanted)):
                    continue
                total_cost = (
                    paid[0] + price[0] + cost[0],
                    paid[1] + price[1] + cost[1],
                    paid[2] + price[2] + cost[2],
                )
                if total_cost < combined.get(total, (99, 99, 99)):
                    combined[total] = total_cost
    return combined
