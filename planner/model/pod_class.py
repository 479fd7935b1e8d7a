"""Pod classes: pods that the search treats as equal, and when two classes can be merged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from operator import attrgetter

from planner.model.deadline import poll
from planner.model.resolved import ResolvedShape
from planner.model.topology import ROOT


@dataclass(frozen=True, slots=True)
class PodClass:
    """Pods of one shape and one constraint. `parts`: the PodSets in it, in order, with counts.

    Levels are indices into the topology, `ROOT` for no level. `required` and `preferred` are the PodSets'
    own; `anti_affinity_levels` are the levels over which these pods must differ.
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
    """The PodSets, where some pods must not be, or must be, with pods of others."""
    anti_affinity_with: tuple[tuple[int, str], ...] = ()
    """For each of these levels and PodSets: no pod in a domain of the level with one of that PodSet."""
    anti_affinity_over: tuple[tuple[str, str], ...] = ()
    """The same over labels that are no level."""
    co_located_over: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """For each of these labels and PodSets: all their pods in one domain of the label."""
    co_located_at: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """For each of these levels and PodSets: in a domain of the level are all their pods, or none."""
    is_split: bool = False
    """It is a part of the pods of another kind; what they prefer is weighed there."""
    linked: bool = False
    """Whether the gang, or this PodSet, asks for a topology: its pods talk to one another."""

    @property
    def anti_affinity_labels(self) -> tuple[str, ...]:
        """Labels over which these pods must differ and that are no level."""
        return tuple(key for key, name in self.anti_affinity_over if name in self.names)


PodClasses = tuple[PodClass, ...]


_NATURE = attrgetter(
    *(field.name for field in fields(PodClass) if field.name not in ("parts", "names", "count"))
)
"""All of a class but which pods it has, and how many."""


def separated(first: PodClass, second: PodClass) -> set[int]:
    """Levels at which one domain must not hold pods of both classes; with itself, no two of its pods."""
    return {level for level, name in first.anti_affinity_with if name in second.names}


def merged(kinds: Iterable[PodClass]) -> tuple[PodClass, ...]:
    """The classes with equal ones merged: a master with the same shape as its workers joins them.

    PodSets of equal size that each require one domain of a level become slices of one class.
    """
    classes: list[PodClass] = []
    for kind in map(_as_slices, kinds):
        poll("search")  # each is compared with all that differ from it
        index = next((i for i, k in enumerate(classes) if _joins(kind, k)), None)
        if index is None:
            classes.append(kind)
        else:
            former = classes[index]
            classes[index] = replace(
                former,
                parts=(*former.parts, *kind.parts),
                count=former.count + kind.count,
                names=(*former.names, *kind.names),
            )
    return tuple(_as_one(kind) for kind in classes)


def joined(first: PodClass, second: PodClass) -> PodClass | None:
    """The two classes as one; None where they differ."""
    merged_kinds = merged((first, second))
    return merged_kinds[0] if len(merged_kinds) == 1 else None


def _as_slices(kind: PodClass) -> PodClass:
    if kind.required == ROOT or kind.slice_level != ROOT or kind.preferred != ROOT:
        return kind
    return replace(kind, required=ROOT, slice_level=kind.required, slice_size=kind.count)


def _as_one(kind: PodClass) -> PodClass:
    """A class of one slice, written as required in one domain; both forms are equivalent."""
    if kind.slice_level == ROOT or kind.slice_size != kind.count:
        return kind
    return replace(kind, required=max(kind.required, kind.slice_level), slice_level=ROOT, slice_size=1)


def _joins(kind: PodClass, other: PodClass) -> bool:
    """Whether the classes are equal.

    Classes that are kept apart, kept together with others, or prefer a level on their own never merge.
    """
    never_joins = kind.shape.anti_affinity or kind.co_located_at or kind.preferred != ROOT
    return not never_joins and _equal_but_for_counts(kind, other)


def _equal_but_for_counts(first: PodClass, second: PodClass) -> bool:
    return bool(_NATURE(first) == _NATURE(second))
