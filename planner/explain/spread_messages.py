"""Messages about topologySpreadConstraints: the domain with fewest pods limits the others by maxSkew."""

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


def in_the_way(space: SearchSpace, asked: TopologyRequest) -> str:
    """Returns a sentence about the first topology spread constraint that keeps the gang out; "" for none.

    No domain may have more than n + maxSkew pods. Here n is the largest number of pods that every domain can
    have, or 0 if there are fewer domains than minDomains. A constraint keeps the gang out if not all of
    the pods that it counts fit under this limit. Constraints that count other pods of the gang than they
    constrain are not examined.
    """
    for rule in rules_of(asked.pod_classes):
        # The bound in `_rule_sentence` holds only if the rule counts exactly the pods that it constrains.
        if rule.counted and set(rule.counted) == set(rule.keepers):
            room = _room(space, rule, [asked.pod_classes[index] for index in rule.counted])
            if sentence := _rule_sentence(
                rule, room, sum(asked.pod_classes[index].count for index in rule.counted)
            ):
                return sentence
    return ""


def _rule_sentence(rule: SpreadRule, room: Mapping[str, int], wanted: int) -> str:
    spread, counts = rule.spread, rule.existing
    if not counts:
        return ""
    below_minimum = len(counts) < spread.min_domains
    emptiest = min(counts, key=lambda value: (counts[value] + room.get(value, 0), natural(value)))
    lowest = 0 if below_minimum else counts[emptiest] + room.get(emptiest, 0)
    ceiling = lowest + spread.skew
    if sum(min(room.get(value, 0), max(0, ceiling - n)) for value, n in counts.items()) >= wanted:
        return ""
    key = short(spread.key)
    why = (
        f"there are {len(counts)} of the {spread.min_domains} domains that minDomains asks for"
        if below_minimum
        else f"{key} {emptiest} has {counts[emptiest]} such pods and room for {room.get(emptiest, 0)}"
    )
    return (
        f"Topology spread over {spread.key} (maxSkew {spread.skew}): {why}, so that no {key} may have more "
        f"than {ceiling}."
    )


def _room(space: SearchSpace, rule: SpreadRule, pod_classes: list[PodClass]) -> dict[str, int]:
    """Returns how many pods fit, by value of the spread constraint's label.

    A node counts as the pods of one class: the class of which it takes most.
    """
    room: dict[str, int] = {}
    for leaf, host in zip(space.tree.root.leaves(), hosts(space.capacity), strict=True):
        value = rule.values.get(leaf.node)
        if value is None or host.held or host.free is None:
            continue
        node = space.tree.cluster[leaf.node]
        pod_counts = [
            max_pods(host.free, pod_class.shape, host.gpus, pod_class.count, host.available_devices)
            for pod_class in pod_classes
            if not label_obstacle(pod_class.shape, node, linked=pod_class.linked)
            and not condition_obstacle(pod_class.shape, host)
        ]
        room[value] = room.get(value, 0) + max(pod_counts, default=0)
    return room
