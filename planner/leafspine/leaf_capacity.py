"""The nodes of each leaf that a gang may use, within the limits per leaf (`maxNodesPerLeaf`,
`maxGPUsPerLeaf`): those on which the most pods fit. Pure.

Leaves with equal capacity and equal eligibility of the pods are computed once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from planner.cluster.capacity import DomainCapacity
from planner.cluster.census.domains import gpus_of
from planner.cluster.plan_cache import CacheSection
from planner.cluster.switch_graph import Leaf
from planner.model.pod_class import PodClass
from planner.model.resolved import ResolvedPodGroup, ResolvedPodSet
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

    `pods`: the number of pods that fit on these nodes, each node with pods of one PodSet only. `limits`: the
    maximum number of pods on a node, by node name, where the leaf's limit of GPUs leaves room for a part of
    the pods that fit. `used`: the
    share of the leaf's GPUs that are in use or held. `preferred`: the gang's preferred domain contains the
    leaf. `gang`: a gang that holds or uses a node of the leaf, "" for none.
    """

    leaf: Leaf
    nodes: tuple[str, ...]
    pods: int
    limits: Mapping[str, int]
    used: float
    preferred: bool
    gang: str


@dataclass(frozen=True, slots=True)
class _LeafRoom:
    """Values that equal leaves share: indexes of the usable nodes in the leaf, pods that fit, the maximum
    number of pods on a node by its index where it is limited, free GPUs.
    """

    places: tuple[int, ...]
    pods: int
    limits: Mapping[int, int]
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

    def __init__(self, view: SearchSpace, group: ResolvedPodGroup, settings: SchedulerSettings) -> None:
        self._view, self._settings = view, settings
        self._sets = [pod_set for pod_set in group.pod_sets if pod_set.count]
        kinds = [
            PodClass(((pod_set.name, pod_set.count),), pod_set.count, pod_set.shape) for pod_set in self._sets
        ]
        self._match = view.match(kinds)
        self._max_gpus = max((pod_set.shape.gpus for pod_set in self._sets), default=0)
        self._pods: dict[_Host, int] = {}
        limits = (settings.nodes_per_leaf, settings.gpus_per_leaf)
        key = (tuple(map(_key, self._sets)), limits, view.occupied)
        self._leaf_rooms = view.base.plan_cache.entry(LEAF_HOSTS, key, dict)

    def of(self, leaf: Leaf, *, preferred: bool) -> Room:
        """Returns the room of one leaf."""
        content, match = self._view.capacity, self._match
        for place in leaf.way:
            content, match = content.children[place], match.children[place] if match.children else match
        key = (content, match, leaf.places)
        leaf_room = self._leaf_rooms.get(key)
        if leaf_room is None:
            leaf_room = self._leaf_rooms[key] = self._leaf_room(
                _hosts_at(list(_hosts(content, match)), leaf.places)
            )
        nodes = tuple([leaf.nodes[place] for place in leaf_room.places])
        used = (leaf.gpus - leaf_room.free) / leaf.gpus if leaf.gpus else 0.0
        limits = {leaf.nodes[place]: max_pods for place, max_pods in leaf_room.limits.items()}
        return Room(leaf, nodes, leaf_room.pods, limits, used, preferred, content.gang)

    def _leaf_room(self, hosts: Sequence[_Host]) -> _LeafRoom:
        """Returns the values of a leaf with these nodes. Takes the nodes on which the most pods fit, up to
        the limits; of a node that would exceed the limit of GPUs, as many pods as it leaves. Each pod counts
        with the GPUs of the gang's largest pod.
        """
        rooms = sorted(
            ((self._pods_on(*host), place) for place, host in enumerate(hosts)), key=lambda r: -r[0]
        )
        places: list[int] = []
        limits: dict[int, int] = {}
        pods, left = 0, self._settings.gpus_per_leaf
        for count, place in rooms[: self._settings.nodes_per_leaf]:
            allowed = min(count, left // self._max_gpus) if self._max_gpus else count
            if allowed:
                places.append(place)
                pods, left = pods + allowed, left - allowed * self._max_gpus
                if allowed < count:
                    limits[place] = allowed
        return _LeafRoom(tuple(places), pods, limits, sum(_free_gpus(host) for host, _ in hosts))

    def _pods_on(self, host: DomainCapacity, match: EligibilityMap) -> int:
        """Returns the maximum, over the gang's PodSets, of the pods that fit on the host."""
        key = (host, match)
        if key not in self._pods:
            self._pods[key] = 0 if host.held else max(self._counts(host, match), default=0)
        return self._pods[key]

    def _counts(self, host: DomainCapacity, match: EligibilityMap) -> Iterator[int]:
        assert host.free is not None, "only hosts are passed, and these have free amounts"
        for pod_set, obstacle in zip(self._sets, match.why, strict=True):
            if obstacle or condition_obstacle(pod_set.shape, host, passing=self._view.occupied):
                continue
            yield min(
                pod_set.count,
                max_pods(host.free, pod_set.shape, host.gpus, pod_set.count, host.available_devices),
            )


def _key(pod_set: ResolvedPodSet) -> Hashable:
    """Returns the fields of a PodSet on which its number of pods depends.

    The eligibility map covers node labels.
    """
    shape = pod_set.shape
    return (
        pod_set.count,
        tuple(sorted(shape.requests.items())),
        shape.tolerations,
        bool(shape.claims),
        shape.claim_specs,
    )


def _hosts(content: DomainCapacity, match: EligibilityMap) -> Iterator[_Host]:
    if content.free is not None:
        yield content, match
    for child, child_match in zip(content.children, match.inside(len(content.children)), strict=True):
        yield from _hosts(child, child_match)


def _hosts_at(hosts: list[_Host], places: tuple[int, ...]) -> list[_Host]:
    """Returns the hosts at these indexes, all for ()."""
    return [hosts[place] for place in places] if places else hosts


def _free_gpus(host: DomainCapacity) -> int:
    """Returns the free whole GPUs of all vendors, 0 if a gang holds the host."""
    return 0 if host.held else max(0, gpus_of(host.free or {}))
