"""Warnings about the priority in the pod specs of a gang. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from planner.cluster.snapshot import Snapshot
from planner.model.pod import PodShape
from planner.model.podgroup import PodGroup
from planner.model.priority import PriorityClasses
from planner.model.words import listed


def priority_notes(snapshot: Snapshot, group: PodGroup) -> tuple[str, ...]:
    """Returns a warning for each priority number or class with which the API server will refuse the pods."""
    classes = snapshot.base.priorities
    return tuple(dict.fromkeys(note for s in group.pod_sets for note in _notes(classes, s.shape)))


def _notes(classes: PriorityClasses, shape: PodShape) -> Iterator[str]:
    name, stated = shape.priority_class, shape.stated_priority
    value = classes.value(name)
    if value is None and classes.by_name:
        yield (
            f"PriorityClass {name!r} is not in this cluster, so the API server refuses the pods; use "
            f"{_all_classes(classes)} or leave priorityClassName out"
        )
    if stated is not None and stated != value:
        gives = f"PriorityClass {name!r}" if name else "no priorityClassName"
        means = "is not known here" if value is None else f"means {value}"
        yield (
            f"spec.priority {stated} is ignored: {gives} {means}, and the API server refuses pods that state "
            "another number; leave spec.priority out and name a PriorityClass"
        )


def _all_classes(classes: PriorityClasses) -> str:
    ordered = sorted(
        classes.by_name.values(), key=lambda priority_class: (-priority_class.value, priority_class.name)
    )
    return listed([f"{priority_class.name} ({priority_class.value})" for priority_class in ordered])
