"""Reads from a cluster's objects which gangs and pods may be moved for defragmentation. Pure.

Moving a pod ends it, and its controller creates it again elsewhere. A pod may be moved if it has a
controller, its PodDisruptionBudget allows it, and it has opted in: by the label `bayplan.dev/restartable:
"true"` on it or its workload, or by being preemptible for KAI, which may end it at any time anyway.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from types import MappingProxyType
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model.errors import InputError
from planner.model.names import kind_of, namespace_of
from planner.model.pod import BoundPod
from planner.model.podgroup import PodGroup
from planner.model.schedulers import KAI, RUNAI
from planner.planning.defragmentation.movable import Movable
from webhook.placement.moving.disruption_budgets import Budget, protected, refused
from webhook.placement.pod_affinity import PlacementTerms, terms_of_annotation, without_placement_affinity
from webhook.placement.pod_gang import gang_name_of, held_for
from webhook.placement.schedulers.kai_preemption import PREEMPTIBILITY, is_preemptible
from webhook.placement.stamp import placement_annotation
from webhook.workloads import read
from webhook.workloads.keys.annotation_keys import RESTARTABLE
from webhook.workloads.kinds import row_of
from webhook.workloads.left_alone import is_left_alone
from webhook.workloads.stored import controller_of, seconds
from webhook.workloads.templates import value_at

Json = Mapping[str, Any]

SYSTEM_PRIORITY = 2_000_000_000
"""The lowest priority of system pods, that of `system-cluster-critical`. Such pods are never moved."""

MIRROR = "Node"
"""The kind that controls mirror pods. The kubelet runs their static pod whatever the API server says."""

_MOST_OWNERS = 8
"""Maximum number of owners above a pod that are followed. No known kind has as many; the limit ends loops."""


def movables(
    objects: Iterable[Json],
    snapshot: Snapshot,
    now: float,
    *,
    all_restartable: bool = False,
    left_alone: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Movable, ...]:
    """Returns a movable for every gang with bound pods and every other bound pod, except DaemonSet pods.

    They are sorted by name; `kept_because` of each says why it may not be moved, "" if it may. `objects`:
    pods, their owners and PodDisruptionBudgets; others are ignored. `now`: seconds since the epoch.
    `all_restartable`: pods may be moved unless they opt out. `left_alone`: additional reasons not to move
    something, as the end of a sentence, by the name of a gang, the UID of a pod's controller, or a namespace.
    """
    scene = _MovableObjects.of(objects, snapshot)
    by_gang: dict[str, list[_PodOfGang]] = defaultdict(list)
    for pod in scene.pods:
        read_pod = scene.pod_of_gang(pod, all_restartable=all_restartable)
        by_gang[read_pod.gang].append(read_pod)
    return tuple(_movable(by_gang[name], scene, now, left_alone) for name in sorted(by_gang))


@dataclass(frozen=True, slots=True)
class _PodOfGang:
    """A bound pod and its gang.

    `gang`: the gang's name, that of the pod if it has no gang. `group`: the gang's request; None if unknown.
    `started`: seconds since the epoch. `kept_because`: why the pod may not be moved, "" if it may.
    `opted_in`: a label says that it may be restarted. `maker`: for a pod without a gang, the UID of its
    controller.
    """

    gang: str
    group: PodGroup | None
    pod: BoundPod
    started: float
    priority: int
    kept_because: str
    opted_in: bool
    maker: str


@dataclass
class _MovableObjects:
    """The objects of a cluster, indexed for lookups.

    `bound`: bound pods by NAMESPACE/NAME. `pods`: their objects. `owners`: workloads and other controllers,
    by NAMESPACE/KIND/NAME. `groups`: the gangs of workloads, by name.
    """

    snapshot: Snapshot
    bound: Mapping[str, BoundPod]
    pods: list[Json] = field(default_factory=list)
    owners: dict[str, Json] = field(default_factory=dict)
    groups: dict[str, PodGroup] = field(default_factory=dict)
    budgets: list[Budget] = field(default_factory=list)

    @staticmethod
    def of(objects: Iterable[Json], snapshot: Snapshot) -> _MovableObjects:
        """Returns the index of these objects."""
        scene = _MovableObjects(snapshot, {pod.name: pod for pod in snapshot.pods if not pod.daemon})
        for obj in objects:
            if obj.get("kind") == "Pod":
                if _name(obj) in scene.bound and not obj["metadata"].get("deletionTimestamp"):
                    scene.pods.append(obj)
            elif obj.get("kind") == "PodDisruptionBudget":
                scene.budgets.append(Budget.of(obj))
            elif row_of(str(obj.get("apiVersion", "")), str(obj.get("kind", ""))) is not None:
                scene._add(obj)
            elif obj.get("metadata", {}).get("ownerReferences"):
                scene.owners[_key(obj)] = obj
        return scene

    def _add(self, workload: Json) -> None:
        self.owners[_key(workload)] = workload
        try:
            parsed = read(workload)
        except InputError:
            return  # the workload has no gang here; its pods are read all the same
        places = [("metadata",), *(template.metadata_path for template in parsed.templates)]
        notes = [(value_at(workload, place) or {}).get("annotations") or {} for place in places]
        written = (terms_of_annotation(self.snapshot, placement_annotation(note)) for note in notes)
        pins: PlacementTerms = reduce(or_, written, PlacementTerms())
        if not parsed.per_pod:
            for group in parsed.gangs:
                self.groups[group.name] = without_placement_affinity(group, pins)

    def pod_of_gang(self, pod: Json, *, all_restartable: bool) -> _PodOfGang:
        """Returns a pod with its gang and what prevents moving it."""
        namespace, bound = _namespace(pod), self.bound[_name(pod)]
        above = list(self._above(pod))
        gang, group = self._gang(pod, above)
        labels = [(obj["metadata"].get("labels") or {}) for obj in (pod, *above)]
        label = next((own[RESTARTABLE] for own in labels if RESTARTABLE in own), "")
        priority = int(pod["spec"].get("priority") or 0)
        kept_because = _kept_because(pod, namespace, label, priority)
        if not kept_because and group is None:
            kept_because = "belongs to a gang whose workload is not among the objects that were read"
        if (
            not kept_because
            and label != "true"
            and not all_restartable
            and not _preemptible(pod, labels, self.snapshot)
        ):
            kept_because = (
                f'has not agreed: no label {RESTARTABLE}: "true", and its scheduler may not preempt it'
            )
        started = (pod.get("status") or {}).get("startTime") or pod["metadata"].get("creationTimestamp") or ""
        maker = str(controller_of(pod).get("uid", "")) if kind_of(gang) == "Pod" else ""
        return _PodOfGang(
            gang, group, bound, seconds(str(started)), priority, kept_because, label == "true", maker
        )

    def _gang(self, pod: Json, above: list[Json]) -> tuple[str, PodGroup | None]:
        """Returns the name and the request of the pod's gang, or those of the pod if it has no gang.

        The request is None if it is unknown.
        """
        namespace = _namespace(pod)
        held, _ = held_for(self.snapshot, pod, namespace)
        if held:
            name = held[0].gang if len(held) == 1 else ", ".join(sorted(r.gang for r in held))
            return name, self.groups.get(name)
        for name in (gang_name_of(pod, namespace), *(_key(obj) for obj in reversed(above))):
            if name in self.groups:
                return name, self.groups[name]
        return self._own(pod, namespace)

    def _own(self, pod: Json, namespace: str) -> tuple[str, PodGroup | None]:
        """Returns the gang that the pod's own keys name, or the pod as its own gang: name and request."""
        own = f"{namespace}/Pod/{pod['metadata']['name']}"
        spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
        try:
            gangs = read({**pod, "spec": spec, "apiVersion": "v1"}, namespace=namespace).gangs
        except InputError:
            return own, None
        if not gangs:
            return own, None
        note = placement_annotation(pod["metadata"].get("annotations") or {})
        group = without_placement_affinity(gangs[0], terms_of_annotation(self.snapshot, note))
        return (group.name, group) if group.size > 1 else (own, replace(group, name=own))

    def _above(self, pod: Json) -> Iterator[Json]:
        """Yields the known controllers above a pod, the nearest first."""
        obj: Json | None = pod
        for _ in range(_MOST_OWNERS):
            reference = controller_of(obj) if obj is not None else {}
            obj = self.owners.get(f"{_namespace(pod)}/{reference.get('kind')}/{reference.get('name')}")
            if obj is None:
                return
            yield obj


