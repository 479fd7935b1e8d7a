"""Functions of policies over workloads and levels: where templates lie, what a level's short name means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.request import resolve
from planner.topology import Topology
from webhook.cel import Function
from webhook.workloads import read

Json = Any


def places(obj: Json) -> list[Json]:
    """`workload.places(object)`: each pod template with its path (a JSON Pointer) and its PodSet's name.

    `path` leads to what holds `metadata` and `spec`, "" for a Pod; `metadata` and `spec` are those that stand
    there, {} for none. `podSet` is "" where one template serves all PodSets.
    """
    if not isinstance(obj, Mapping):
        raise ValueError("an object is no mapping")
    found = []
    for template in read(obj).templates:
        at: Any = obj
        for step in template.path:
            at = at[step]
        pointer = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in template.path)
        found.append(
            {
                "path": pointer,
                "podSet": template.pod_set,
                "metadata": at.get("metadata") or {},
                "spec": at.get("spec") or {},
            }
        )
    return found


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
