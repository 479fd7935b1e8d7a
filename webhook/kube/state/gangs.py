"""Reads stored workloads and pods into what the watches keep of them: gangs, reservation ids, gates. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from planner.manifests.pods.bound_pod import stated_reservations
from planner.manifests.pods.pod import kueue_selection
from planner.model.errors import Where
from planner.model.pod import DEFAULT_SCHEDULER, NodeSelection
from planner.model.podgroup import PodGroup
from webhook.kube.state.gang_size import gang_size_left
from webhook.placement.pod_gang import gang_name_of, is_of_gang
from webhook.placement.shared_gangs.gang_members import GangMember
from webhook.placement.shared_gangs.gang_seat import stamped_seats
from webhook.placement.stamp import PlacementAnnotation, placement_annotation, placement_annotations
from webhook.placement.stated_amounts import as_noted
from webhook.workloads import KINDS, Workload, read, wants_plan
from webhook.workloads.fields import Field
from webhook.workloads.keys.annotation_keys import GANG_OF, POD_SET, QUEUED_GATE
from webhook.workloads.left_alone import KUEUE_ADMISSION_GATE
from webhook.workloads.shared_gangs.pod_groups import KAI_GROUP, PodGroups, groups_named
from webhook.workloads.stored import controller_of, reservation_ids, seconds
from webhook.workloads.templates import value_at

Json = Mapping[str, Any]


DONE = ("Complete", "Completed", "Failed", "Succeeded")
"""Types of conditions of a Job, JobSet or training job that will start no more pods."""


DONE_RAY = ("SUCCEEDED", "FAILED", "STOPPED")
"""Values of `status.jobStatus` of a RayJob that has ended."""


WATCHED = tuple(row for row in KINDS.values() if row.name not in ("Pod", "PodGroup"))
"""Rows of the kinds whose objects may be a gang, own a gang, or stand between a gang and its pods, as the Job
of a JobSet does.
"""


NOTED = tuple(row for row in WATCHED if row.holds or row.each_pod)
"""Rows of the kinds whose objects may be gangs themselves, and get annotations about their place."""


MAX_OWNERS = 8
"""Maximum length of a chain of owners; a longer one would be a cycle that somebody wrote by hand."""


NO_GROUPS: PodGroups = {}


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference to an object for events and patches. `uid` is the object's own."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> str:
        """The object as NAMESPACE/KIND/NAME."""
        return f"{self.namespace}/{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class GroupSource:
    """A stored object that names PodGroups, so that its gang depends on these. `names`: of the PodGroups."""

    document: Json
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Work:
    """A stored workload object. `created`: seconds since the epoch. `owner`: the UID of its controller, ""
    for none. `gangs`: those for which it reserves places; () if another object does, its pods are planned one
    by one, or none needs a plan. `queued`: its annotation says that it is in Bayplan's queue. `ids`: the ids
    of the reservations that it names.

    `notes`: the placement annotations on it and its templates. `leaving`: it is being deleted. `failed`: it
    has finished with a failure. `skip`: it and everything that it creates opted out of planning.
    `controller`: NAMESPACE/KIND/NAME of its controller, "" for none.
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
    """Whether it is in a Kueue queue, and Kueue gates its pods instead of suspending it."""
    size_left: int = 0
    """How many pods KAI should start together from now on; 0 to leave the annotation unchanged."""
    member: GangMember | None = None
    """Its share in a gang of several objects; None if it has gangs of its own."""
    source: GroupSource | None = None
    """The object, if it names a PodGroup: it is read again when the PodGroup changes."""
    note: PlacementAnnotation = field(default_factory=PlacementAnnotation)
    """The placement annotation of the object itself."""


