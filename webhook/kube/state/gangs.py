"""Gangs as the controller sees them: from stored workloads and pods to who waits, runs, is done. Pure.

A pod belongs to the gang of the topmost workload above it that is a gang (a JobSet's pod through its Job), or
to one that it names itself, or is one by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from planner.model.errors import Where
from planner.model.pod import DEFAULT_SCHEDULER
from planner.model.podgroup import PodGroup
from webhook.kube.state.gang_size import gang_size_left
from webhook.placement.queue import foreign_gates
from webhook.placement.stamp import PlacementAnnotation, placement_annotation
from webhook.placement.stated_amounts import as_noted
from webhook.placement.workload_plan import is_of_gang, replica_of
from webhook.workloads import KINDS, Workload, read, wants_plan
from webhook.workloads.annotation_keys import GANG_OF, POD_SET, QUEUED_GATE, RESERVATION
from webhook.workloads.pod_groups import KAI_GROUP
from webhook.workloads.templates import value_at

Json = Mapping[str, Any]


DONE = ("Complete", "Completed", "Failed", "Succeeded")
"""Conditions that say that a Job, JobSet or training job will start no more pods."""


DONE_RAY = ("SUCCEEDED", "FAILED", "STOPPED")


WATCHED = tuple(row for row in KINDS.values() if row.name not in ("Pod", "PodGroup"))
"""Rows of the kinds that may be a gang, or stand above one, or between a gang and its pods."""


NOTED = tuple(row for row in WATCHED if row.holds or row.each_pod)
"""Rows of the kinds that may be a gang themselves, and are told where it is."""


@dataclass(frozen=True, slots=True)
class Ref:
    """An object, as an event or a patch points at it. `uid` is the object's own."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> str:
        """NAMESPACE/KIND/NAME."""
        return f"{self.namespace}/{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class Work:
    """A workload object. `queued`: its own note says that it waits; `ids`: the reservations that it names.

    `notes`: what plans wrote onto it and its templates. `leaving`: it is being deleted. `failed`: it has
    finished, and says that it failed. `skip`: it leaves the plan, with all that it makes. `controller`:
    NAMESPACE/KIND/NAME of what made it, "" for nothing.
    """

    ref: Ref
    created: float
    owner: str
    gangs: tuple[PodGroup, ...]
    queued: bool
    ids: tuple[str, ...]
    finished: bool
    notes: tuple[PlacementAnnotation, ...] = ()
    leaving: bool = False
    failed: bool = False
    skip: bool = False
    controller: str = ""
    kueue: bool = False
    """Whether it is in a queue of Kueue's, which gates its pods instead of suspending it."""
    size_left: int = 0
    """How many pods KAI shall start together from now on, 0 to leave what it was told."""


@dataclass(frozen=True, slots=True)
class Unbound:
    """A pod that no scheduler has bound. `gated`: it waits at our gate. `group`: the gang that it names, or
    is by itself; None for a pod that never starts alone.

    `replica`: the gang of its replica where it belongs to one of an object's, "" otherwise. `verdict`: the
    name of its scheduler and why that does not bind it, "" where it has not looked at it. `pod_group`: KAI's.
    """

    ref: Ref
    created: float
    owner: str
    gated: bool
    ids: tuple[str, ...]
    pod_set: str
    replica: str
    group: PodGroup | None
    notes: tuple[PlacementAnnotation, ...] = ()
    verdict: str = ""
    pod_group: str = ""
    held_back: bool = False
    """It waits at a gate that others open."""


