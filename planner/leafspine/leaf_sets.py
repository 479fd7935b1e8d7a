"""The sets of leaves on which a gang may be placed by the leaf-spine rules, the best first. Pure.

leaves l1 to l4 at one switch, two leaves by the rules: l1 l2, l1 l3, l1 l4; then sets of three, all four
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice

from planner.cluster.switch_graph import LeafSpine, Switch, mean_hops
from planner.leafspine.history import UNTRIED, key_of
from planner.leafspine.leaf_capacity import Room
from planner.model.resolved import ResolvedPodGroup
from planner.model.settings import SchedulerSettings

_MAX_SETS = 4096
"""Maximum number of sets of leaves that are listed for one gang: to list those of one size takes 30 ms for
1,000 leaves.
"""


class LeafSets:
    """Lists sets of these leaves (`rooms`) for one gang on one fabric."""

    def __init__(
        self, fabric: LeafSpine, gang: ResolvedPodGroup, settings: SchedulerSettings, rooms: Sequence[Room]
    ) -> None:
        self._fabric, self._gang, self._settings, self._rooms = fabric, gang, settings, rooms

    def from_size(self, rule: int) -> Iterator[tuple[Room, ...]]:
        """Yields sets of `rule` leaves (the number by the rules), then larger sets, with at most four times
        as many leaves. Sets with too few GPUs are left out.
        """
        sizes = range(rule, min(len(self._rooms), 4 * rule) + 1)
        every_set = chain.from_iterable(map(self._sets, sizes))
        return filter(self._may_suffice, islice(every_set, _MAX_SETS))

    def _may_suffice(self, rooms: Sequence[Room]) -> bool:
        """Reports whether the gang could use as many GPUs of these leaves, within the limit, as it needs. A
        search would take a second to find that out for several kinds of pods.
        """
        needed = sum(pod_set.count * pod_set.shape.gpus for pod_set in self._gang.pod_sets)
        return sum(min(room.gpus, self._settings.gpus_per_leaf) for room in rooms) >= needed

    def _sets(self, size: int) -> Iterator[tuple[Room, ...]]:
        """Returns sets of `size` leaves, sorted by `_order`. Each set is one leaf (the seed of the set)
        and the leaves nearest to it.

        Leaves with the same switches have the same distance to every other leaf, and share one sorted list.
        """
        sets: dict[frozenset[tuple[str, ...]], tuple[Room, ...]] = {}
        by_neighbours: dict[frozenset[Switch], list[Room]] = {}
        for seed in self._rooms:
            switches = self._fabric.neighbours(seed.leaf)
            if switches not in by_neighbours:
                by_neighbours[switches] = sorted(self._rooms, key=partial(self._nearness, seed))
            neighbours = islice((room for room in by_neighbours[switches] if room is not seed), size - 1)
            chosen = (seed, *neighbours)
            if len(chosen) == size and sum(room.pods for room in chosen) >= self._min_pods():
                ordered = tuple(sorted(chosen, key=lambda room: room.leaf.path))
                sets.setdefault(frozenset(room.leaf.path for room in chosen), ordered)
        return iter(sorted(sets.values(), key=self._order))

    def _nearness(self, seed: Room, room: Room) -> tuple[int, bool, int, float]:
        """Returns the sort key by which leaves join the set of `seed`, ascending:

        - the number of hops from the seed
        - leaves in the preferred domain before others
        - leaves with more room for pods before others
        - leaves of which more is used before others

        Seeds with the same switches share one sorted list, which contains them too. The distance of a seed to
        itself, 0 hops, counts as 2, the distance between two such seeds: otherwise each needs its own list.
        """
        hops = self._fabric.hops(seed.leaf, room.leaf) or 2
        return hops, not room.preferred, -room.pods, -room.used

    def _min_pods(self) -> int:
        """Returns the size of the largest PodSet: a set of leaves with room for fewer pods is too small.

        The size of the gang would exclude too many sets. Pods of several PodSets may share a node, but
        `Room.pods` counts on each node the pods of one PodSet only.
        """
        return max(pod_set.count for pod_set in self._gang.pod_sets)

    def _order(self, rooms: tuple[Room, ...]) -> tuple[object, ...]:
        """Returns the sort key of a set of leaves. `outside`: the number of leaves outside the preferred
        domain; `hops`: the mean number of hops between leaves; `score`: `_score`, the highest first; the last
        key is always the paths.

        - strategy consolidated: outside, hops, used share (the highest first)
        - any other strategy (balanced): outside, score, hops
        - any strategy with `latency`: hops, outside, score
        """
        hops = mean_hops(self._fabric, [room.leaf for room in rooms])
        outside = sum(not room.preferred for room in rooms)
        paths = tuple(room.leaf.path for room in rooms)
        if self._gang.fabric.strategy == "consolidated" and not self._gang.fabric.latency:
            used = -sum(room.used for room in rooms)
            return (outside, hops, used, paths)
        score = round(self._score(rooms, hops), 9)
        if self._gang.fabric.latency:
            return (hops, outside, -score, paths)
        return (outside, -score, hops, paths)

    def _score(self, rooms: Sequence[Room], hops: float) -> float:
        """Returns the sum of nod-ai's four scores, each 0 to 1, by their weights: the share of the gang for
        which there is room, closeness (1 for one leaf), and the leaves' mean utilization and history.
        """
        weights, count = self._settings.weights, len(rooms)
        name, history = self._fabric.topology.name, self._settings.history
        proved = (history.get(key_of(name, room.leaf.path), UNTRIED) for room in rooms)
        return (
            weights["resourceAvailability"] * min(1.0, sum(room.pods for room in rooms) / self._gang.size)
            + weights["topologyAlignment"] / (1 + hops / 2)
            + weights["domainUtilization"] * sum(room.used for room in rooms) / count
            + weights["historicalPerformance"] * sum(proved) / count
        )
