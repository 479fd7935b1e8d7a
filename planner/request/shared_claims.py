"""ResourceClaims that several pods share: those of a gang, or the replicas of an object. Pure.

The pods are on one node, and its devices are allocated once, for the first of them.

- For pods of one gang the plan does not count these devices, but leaves out nodes that do not have them: when
  empty, or besides what others have now.
- Of replicas that are planned one after the other, the first holds the devices; the others go to its node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.devices.availability import AvailableDevices
from planner.devices.catalog import Devices
from planner.model.claim_spec import ClaimSpec
from planner.model.labels import NODE_NAME_FIELD
from planner.model.names import namespace_of, object_of
from planner.model.podgroup import PodGroup, PodSet
from planner.model.resolved import NodeExclusion, ResolvedPodGroup, ResolvedPodSet
from planner.model.words import listed


def with_shared_claims(snapshot: Snapshot, group: ResolvedPodGroup) -> ResolvedPodGroup:
    """Returns the gang restricted to nodes with the devices of the claims that its pods share; unchanged if
    they share none, or if no ResourceSlice lists devices.
    """
    shared = _shared(group) if snapshot.base.claims.slices else frozenset()
    if not shared:
        return group
    return replace(
        group, pod_sets=tuple(_restricted(snapshot, group, each, shared) for each in group.pod_sets)
    )


def with_claims_of_replicas(snapshot: Snapshot, group: ResolvedPodGroup) -> ResolvedPodGroup:
    """Returns a replica without the devices of the claims that another replica of its object holds, but on
    that replica's node; any other gang unchanged.
    """
    if not object_of(group.name) or not any(map(_claim_names, group.pod_sets)):
        return group
    nodes = _nodes_of_replicas(snapshot, group.name)
    if not nodes:
        return group
    return replace(group, pod_sets=tuple(_on_node(snapshot, group, each, nodes) for each in group.pod_sets))


def _nodes_of_replicas(snapshot: Snapshot, name: str) -> dict[str, str]:
    """Returns, by the names of the claim specs that other replicas of the object hold, the node of one."""
    nodes: dict[str, str] = {}
    own_object = object_of(name)
    for reservation in snapshot.reservations:
        if reservation.gang != name and object_of(reservation.gang) == own_object:
            held = {pod_set: traits.claim_specs for pod_set, traits in reservation.traits}
            for assignment in reservation.assignments:
                for spec in held.get(assignment.pod_set, ()):
                    nodes.setdefault(spec.name, assignment.node)
    return nodes


def _on_node(
    snapshot: Snapshot, group: PodGroup, pod_set: ResolvedPodSet, nodes: Mapping[str, str]
) -> ResolvedPodSet:
    devices, shape = snapshot.base.devices, pod_set.shape
    specs = _claim_specs(devices, namespace_of(group.name), pod_set, _claim_names(pod_set))
    for source, spec in specs.items():
        if (node := nodes.get(spec.name)) is None:
            continue
        own = list(shape.claim_specs)
        requests = Counter(shape.requests)
        if spec in own:
            own.remove(spec)
            requests.subtract(devices.min_amounts(spec))
        cause = f"other than {node}, where the devices of claim {source} are held"
        exclusion = NodeExclusion(NODE_NAME_FIELD, frozenset((node,)), cause, inside=True)
        shape = replace(
            shape,
            requests={name: amount for name, amount in requests.items() if amount},
            claim_specs=tuple(own),
            exclusions=tuple(dict.fromkeys((*shape.exclusions, exclusion))),
        )
    return replace(pod_set, shape=shape)


def _shared(group: PodGroup) -> frozenset[str]:
    """Returns the names of the ResourceClaims that several pods of the gang name."""
    counts = Counter[str]()
    for pod_set in group.pod_sets:
        for source in _claim_names(pod_set):
            counts[source] += pod_set.count
    return frozenset(source for source, count in counts.items() if count > 1)


def _claim_names(pod_set: PodSet) -> set[str]:
    return {use.source for use in pod_set.shape.claims if not use.template}


def _restricted(
    snapshot: Snapshot, group: ResolvedPodGroup, pod_set: ResolvedPodSet, shared: frozenset[str]
) -> ResolvedPodSet:
    specs = _claim_specs(snapshot.base.devices, namespace_of(group.name), pod_set, shared)
    if not specs:
        return pod_set
    wanted = Counter(specs.values())
    for other in group.pod_sets:
        if not specs.keys().isdisjoint(_claim_names(other)):  # then its pods are on the same node
            for own in other.shape.claim_specs:
                wanted[own] += other.count
    cause = f"without devices for the claim {listed(sorted(specs))}"
    exclusions = tuple(_exclusions(snapshot, list(wanted.items()), cause))
    shape = replace(pod_set.shape, exclusions=(*pod_set.shape.exclusions, *exclusions))
    return replace(pod_set, shape=shape)


def _claim_specs(
    devices: Devices, namespace: str, pod_set: PodSet, shared: Collection[str]
) -> dict[str, ClaimSpec]:
    """Returns those of these claims that the PodSet names and that have no devices yet, by name."""
    specs = {}
    for use in pod_set.shape.claims:
        claim = None if use.template or use.source not in shared else devices.find(use, namespace)
        if claim is not None and not claim.allocated and (spec := devices.claim_spec(claim)) is not None:
            specs[use.source] = spec
    return specs


def _exclusions(
    snapshot: Snapshot, wanted: Sequence[tuple[ClaimSpec, int]], cause: str
) -> Iterator[NodeExclusion]:
    """Yields the exclusion of the nodes that never have the devices for these claims, and of those that do
    not have them now.
    """
    never, now = set[str](), set[str]()
    for node in snapshot.nodes.values():
        if not _fits(snapshot.base.unallocated_devices(node), wanted):
            never.add(node.name)
        elif not _fits(snapshot.usage.free_on(node)[2], wanted):
            now.add(node.name)
    for names, passing in ((never, False), (now, True)):
        if names:
            yield NodeExclusion(NODE_NAME_FIELD, frozenset(names), cause, passing=passing)


def _fits(available: AvailableDevices | None, wanted: Sequence[tuple[ClaimSpec, int]]) -> bool:
    return available is not None and available.fits(wanted)
