"""Finds the gang of a pod that a workload creates, by the pod's template, labels and controller, and the plan
that this gang already has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.names import kind_of
from planner.model.podgroup import PodGroup, PodSet
from planner.model.reservation import Reservation, reservation_id
from planner.planning.replay import answer_of
from webhook.placement.gate import is_gated
from webhook.placement.hold import is_full
from webhook.placement.workload_plan import GangPlan, WorkloadPlan
from webhook.workloads import KINDS
from webhook.workloads.keys.annotation_keys import GANG_OF, POD_SET
from webhook.workloads.shared_gangs.pod_groups import JOINED_KINDS
from webhook.workloads.stored import controller_of, controller_row, reservation_ids

INDEX = "batch.kubernetes.io/job-completion-index"
"""The annotation and label that the Job controller gives each pod of an Indexed Job when it creates the
pod.
"""

REPLICAS = (
    ("LeaderWorkerSet", "leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/group-index"),
    ("JobSet", "jobset.sigs.k8s.io/jobset-name", "jobset.sigs.k8s.io/job-global-index"),
)
"""Kinds whose replicas may be gangs of their own: the kind, the pod label with the name of the object, and
the pod label with the index of the replica.
"""


def gang_name_of(pod: Mapping[str, Any], namespace: str) -> str:
    """Returns the name of a pod's gang: NAMESPACE/KIND/NAME/INDEX if the pod belongs to one replica of an
    object, NAMESPACE/KIND/NAME if a whole Deployment or StatefulSet is the gang; "" for other pods.

    The labels count only on pods of a controller that Bayplan knows, because anybody can write them onto
    other pods. The LeaderWorkerSet webhook may label leader pods after Bayplan's webhook was called; their
    index is then taken from the end of their name."""
    if not has_stamped_template(pod):
        return ""
    metadata = _metadata(pod)
    labels = metadata.get("labels") or {}
    for kind, name_label, index_label in REPLICAS:
        name = str(labels.get(name_label, ""))
        index = str(labels.get(index_label, ""))
        if name and not index and kind == "LeaderWorkerSet":
            stem, _, index = str(metadata.get("name", "")).rpartition("-")
            index = index if stem == name else ""
        if name and index.isdecimal():
            return f"{namespace}/{kind}/{name}/{index}"
    stamped = str((metadata.get("annotations") or {}).get(GANG_OF, ""))
    return stamped if stamped.startswith(f"{namespace}/") else ""


def held_for(
    snapshot: Snapshot, pod: Mapping[str, Any], namespace: str
) -> tuple[tuple[Reservation, ...], bool]:
    """Returns the reservations of a pod's gang, and whether the gang was planned.

    - If the pod is of a replica that is a gang of its own: the replica's reservation. If the object was
      planned but the replica holds nothing, the result is `((), True)`: the replica waits.
    - Otherwise, if the pod's annotation has reservation ids: those reservations that the pod may use
      (`_may_name`), because anybody can write an id into a manifest.
    - Otherwise: the reservation of the nearest gang that the pod's owners belong to. A template has no ids if
      admission skipped it because its object has a controller."""
    annotations = _metadata(pod).get("annotations") or {}
    ids = dict.fromkeys(reservation_ids(annotations))  # in the order of the gangs of the object
    replica = gang_name_of(pod, namespace)
    if replica and reservation_id(replica.rpartition("/")[0]) not in ids:
        held = tuple(filter(None, [snapshot.holding(replica)]))
        if held or ids or GANG_OF in annotations:
            return held, True
    elif ids:
        stored = map(snapshot.with_id, ids)
        held = tuple(r for r in stored if r is not None and _may_name(pod, namespace, r))
        if held or has_stamped_template(pod):
            return held, bool(held)
    above = (snapshot.holding(gang) for gang in gangs_above(pod, namespace))
    held = tuple(reservation for reservation in above if reservation is not None)[:1]
    return held, bool(held)


GROWING_KINDS = frozenset(row.name for row in KINDS.values() if row.grows)
"""Kinds of which one gang may get more pods unseen (`WorkloadKind.grows`)."""


SURGING_KINDS = frozenset(row.name for row in KINDS.values() if row.surges)
"""Kinds whose gang has more pods than it asks for during an update (`WorkloadKind.surges`)."""


def seats_for(
    snapshot: Snapshot, pod: Mapping[str, Any], namespace: str
) -> tuple[tuple[Reservation, ...], bool]:
    """Returns the reservations of a new pod's gang, and whether the gang was planned, as `held_for` does.

    If each seat has a bound pod, the result is `((), True)`: the gang was scaled up (`kubectl scale`), and
    the pod waits until the controller has reserved a seat for it. A pod that replaces one which is about to
    end waits too, until the controller has seen it."""
    held, is_held = held_for(snapshot, pod, namespace)
    if len(held) != 1 or not has_stamped_template(pod) or not _may_be_scaled(held[0].gang):
        return held, is_held
    return ((), True) if is_full(snapshot, held[0], pod) else (held, is_held)


def _may_be_scaled(gang: str) -> bool:
    return kind_of(gang) in GROWING_KINDS and gang.count("/") == 2  # a replica has its size


def _may_name(pod: Mapping[str, Any], namespace: str, reservation: Reservation) -> bool:
    """Returns whether a pod whose annotation has the reservation's id may use the reservation.

    Pods of a controller have the id from their template, in which Bayplan writes or removes it. A bare pod
    may use the reservation of a gang that pods join (`JOINED_KINDS`), because such a gang counts its members.
    It may also use its own reservation. That was made before the API server generated the pod's name, so it
    is under another name, and is recognised by the pod's UID. A pod has a UID and a name in the validating
    call and when it is stored; in the mutating call, the plan finds the reservation by the name used there.
    """
    if not reservation.gang.startswith(f"{namespace}/"):
        return False
    kind = kind_of(reservation.gang)
    if has_stamped_template(pod) or kind in JOINED_KINDS:
        return True
    metadata = _metadata(pod)
    uid = str(metadata.get("uid") or "")
    is_known = bool(uid and metadata.get("name"))
    return kind == "Pod" and is_known and reservation.owner_uid in ("", uid)


def gangs_above(pod: Mapping[str, Any], namespace: str) -> tuple[str, ...]:
    """Returns the names of the gangs that a pod may belong to by its labels and controller, the nearest
    first.

    A pod that is a controller itself, for example a Spark driver, shares no gang with the pods that it
    creates. A Deployment's pod is created by a ReplicaSet, whose name ends in the pod's label
    `pod-template-hash`."""
    metadata = _metadata(pod)
    replica = gang_name_of(pod, namespace)
    names = [replica, replica.rpartition("/")[0]] if replica else []
    row = controller_row(pod) if metadata else None
    if row is not None and row.makes_pods:
        name = str(controller_of(pod).get("name", ""))
        names.append(f"{namespace}/{row.name}/{name}")
        ending = f"-{(metadata.get('labels') or {}).get('pod-template-hash', '')}"
        if row.name == "ReplicaSet" and len(ending) > 1 and name.endswith(ending):
            names.append(f"{namespace}/Deployment/{name.removesuffix(ending)}")
    return tuple(names)


def is_of_gang(pod: Mapping[str, Any], namespace: str) -> bool:
    """Returns whether a pod starts together with the other pods of its controller, because the controller's
    kind is planned as a whole.

    The answer does not depend on the controller's current state. A Job's pod starts together with the others
    if it has a completion index or belongs to a replica of a larger object. Admission removes the keys that
    would say so from the template of a Job that is not Indexed (`own_keys`)."""
    row = controller_row(pod)
    if row is None or not (row.holds and row.makes_pods):
        return False
    if row.name == "Job":
        metadata = _metadata(pod)
        indexed = any(INDEX in (metadata.get(place) or {}) for place in ("annotations", "labels"))
        return indexed or bool(gang_name_of(pod, namespace))
    return True


def has_stamped_template(pod: Mapping[str, Any]) -> bool:
    """Returns whether the pod's controller is of a kind whose templates Bayplan annotates, or from which it
    removes its annotations.

    A placement annotation on such a pod is Bayplan's own. On other pods (bare pods and those of a
    ReplicationController) anybody may have written it. Exceptions: a template that was stored while its
    namespace was not in mode `enforce`, and a template that an object of an unknown kind passed on
    (SECURITY.md)."""
    row = controller_row(pod)
    return row is not None and row.makes_pods


def replay_for_pod(
    snapshot: Snapshot,
    pod: Mapping[str, Any],
    namespace: str,
    own: PodGroup,
    waiting: Callable[[], Iterable[str]] = tuple,
    *,
    queued: bool = False,
) -> WorkloadPlan | None:
    """Returns the plan that a pod's gang already has; None if the pod is to be planned by itself.

    The plan repeats the gang's reservations (`seats_for`), or is a plan with the decision `queued`, which
    makes the pod wait at the gate. Four kinds of pods wait: those of a replica that holds nothing yet while
    its object was admitted for other replicas, those for which their gang has no seat left, those whose
    template says that the gang was `queued`, and those of a gang whose name `waiting` returns; the last two
    only if the pod does not have the gate yet.
    `waiting` is called only if nothing else decides, because it reads all workloads. `own`: the pod as a gang
    of its own."""
    held, is_held = seats_for(snapshot, pod, namespace)
    if held and not has_stamped_template(pod) and any(_is_other_group(r, own) for r in held):
        return None
    if held:
        pod_set = str((_metadata(pod).get("annotations") or {}).get(POD_SET, ""))
        return WorkloadPlan(tuple(_replayed(r, pod_set, own) for r in held), snapshot)
    if is_held:
        gang = gang_name_of(pod, namespace) or next(iter(gangs_above(pod, namespace)), own.name)
        return _waiting(snapshot, gang, own)
    above = () if is_gated(pod) else gangs_above(pod, namespace)
    if queued and above:
        return _waiting(snapshot, above[0], own)
    names = frozenset(waiting()) if above else frozenset()
    gang = next((name for name in above if name in names), "")
    return _waiting(snapshot, gang, own) if gang else None


def _is_other_group(held: Reservation, own: PodGroup) -> bool:
    """Returns whether a reservation is of a gang that pods join (`JOINED_KINDS`), but not of this pod's gang:
    the pod names another gang, or the gang has no seat for it (`shared_gangs.gang_seat`).
    """
    kind = kind_of(held.gang)
    return kind in JOINED_KINDS and held.gang != own.name


def _metadata(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = pod.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


def _waiting(snapshot: Snapshot, gang: str, own: PodGroup) -> WorkloadPlan:
    message = f"pod of {gang}, which has no place yet"
    answer = Answer(gang=gang, decision="queued", reason="ReplicaWaits", message=message)
    return WorkloadPlan((GangPlan(replace(own, name=gang, on_unavailable="queue"), answer),), snapshot)


def _replayed(held: Reservation, pod_set: str, own: PodGroup) -> GangPlan:
    names = [pod_set] if pod_set else sorted({a.pod_set for a in held.assignments})
    shape = own.pod_sets[0].shape
    group = replace(
        own,
        name=held.gang,
        reserve=held.mode,
        pod_sets=tuple(
            PodSet(name, sum(a.count for a in held.assignments if a.pod_set == name), shape) for name in names
        ),
    )
    message = f"pod of {held.gang}, which holds {'/'.join(held.domain) or 'its nodes'}"
    return GangPlan(group, answer_of(held, message=message), held)