@dataclass(frozen=True, slots=True)
class Unbound:
    """An unbound pod. `owner`: the UID of its controller, "" for none. `gated`: it has Bayplan's scheduling
    gate. `ids`: the reservations that it names. `pod_set`: its PodSet as its annotation says, "" if it does
    not. `group`: the gang that it names, or the pod as a gang of its own; None for a pod that never starts
    alone, because objects of its owner's kind are gangs.

    `replica`: the name of its gang if that is one replica of an object, or a whole Deployment or StatefulSet
    (`gang_name_of` in `pod_gang.py`); "" for other pods.
    `verdict`: the name of its scheduler and why the scheduler does not bind it, "" if the scheduler has not
    tried. `pod_group`: the name of its PodGroup in KAI, "" for none.
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
    """Whether it has a scheduling gate of another controller, whether or not it has Bayplan's too."""
    awaits_kueue: bool = False
    """Whether it has Kueue's admission gate: until Kueue has admitted it, it is unknown which nodes it may
    use.
    """
    member: GangMember | None = None
    """Its share in a gang of several objects, if no other object accounts for the pod; None for a gang of its
    own.
    """
    source: GroupSource | None = None
    """As in `Work`."""
    brought_by: str = ""
    """The UID of the gang member to which the pod belongs; that may be the pod itself."""
    selection: NodeSelection | None = None
    """Its node selector and tolerations, if Kueue manages it; None for all other pods."""


def work_from(
    item: Json, where: Where, api_version: str, kind: str, groups: PodGroups = NO_GROUPS
) -> Work | None:
    """Reads a stored workload; returns None for one that is not needed. Raises `InputError`.

    A workload is kept if it needs a plan, opts out, has a controller (its pods may belong to the controller's
    gang), names a PodGroup (other members of the group may need a plan), or has a template that marks its
    pods as a gang (it may have been a gang before).
    """
    document = {**item, "apiVersion": api_version, "kind": kind}
    workload = read(document, namespace=item["metadata"].get("namespace", ""), where=where, podgroups=groups)
    source = _source(document, workload)
    annotations = item["metadata"].get("annotations") or {}
    ref = _ref(item, api_version, kind)
    note = placement_annotation(annotations)
    own = as_noted(workload.gangs, note.stated) if workload.holds and wants_plan(workload) else ()
    is_noted = own or workload.owner or workload.skip or source is not None
    if not is_noted and not _calls_pods_a_gang(item, workload):
        return None
    return Work(
        ref,
        seconds(item["metadata"].get("creationTimestamp", "")),
        str(controller_of(item).get("uid", "")),
        own,
        note.in_queue,
        reservation_ids(annotations),
        finished(item),
        placement_annotations(item, workload),
        bool(item["metadata"].get("deletionTimestamp")),
        failed(item),
        workload.skip,
        workload.owner,
        bool(workload.kueue) and not workload.suspends,
        gang_size_left(item, kind),
        _member(workload, document, waits=note.in_queue) if workload.holds and not workload.skip else None,
        source,
        note,
    )


def unbound_from(item: Json, where: Where, groups: PodGroups = NO_GROUPS) -> Unbound | None:
    """Reads a stored unbound pod; returns None for one that is being deleted. Raises `InputError`."""
    if item["metadata"].get("deletionTimestamp"):
        return None
    document = {**item, "apiVersion": "v1", "kind": "Pod"}
    metadata, spec = item["metadata"], item["spec"]
    workload = read(document, namespace=metadata.get("namespace", ""), where=where, podgroups=groups)
    annotations = metadata.get("annotations") or {}
    note = placement_annotation(annotations)
    replica = gang_name_of(item, metadata.get("namespace", ""))
    # If objects of its owner's kind are gangs, a pod never starts alone, not even after its Job is deleted.
    # A Deployment or StatefulSet that GANG_OF names may be no gang any more, which `gangs_of` finds out.
    of_replica = replica not in ("", annotations.get(GANG_OF))
    alone = not of_replica and not is_of_gang(item, metadata.get("namespace", ""))
    gates = [gate.get("name") for gate in spec.get("schedulingGates") or []]
    return Unbound(
        _ref(item, "v1", "Pod"),
        seconds(metadata.get("creationTimestamp", "")),
        str(controller_of(item).get("uid", "")),
        QUEUED_GATE in gates,
        tuple(filter(None, stated_reservations(annotations).split(","))),
        str(annotations.get(POD_SET, "")),
        replica,
        as_noted(workload.gangs, note.stated)[0] if workload.gangs and alone else None,
        (note,) if note.decision else (),
        held_back=any(gate != QUEUED_GATE for gate in gates),
        awaits_kueue=KUEUE_ADMISSION_GATE in gates,
        verdict=_verdict(item),
        pod_group=str(annotations.get(KAI_GROUP, "")),
        member=_member(workload, document, waits=QUEUED_GATE in gates) if alone else None,
        source=_source(document, workload),
        selection=kueue_selection(metadata.get("labels") or {}, spec, where),
    )