@dataclass(frozen=True, slots=True)
class Gang:
    """One gang with all that waits of it. `ref` is what events are told about."""

    group: PodGroup
    ref: Ref
    created: float
    queued: bool
    finished: bool = False
    failed: bool = False
    whole: bool = True
    """Whether `ref` is the workload itself (annotated when the gang is let in), and not one of its pods."""
    notes: tuple[PlacementAnnotation, ...] = ()
    """What former plans wrote into the templates."""
    ids: tuple[str, ...] = ()
    """The reservations that the workload names."""
    pods: tuple[Unbound, ...] = field(default=())
    held_back: bool = False
    """Whether its pods, or before there are any its templates, have gates that others open, or Kueue has
    still to admit it."""

    @property
    def waits(self) -> bool:
        """Whether it is in Bayplan's queue: one that others hold back keeps nobody waiting."""
        return self.queued and not (self.finished or self.held_back) and self.group.on_unavailable == "queue"

    @property
    def name(self) -> str:
        """The gang's name, which its reservation carries."""
        return self.group.name


def work_from(item: Json, where: Where, api_version: str, kind: str) -> Work | None:
    """A stored workload. Raises `InputError`; None for one that asks for no plan, and does not refuse one.

    One whose template calls its pods a gang is kept too: it may have been a gang once, and be none any more.
    """
    document = {**item, "apiVersion": api_version, "kind": kind}
    workload = read(document, namespace=item["metadata"].get("namespace", ""), where=where)
    annotations = item["metadata"].get("annotations") or {}
    ref = _ref(item, api_version, kind)
    note = placement_annotation(annotations)
    own = as_noted(workload.gangs, note.stated) if workload.holds and wants_plan(workload) else ()
    if not own and not workload.owner and not workload.skip and not _calls_pods_a_gang(item, workload):
        return None
    return Work(
        ref,
        seconds(item["metadata"].get("creationTimestamp", "")),
        _owner(item),
        own,
        note.in_queue,
        ids_in(annotations),
        finished(item),
        _notes(item, workload),
        bool(item["metadata"].get("deletionTimestamp")),
        failed(item),
        workload.skip,
        workload.owner,
        bool(workload.kueue) and not workload.suspends,
        gang_size_left(item, kind),
    )


def unbound_from(item: Json, where: Where) -> Unbound | None:
    """A stored pod without a node, None for one that is being deleted. Raises `InputError`."""
    if item["metadata"].get("deletionTimestamp"):
        return None
    document = {**item, "apiVersion": "v1", "kind": "Pod"}
    metadata, spec = item["metadata"], item["spec"]
    workload = read(document, namespace=metadata.get("namespace", ""), where=where)
    annotations = metadata.get("annotations") or {}
    note = placement_annotation(annotations)
    replica = replica_of(item, metadata.get("namespace", ""))
    # Pods of a gang by its kind are never let in alone, not even when its Job is gone and they are about to
    # go too. A set that was annotated as one may be none any more (`_gang_of`).
    of_replica = replica not in ("", annotations.get(GANG_OF))
    alone = not of_replica and not is_of_gang(item, workload.owner)
    gates = [gate.get("name") for gate in spec.get("schedulingGates") or []]
    return Unbound(
        _ref(item, "v1", "Pod"),
        seconds(metadata.get("creationTimestamp", "")),
        _owner(item),
        QUEUED_GATE in gates,
        ids_in(annotations),
        str(annotations.get(POD_SET, "")),
        replica,
        as_noted(workload.gangs, note.stated)[0] if workload.gangs and alone else None,
        (note,) if note.decision else (),
        held_back=any(gate != QUEUED_GATE for gate in gates),
        verdict=_verdict(item),
        pod_group=str(annotations.get(KAI_GROUP, "")),
    )


def _verdict(item: Json) -> str:
    for condition in (item.get("status") or {}).get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            if condition.get("reason") == "SchedulingGated":
                return ""
            scheduler = item["spec"].get("schedulerName") or DEFAULT_SCHEDULER
            return f"{scheduler} says: {' '.join(str(condition.get('message') or '').split())}"
    return ""


