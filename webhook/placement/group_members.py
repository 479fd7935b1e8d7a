"""The pods of a Kubernetes PodGroup, whichever objects create them: which scheduler each names. Pure.

All pods of such a group must name the same scheduler, otherwise none of them starts. They may come from
several objects (`spec.schedulingGroup` since 1.36, `spec.workloadRef` in 1.35).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.model.pod import DEFAULT_SCHEDULER, BoundPod

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GroupMember:
    """Pods of a group: the group's namespace and name, their scheduler, and the object that they come
    from."""

    namespace: str
    group: str
    scheduler: str
    who: str


def members(obj: Json, namespace: str, specs: Iterable[Any]) -> Iterator[GroupMember]:
    """Yields the group members in an object's pod specs; a malformed spec gives none."""
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    namespace = str(metadata.get("namespace") or namespace)
    who = f"{obj.get('kind')}/{metadata.get('name') or metadata.get('generateName') or '(no name)'}"
    for spec in specs:
        if isinstance(spec, Mapping) and (group := group_of(spec)):
            yield GroupMember(namespace, group, str(spec.get("schedulerName") or DEFAULT_SCHEDULER), who)


def group_of(spec: Json) -> str:
    """Returns the group that a pod spec joins, "" for none."""
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
    """Yields pods of the groups of `own` that are in other objects (`candidates`) or bound, each once."""
    if not own:
        return []
    namespace = own[0].namespace
    groups, origins = {member.group for member in own}, {member.who for member in own}
    applied = [member for member in candidates if member.namespace == namespace and member.group in groups]
    others = dict.fromkeys((*applied, *running(bound, namespace, groups)))
    return [member for member in others if member.who not in origins]


def running(pods: Iterable[BoundPod], namespace: str, groups: set[str]) -> Iterator[GroupMember]:
    """Yields the bound pods of these groups."""
    prefix = namespace + "/"
    for pod in pods:
        if pod.scheduling_group in groups and pod.name.startswith(prefix):
            yield GroupMember(
                namespace, pod.scheduling_group, pod.scheduler, f"Pod/{pod.name[len(prefix) :]}"
            )
