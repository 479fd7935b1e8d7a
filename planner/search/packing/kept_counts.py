"""How many of the pods that its nodes could hold a domain may keep, under the levels that the pods require.

    a rack whose nodes could hold 7 of 12 pods
      required in one rack         0: all twelve are there, or none
      slices of 4 within a rack    4: slices are there wholly
      one pod a rack               1

If two pod classes have anti-affinity to each other over a level, a domain keeps only one of them (`splits`).
If pod classes must be together in one domain, it keeps all of them or none (`unions`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from planner.model.pod_class import PodClass, separated
from planner.search.packing.pod_counts import CountAlgebra, PodCount


def projections(
    pod_classes: Sequence[PodClass], counts: CountAlgebra, levels: int
) -> list[Callable[[PodCount, bool], PodCount] | None]:
    """For each level what one of its domains may hold of the counts that its nodes could: None is "all".

    A pod class required in one domain of the level is there wholly or not at all; slices are there wholly; of
    pods that must differ over the level there is one. A domain without the level's label (`has_name` False)
    can keep none of the first two together.
    """
    return [_projection(pod_classes, counts, level) for level in range(levels)]


Split = Callable[[PodCount], tuple[PodCount, ...]]


def splits(pod_classes: Sequence[PodClass], counts: CountAlgebra, levels: int) -> list[Split | None]:
    """For each level what one of its named domains may hold of certain counts, where some pod classes shun
    others: of each two such pod classes one or the other. None where no pod classes do."""
    return [_split(pod_classes, counts, level) for level in range(levels)]


def _split(pod_classes: Sequence[PodClass], counts: CountAlgebra, level: int) -> Split | None:
    pairs = [
        (first, second)
        for first in range(len(pod_classes))
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
    """For each level what one of its domains may hold where pod classes are all in one domain of it, or of a
    finer one: of these all, or none. None where no pod classes are."""
    return [_union(pod_classes, counts, level) for level in range(levels)]


def _union(
    pod_classes: Sequence[PodClass], counts: CountAlgebra, level: int
) -> Callable[[PodCount, bool], PodCount] | None:
    rules = sorted(
        {rule for pod_class in pod_classes for rule in pod_class.co_located_at if rule[0] >= level}
    )
    if not rules:
        return None
    members = [
        (
            rule_level == level,
            [index for index, pod_class in enumerate(pod_classes) if set(pod_class.names) & set(names)],
        )
        for rule_level, names in rules
    ]

    def united(value: PodCount, has_name: bool) -> PodCount:
        each = list(counts.each(value))
        for _ in members:  # what one union loses another may lose for it
            for at_this_level, indices in members:
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
            # What must be together further in cannot be cut down to one.
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