def gangs_of(works: Iterable[Work], pods: Iterable[Unbound]) -> dict[str, Gang]:
    """Every gang by name, with its pods that are not bound."""
    by_uid = {work.ref.uid: work for work in works}
    result: dict[str, Gang] = {}
    for work in by_uid.values():
        for group in work.gangs:
            result[group.name] = Gang(
                group,
                work.ref,
                work.created,
                work.queued,
                work.finished,
                work.failed,
                notes=work.notes,
                ids=() if work.leaving else work.ids,
                held_back=work.kueue or bool(foreign_gates(group)),
            )
    members: dict[str, list[Unbound]] = {}
    for pod in pods:
        name = pod.replica if pod.replica in result else _gang_of(pod, by_uid)
        if name:
            members.setdefault(name, []).append(pod)
    for name, fellows in members.items():
        gang = result.get(name) or _of_pods(fellows)
        gated = any(pod.gated for pod in fellows)
        ordered = tuple(sorted(fellows, key=lambda pod: (pod.created, pod.ref.name)))
        held_back = any(pod.held_back for pod in fellows)
        result[name] = replace(gang, pods=ordered, queued=gang.queued or gated, held_back=held_back)
    return result


def finished(item: Json) -> bool:
    """Whether a workload or pod will start nothing any more."""
    status = item.get("status") or {}
    done = any(
        condition.get("type") in DONE and condition.get("status") == "True"
        for condition in status.get("conditions") or []
    )
    return bool(done or status.get("jobStatus") in DONE_RAY or status.get("phase") in ("Succeeded", "Failed"))


def failed(item: Json) -> bool:
    """Whether a finished workload says of itself that it failed."""
    status = item.get("status") or {}
    conditions = (
        condition.get("type")
        for condition in status.get("conditions") or []
        if condition.get("status") == "True"
    )
    return "Failed" in conditions or "FAILED" in (status.get("jobStatus"), str(status.get("phase")).upper())


def ids_in(annotations: Json) -> tuple[str, ...]:
    """The reservations that an object names."""
    return tuple(name for name in str(annotations.get(RESERVATION, "")).split(",") if name)


def seconds(time: str) -> float:
    """RFC 3339 to seconds since the epoch; 0 for none."""
    return datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp() if time else 0.0


def _gang_of(pod: Unbound, works: Mapping[str, Work]) -> str:
    """The name of a pod's gang: its workload's, climbing owners; else its own, "" for none.

    What its template calls its gang is none where all owners are known and none of them is a gang.
    """
    owner, steps = pod.owner, 0
    while owner in works and steps < 8:
        work = works[owner]
        if work.gangs:
            return work.gangs[0].name
        owner, steps = work.owner, steps + 1
    return pod.group.name if pod.group is not None and not (pod.replica and owner) else ""


def _of_pods(fellows: list[Unbound]) -> Gang:
    """A gang that has no object but its pods; the oldest speaks for it."""
    first = min(fellows, key=lambda pod: (pod.created, pod.ref.name))
    assert first.group is not None, "only pods with a group of their own come here"
    notes = tuple(dict.fromkeys(note for pod in fellows for note in pod.notes))
    return Gang(first.group, first.ref, first.created, False, whole=False, notes=notes)


def _ref(item: Json, api_version: str, kind: str) -> Ref:
    metadata = item["metadata"]
    return Ref(api_version, kind, metadata.get("namespace", ""), metadata["name"], metadata.get("uid", ""))


def _owner(item: Json) -> str:
    """The UID of the controller, "" for none."""
    owners = item["metadata"].get("ownerReferences") or []
    return str(next((owner.get("uid", "") for owner in owners if owner.get("controller")), ""))


def _calls_pods_a_gang(item: Json, workload: Workload) -> bool:
    places = (template.metadata_path for template in workload.templates)
    return any(GANG_OF in ((value_at(item, place) or {}).get("annotations") or {}) for place in places)


def _notes(item: Json, workload: Workload) -> tuple[PlacementAnnotation, ...]:
    """What plans wrote onto the object and each of its templates."""
    places = [("metadata",), *(template.metadata_path for template in workload.templates)]
    placements = (
        placement_annotation((value_at(item, place) or {}).get("annotations") or {}) for place in places
    )
    return tuple(dict.fromkeys(note for note in placements if note.decision))
