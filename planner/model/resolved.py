"""A gang resolved in one cluster: its requests after claims, other pods and nodes are taken into account.

The records of podgroup.py and pod.py hold the request as read; these extend them by values that depend on the
cluster. A function that takes a `PodGroup` reads the request only; one that takes a `ResolvedPodGroup` needs
the result of `planner.request`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from operator import attrgetter

from planner.model.claim_spec import ClaimSpec, ExtendedResourceClaim
from planner.model.pod import PodShape, SpreadConstraint
from planner.model.podgroup import PodGroup, PodSet

SPREAD_CAUSE = "topology spread"
"""The cause of exclusions that keep a spread constraint, in the words of a refusal."""


@dataclass(frozen=True, slots=True)
class NodeExclusion:
    """Nodes that a pod must not use: those with one of these label values, or (`inside`) all others.

    `passing`: because of pods that are there now. The key `metadata.name` matches the node's name.
    """

    key: str
    values: frozenset[str]
    cause: str
    inside: bool = False
    passing: bool = True


@dataclass(frozen=True, slots=True)
class SpreadState:
    """A `SpreadConstraint` in one snapshot, for a PodSet that must keep it (`keeps`) or counts in it
    (`counted`).

    `existing_pods`: those pods that count, by domain; `nodes`: the same by node, without zeros; `values`: the
    nodes that the constraint covers, with their domain values.
    """

    spread: SpreadConstraint
    existing_pods: Mapping[str, int]
    keeps: bool
    counted: bool
    nodes: Mapping[str, int]
    values: Mapping[str, str] = field(compare=False)

    def is_same_constraint(self, other: SpreadState) -> bool:
        """Whether both states count the same pods on the same nodes: then one rule serves both PodSets."""
        return self.spread == other.spread and self.nodes == other.nodes and self.values == other.values


@dataclass(frozen=True, slots=True)
class ResolvedShape(PodShape):
    """The shape of pods in one cluster.

    `requests` and `affinity` include claimed devices where these are known from node labels only.
    """

    claim_specs: tuple[ClaimSpec, ...] = ()
    """The device claims of a pod, resolved against the devices in ResourceSlices."""
    extended_claims: tuple[ExtendedResourceClaim, ...] = ()
    """Devices that serve extended resources where no device plugin gives these."""
    exclusions: tuple[NodeExclusion, ...] = ()
    """Nodes that other pods, topology spread or domains inside the host keep the pods from."""
    anti_affinity_with: tuple[tuple[str, str], ...] = ()
    """For each label and PodSet: no pod in a domain of the label with one of that PodSet."""
    co_located_over: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """For each label and PodSets: all their pods in one domain of the label."""
    spread_states: tuple[SpreadState, ...] = ()
    """The constraints of `spread` in this cluster."""
    nvlink_group: int = 0
    """The number of these pods that must share an NVLink domain inside the host; 0 for no such rule."""

    @property
    def seat(self) -> dict[str, int]:
        """The amounts that a pod takes of its node: its requests, and its claims by name."""
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
    """The shape in a cluster that adds nothing to it."""
    return shape if isinstance(shape, ResolvedShape) else ResolvedShape(*_SHAPE(shape))


def resolved_group(group: PodGroup) -> ResolvedPodGroup:
    """The gang in a cluster that adds nothing to it; a resolved gang is returned unchanged."""
    if isinstance(group, ResolvedPodGroup):
        return group
    sets = tuple([_resolved_set(pod_set) for pod_set in group.pod_sets])
    name, _, *rest = _POD_GROUP(group)
    return ResolvedPodGroup(name, sets, *rest)


def _resolved_set(pod_set: PodSet) -> ResolvedPodSet:
    name, count, shape, *rest = _POD_SET(pod_set)
    return ResolvedPodSet(name, count, resolved_shape(shape), *rest)