def as_chosen(entry: Entry, choose: Callable[[PodGroup], PodGroup]) -> Entry:
    """Returns a workload or pod with its gangs replaced by `choose`, which adds the settings' defaults."""
    member = entry.member
    if member is not None:
        workload = replace(member.workload, gangs=tuple(map(choose, member.workload.gangs)))
        member = replace(member, workload=workload)
    if isinstance(entry, Work):
        return replace(entry, gangs=tuple(map(choose, entry.gangs)), member=member)
    return replace(entry, group=choose(entry.group) if entry.group else None, member=member)


def _source(document: Json, workload: Workload) -> GroupSource | None:
    """Returns the object if it or its pods name a PodGroup, else None."""
    groups = frozenset(
        name
        for template in workload.templates
        for name in groups_named(
            Field(value_at(document, template.metadata_path)), Field(value_at(document, template.spec_path))
        )
    )
    if not groups:
        return None
    metadata = {key: value for key, value in document["metadata"].items() if key in _OF_ITS_GANG}
    stated = {key: value for key, value in document.items() if key != "status"}
    return GroupSource({**stated, "metadata": metadata}, groups)


_OF_ITS_GANG = ("name", "namespace", "uid", "labels", "annotations", "ownerReferences")
"""The metadata that determines an object's gang; none of these fields changes with the object's status."""


def regrouped(entry: Entry, groups: PodGroups) -> Entry:
    """Returns a workload or pod that names PodGroups with the gang that these PodGroups define. Raises
    `InputError`.
    """
    if entry.source is None:
        return entry
    document = entry.source.document
    if isinstance(entry, Work):
        work = work_from(document, Where(), entry.ref.api_version, entry.ref.kind, groups)
        return replace(entry, gangs=work.gangs, member=work.member) if work is not None else entry
    pod = unbound_from(document, Where(), groups)
    return replace(entry, group=pod.group, member=pod.member) if pod is not None else entry


def _member(workload: Workload, document: Json, *, waits: bool) -> GangMember | None:
    if workload.share is None or not workload.gangs:
        return None
    metadata = document["metadata"]
    ids = reservation_ids(metadata.get("annotations") or {})
    return GangMember(metadata.get("uid", ""), workload, stamped_seats(workload, document), ids, waits)


Entry = TypeVar("Entry", Work, Unbound)


def _verdict(item: Json) -> str:
    """Returns `Unbound.verdict`. A gated pod has none: its condition does not come from its scheduler."""
    for condition in (item.get("status") or {}).get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            if condition.get("reason") == "SchedulingGated":
                return ""
            scheduler = item["spec"].get("schedulerName") or DEFAULT_SCHEDULER
            return f"{scheduler} says: {' '.join(str(condition.get('message') or '').split())}"
    return ""


def finished(item: Json) -> bool:
    """Returns whether a workload or pod has ended: it will start nothing any more."""
    status = item.get("status") or {}
    done = any(
        condition.get("type") in DONE and condition.get("status") == "True"
        for condition in status.get("conditions") or []
    )
    return bool(done or status.get("jobStatus") in DONE_RAY or status.get("phase") in ("Succeeded", "Failed"))


def failed(item: Json) -> bool:
    """Returns whether a finished workload reports a failure."""
    status = item.get("status") or {}
    conditions = (
        condition.get("type")
        for condition in status.get("conditions") or []
        if condition.get("status") == "True"
    )
    return "Failed" in conditions or "FAILED" in (status.get("jobStatus"), str(status.get("phase")).upper())


def _ref(item: Json, api_version: str, kind: str) -> Ref:
    metadata = item["metadata"]
    return Ref(api_version, kind, metadata.get("namespace", ""), metadata["name"], metadata.get("uid", ""))


def _calls_pods_a_gang(item: Json, workload: Workload) -> bool:
    places = (template.metadata_path for template in workload.templates)
    return any(GANG_OF in ((value_at(item, place) or {}).get("annotations") or {}) for place in places)
