"""What hard topology spread constraints come to for a gang in one snapshot. Pure.

Source: kube-scheduler's PodTopologySpread. Domains are those of nodes that carry the labels of all of the
pod's hard constraints and that its node affinity (where asked for, its tolerations too) lets it be on.
Counted are the pods of its namespace that the selector means, bound or with a place reserved, on such nodes,
and those of the gang's own PodSets. The rule is held over the whole placement: where it holds for that, pods
that come one by one can always go to the emptiest domain that still waits for one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.model.labels import ANY, NODE_NAME_FIELD
from planner.model.node import Node
from planner.model.pod import PodShape, SpreadConstraint, selected
from planner.model.podgroup import PodSet
from planner.model.resolved import SPREAD_CAUSE, NodeExclusion, ResolvedPodGroup, ResolvedShape, SpreadState
from planner.model.topology import HOSTNAME
from planner.node.eligibility import affinity_allows, untolerated
from planner.request.pod_affinity import Neighbour, neighbours_of


def with_topology_spread(snapshot: Snapshot, group: ResolvedPodGroup) -> ResolvedPodGroup:
    """The gang with what its PodSets' spread constraints mean; the same where it has none."""
    if not any(pod_set.shape.spread for pod_set in group.pod_sets):
        return group
    space = group.name.partition("/")[0]
    beside = [one for one in neighbours_of(snapshot, group) if one.space == space]
    made = {one.name: one.shape for one in group.pod_sets}
    for pod_set in group.pod_sets:
        if pod_set.count:
            for spread in dict.fromkeys(pod_set.shape.spread):
                _resolve(snapshot, group.pod_sets, pod_set, spread, beside, made)
    return replace(group, pod_sets=tuple(replace(one, shape=made[one.name]) for one in group.pod_sets))


def _resolve(
    snapshot: Snapshot,
    sets: Iterable[PodSet],
    keeper: PodSet,
    spread: SpreadConstraint,
    beside: Iterable[Neighbour],
    made: dict[str, ResolvedShape],
) -> None:
    """Adds to the shapes what one constraint of one PodSet means for all of them."""
    values = _values(snapshot, keeper.shape, spread)
    nodes = Counter[str]()
    for other in beside:
        if other.node in values and selected(spread.selector, other.labels):
            nodes[other.node] += other.count
    there = dict.fromkeys(values.values(), 0)
    for node, count in nodes.items():
        there[values[node]] += count
    counted = {one.name for one in sets if one.count and selected(spread.selector, one.shape.labels)}
    if spread.key != HOSTNAME:
        bar = NodeExclusion(spread.key, frozenset((ANY,)), SPREAD_CAUSE, inside=True, now=False)
        made[keeper.name] = _barred(made[keeper.name], bar)
    if not counted:
        over = frozenset(value for value, count in there.items() if count > allowed(spread, there))
        key = NODE_NAME_FIELD if spread.key == HOSTNAME else spread.key
        made[keeper.name] = _barred(made[keeper.name], NodeExclusion(key, over, SPREAD_CAUSE))
        return
    for name in {keeper.name, *counted}:
        one = SpreadState(spread, there, name == keeper.name, name in counted, nodes, values)
        made[name] = replace(made[name], spread_states=_with(made[name].spread_states, one))


def _with(before: tuple[SpreadState, ...], one: SpreadState) -> tuple[SpreadState, ...]:
    """With one more; of one constraint that several PodSets state there is one."""
    for at, other in enumerate(before):
        if (other.spread, other.there) == (one.spread, one.there):
            both = replace(other, keeps=other.keeps or one.keeps, counted=other.counted or one.counted)
            return (*before[:at], both, *before[at + 1 :])
    return (*before, one)


def _barred(shape: ResolvedShape, bar: NodeExclusion) -> ResolvedShape:
    return (
        shape
        if bar in shape.exclusions or not bar.values
        else replace(shape, exclusions=(*shape.exclusions, bar))
    )


def _values(snapshot: Snapshot, shape: PodShape, spread: SpreadConstraint) -> dict[str, str]:
    """The nodes that a constraint is about, with their domains."""
    keys = {one.key for one in shape.spread} - {HOSTNAME}
    return {
        node.name: node.name if spread.key == HOSTNAME else node.labels[spread.key]
        for node in snapshot.nodes.values()
        if _eligible(node, shape, spread, keys)
    }


def _eligible(node: Node, shape: PodShape, spread: SpreadConstraint, keys: Iterable[str]) -> bool:
    if not all(node.labels.get(key) for key in keys):
        return False
    if spread.by_affinity and not affinity_allows(shape, node):
        return False
    return not (spread.by_taints and untolerated(shape, node.taints, passing=True))


def allowed(spread: SpreadConstraint, there: Mapping[str, int]) -> int:
    """The most pods that a domain may have that takes one more, as they lie now, that one aside.

    A plan pins the pods to fewer domains than there are, and kube-scheduler counts these alone: where it asks
    for several (`minDomains`), the fewest is zero to it.
    """
    fewest = 0 if spread.least > 1 else min(there.values(), default=0)
    return fewest + spread.skew
