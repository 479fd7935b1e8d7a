"""What each leaf of a fabric can give a gang: its nodes with the most room, within the limits. Pure.

Leaves of equal content and equal eligibility are computed once.
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
from planner.model.settings import SchedulerSettings
from planner.node.eligibility import condition_obstacle
from planner.node.packing import max_pods
from planner.search.eligibility_map import EligibilityMap
from planner.search.space import SearchSpace

_Host = tuple[DomainCapacity, EligibilityMap]


@dataclass(frozen=True, slots=True)
class Room:
    """A leaf with its nodes that the gang may use, and the pods that they hold.

    `used`: the share of its GPUs in use or held. `preferred`: the gang names it. `gang`: a gang that holds or
    uses a node of it, "" for none.
    """

    leaf: Leaf
    nodes: tuple[str, ...]
    pods: int
    used: float
    preferred: bool
    gang: str


@dataclass(frozen=True, slots=True)
class _Seen:
    """Values shared by all leaves of equal content: node places, pods, free GPUs."""

    places: tuple[int, ...]
    pods: int
    free: int


_SeenLeaves = dict[tuple[DomainCapacity, EligibilityMap, tuple[int, ...]], _Seen]
"""By a leaf's capacity, the pods' eligibility there and its nodes. Plans share it without a lock: two threads
may look at one leaf at a time, and come to the same."""

LEAF_HOSTS: CacheSection[tuple[tuple[Hashable, ...], tuple[int, int], bool], _SeenLeaves] = CacheSection(
    "hosts of leaves", results=len
)
"""By the PodSets, the most nodes and GPUs of a leaf, and whether the cluster is looked at as it is now. Never
stale: what is remembered follows from a leaf's capacity and the pods' eligibility."""


class Rooms:
    """The rooms of all leaves for one gang, in one search space."""

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
        self._seen = view.base.plan_cache.entry(LEAF_HOSTS, key, dict)

    def of(self, leaf: Leaf, *, preferred: bool) -> Room:
        """The room of one leaf."""
        content, match = self._view.capacity, self._match
        for place in leaf.way:
            content, match = content.children[place], match.children[place] if match.children else match
        key = (content, match, leaf.places)
        seen = self._seen.get(key)
        if seen is None:
            seen = self._seen[key] = self._look(_hosts_at(list(_hosts(content, match)), leaf.places))
        nodes = tuple([leaf.nodes[place] for place in seen.places])
        used = (leaf.gpus - seen.free) / leaf.gpus if leaf.gpus else 0.0
        return Room(leaf, nodes, seen.pods, used, preferred, content.gang)

    def _look(self, hosts: Sequence[_Host]) -> _Seen:
        rooms = sorted(((self._room(*host), place) for place, host in enumerate(hosts)), key=lambda r: -r[0])
        places: list[int] = []
        pods = gpus = 0
        for count, place in rooms[: self._settings.nodes_per_leaf]:
            if count and gpus + count * self._max_gpus <= self._settings.gpus_per_leaf:
                places.append(place)
                pods, gpus = pods + count, gpus + count * self._max_gpus
        return _Seen(tuple(places), pods, sum(_free_gpus(host) for host, _ in hosts))

    def _room(self, host: DomainCapacity, match: EligibilityMap) -> int:
        """Pods of the gang's largest PodSet that the host could take, at most the PodSet's count."""
        key = (host, match)
        if key not in self._pods:
            self._pods[key] = 0 if host.held else max(self._counts(host, match), default=0)
        return self._pods[key]

    def _counts(self, host: DomainCapacity, match: EligibilityMap) -> Iterator[int]:
        assert host.free is not None, "only hosts are asked"
        for pod_set, obstacle in zip(self._sets, match.why, strict=True):
            if obstacle or condition_obstacle(pod_set.shape, host, passing=self._view.occupied):
                continue
            yield min(
                pod_set.count,
                max_pods(host.free, pod_set.shape, host.gpus, pod_set.count, host.available_devices),
            )


def _key(pod_set: ResolvedPodSet) -> Hashable:
    """Every field of a PodSet that the count depends on; labels are covered by the eligibility map."""
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
    """The hosts at these places; all for ()."""
    return [hosts[place] for place in places] if places else hosts


def _free_gpus(host: DomainCapacity) -> int:
    """Free whole GPUs of all vendors; 0 where a gang holds the host."""
    return 0 if host.held else max(0, gpus_of(host.free or {}))
