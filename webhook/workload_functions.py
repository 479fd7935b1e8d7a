"""Functions of policies over workloads and levels: where templates lie, what a level's short name means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.podgroup import Constraint, PodGroup, PodSet
from planner.request import resolve
from planner.topology import Topology
from webhook.cel import Function
from webhook.workloads import read

Json = Any


def places(obj: Json) -> list[Json]:
    """`workload.places(object)`: each pod template with its path (a JSON Pointer), PodSet and wish.

    `path` leads to what holds `metadata` and `spec`, "" for a Pod; `metadata` and `spec` are those that stand
    there, {} for none. `podSet` is "" where one template serves all PodSets. `required`, `preferred`,
    `sliceLevel` and `sliceSize` are what its pods ask for, by themselves or as part of their gang, in
    whichever system's keys; "" and 0 for nothing. `count` pods of it belong to one gang, with `gpus` each.
    """
    if not isinstance(obj, Mapping):
        raise ValueError("an object is no mapping")
    workload = read(obj)
    group = workload.gangs[0] if workload.gangs else PodGroup("", ())
    found = []
    for template in workload.templates:
        at: Any = obj
        for step in template.path:
            at = at[step]
        sets = [one for one in group.pod_sets if template.pod_set in ("", one.name)]
        found.append(
            {
                "path": "".join(
                    f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in template.path
                ),
                "podSet": template.pod_set,
                "metadata": at.get("metadata") or {},
                "spec": at.get("spec") or {},
                "count": sum(one.count for one in sets),
                "gpus": max((one.shape.gpus for one in sets), default=0),
                **_wish(sets, group.constraint),
            }
        )
    return found


def _wish(sets: list[PodSet], gang: Constraint) -> dict[str, Json]:
    own = sets[0].constraint if sets else Constraint()
    return {
        "required": own.required or (gang.required if sets else ""),
        "preferred": own.preferred or (gang.preferred if sets else ""),
        "sliceLevel": own.slice_level,
        "sliceSize": own.slice_size,
    }


def level(levels: Json, word: Json) -> str:
    """`topology.level(levels, word)`: the label key that a level's key or short name ("rack") means, or "".

    `levels` are a topology's keys, coarse to fine.
    """
    if not isinstance(levels, list) or not levels or not isinstance(word, str) or not word:
        return ""
    return resolve(Topology("", tuple(str(one) for one in levels)), word)


WORKLOAD_FUNCTIONS: Mapping[str, Function] = {
    "workload.places": Function(places, 1, 1),
    "topology.level": Function(level, 2, 2),
}
"""Name in CEL → the function, the fewest and the most arguments."""
