"""Finds the pods of a Kubernetes PodGroup in all objects that create them, with the scheduler of each. Pure.

All pods of a PodGroup must name the same scheduler, otherwise none of them starts. They may come from several
objects (`spec.schedulingGroup` since Kubernetes 1.36, `spec.workloadRef` in 1.35).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.model.pod import DEFAULT_SCHEDULER, BoundPod

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GroupMember:
    """The pods of one object that are in a PodGroup. `group`: the name of the PodGroup. `scheduler`: their
    `schedulerName`. `who`: the object, KIND/NAME."""

    namespace: str
    group: str
    scheduler: str
    who: str


def members(obj: Json, namespace: str, specs: Iterable[Any]) -> Iterator[GroupMember]:
    """Yields a group member for each of an object's pod specs that names a PodGroup.

    `namespace`: used for an object that states no namespace. Malformed specs are skipped."""
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    namespace = str(metadata.get("namespace") or namespace)
    who = f"{obj.get('kind')}/{metadata.get('name') or metadata.get('generateName') or '(no name)'}"
    for spec in specs:
        if isinstance(spec, Mapping) and (group := group_of(spec)):
            yield GroupMember(namespace, group, str(spec.get("schedulerName") or DEFAULT_SCHEDULER), who)


def group_of(spec: Json) -> str:
    """Returns the name of the PodGroup that a pod spec names, "" for none."""
    for field, key in (("schedulingGroup", "podGroupName"), ("workloadRef", "name")):
        joined = spec.get(field)
        if (
            joined is not None
            and isinstance(joined, Mapping)
            and isinstance(joined.get(key), str)
            and joined[key]
        ):
            return str(joined[key])
    return ""


def other_members(
    own: Sequence[GroupMember], candidates: Iterable[GroupMember], bound: Iterable[BoundPod]
) -> list[GroupMember]:
    """Returns the members of the same groups as `own` that other objects have: those of `candidates`, and
    bound pods. Each is returned once."""
    if not own:
        return []
    namespace = own[0].namespace
    groups, origins = {member.group for member in own}, {member.who for member in own}
    applied = [member for member in candidates if member.namespace == namespace and member.group in groups]
    others = dict.fromkeys((*applied, *running(bound, namespace, groups)))
    return [member for member in others if member.who not in origins]


def running(pods: Iterable[BoundPod], namespace: str, groups: set[str]) -> Iterator[GroupMember]:
    """Yields the bound pods that are in one of these groups of a namespace."""
    prefix = namespace + "/"
    for pod in pods:
        if pod.scheduling_group in groups and pod.name.startswith(prefix):
            yield GroupMember(
                namespace, pod.scheduling_group, pod.scheduler, f"Pod/{pod.name[len(prefix) :]}"
            )
