"""Assigns the pods of a class to its PodSets, if a spread constraint depends on the assignment.

    a: 2 pods, b: 3 pods      one class of five pods, from the PodSets master (1) and worker (4); maxSkew 1

The plan pins each PodSet to its own nodes by node affinity, and kube-scheduler then counts the pods on these
nodes only (`nodeAffinityPolicy: Honor`). With the master on a, the nodes of the workers have one worker in a
and three in b, so the third worker in b cannot be bound. With the master on b, they have two workers each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from planner.model.pod_class import PodClass
from planner.search.result import Placement

Parts = tuple[tuple[str, int], ...]
"""PodSets with numbers of pods, in the order in which the pods of a class are assigned to them."""


def assigned_to_pod_sets(placement: Placement) -> Iterator[Placement]:
    """Yields the placement with some assignments of pods to PodSets; a class whose spread constraint depends
    on the pinned nodes is divided into one class for each PodSet.

    The assignments are: the PodSets one after the other in the order of the hosts, in the reverse order, and
    the PodSets mixed evenly. These three are enough for most gangs; to try all would be another search. If
    the pods can be bound in none of them, the caller gives up the placement. Yields the unchanged placement
    if it has no such class with several PodSets.
    """
    divided = [
        _counts_pinned_nodes(pod_class) and len(pod_class.parts) > 1 for pod_class in placement.pod_classes
    ]
    if not any(divided):
        yield placement
        return
    yield _assigned(placement, [pod_class.parts for pod_class in placement.pod_classes], divided)
    if all(pod_class.slice_size == 1 for pod_class in placement.pod_classes):  # a slice is within one PodSet
        yield _assigned(placement, [pod_class.parts[::-1] for pod_class in placement.pod_classes], divided)
        yield _assigned(
            placement, [_in_turn(pod_class.parts) for pod_class in placement.pod_classes], divided
        )


def _counts_pinned_nodes(pod_class: PodClass) -> bool:
    return any(state.constrained and state.spread.by_affinity for state in pod_class.shape.spread_states)


def _in_turn(parts: Parts) -> Parts:
    """Returns the parts as single pods, with the PodSets mixed evenly: the pods are sorted by their position
    in their PodSet, as a fraction of its size.
    """
    pods = sorted(((index + 0.5) / count, name) for name, count in parts for index in range(count))
    return tuple((name, 1) for _, name in pods)


def _assigned(placement: Placement, orders: list[Parts], divided: list[bool]) -> Placement:
    """Returns the placement with the divided classes' pods assigned to PodSets in the given orders."""
    pod_classes: list[PodClass] = []
    columns: list[list[int]] = []  # for each class, the index of the new class of each of its pods, in order
    for pod_class, order, is_divided in zip(placement.pod_classes, orders, divided, strict=True):
        totals = Counter({name: 0 for name, _ in pod_class.parts})
        for name, count in pod_class.parts:
            totals[name] += count
        index_of = {name: len(pod_classes) + index for index, name in enumerate(totals)}
        if is_divided:
            columns.append([index_of[name] for name, count in order for _ in range(count)])
            pod_classes += [replace(pod_class, parts=((name, n),), count=n) for name, n in totals.items()]
        else:
            columns.append([len(pod_classes)] * pod_class.count)
            pod_classes.append(pod_class)
    remaining = [iter(column) for column in columns]
    pods_by_node = []
    for node, each in placement.pods_by_node:
        counts = [0] * len(pod_classes)
        for column, count in zip(remaining, each, strict=True):
            for index in islice(column, count):
                counts[index] += 1
        pods_by_node.append((node, tuple(counts)))
    return replace(placement, pod_classes=tuple(pod_classes), pods_by_node=pods_by_node)
