"""The nodes of each leaf that a gang may use, within the limit of nodes per leaf (`maxNodesPerLeaf`): those
on which the most pods fit; and how many pods fit on them. Pure.

    leaf of nodes a, b with 8 GPUs each, maxGPUsPerLeaf 12, pods of 4 GPUs: nodes a and b, 3 pods, 16 GPUs

The limit of GPUs (`maxGPUsPerLeaf`) excludes no node, since the gang may use a node in part. `Room.gpus` is
an upper bound of the GPUs that the gang could use without this limit; if it exceeds the limit, the search
checks the limit.

Leaves with equal capacity and equal eligibility of the pods are computed once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from planner.cluster.capacity import DomainCapacity
from planner.cluster.census.domains import gpus_of
from planner.cluster.plan_cache import CacheSection
from planner.cluster.switch_graph import Leaf
from planner.model.pod_class import PodClass
from planner.model.resolved import ResolvedPodGroup, ResolvedPodSet
from planner.model.resources import WHOLE_GPUS
from planner.model.settings import SchedulerSettings
from planner.node.eligibility import condition_obstacle
from planner.node.packing import max_pods
from planner.search.eligibility_map import EligibilityMap
from planner.search.space import SearchSpace

_Host = tuple[DomainCapacity, EligibilityMap]
"""A node's free capacity, and which pods of the gang may use the node by its labels."""


@dataclass(frozen=True, slots=True)
class Room:
    """A leaf and its nodes that the gang may use.

    `pods`: the number of pods that fit on these nodes within the limit of GPUs, each node with pods of one
    PodSet only. `gpus`: an upper bound of the GPUs that the gang could use on these nodes without that limit.
    `left_out`: whether the limit of nodes leaves out nodes that the gang could use. `used`: the share of the
    leaf's GPUs that are in use or held. `preferred`: the gang's preferred domain contains the leaf. `gang`: a
    gang that holds or uses a node of the leaf, "" for none.
    """

    leaf: Leaf
    nodes: tuple[str, ...]
    pods: int
    gpus: int
    left_out: bool
    used: float
    preferred: bool
    gang: str


@dataclass(frozen=True, slots=True)
class _LeafRoom:
    """Values that equal leaves share. `places`: the indexes of the usable nodes among the nodes of the leaf.
    `pods`, `gpus`, `left_out`: see `Room`. `free`: the number of free GPUs.
    """

    places: tuple[int, ...]
    pods: int
    gpus: int
    left_out: bool
    free: int


_LeafRooms = dict[tuple[DomainCapacity, EligibilityMap, tuple[int, ...]], _LeafRoom]
"""The values by a leaf's capacity, the pods' eligibility on it, and `Leaf.places`. Plans share it without a
lock: if two threads compute the same leaf, their results are equal."""

LEAF_HOSTS: CacheSection[tuple[tuple[Hashable, ...], tuple[int, int], bool], _LeafRooms] = CacheSection(
    "hosts of leaves", results=len
)
"""Keys: the PodSets, the maximum nodes and GPUs per leaf, and `occupied` (the current or the empty cluster).
Never stale, because the values depend only on the leaf's capacity and the pods' eligibility."""


