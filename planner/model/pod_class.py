"""Pod classes: groups of pods that the search treats as equal, and how equal classes are merged.

A *label that is no level* is a topologyKey of an affinity term that the topology does not contain as a level.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from operator import attrgetter

from planner.model.effort.deadline import poll
from planner.model.resolved import Attraction, NodeExclusion, ResolvedShape
from planner.model.topology import ROOT


@dataclass(frozen=True, slots=True)
class PodClass:
    """Pods of one shape and one topology constraint. `parts`: the PodSets in the class, in order, with the
    number of their pods in it; `count`: the sum.

    Levels are indexes into the topology's levels, `ROOT` for no level. `required` and `preferred` are the
    PodSets' own, in addition to the gang's. A domain of one of the `anti_affinity_levels` may hold only one
    of these pods.
    """

    parts: tuple[tuple[str, int], ...]
    count: int
    shape: ResolvedShape
    required: int = ROOT
    preferred: int = ROOT
    slice_level: int = ROOT
    slice_size: int = 1
    anti_affinity_levels: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    """The names of the PodSets if affinity or anti-affinity relates their pods to others, else empty."""
    anti_affinity_with: tuple[tuple[int, str], ...] = ()
    """Pairs (level, PodSet): no domain of the level may have a pod of this class and a pod of that PodSet."""
    anti_affinity_over: tuple[tuple[str, str], ...] = ()
    """Pairs (label key, PodSet): the same rule for labels that are no level."""
    co_located_over: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Pairs (label key, PodSets): all pods of these PodSets must be on nodes with the same label value."""
    co_located_at: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """Pairs (level, PodSets): each domain of the level has all pods of these PodSets, or none of them."""
    attractions: tuple[Attraction, ...] = ()
    """As in `ResolvedShape`. Only `class_by_class` observes them: the searches of all classes ignore them."""
    is_split: bool = False
    """Whether a class was divided into several and this is not the first of them. Only the first counts the
    preferred node affinity of the pods."""
    linked: bool = False
    """Whether the gang or this PodSet requests a topology, so that its pods communicate."""

    @property
    def anti_affinity_labels(self) -> tuple[str, ...]:
        """Labels that are no level and whose domains may hold only one pod of the same PodSet each."""
        return tuple(key for key, name in self.anti_affinity_over if name in self.names)

    @property
    def is_tied(self) -> bool:
        """Whether a rule ties the nodes of this class's pods to the nodes of other pods."""
        return bool(
            self.anti_affinity_with
            or self.anti_affinity_over
            or self.co_located_over
            or self.co_located_at
            or self.is_split
            or self.shape.spread_states
        )

    def excluding(self, *exclusions: NodeExclusion) -> PodClass:
        """Returns the class with additional exclusions of nodes."""
        return replace(self, shape=replace(self.shape, exclusions=(*self.shape.exclusions, *exclusions)))


PodClasses = tuple[PodClass, ...]


_FIELDS_TO_MATCH = attrgetter(
    *(field.name for field in fields(PodClass) if field.name not in ("parts", "names", "count"))
)
"""Returns all fields of a class except its PodSets and its count. Classes are merged if these are equal."""


def separated(first: PodClass, second: PodClass) -> set[int]:
    """Returns the levels (indexes) of which no domain may have pods of both classes.

    If both are the same class: the levels of which no domain may have two of its pods.
    """
    return {level for level, name in first.anti_affinity_with if name in second.names}


def merged(pod_classes: Iterable[PodClass]) -> tuple[PodClass, ...]:
    """Returns the classes with equal ones merged, for example a master with workers of the same shape.

    PodSets of equal size that each require one domain of the same level become slices of one class.
    """
    classes: list[PodClass] = []
    for pod_class in map(_as_slices, pod_classes):
        poll("search")  # each class is compared with all different ones
        index = next((i for i, k in enumerate(classes) if _joins(pod_class, k)), None)
        if index is None:
            classes.append(pod_class)
        else:
            former = classes[index]
            classes[index] = replace(
                former,
                parts=(*former.parts, *pod_class.parts),
                count=former.count + pod_class.count,
                names=(*former.names, *pod_class.names),
            )
    return tuple(_as_one(pod_class) for pod_class in classes)


def joined(first: PodClass, second: PodClass) -> PodClass | None:
    """Returns the two classes merged into one, None if they cannot be merged."""
    merged_kinds = merged((first, second))
    return merged_kinds[0] if len(merged_kinds) == 1 else None


def _as_slices(pod_class: PodClass) -> PodClass:
    if pod_class.required == ROOT or pod_class.slice_level != ROOT or pod_class.preferred != ROOT:
        return pod_class
    return replace(pod_class, required=ROOT, slice_level=pod_class.required, slice_size=pod_class.count)


def _as_one(pod_class: PodClass) -> PodClass:
    """Returns a class that consists of one slice as a class that requires one domain, which is equivalent."""
    if pod_class.slice_level == ROOT or pod_class.slice_size != pod_class.count:
        return pod_class
    return replace(
        pod_class, required=max(pod_class.required, pod_class.slice_level), slice_level=ROOT, slice_size=1
    )


def _joins(pod_class: PodClass, other: PodClass) -> bool:
    """Reports whether `pod_class` can be merged into `other`.

    Classes with anti-affinity among their own pods, with `co_located_at`, or with a preferred level cannot.
    """
    never_joins = pod_class.shape.anti_affinity or pod_class.co_located_at or pod_class.preferred != ROOT
    return not never_joins and _equal_but_for_counts(pod_class, other)


def _equal_but_for_counts(first: PodClass, second: PodClass) -> bool:
    return bool(_FIELDS_TO_MATCH(first) == _FIELDS_TO_MATCH(second))
