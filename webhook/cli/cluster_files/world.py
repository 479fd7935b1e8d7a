"""Makes the controller's `World` (the state from which it derives its actions) from cluster files. Pure.

Gangs are read from the objects in the files by the same rules by which the controller reads them from
watches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model.errors import Where
from planner.model.names import namespace_of
from planner.model.podgroup import PodGroup
from webhook.admission.configuration.settings import queue_rules
from webhook.admission.environment import Environment
from webhook.cli.cluster_files.reading import objects_in
from webhook.files.reader import Document
from webhook.kube.controller.world import World
from webhook.kube.state.gangs import Unbound, Work, as_chosen, unbound_from, work_from
from webhook.workloads.kinds import row_of
from webhook.workloads.left_alone import is_left_alone
from webhook.workloads.shared_gangs.pod_groups import PodGroups, joinable
from webhook.workloads.stored import controller_of


def world_of_files(
    snapshot: Snapshot, environment: Environment, read: Sequence[Document], now: float
) -> World:
    """Returns the `World` that the controller would have in a cluster with the objects in these documents.

    `now`: seconds since the epoch. Raises `InputError` for a malformed object.
    """
    works: list[Work] = []
    pods: list[Unbound] = []
    kinds: set[str] = set()
    groups = joinable(environment.podgroups)
    for document in read:
        for obj in objects_in([document.value]):
            where = Where(document.file)
            row = row_of(str(obj.get("apiVersion", "")), str(obj.get("kind", "")))
            if row is None or not isinstance(obj.get("metadata"), dict):
                continue
            item = _as_stored(obj)
            if row.name == "Pod":
                pods += filter(None, [_unbound(item, where, groups)])
            elif row.name != "PodGroup":
                kinds.add(row.name)
                works += filter(None, [work_from(item, where, str(obj["apiVersion"]), row.name, groups)])
    chosen = _chosen(environment)
    return World(
        snapshot,
        tuple(as_chosen(work, chosen) for work in works),
        tuple(as_chosen(pod, chosen) for pod in pods),
        frozenset(kinds),
        now,
        observed=environment.observed(
            {*(work.ref.namespace for work in works), *(pod.ref.namespace for pod in pods)}
        ),
        limits=lambda namespace: environment.settings(namespace).holds,
        rules=queue_rules(environment.settings, now),
    )


def _as_stored(obj: dict[str, Any]) -> dict[str, Any]:
    """Returns the object with a namespace and a UID, which are missing in hand-written manifests."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace") or "default"
    uid = metadata.get("uid") or f"{namespace}/{obj['kind']}/{metadata.get('name')}"
    return {**obj, "metadata": {**metadata, "namespace": namespace, "uid": uid}}


def _unbound(item: dict[str, Any], where: Where, groups: PodGroups) -> Unbound | None:
    spec, phase = item.get("spec") or {}, (item.get("status") or {}).get("phase")
    if spec.get("nodeName") or phase in ("Succeeded", "Failed"):
        return None
    kind = str(controller_of(item).get("kind", ""))
    return None if is_left_alone(item["metadata"]["namespace"], kind) else unbound_from(item, where, groups)


def _chosen(environment: Environment) -> Callable[[PodGroup], PodGroup]:
    """Returns a function that sets what a gang reserves by the settings of its namespace, if the gang
    itself does not state it.
    """
    return lambda group: environment.settings(namespace_of(group.name)).reserve.of(group)
