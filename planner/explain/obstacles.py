"""Counts the nodes that a gang's pods cannot use, each by the first cause that applies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from planner.cluster.capacity import DomainCapacity, hosts
from planner.cluster.plan_cache import CacheSection
from planner.cluster.trees.subtree import Subtree
from planner.devices.pools import amount_in, on_node
from planner.explain import numa_messages
from planner.model.names import kind_of, object_of, replicas_of
from planner.model.natural_order import natural
from planner.model.pod_class import PodClass
from planner.model.podgroup import PodGroup
from planner.model.resources import GPU, Resources
from planner.model.topology import ROOT, short
from planner.node.eligibility import condition_obstacle
from planner.node.gpu_sharing import share_in, share_named
from planner.node.numa_state import NumaState
from planner.node.packing import max_pods, requests_on, takes_amounts_only, takes_devices
from planner.request.topology_request import TopologyRequest
from planner.search.domain_ranking import ChildPath
from planner.search.eligibility_map import EligibilityMap
from planner.search.space import SearchSpace

CLAIMS = "devices for "
"""Follows `LACKS` in the cause of a node that lacks devices for ResourceClaims."""

LACKS = "insufficient "
"""Prefix of the cause of a node that has too little of a resource."""

OUTSIDE = "not in topology "
"""Prefix of the cause of a node outside the gang's topology."""

RESERVED = "reserved by "
"""Prefix of the cause of a node that another gang reserves, before the name of that gang."""

NO_DEVICES = f"{CLAIMS}a claim (the node has no ResourceSlice of them)"
"""Follows `LACKS` in the cause of a node that has no ResourceSlice with devices, while other nodes have."""

FITS = ""
"""The key in `_Counts.causes` for nodes that take a pod. `NodeCounts` has these as `serving` instead."""


@dataclass(frozen=True, slots=True)
class _PartlyHeld:
    """A domain of the reservable level that the gang cannot hold whole, because other gangs hold or use parts
    of it.

    `way`: the domain, as indexes of children from the root. `gangs`: the other gangs. `nodes`: how many nodes
    of the domain would take a pod.
    """

    way: ChildPath
    gangs: tuple[str, ...]
    nodes: int


Shortage = tuple[int, int]
"""The largest amount of a resource on the nodes of one cause, and the amount that a pod requests."""


@dataclass(frozen=True, slots=True)
class NodeCounts:
    """Every node of the cluster, counted once: by the first cause that excludes the pods, or as `serving`.

    `causes`: number of nodes by cause, most frequent first. `shortages`: amounts by cause, for those causes
    that are a lack of one resource.
    """

    total: int
    causes: Mapping[str, int]
    shortages: Mapping[str, Shortage]

    @property
    def serving(self) -> int:
        """The number of nodes that take a pod."""
        return self.total - sum(self.causes.values())

    @property
    def outside(self) -> int:
        """The number of nodes outside the topology."""
        return sum(count for cause, count in self.causes.items() if cause.startswith(OUTSIDE))


@dataclass(frozen=True, slots=True)
class _Counts:
    """The nodes of one domain, counted by the cause that excludes the pods; the entry `FITS` of `causes`
    counts the nodes that take a pod.

    `partly`: domains that the gang cannot hold whole; their `nodes` are not among `causes`.
    """

    causes: Mapping[str, int]
    partly: tuple[_PartlyHeld, ...] = ()
    shortages: Mapping[str, Shortage] = field(default_factory=dict)


