"""Reduces the number of pods that the nodes of a domain could hold to the number that the rules of the level
allow in the domain: the pods that it *keeps*.

    a rack whose nodes could hold 7 of 12 pods keeps
      required in one rack         0: a rack has all twelve pods, or none
      slices of 4 within a rack    4: a rack has only whole slices
      anti-affinity over racks     1

If two pod classes have anti-affinity to each other over a level, a domain keeps only one of them (`splits`).
If pod classes must be together in one domain, it keeps all of them or none (`unions`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from planner.model.pod_class import PodClass, separated
from planner.search.pod_counts import CountAlgebra, PodCount


def projections(
    pod_classes: Sequence[PodClass], counts: CountAlgebra, levels: int
) -> list[Callable[[PodCount, bool], PodCount] | None]:
    """Returns for each level a function, or None if domains of the level keep all pods. Its arguments are the
    count that a domain's nodes could hold and whether the domain has a name; it returns the kept count.

    A pod class that is required in one domain of the level is kept completely or not at all; slices are kept
    completely; of pods with anti-affinity over the level one is kept. A domain without the level's label
    (`has_name` False) keeps neither a required class nor slices.
    """
    return [_projection(pod_classes, counts, level) for level in range(levels)]


Split = Callable[[PodCount], tuple[PodCount, ...]]


def splits(pod_classes: Sequence[PodClass], counts: CountAlgebra, levels: int) -> list[Split | None]:
    """Returns for each level the function from a count to the counts that a named domain may keep because of
    anti-affinity between pod classes: one of each two such classes. None if there are no such classes.
    """
    return [_split(pod_classes, counts, level) for level in range(levels)]


def _split(pod_classes: Sequence[PodClass], counts: CountAlgebra, level: int) -> Split | None:
    pairs = [
        (first, second)
        for first in range(len(pod_classes))
        if pod_classes[first].anti_affinity_with  # true of few classes, so this is not quadratic
        for second in range(first + 1, len(pod_classes))
        if level in separated(pod_classes[first], pod_classes[second])
    ]
    if not pairs:
        return None

    def split(value: PodCount) -> tuple[PodCount, ...]:
        kept = {counts.each(value): None}
        for first, second in pairs:
            for each in [each for each in kept if each[first] and each[second]]:
                del kept[each]
                for without in (second, first):
                    kept[(*each[:without], 0, *each[without + 1 :])] = None
        return tuple(counts.pack(each) for each in kept)

    return split


def unions(
    pod_classes: Sequence[PodClass], counts: CountAlgebra, levels: int
) -> list[Callable[[PodCount, bool], PodCount] | None]:
    """Returns for each level a function with the arguments of `projections` for pod classes that must be
    together, in the domain or in a finer one: it keeps all pods of these classes or none. None if there are
    no such classes.
    """
    return [_union(pod_classes, counts, level) for level in range(levels)]


def _union(
    pod_classes: Sequence[PodClass], counts: CountAlgebra, level: int
) -> Callable[[PodCount, bool], PodCount] | None:
    rules = sorted(
        {rule for pod_class in pod_classes for rule in pod_class.co_located_at if rule[0] >= level}
    )
    if not rules:
        return None
    unions = [
        (
            rule_level == level,
            [index for index, pod_class in enumerate(pod_classes) if set(pod_class.names) & set(names)],
        )
        for rule_level, names in rules
    ]

    def united(value: PodCount, has_name: bool) -> PodCount:
        each = list(counts.each(value))
        for _ in unions:  # repeated, because classes set to 0 for one union may make another one incomplete
            for at_this_level, indices in unions:
                if (at_this_level and not has_name) or any(
                    each[index] < pod_classes[index].count for index in indices
                ):
                    for index in indices:
                        each[index] = 0
        return counts.pack(each)

    return united


def _projection(
    pod_classes: Sequence[PodClass], counts: CountAlgebra, level: int
) -> Callable[[PodCount, bool], PodCount] | None:
    if not any(level in (k.required, k.slice_level, *k.anti_affinity_levels) for k in pod_classes):
        return None

    def keep(pod_class: PodClass, count: int, has_name: bool) -> int:
        if has_name and level in pod_class.anti_affinity_levels and count > 1:
            # Of pods that must be together at a finer level none is kept: a single pod would be alone.
            unit = (
                pod_class.count
                if pod_class.required > level
                else pod_class.slice_size
                if pod_class.slice_level > level
                else 1
            )
            count = 1 if unit == 1 else 0
        if level == pod_class.slice_level:
            count = count // pod_class.slice_size * pod_class.slice_size if has_name else 0
        if level == pod_class.required and not (has_name and count == pod_class.count):
            return 0
        return count

    def project(value: PodCount, has_name: bool) -> PodCount:
        each = counts.each(value)
        return counts.pack([keep(k, n, has_name) for k, n in zip(pod_classes, each, strict=True)])

    return project
