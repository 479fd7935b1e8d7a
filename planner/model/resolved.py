"""The request for a gang, resolved in one cluster: with what follows from its claims, other pods and nodes.

The records of podgroup.py and pod.py contain the request as it was read; the records here add values that
depend on the cluster. A function that takes a `PodGroup` reads the request only; one that takes a
`ResolvedPodGroup` needs the result of `planner.request`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter

from planner.model.claim_spec import ClaimSpec, ExtendedResourceClaim
from planner.model.pod import PodShape, SpreadConstraint
from planner.model.podgroup import PodGroup, PodSet

SPREAD_CAUSE = "topology spread"
"""The cause of exclusions that enforce a spread constraint, as refusal messages show it."""


ANTI_AFFINITY_CAUSE = "pod anti-affinity"
"""The cause of exclusions that enforce anti-affinity, or affinity over labels that are no level."""


FABRIC_CAUSE = "leaf-spine rules"
"""The cause of exclusions of nodes outside the leaves that leaf-spine rules choose."""


@dataclass(frozen=True, slots=True)
class NodeExclusion:
    """Nodes that a pod must not use: those with one of these label values, or (`inside`) all others.

    `passing`: the exclusion depends on the current state, for example on existing pods, and does not apply in
    the empty cluster. The key `metadata.name` stands for the node's name.
    """

    key: str
    values: frozenset[str]
    cause: str
    inside: bool = False
    passing: bool = True


@dataclass(frozen=True, slots=True)
class SpreadState:
    """A `SpreadConstraint` in one snapshot, for a PodSet whose pods must satisfy it (`constrained`), or match
    its selector (`counted`), or both.

    `existing_pods`: the number of existing pods that count, by domain; `nodes`: the same by node, without
    zeros; `values`: the domain (label value) of each node to which the constraint applies.
    """

    spread: SpreadConstraint
    existing_pods: Mapping[str, int]
    constrained: bool
    counted: bool
    nodes: Mapping[str, int]
    values: Mapping[str, str] = field(compare=False)
    lasting_values: Mapping[str, str] = field(compare=False)

    def is_same_constraint(self, other: SpreadState) -> bool:
        """Reports whether both states count the same pods on the same nodes, so that one rule covers both."""
        return (
            self.spread == other.spread
            and self.nodes == other.nodes
            and self.values == other.values
            and self.lasting_values == other.lasting_values
        )

    def when_empty(self) -> SpreadState:
        """Returns the state in a cluster without pods, of which every node is ready and not cordoned."""
        existing_pods = dict.fromkeys(self.lasting_values.values(), 0)
        return replace(self, existing_pods=existing_pods, nodes={}, values=self.lasting_values)


@dataclass(frozen=True, slots=True)
class Attraction:
    """A required pod affinity: the label `key` of the pods' nodes must have one of `values`, or the value of
    a node with a pod of these PodSets. The key `metadata.name` stands for the node's name.
    """

    key: str
    pod_sets: tuple[str, ...]
    values: frozenset[str]


@dataclass(frozen=True, slots=True)
class ResolvedShape(PodShape):
    """The shape of pods in one cluster.

    `requests` include claimed devices as amounts of pools (planner.devices.pools), of which a claim in
    `claim_specs` adds only the minimum; `affinity` includes the node requirements of other claims.
    """

    claim_specs: tuple[ClaimSpec, ...] = ()
    """The device claims of a pod, resolved against the devices in ResourceSlices."""
    extended_claims: tuple[ExtendedResourceClaim, ...] = ()
    """The claims for the pod's extended resources, used on nodes whose device plugin does not offer them."""
    exclusions: tuple[NodeExclusion, ...] = ()
    """Nodes that the pods must not use, for example because of other pods, volumes or topology spread."""
    anti_affinity_with: tuple[tuple[str, str], ...] = ()
    """Pairs (label key, PodSet): nodes with the same label value must not have one of these pods and a pod
    of that PodSet."""
    co_located_over: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Pairs (label key, PodSets): all pods of these PodSets must be on nodes with the same label value."""
    attractions: tuple[Attraction, ...] = ()
    """The required affinities to pods of other PodSets, in a request of the form `scattered`
    (`affinity.within_gang.AffinityForm`); in other forms, `co_located_over` stands for them."""
    spread_states: tuple[SpreadState, ...] = ()
    """The spread constraints that concern these pods, in this cluster."""
    nvlink_group: int = 0
    """How many of these pods must share an NVLink domain inside the host; 0 if there is no such rule."""

    @property
    def amounts_per_pod(self) -> dict[str, int]:
        """The amounts that one pod takes on its node: its requests, and for each `ClaimSpec` how many such
        claims the pod has, by the spec's name."""
        return {**self.requests, **Counter(spec.name for spec in self.claim_specs)}


@dataclass(frozen=True, slots=True)
class ResolvedPodSet(PodSet):
    """A PodSet resolved in one cluster."""

    shape: ResolvedShape


@dataclass(frozen=True, slots=True)
class ResolvedPodGroup(PodGroup):
    """A gang resolved in one cluster."""

    pod_sets: tuple[ResolvedPodSet, ...]


# Runs for each PodSet of every plan: one attrgetter for all fields is several times faster than `asdict`.
_SHAPE, _POD_SET, _POD_GROUP = (
    attrgetter(*(field.name for field in fields(record))) for record in (PodShape, PodSet, PodGroup)
)


def resolved_shape(shape: PodShape) -> ResolvedShape:
    """Returns the shape as a `ResolvedShape` to which the cluster adds nothing; unchanged if it is one."""
    return shape if isinstance(shape, ResolvedShape) else ResolvedShape(*_SHAPE(shape))


def resolved_group(group: PodGroup) -> ResolvedPodGroup:
    """Returns the gang as a `ResolvedPodGroup`. To what is not resolved the cluster adds nothing: a resolved
    gang may have got PodSets of another member, as they were read.
    """
    if isinstance(group, ResolvedPodGroup) and {ResolvedPodSet}.issuperset(map(type, group.pod_sets)):
        return group
    sets = tuple([_resolved_set(pod_set) for pod_set in group.pod_sets])
    name, _, *rest = _POD_GROUP(group)
    return ResolvedPodGroup(name, sets, *rest)


def _resolved_set(pod_set: PodSet) -> ResolvedPodSet:
    if isinstance(pod_set, ResolvedPodSet):
        return pod_set
    name, count, shape, *rest = _POD_SET(pod_set)
    return ResolvedPodSet(name, count, resolved_shape(shape), *rest)
