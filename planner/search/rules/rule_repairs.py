"""Finds the first rule over labels that a placement breaks, and variants of the request that satisfy it.

    row a: a1 a2 in racks r1 and r2        two pods, anti-affinity over rows, on a1 and a2: row a has two

Every placement that satisfies the rule has no pod in the part of row a in r1, or none in that in r2. The
repairs are therefore two variants of the request: one with a cap of no pods for row a in r1, one with such a
cap for row a in r2. If two pod classes with anti-affinity are in one domain, there is a variant for each of
the classes, in which it must leave the domain. If pods with affinity are in several domains, there is a
variant for each domain in which all of them may be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from planner.cluster.trees.subtree import Subtree
from planner.model.labels import NODE_NAME_FIELD
from planner.model.natural_order import natural
from planner.model.node import Node
from planner.model.pod_class import PodClasses
from planner.model.resolved import ANTI_AFFINITY_CAUSE, NodeExclusion
from planner.search.domain_caps import DomainCap, value_of
from planner.search.result import Placement
from planner.search.space import SearchSpace

_MAX_VALUES = 48
"""Maximum number of label values that are tried for pods that must be in one domain of a label; each value is
a search.
"""


@dataclass(frozen=True, slots=True)
class Variant:
    """A changed request: the pod classes with node exclusions, and caps on the pods of domains."""

    pod_classes: PodClasses
    caps: tuple[DomainCap, ...] = ()


class Repairs(NamedTuple):
    """Variants that avoid one break of a rule. `complete`: whether every placement that satisfies the rule
    also satisfies one of the variants.
    """

    variants: list[Variant]
    complete: bool = True


class LabelRules:
    """The rules over labels of one gang, in the tree that is refined by these labels.

    `levels`: the index of each label's level in that tree. `recurring`: labels with a value under several
    parents, whose rules a search of the tree does not enforce by itself. `caps`: caps that apply to all
    domains of a value together. `nodes`: the nodes of the plain tree.
    """

    def __init__(
        self,
        space: SearchSpace,
        levels: Mapping[str, int],
        recurring: set[str],
        caps: Sequence[DomainCap],
        nodes: Sequence[Node],
    ) -> None:
        self._space, self._levels, self._recurring = space, levels, recurring
        self._over, self._nodes = caps, nodes

    def capped_as_placed(
        self, placement: Placement, pod_classes: PodClasses, caps: Sequence[DomainCap]
    ) -> Variant:
        """Returns these pod classes with `caps`, and with additional caps on all domains of each label value
        that has too many pods.

        A used domain is capped to the pods that the placement has there, as far as the maximum of the label
        value is not used up by the domains before it; unused domains are capped to 0.
        """
        caps = list(caps)
        for rule in self._across(pod_classes):
            for value, pods_by_domain in self._by_domain(placement, rule.level).items():
                max_pods, cap_by_domain = rule.by_value(value), dict[Subtree, int]()
                if max_pods is None or not _broken(rule, max_pods, pods_by_domain):
                    continue
                remaining = max_pods
                for branch, counts in pods_by_domain.items():
                    cap_by_domain[branch] = min(remaining, sum(counts[index] for index in rule.counted))
                    remaining -= cap_by_domain[branch]
                caps.append(
                    DomainCap(rule.level, rule.counted, rule.counted, {value: 0}, None, cap_by_domain)
                )
        return Variant(pod_classes, tuple(caps))

    def _across(self, pod_classes: PodClasses) -> Iterator[DomainCap]:
        """Yields the caps that apply to all domains of a label value together, for recurring labels."""
        yield from self._over
        for index, pod_class in enumerate(pod_classes):
            for key in pod_class.anti_affinity_labels:
                if key in self._recurring:
                    yield DomainCap(self._levels[key], (index,), (index,), {}, 1)

    def repairs(self, placement: Placement, variant: Variant) -> Repairs | None:
        """Returns variants that avoid the first break of a rule in the placement; None if it breaks none."""
        for rule in self._across(variant.pod_classes):
            for value, pods_by_domain in self._by_domain(placement, rule.level).items():
                max_pods = rule.by_value(value)
                if max_pods is not None and _broken(rule, max_pods, pods_by_domain):
                    return self._capped_variants(variant, rule, value, max_pods, pods_by_domain)
        for key in sorted(
            {key for pod_class in variant.pod_classes for key, _ in pod_class.anti_affinity_over}
        ):
            for value, counts in self._by_value(placement, key):
                for pair in _anti_affinity_pairs(variant.pod_classes, key):
                    if all(counts[index] for index in pair):
                        exclusion = NodeExclusion(key, frozenset((value,)), ANTI_AFFINITY_CAUSE)
                        return Repairs([_excluding(variant, (index,), exclusion) for index in pair])
        for key, names in sorted(
            {rule for pod_class in variant.pod_classes for rule in pod_class.co_located_over}
        ):
            where = [
                index
                for index, pod_class in enumerate(variant.pod_classes)
                if set(pod_class.names) & set(names)
            ]
            used = [
                value
                for value, counts in self._by_value(placement, key)
                if any(counts[index] for index in where)
            ]
            if len(used) > 1:
                return self._one_domain(variant, key, where, used)
        return None

    def _capped_variants(
        self,
        variant: Variant,
        rule: DomainCap,
        value: str,
        max_pods: int,
        pods_by_domain: Mapping[Subtree, tuple[int, ...]],
    ) -> Repairs:
        """Returns variants for a label value whose domains have more than `max_pods` pods together. One of
        the domains gets a share of `max_pods`, in proportion to its pods in the placement:

        - at most this share in that domain
        - at most `max_pods` - share - 1 in each other domain, for placements with more than the share in that
          domain
        - if some counted classes are not keepers: no keepers in any domain of the value
        """
        names = frozenset(leaf.node for branch in pods_by_domain for leaf in branch.leaves())
        around = _excluding(variant, rule.keepers, NodeExclusion(NODE_NAME_FIELD, names, ANTI_AFFINITY_CAUSE))
        without = [] if set(rule.counted) == set(rule.keepers) else [around]
        held = {
            branch: sum(counts[index] for index in rule.counted) for branch, counts in pods_by_domain.items()
        }
        for branch, count in held.items():
            share = max_pods * count // sum(held.values())
            caps = [
                DomainCap(rule.level, rule.counted, rule.counted, {}, None, {branch: share}),
                DomainCap(
                    rule.level,
                    rule.counted,
                    rule.counted,
                    {value: max_pods - share - 1},
                    None,
                    {branch: max_pods},
                ),
            ]
            if not any(cap in variant.caps for cap in caps):  # a cap that the variant has changes nothing
                capped = [replace(variant, caps=(*variant.caps, cap)) for cap in caps]
                return Repairs([*without, *capped])
        return Repairs([], complete=False)

    def _one_domain(self, variant: Variant, key: str, where: Sequence[int], used: Sequence[str]) -> Repairs:
        """Returns variants in which all pod classes with the indexes `where` must be in one domain of the
        label: a variant for each label value, first for the values that the placement uses (`used`).
        """
        other_values = {node.labels.get(key, "") for node in self._nodes} - {
            "",
            *used,
        }
        values = [*used, *sorted(other_values, key=natural)]
        exclusions = (
            NodeExclusion(key, frozenset((value,)), ANTI_AFFINITY_CAUSE, inside=True)
            for value in values[:_MAX_VALUES]
        )
        variants = [_excluding(variant, where, exclusion) for exclusion in exclusions]
        return Repairs(variants, complete=len(values) <= _MAX_VALUES)

    # -- pods by value and domain --------------------------------------------------------------------------

    def _by_value(self, placement: Placement, key: str) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yields each label value with the number of pods of each class there; pods on nodes without the
        label are left out.
        """
        for value, pods_by_domain in self._by_domain(placement, self._levels[key]).items():
            yield value, tuple(map(sum, zip(*pods_by_domain.values(), strict=True)))

    def _by_domain(self, placement: Placement, level: int) -> dict[str, dict[Subtree, tuple[int, ...]]]:
        """Returns by label value the used domains of the level, each with its pods of each class."""
        sums: dict[str, dict[Subtree, tuple[int, ...]]] = {}
        for index, counts in placement.pods_by_node:
            branch, _ = self._space.domain_above(index, level)
            if branch.has_name:
                pods_by_domain = sums.setdefault(value_of(branch), {})
                pods_by_domain[branch] = tuple(
                    map(int.__add__, pods_by_domain.get(branch, (0,) * len(counts)), counts)
                )
        return dict(sorted(sums.items(), key=lambda item: natural(item[0])))


def _broken(rule: DomainCap, max_pods: int, pods_by_domain: Mapping[Subtree, Sequence[int]]) -> bool:
    """Reports whether the domains of one label value have too many pods together."""
    kept = any(counts[index] for counts in pods_by_domain.values() for index in rule.keepers)
    return (
        kept and sum(counts[index] for counts in pods_by_domain.values() for index in rule.counted) > max_pods
    )


def _anti_affinity_pairs(pod_classes: PodClasses, key: str) -> Iterator[tuple[int, int]]:
    """Yields the pairs of indexes of pod classes with anti-affinity between them over this label."""
    for index, pod_class in enumerate(pod_classes):
        excluded_names = {name for label, name in pod_class.anti_affinity_over if label == key}
        for other_index in range(len(pod_classes)):
            if other_index != index and excluded_names.intersection(pod_classes[other_index].names):
                yield index, other_index


def _excluding(variant: Variant, where: Sequence[int], exclusion: NodeExclusion) -> Variant:
    """Returns the variant with an additional exclusion for the pod classes with the indexes `where`."""
    return replace(
        variant,
        pod_classes=tuple(
            pod_class.excluding(exclusion) if index in where else pod_class
            for index, pod_class in enumerate(variant.pod_classes)
        ),
    )