def _movable(
    pods: list[_PodOfGang], scene: _MovableObjects, now: float, left_alone: Mapping[str, str]
) -> Movable:
    """Returns the movable of all pods of a gang. If one pod may not be moved, the gang may not."""
    first = pods[0]
    group = first.group or PodGroup(first.gang, ())
    bound = tuple(sorted((pod.pod for pod in pods), key=lambda pod: pod.name))
    names = (first.gang, first.maker, namespace_of(first.gang))
    lasting = next((pod.kept_because for pod in pods if pod.kept_because), "") or refused(
        bound, scene.budgets
    )
    lasting = lasting or next((left_alone[name] for name in names if name in left_alone), "")
    # Only a budget counts as a reason for now: it may allow the eviction at any moment.
    for_now = "" if lasting else protected(bound, scene.budgets)
    return Movable(
        group,
        bound,
        max(pod.priority for pod in pods),
        max(0.0, now - min(pod.started or now for pod in pods)),
        lasting or for_now,
        all(pod.opted_in for pod in pods),
        first.maker,
        bool(for_now),
    )


def _kept_because(pod: Json, namespace: str, label: str, priority: int) -> str:
    kind = str(controller_of(pod).get("kind", ""))
    if not kind:
        return "has no controller that would make it again"
    if kind == MIRROR:
        return "is a static pod of its node"
    if label == "false":
        return f'carries the label {RESTARTABLE}: "false"'
    if priority >= SYSTEM_PRIORITY:
        return f"has the priority {priority}, which is the cluster's own"
    if is_left_alone(namespace, kind) and label != "true":
        return f"is in {namespace}, a namespace of the cluster's own programs"
    return ""


def _preemptible(pod: Json, labels: list[Mapping[str, str]], snapshot: Snapshot) -> bool:
    """Returns whether it is known that KAI may preempt the pod.

    `labels`: those of the pod and of the controllers above it, the nearest first.
    """
    if pod["spec"].get("schedulerName") not in (KAI, RUNAI):
        return False
    stated = next((own[PREEMPTIBILITY] for own in labels if PREEMPTIBILITY in own), "")
    class_name = next((own["priorityClassName"] for own in labels if "priorityClassName" in own), "")
    class_name = class_name or str(pod["spec"].get("priorityClassName") or "")
    return is_preemptible(stated, class_name, snapshot.base.priorities) is True


def _namespace(obj: Json) -> str:
    return str(obj["metadata"].get("namespace") or "default")


def _name(pod: Json) -> str:
    return f"{_namespace(pod)}/{pod['metadata'].get('name', '')}"


def _key(obj: Json) -> str:
    return f"{_namespace(obj)}/{obj['kind']}/{obj['metadata'].get('name', '')}"
