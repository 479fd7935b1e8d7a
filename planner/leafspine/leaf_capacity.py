"""What each leaf of a fabric could give to a gang: its nodes with the most room, within the limits. Pure.

Leaves of equal content, to which the gang's labels mean the same, are looked at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from planner.cluster.capacity import DomainCapacity
from planner.cluster.census import gpus_of
from planner.cluster.plan_cache import CacheSection
from planner.cluster.switch_graph import Leaf
from planner.model.pod_class import PodClass
from planner.model.resolved import ResolvedPodGroup, ResolvedPodSet
from planner.model.settings import Settings
from planner.node.eligibility import condition_obstacle
from planner.node.packing import max_pods
from planner.search.eligibility_map import EligibilityMap
from planner.search.space import SearchSpace

_Host = tuple[DomainCapacity, EligibilityMap]


@dataclass(frozen=True, slots=True)
class Room:
    """A leaf with the nodes of it that the gang may use and the pods that these hold.

    `used`: the share of its GPUs that is in use or held. `preferred`: the gang would like to be there.
    `gang`: one that holds or uses a node of it, "" for none.
    """

    leaf: Leaf
    nodes: tuple[str, ...]
    pods: int
    used: float
    preferred: bool
    gang: str


@dataclass(frozen=True, slots=True)
class _Seen:
    """What is the same for all leaves of one content: places of nodes, pods, free GPUs."""

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
    """One gang's look at the leaves, in one view of their topology."""

    def __init__(self, view: SearchSpace, group: ResolvedPodGroup, settings: Settings) -> None:
        self._view, self._settings = view, settings
        self._sets = [one for one in group.pod_sets if one.count]
        kinds = [PodClass(((one.name, one.count),), one.count, one.shape) for one in self._sets]
        self._match = view.match(kinds)
        self._each = max((one.shape.gpus for one in self._sets), default=0)
        self._pods: dict[_Host, int] = {}
        limits = (settings.nodes_per_leaf, settings.gpus_per_leaf)
        key = (tuple(map(_key, self._sets)), limits, view.now)
        self._seen = view.base.plan_cache.entry(LEAF_HOSTS, key, dict)

    def of(self, leaf: Leaf, *, preferred: bool) -> Room:
        """The room of one leaf."""
        content, match = self._view.capacity, self._match
        for place in leaf.way:
            content, match = content.children[place], match.children[place] if match.children else match
        key = (content, match, leaf.places)
        seen = self._seen.get(key)
        if seen is None:
            seen = self._seen[key] = self._look(_those(list(_hosts(content, match)), leaf.places))
        nodes = tuple([leaf.nodes[place] for place in seen.places])
        used = (leaf.gpus - seen.free) / leaf.gpus if leaf.gpus else 0.0
        return Room(leaf, nodes, seen.pods, used, preferred, content.gang)

    def _look(self, hosts: Sequence[_Host]) -> _Seen:
        rooms = sorted(((self._room(*host), place) for place, host in enumerate(hosts)), key=lambda r: -r[0])
        places: list[int] = []
        pods = gpus = 0
        for count, place in rooms[: self._settings.nodes_per_leaf]:
            if count and gpus + count * self._each <= self._settings.gpus_per_leaf:
                places.append(place)
                pods, gpus = pods + count, gpus + count * self._each
        return _Seen(tuple(places), pods, sum(_free_gpus(host) for host, _ in hosts))

    def _room(self, host: DomainCapacity, match: EligibilityMap) -> int:
        """Pods of the gang's largest PodSet there that the host could take, at most the PodSet."""
        key = (host, match)
        if key not in self._pods:
            self._pods[key] = 0 if host.held else max(self._counts(host, match), default=0)
        return self._pods[key]

    def _counts(self, host: DomainCapacity, match: EligibilityMap) -> Iterator[int]:
        assert host.free is not None, "only hosts are asked"
        for one, why in zip(self._sets, match.why, strict=True):
            if why or condition_obstacle(one.shape, host, passing=self._view.now):
                continue
            yield min(one.count, max_pods(host.free, one.shape, host.gpus, one.count, host.available_devices))


def _key(one: ResolvedPodSet) -> Hashable:
    """All that is looked at in a PodSet; labels are the match's affair."""
    shape = one.shape
    return (
        one.count,
        tuple(sorted(shape.requests.items())),
        shape.tolerations,
        bool(shape.claims),
        shape.claim_specs,
    )


def _hosts(content: DomainCapacity, match: EligibilityMap) -> Iterator[_Host]:
    if content.free is not None:
        yield content, match
    for child, its in zip(content.children, match.inside(len(content.children)), strict=True):
        yield from _hosts(child, its)


def _those(hosts: list[_Host], places: tuple[int, ...]) -> list[_Host]:
    """The hosts at these places; all where none are named."""
    return [hosts[place] for place in places] if places else hosts


def _free_gpus(host: DomainCapacity) -> int:
    """Whole GPUs that are left, whatever the maker; none where a gang holds the host."""
    return 0 if host.held else max(0, gpus_of(host.free or {}))
