"""The planner's words about spread: which domain is too full for the others to take more."""

from __future__ import annotations

from collections.abc import Mapping

from planner.cluster.capacity import hosts
from planner.model.natural_order import natural
from planner.model.pod_class import PodClass
from planner.model.topology import short
from planner.node.eligibility import condition_obstacle, label_obstacle
from planner.node.packing import max_pods
from planner.request.topology_request import TopologyRequest
from planner.search.rules.spread_over_labels import SpreadRule, rules_of
from planner.search.space import SearchSpace


def in_the_way(view: SearchSpace, asked: TopologyRequest) -> str:
    """A sentence about the constraint for which a domain without room keeps the others from taking more; ""
    where none does."""
    for rule in rules_of(asked.kinds):
        if rule.counted and set(rule.counted) == set(rule.keepers):
            room = _room(view, rule, [asked.kinds[at] for at in rule.counted])
            if said := _said(rule, room, sum(asked.kinds[at].count for at in rule.counted)):
                return said
    return ""


def _said(rule: SpreadRule, room: Mapping[str, int], wanted: int) -> str:
    spread, there = rule.spread, rule.existing
    if not there:
        return ""
    few = len(there) < spread.least
    emptiest = min(there, key=lambda value: (there[value] + room.get(value, 0), natural(value)))
    lowest = 0 if few else there[emptiest] + room.get(emptiest, 0)
    ceiling = lowest + spread.skew
    if sum(min(room.get(value, 0), max(0, ceiling - n)) for value, n in there.items()) >= wanted:
        return ""
    key = short(spread.key)
    why = (
        f"there are {len(there)} of the {spread.least} domains that minDomains asks for"
        if few
        else f"{key} {emptiest} has {there[emptiest]} such pods and room for {room.get(emptiest, 0)}"
    )
    return (
        f"Topology spread over {spread.key} (maxSkew {spread.skew}): {why}, so that no {key} may have more "
        f"than {ceiling}."
    )


def _room(view: SearchSpace, rule: SpreadRule, kinds: list[PodClass]) -> dict[str, int]:
    """By domain how many pods of these kinds have room there, each node taken for the kind that fits most."""
    found: dict[str, int] = {}
    for leaf, host in zip(view.tree.root.leaves(), hosts(view.capacity), strict=True):
        value = rule.values.get(leaf.node)
        if value is None or host.held or host.free is None:
            continue
        node = view.tree.cluster[leaf.node]
        able = [
            max_pods(host.free, kind.shape, host.gpus, kind.count)
            for kind in kinds
            if not label_obstacle(kind.shape, node, linked=kind.linked)
            and not condition_obstacle(kind.shape, host)
        ]
        found[value] = found.get(value, 0) + max(able, default=0)
    return found