class _Tally:
    """Counts nodes by cause, from the hosts up to the root. Domains of equal capacity are computed once.

    `pod_classes`: the gang's pod classes. `required`: index of the required level, or ROOT. `shared`: the
    gang may use a domain together with other gangs. If it may not, and `whole` is set, the gang holds domains
    of the reservable level whole, so it cannot use one of which other gangs hold a part.
    """

    def __init__(
        self, space: SearchSpace, pod_classes: Sequence[PodClass], required: int, *, shared: bool, whole: bool
    ) -> None:
        topology = space.tree.topology
        self._pod_classes, self._shared = pod_classes, shared
        self._required = required
        self._unlabelled = f"no label {topology.levels[required]}" if required > ROOT else ""
        self._reservable = topology.reservable_index if whole and not shared else None
        self._counts: dict[tuple[DomainCapacity, EligibilityMap], _Counts] = {}

    @property
    def size(self) -> int:
        return len(self._counts)

    def of(self, capacity: DomainCapacity, match: EligibilityMap) -> _Counts:
        """Returns the counts of one domain."""
        counts = self._counts.get((capacity, match))
        if counts is None:
            counts = self._counts[capacity, match] = self._count(capacity, match)
        return counts

    def _count(self, capacity: DomainCapacity, match: EligibilityMap) -> _Counts:
        if capacity.level == self._required and self._unlabelled and not capacity.has_name:
            return _Counts({self._unlabelled: capacity.size})
        if capacity.free is not None:
            cause, shortage = self._cause(capacity, match)
            return _Counts({cause: 1}, shortages={cause: shortage} if shortage else {})
        causes: dict[str, int] = {}
        partly: list[_PartlyHeld] = []
        shortages: dict[str, Shortage] = {}
        inside = match.of_children(len(capacity.children))
        for index, (child, child_match) in enumerate(zip(capacity.children, inside, strict=True)):
            counts = self.of(child, child_match)
            for cause, count in counts.causes.items():
                causes[cause] = causes.get(cause, 0) + count
            if counts.partly:
                partly += [_PartlyHeld((index, *part.way), part.gangs, part.nodes) for part in counts.partly]
            for cause, shortage in counts.shortages.items():
                if cause not in shortages or shortage > shortages[cause]:
                    shortages[cause] = shortage
        if capacity.level == self._reservable and capacity.has_name and capacity.gang and causes.get(FITS):
            gangs = {host.gang for host in hosts(capacity) if host.gang}
            partly.append(_PartlyHeld((), tuple(sorted(gangs, key=natural)), causes.pop(FITS)))
        return _Counts(causes, tuple(partly), shortages)

    def _cause(self, host: DomainCapacity, match: EligibilityMap) -> tuple[str, Shortage | None]:
        """Returns why a host takes no pod of any class, and the amounts if the cause is a lack of one
        resource. The cause is `FITS` if the host takes a pod of some class.
        """
        reasons = [
            why or condition_obstacle(pod_class.shape, host)
            for pod_class, why in zip(self._pod_classes, match.why, strict=True)
        ]
        if all(reasons):
            return reasons[0], None
        gang = host.held if self._shared else host.gang
        if gang:
            return f"{RESERVED}{gang}", None
        able = [pod_class for pod_class, reason in zip(self._pod_classes, reasons, strict=True) if not reason]
        lacking = [short_of(host, pod_class) or _misaligned(host.numa_state, pod_class) for pod_class in able]
        if not all(lacking):
            return FITS, None
        name, asked = lacking[0], able[0].shape.requests
        if name.startswith(numa_messages.NUMA):
            return name, None
        amount, need = amount_in(host.amounts, name), asked.get(name, 0)
        return f"{LACKS}{name}", (amount, need) if amount < need else None


def node_counts(group: PodGroup, space: SearchSpace, asked: TopologyRequest) -> NodeCounts:
    """Returns all nodes, counted by what excludes the gang's pods: "taint KEY=VALUE:EFFECT", "cordoned",
    "insufficient RESOURCE", …
    """
    topology = space.tree.topology
    whole = group.size > 1 and asked.required < topology.host_index
    shared = group.reserve != "domain"
    counts = _tally(space, asked.pod_classes, asked.required, shared=shared, whole=whole)
    causes = dict(counts.causes)
    for part in counts.partly:
        branch, _ = space.domain_at(part.way)
        causes[_partly_held(topology.levels[branch.level], branch, part.gangs)] = part.nodes
    return _of_cluster(space, causes, counts.shortages)


def _of_cluster(
    space: SearchSpace, causes: Mapping[str, int], shortages: Mapping[str, Shortage]
) -> NodeCounts:
    """Returns the counts with the nodes outside the tree added and the causes sorted, most frequent first."""
    total = len(space.base.nodes)
    outside = total - len((space.plain or space.tree).nodes)
    excluded = {cause: count for cause, count in causes.items() if cause != FITS and count}
    if outside:
        name = space.tree.topology.name or "of node labels (Topology objects have them)"
        excluded[f"{OUTSIDE}{name}"] = outside
    return NodeCounts(total, _most_frequent_first(excluded), shortages)


def _most_frequent_first(causes: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(causes.items(), key=lambda item: (-item[1], natural(item[0]))))


def by_object(causes: Mapping[str, int], gang: str) -> dict[str, int]:
    """Returns the number of nodes by cause, with one cause for all replicas of an object that reserve nodes:
    "reserved by 3 replicas of the same Deployment" if `gang` is a replica of that object too.
    """
    own = object_of(gang)
    replicas = Counter(map(_reserving_object, causes))
    summed: Counter[str] = Counter()
    for cause, nodes in causes.items():
        name = _reserving_object(cause)
        if name and (replicas[name] > 1 or name == own):
            owner = f"the same {kind_of(name)}" if name == own else name
            cause = f"{RESERVED}{replicas_of(name, replicas[name])} of {owner}"
        summed[cause] += nodes
    return _most_frequent_first(summed)


def _reserving_object(cause: str) -> str:
    return object_of(cause.removeprefix(RESERVED)) if cause.startswith(RESERVED) else ""


def _partly_held(level: str, branch: Subtree, gangs: Sequence[str]) -> str:
    rest_words = f" and {len(gangs) - 1} more" if len(gangs) > 1 else ""
    name = "/".join(value or "-" for value in branch.path)
    return f"in {short(level)} {name}, which is partly held by {gangs[0]}{rest_words}"


