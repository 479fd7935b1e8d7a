"""Hard topology spread constraints (`DoNotSchedule`) of a gang in one snapshot. Pure.

Source: kube-scheduler's PodTopologySpread. A constraint covers the nodes that have the labels of all hard
constraints of the pod and that, depending on the constraint's policies, its node affinity and tolerations
allow; their label values are the domains. It counts matching pods of the same namespace on such nodes, bound
and not being deleted, or reserved, and the gang's own pods. The constraint is applied to the whole placement.
If it is satisfied there, kube-scheduler can bind the pods one by one without violating it: each to the domain
that has the fewest pods among the domains with a planned pod that is not bound yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace

from planner.cluster.plan_cache import DerivedSection
from planner.cluster.snapshot import Snapshot
from planner.model.labels import ANY, NODE_NAME_FIELD
from planner.model.names import namespace_of
from planner.model.node import Node
from planner.model.pod import PodShape, SpreadConstraint, selected
from planner.model.podgroup import PodSet
from planner.model.resolved import SPREAD_CAUSE, NodeExclusion, ResolvedPodGroup, ResolvedShape, SpreadState
from planner.model.topology import HOSTNAME
from planner.node.eligibility import affinity_allows, untolerated
from planner.request.affinity.neighbours import Neighbour, neighbours_of

_COVERED: DerivedSection[Hashable, Mapping[str, str]] = DerivedSection("nodes of spread constraints", 8)
"""Caches what `_values` returns: a plan and the explanation of a refusal resolve the same constraint several
times, and Deployments with the same selector have the same nodes. Eight entries of 5,000 nodes take 3 MB.
"""


def with_topology_spread(snapshot: Snapshot, group: ResolvedPodGroup) -> ResolvedPodGroup:
    """Returns the gang with its spread constraints resolved in this snapshot; unchanged if it has none."""
    if not any(pod_set.shape.spread for pod_set in group.pod_sets):
        return group
    space = namespace_of(group.name)
    neighbours = [
        neighbour
        for neighbour in neighbours_of(snapshot, group, frozenset((space,)))
        if neighbour.space == space and not neighbour.terminating
    ]
    shapes = {pod_set.name: pod_set.shape for pod_set in group.pod_sets}
    for pod_set in group.pod_sets:
        if pod_set.count:
            for spread in dict.fromkeys(pod_set.shape.spread):
                _resolve(snapshot, group.pod_sets, pod_set, spread, neighbours, shapes)
    return replace(
        group, pod_sets=tuple(replace(pod_set, shape=shapes[pod_set.name]) for pod_set in group.pod_sets)
    )


def _resolve(
    snapshot: Snapshot,
    sets: Iterable[PodSet],
    owner: PodSet,
    spread: SpreadConstraint,
    neighbours: Iterable[Neighbour],
    shapes: dict[str, ResolvedShape],
) -> None:
    """Adds a constraint of the PodSet `owner` to the `shapes` of `owner` and of the PodSets whose pods it
    counts.

    If the constraint counts no pods of the gang, the domains that already have too many pods are excluded.
    """
    values = lasting_values = _values(snapshot, owner.shape, spread, passing=True)
    if spread.by_taints:
        lasting_values = _values(snapshot, owner.shape, spread, passing=False)
    nodes = Counter[str]()
    for neighbour in neighbours:
        if neighbour.node in values and selected(spread.selector, neighbour.labels):
            nodes[neighbour.node] += neighbour.count
    domain_counts = dict.fromkeys(values.values(), 0)
    for node, count in nodes.items():
        domain_counts[values[node]] += count
    counted = {
        pod_set.name for pod_set in sets if pod_set.count and selected(spread.selector, pod_set.shape.labels)
    }
    if spread.key != HOSTNAME:  # a node without the label is in no domain; kube-scheduler refuses it
        exclusion = NodeExclusion(spread.key, frozenset((ANY,)), SPREAD_CAUSE, inside=True, passing=False)
        shapes[owner.name] = _excluding(shapes[owner.name], exclusion)
    if not counted:
        highest = _highest_count(spread, domain_counts)
        full_domains = frozenset(value for value, count in domain_counts.items() if count > highest)
        key = NODE_NAME_FIELD if spread.key == HOSTNAME else spread.key
        shapes[owner.name] = _excluding(shapes[owner.name], NodeExclusion(key, full_domains, SPREAD_CAUSE))
        if not (nodes and spread.by_affinity):
            return
        # The plan pins the pods to nodes, and kube-scheduler then counts the other pods on these nodes only.
        # So it depends on the placement which domains are full, and the search has to check the constraint.
    for name in {owner.name, *counted}:
        state = SpreadState(
            spread, domain_counts, name == owner.name, name in counted, nodes, values, lasting_values
        )
        shapes[name] = replace(shapes[name], spread_states=_with(shapes[name].spread_states, state))


def _with(states: tuple[SpreadState, ...], state: SpreadState) -> tuple[SpreadState, ...]:
    """Returns the states with an additional one. A constraint of several PodSets becomes a single state if it
    covers the same nodes for all of them.

    With `nodeAffinityPolicy: Honor` and different node selectors, each PodSet keeps its own state: for each,
    kube-scheduler then counts the gang's pods on other nodes.
    """
    for index, former in enumerate(states):
        if former.is_same_constraint(state):
            merged = replace(
                former,
                constrained=former.constrained or state.constrained,
                counted=former.counted or state.counted,
            )
            return (*states[:index], merged, *states[index + 1 :])
    return (*states, state)


def _excluding(shape: ResolvedShape, exclusion: NodeExclusion) -> ResolvedShape:
    return (
        shape
        if exclusion in shape.exclusions or not exclusion.values
        else replace(shape, exclusions=(*shape.exclusions, exclusion))
    )


def _values(
    snapshot: Snapshot, shape: PodShape, spread: SpreadConstraint, *, passing: bool
) -> Mapping[str, str]:
    """Returns the nodes that a constraint covers, each with its label value, cached until nodes change.
    `passing`: temporary taints count, too.
    """
    keys = tuple(sorted({constraint.key for constraint in shape.spread} - {HOSTNAME}))
    affinity = (tuple(sorted(shape.node_selector.items())), shape.affinity) if spread.by_affinity else None
    tolerations = (shape.tolerations, passing) if spread.by_taints else None
    base = snapshot.base
    values = base.derived if spread.by_taints and passing else base.node_values
    return values.get(
        _COVERED,
        (spread.key, keys, affinity, tolerations),
        lambda: {
            node.name: node.name if spread.key == HOSTNAME else node.labels[spread.key]
            for node in snapshot.nodes.values()
            if _eligible(node, shape, spread, keys, passing=passing)
        },
    )


def _eligible(
    node: Node, shape: PodShape, spread: SpreadConstraint, keys: Iterable[str], *, passing: bool
) -> bool:
    if not all(node.labels.get(key) for key in keys):
        return False
    if spread.by_affinity and not affinity_allows(shape, node):
        return False
    return not (spread.by_taints and untolerated(shape, node.taints, passing=passing))


def _highest_count(spread: SpreadConstraint, domain_counts: Mapping[str, int]) -> int:
    """Returns the maximum number of matching pods in a domain to which a pod that does not match the
    constraint's own selector may still be bound.
    """
    too_few_domains = len(domain_counts) < spread.min_domains
    return (0 if too_few_domains else min(domain_counts.values(), default=0)) + spread.skew
