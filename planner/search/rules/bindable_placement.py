"""Whether a placement satisfies the gang's spread constraints, also while its pods are bound one by one on
the nodes to which the plan pins them.

    maxSkew 1, two pods in row a, two in row b          the rows end with two pods each: the constraint holds
    the plan pins the pods to these four nodes          and in the order a, b, a, b each pod can be bound

The final counts are checked first, then the order of binding (`binding_order`), then whether the pods of a
class can be assigned to its PodSets (`pod_set_assignment`).
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.model.effort.deadline import poll
from planner.search.result import Placement
from planner.search.rules.binding_order import BindingOrderCheck, Seat
from planner.search.rules.pod_set_assignment import assigned_to_pod_sets
from planner.search.rules.spread_over_labels import SpreadRule, rules_of
from planner.search.rules.tree_search import TreeSearch


def bindable(level_search: TreeSearch, rules: Sequence[SpreadRule], placement: Placement) -> Placement | None:
    """Returns the placement, with its pods assigned to PodSets if a constraint depends on that; None if the
    placement breaks a constraint or its pods cannot be bound one by one.
    """
    seats = _seats(level_search, rules, placement)
    counts: list[dict[str, tuple[int, ...]]] = [{} for _ in rules]
    for index, each in placement.pods_by_node:
        name = level_search.space.tree.root.leaf(index).node
        for rule, pods_by_value in zip(rules, counts, strict=True):
            value = rule.values.get(name, "")
            pods_by_value[value] = tuple(map(int.__add__, pods_by_value.get(value, (0,) * len(each)), each))
    if not all(rule.holds(pods_by_value) for rule, pods_by_value in zip(rules, counts, strict=True)):
        return None
    # With one constraint on exactly the pods that it counts, and no such pods in the cluster yet, any final
    # counts within the skew can be reached (`binding_order`).
    is_one_rule = len(rules) == 1 and rules[0].keepers == rules[0].counted
    needs_no_order = is_one_rule and not any(rules[0].existing.values())
    if not needs_no_order and not BindingOrderCheck(rules, seats, None).can_all_be_bound():
        return None
    if level_search.mode == "none":
        return placement  # the plan pins no pods, so it does not matter which PodSet they belong to
    for assigned in assigned_to_pod_sets(placement):
        if needs_no_order and len(assigned.pod_classes) == 1:
            return assigned
        rules_by_pod_set = rules_of(assigned.pod_classes)
        seats = _seats(level_search, rules_by_pod_set, assigned)
        pinned = _pinned(level_search, assigned, seats)
        if BindingOrderCheck(rules_by_pod_set, seats, pinned).can_all_be_bound():
            return assigned
    return None


def _seats(level_search: TreeSearch, rules: Sequence[SpreadRule], placement: Placement) -> list[Seat]:
    seats: list[Seat] = []
    for index, each in placement.pods_by_node:
        poll("search")
        name = level_search.space.tree.root.leaf(index).node
        values = tuple(rule.values.get(name, "") for rule in rules)
        seats += [Seat(pod_class, name, n, values) for pod_class, n in enumerate(each) if n]
    return seats


def _pinned(
    level_search: TreeSearch, placement: Placement, seats: Sequence[Seat]
) -> dict[int, frozenset[str]]:
    """Returns, by pod class index, the nodes to which the plan pins the pods: in mode `nodes` the nodes that
    they use, otherwise all nodes of the domains that the gang may hold whole.
    """
    tree = level_search.space.tree
    pinned: dict[int, set[str]] = {pod_class: set() for pod_class in range(len(placement.pod_classes))}
    level = max(placement.branch.level, tree.topology.reservable_index)
    for seat in seats:
        if level_search.mode == "nodes":
            pinned[seat.class_index].add(seat.node)
        elif seat.node not in pinned[seat.class_index]:
            domain = tree.ancestor(seat.node, level)
            pinned[seat.class_index].update(tree.names(domain) if domain.has_name else [seat.node])
    return {pod_class: frozenset(nodes) for pod_class, nodes in pinned.items()}