class Rooms:
    """Computes the `Room` of leaves for one gang, in one search space."""

    def __init__(self, space: SearchSpace, group: ResolvedPodGroup, settings: SchedulerSettings) -> None:
        self._space, self._settings = space, settings
        self._sets = [pod_set for pod_set in group.pod_sets if pod_set.count]
        pod_classes = [
            PodClass(((pod_set.name, pod_set.count),), pod_set.count, pod_set.shape) for pod_set in self._sets
        ]
        self._match = space.match(pod_classes)
        self._min_gpus = min((pod_set.shape.gpus for pod_set in self._sets), default=0)
        self._hosts: dict[_Host, tuple[int, int]] = {}
        limits = (settings.nodes_per_leaf, settings.gpus_per_leaf)
        key = (tuple(map(_key, self._sets)), limits, space.occupied)
        self._leaf_rooms = space.base.plan_cache.entry(LEAF_HOSTS, key, dict)

    def of(self, leaf: Leaf, *, preferred: bool) -> Room:
        """Returns the room of one leaf."""
        capacity, match = self._space.capacity, self._match
        for place in leaf.way:
            capacity, match = capacity.children[place], match.children[place] if match.children else match
        key = (capacity, match, leaf.places)
        leaf_room = self._leaf_rooms.get(key)
        if leaf_room is None:
            leaf_room = self._leaf_rooms[key] = self._leaf_room(
                _hosts_at(list(_hosts(capacity, match)), leaf.places)
            )
        nodes = tuple([leaf.nodes[place] for place in leaf_room.places])
        used = (leaf.gpus - leaf_room.free) / leaf.gpus if leaf.gpus else 0.0
        return Room(
            leaf, nodes, leaf_room.pods, leaf_room.gpus, leaf_room.left_out, used, preferred, capacity.gang
        )

    def _leaf_room(self, hosts: Sequence[_Host]) -> _LeafRoom:
        """Returns the values of a leaf with these nodes; the usable ones are those on which most pods fit.

        The limit of GPUs is converted to pods with the fewest GPUs of all PodSets, so `pods` is an upper
        bound if the PodSets differ in their GPUs.
        """
        rooms = sorted(
            ((*self._pods_and_gpus(*host), index) for index, host in enumerate(hosts)), key=lambda r: -r[0]
        )
        usable = [room for room in rooms[: self._settings.nodes_per_leaf] if room[0]]
        pods = sum(count for count, _, _ in usable)
        if self._min_gpus:
            pods = min(pods, self._settings.gpus_per_leaf // self._min_gpus)
        return _LeafRoom(
            tuple(index for _, _, index in usable),
            pods,
            sum(gpus for _, gpus, _ in usable),
            any(room[0] for room in rooms[self._settings.nodes_per_leaf :]),
            sum(_free_gpus(host) for host, _ in hosts),
        )

    def _pods_and_gpus(self, host: DomainCapacity, match: EligibilityMap) -> tuple[int, int]:
        """Returns the maximum, over the gang's PodSets, of the pods that fit on the host, and an upper bound
        of the GPUs that the gang could use there.
        """
        key = (host, match)
        if key not in self._hosts:
            counts = {} if host.held else dict(self._counts(host, match))
            gpus = sum(count * self._sets[index].shape.gpus for index, count in counts.items())
            free = sum((host.free or {}).get(name, 0) for name in WHOLE_GPUS)
            self._hosts[key] = (max(counts.values(), default=0), min(gpus, free))
        return self._hosts[key]

    def _counts(self, host: DomainCapacity, match: EligibilityMap) -> Iterator[tuple[int, int]]:
        """Yields the index of each PodSet that may use the host, and how many of its pods fit."""
        assert host.free is not None, "only hosts are passed, and these have free amounts"
        for index, (pod_set, obstacle) in enumerate(zip(self._sets, match.why, strict=True)):
            if obstacle or condition_obstacle(pod_set.shape, host, passing=self._space.occupied):
                continue
            yield (
                index,
                min(
                    pod_set.count,
                    max_pods(host.free, pod_set.shape, host.gpus, pod_set.count, host.available_devices),
                ),
            )


def _key(pod_set: ResolvedPodSet) -> Hashable:
    """Returns the fields of a PodSet that determine how many of its pods fit on a node.

    The eligibility map covers node labels.
    """
    shape = pod_set.shape
    return (
        pod_set.count,
        tuple(sorted(shape.requests.items())),
        shape.tolerations,
        bool(shape.claims),
        shape.claim_specs,
        shape.extended_claims,
    )


def _hosts(capacity: DomainCapacity, match: EligibilityMap) -> Iterator[_Host]:
    if capacity.free is not None:
        yield capacity, match
    for child, child_match in zip(capacity.children, match.of_children(len(capacity.children)), strict=True):
        yield from _hosts(child, child_match)


def _hosts_at(hosts: list[_Host], places: tuple[int, ...]) -> list[_Host]:
    """Returns the hosts at these indexes; all hosts if `places` is ()."""
    return [hosts[place] for place in places] if places else hosts


def _free_gpus(host: DomainCapacity) -> int:
    """Returns the free whole GPUs of all vendors, 0 if a gang holds the host."""
    return 0 if host.held else max(0, gpus_of(host.free or {}))