def pod_counts(space: SearchSpace, pod_class: PodClass) -> NodeCounts:
    """Returns all nodes, counted by what excludes a single pod of one class."""
    counts = _tally(space, (pod_class,), ROOT, shared=True, whole=False)
    return _of_cluster(space, counts.causes, counts.shortages)


_Request = tuple[tuple[str, ...], int, tuple[Hashable, ...], int, bool, bool]

TALLIES: CacheSection[_Request, _Tally] = CacheSection("obstacles", results=lambda tally: tally.size)
"""Caches tallies. Key: the topology's levels and its reservable level, what the pod classes request, the
required level, whether nodes may be shared with other gangs, and whether the gang needs whole domains. An
entry is never stale: within a tally, counts depend only on the capacity and eligibility of a domain, which
are their key. One thread at a time uses a tally (`PlanCache.exclusively`), because it caches the counts of
further domains while it is used.
"""


def _tally(
    space: SearchSpace, pod_classes: Sequence[PodClass], required: int, *, shared: bool, whole: bool
) -> _Counts:
    cache = space.base.plan_cache
    asked = tuple(
        (
            tuple(sorted(k.shape.requests.items())),
            k.shape.tolerations,
            k.shape.alignment and k.shape.alignment.key,
            k.shape.claim_specs,
            k.shape.extended_claims,
        )
        for k in pod_classes
    )
    topology = space.tree.topology
    key = (topology.levels, topology.reservable_index, asked, required, shared, whole)
    tally = cache.entry(
        TALLIES, key, lambda: _Tally(space, pod_classes, required, shared=shared, whole=whole)
    )
    return cache.exclusively(lambda: tally.of(space.capacity, space.match(pod_classes)))


def short_of(host: DomainCapacity, pod_class: PodClass) -> str:
    """Returns what a host lacks for one pod: a resource (a device before cpu or memory), a GPU share, or the
    devices for a claim. Returns "" if the pod fits.
    """
    shape, free, devices = pod_class.shape, host.amounts, host.available_devices
    if devices is None and takes_amounts_only(shape):
        return _first_lacking(shape.requests, free)
    if max_pods(free, shape, host.gpus, 1, devices):
        return ""
    requests, claim_specs = requests_on(shape, free)
    if devices and claim_specs and (lack := devices.missing(claim_specs)):
        return lack
    if not devices and shape.claim_specs:
        return NO_DEVICES
    needs = requests if devices else on_node(shape.requests, free)
    if lacking := _first_lacking({name: need for name, need in needs.items() if not share_named(name)}, free):
        return lacking
    # Each amount suffices: no single GPU has room for the share, or claims use the plugin's GPUs.
    share = share_in(shape.requests)
    return share.label if share else GPU if takes_devices(devices, shape) else ""


def _first_lacking(needs: Resources, free: Resources) -> str:
    """Returns the resource of which a host has too little, a device before cpu or memory; "" if none."""
    lacking = [name for name, need in needs.items() if free.get(name, 0) < need]
    return min(lacking, key=lambda name: ("/" not in name, name), default="")


def _misaligned(zones: NumaState | None, pod_class: PodClass) -> str:
    """Returns why the host's kubelet would refuse a pod for which the host has enough in total; "" if the
    kubelet would admit the pod. `zones`: None if the host's kubelet refuses no pod for NUMA.
    """
    return numa_messages.cause(zones, pod_class) if zones is not None else ""


def largest(spaces: Sequence[SearchSpace], pod_class: PodClass, resource: str) -> int:
    """Returns the largest amount of a resource on any node that the pod may use, in base units; 0 for no
    node.

    `spaces`: the search spaces, one for each topology.
    """
    return max((amount_in(host.free or {}, resource) for host in usable(spaces, pod_class)), default=0)


def usable(spaces: Sequence[SearchSpace], pod_class: PodClass) -> list[DomainCapacity]:
    """Returns the hosts that the pod may use by labels, taints and conditions, whatever is free on them.

    Hosts of equal capacity are returned once.
    """
    return [
        host
        for space in spaces
        for host, match in _hosts(space.capacity, space.match((pod_class,)))
        if not match.why[0] and not condition_obstacle(pod_class.shape, host)
    ]


def _hosts(capacity: DomainCapacity, match: EligibilityMap) -> list[tuple[DomainCapacity, EligibilityMap]]:
    """Returns each host with its eligibility; pairs of equal capacity and eligibility once."""
    seen: dict[tuple[DomainCapacity, EligibilityMap], None] = {}

    def walk(capacity: DomainCapacity, match: EligibilityMap) -> None:
        if (capacity, match) not in seen:
            seen[capacity, match] = None
            for child, child_match in zip(
                capacity.children, match.of_children(len(capacity.children)), strict=True
            ):
                walk(child, child_match)

    walk(capacity, match)
    return [(host, host_match) for host, host_match in seen if host.free is not None]
