"""Combines stored workloads and unbound pods into gangs. Pure.

A pod belongs to the gang of the nearest workload above it that is a gang (a JobSet's pod to the JobSet,
through its Job), or to a gang that the pod names itself, or it is a gang of its own. Objects that name the
same PodGroup are one gang, as in admission (`webhook.workloads.shared_gangs.merge`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from planner.model.podgroup import PodGroup
from planner.model.reservation import Reservation
from webhook.kube.state.gangs import MAX_OWNERS, Ref, Unbound, Work
from webhook.kube.state.kueue_flavors import of_pods, within_flavors
from webhook.placement.planning import without_unknown_members
from webhook.placement.queue import foreign_gates
from webhook.placement.shared_gangs.gang_members import GangMember, SeatNames, combined_workload, seats_of
from webhook.placement.stamp import PlacementAnnotation


@dataclass(frozen=True, slots=True)
class Gang:
    """One gang with its unbound pods. `ref`: the object on which events are written. `created`: seconds since
    the epoch. `queued`: a pod is gated, or the workload's annotation says that it waits. `finished`: its
    workload has ended; of several, all have, and no pod is unbound. `failed`: one of them has failed.
    """

    group: PodGroup
    ref: Ref
    created: float
    queued: bool
    finished: bool = False
    failed: bool = False
    notes: tuple[PlacementAnnotation, ...] = ()
    """The placement annotations that earlier plans wrote, that of the workload itself first."""
    ids: tuple[str, ...] = ()
    """The ids of the reservations that the workload names."""
    pods: tuple[Unbound, ...] = field(default=())
    held_back: bool = False
    """Whether its pods (or its templates while there are no pods) have scheduling gates other than ours, or
    Kueue has not admitted it yet.
    """
    members: tuple[GangMember, ...] = ()
    """Its objects if it is a gang of several objects, else none."""
    refs: tuple[Ref, ...] = ()
    """The workloads that are annotated with its place: its own, or all members that are not pods; none if
    `ref` is a pod.
    """
    smaller: PodGroup | None = None
    """The gang without members that are known only by number (a group's size counts them, but their objects
    do not exist yet); None if there are no such members.
    """

    @property
    def waits(self) -> bool:
        """Whether it is in Bayplan's queue. A gang that is held back (`held_back`) is not, so that it delays
        no other gang, nor is one that gets no place there (`awaits_evictions`).
        """
        away = self.finished or self.held_back or self.awaits_evictions or self.is_advised
        return self.queued and not away and self.group.on_unavailable == "queue"

    @property
    def is_advised(self) -> bool:
        """Whether it was admitted and holds nothing by choice (`bayplan.dev/reserve: none`). Its template may
        say that it waits, so a pod that is created again has the gate; it waits for nothing.

        The replicas of an object share its annotation, which then does not show which of them were admitted.
        """
        own = self.notes[:1] if self.name == self.ref.key else ()
        return self.group.reserve == "none" and any(note.decision == "admitted" for note in own)

    def requests_other_seats(self, held: Reservation) -> bool:
        """Returns whether it requests another number of pods of a PodSet than the reservation has seats."""
        seats = Counter[str]()
        for seat in held.assignments:
            seats[seat.pod_set] += seat.count
        return seats != Counter({pod_set.name: pod_set.count for pod_set in self.group.pod_sets})

    @property
    def awaits_evictions(self) -> bool:
        """Whether it has a gated pod, and its scheduler is to evict others for it once it is let in."""
        return any(note.waits_for_eviction for pod in self.pods if pod.gated for note in pod.notes)

    @property
    def name(self) -> str:
        """The name of the gang, which its reservation has too."""
        return self.group.name


def gangs_of(works: Iterable[Work], pods: Iterable[Unbound]) -> dict[str, Gang]:
    """Returns every gang by name, with its unbound pods."""
    by_uid = {work.ref.uid: work for work in works}
    result: dict[str, Gang] = {}
    shared: dict[str, list[Work]] = {}
    for work in by_uid.values():
        if name := _shared_gang(work):
            shared.setdefault(name, []).append(work)
        else:
            result.update((group.name, _of_work(work, group)) for group in work.gangs)
    members = _by_gang(pods, by_uid, result, shared)
    for name, fellows in members.items():
        # A gang of several objects that are all pods, so that no workload has added it to `shared`.
        if name not in result and any(pod.member is not None for pod in fellows):
            shared.setdefault(name, [])
    for name, brought in shared.items():
        gang = _of_several(brought, members.get(name, []))
        if gang is not None:
            result[name] = gang
    for name, fellows in members.items():
        gang = result.get(name) or _of_pods(fellows)
        if gang is not None:
            result[name] = _with_pods(gang, fellows)
    return result


def _of_work(work: Work, group: PodGroup) -> Gang:
    """Returns one of the gangs of a workload, without its pods."""
    return Gang(
        group,
        work.ref,
        work.created,
        work.queued,
        work.finished,
        work.failed,
        notes=work.notes,
        ids=() if work.leaving else work.ids,
        held_back=work.kueue or bool(foreign_gates(group)),
        refs=(work.ref,),
    )


def _by_gang(
    pods: Iterable[Unbound], works: Mapping[str, Work], gangs: Container[str], shared: Container[str]
) -> dict[str, list[Unbound]]:
    """Returns the pods by the name of their gang, without those that have none. `works`: by UID. `gangs`,
    `shared`: the names of gangs of one workload, and of several objects.
    """
    members: dict[str, list[Unbound]] = {}
    for pod in pods:
        name, brought_by = (pod.replica, "") if pod.replica in gangs else _gang_of(pod, works)
        if name in shared or pod.member is not None:
            pod = replace(pod, brought_by=brought_by)
        if name:
            members.setdefault(name, []).append(pod)
    return members


def _with_pods(gang: Gang, pods: Sequence[Unbound]) -> Gang:
    """Returns the gang with its unbound pods, and with what they show of its state."""
    ordered = tuple(sorted(pods, key=lambda pod: (pod.created, pod.ref.name)))
    if gang.members:
        ordered = on_seats(ordered, {own.uid: seats_of(gang.group, own) for own in gang.members})
    return replace(
        gang,
        group=within_flavors(gang.group, of_pods(gang.group, ordered)),
        smaller=gang.smaller and within_flavors(gang.smaller, of_pods(gang.smaller, ordered)),
        pods=ordered,
        queued=gang.queued or any(pod.gated for pod in pods),
        held_back=any(pod.held_back for pod in pods),
    )


def members_of(gang: str, works: Iterable[Work], pods: Iterable[Unbound]) -> Iterator[GangMember]:
    """Yields the objects of a gang of several objects, without the pods that one of them creates."""
    by_uid = {work.ref.uid: work for work in works}
    own: Iterable[Work | Unbound] = (work for work in by_uid.values() if _shared_gang(work) == gang)
    joined = (pod for pod in pods if pod.member is not None and _gang_of(pod, by_uid) == (gang, pod.ref.uid))
    yield from (entry.member for entry in (*own, *joined) if entry.member is not None)


def on_seats(pods: Iterable[Unbound], seats: Mapping[str, SeatNames]) -> tuple[Unbound, ...]:
    """Returns the pods, each with the PodSet whose seats it takes.

    `seats`: by UID of a member, the names of its PodSets in the gang by their names in the member.
    """

    def seat(pod: Unbound) -> str:
        own = seats.get(pod.brought_by, {})
        if pod.pod_set in own.values():
            return pod.pod_set
        return own.get(pod.pod_set) or (next(iter(own.values())) if len(own) == 1 else "")

    return tuple(replace(pod, pod_set=seat(pod)) if pod.brought_by in seats else pod for pod in pods)


def _gang_of(pod: Unbound, works: Mapping[str, Work]) -> tuple[str, str]:
    """Returns the name of a pod's gang ("" for none), and the UID of the object that accounts for the pod.

    That object is the nearest workload above the pod that is a gang or a member of one, else the pod itself.
    If there is no such workload, the pod has a gang of its own (`Unbound.group`), or none while it belongs to
    a replica and an owner is not known yet.
    """
    owner = pod.owner
    for _ in range(MAX_OWNERS):
        work = works.get(owner)
        # An owner in another namespace is forged: the API server checks no UIDs.
        if work is None or work.ref.namespace != pod.ref.namespace:
            break
        if name := _shared_gang(work) or (work.gangs[0].name if work.gangs else ""):
            return name, owner
        owner = work.owner
    name = pod.group.name if pod.group is not None and not (pod.replica and owner) else ""
    return name, pod.ref.uid


def _shared_gang(work: Work) -> str:
    return work.member.workload.gangs[0].name if work.member is not None else ""


def _of_pods(fellows: list[Unbound]) -> Gang | None:
    """Returns a gang that consists only of its pods; the oldest pod represents it."""
    first = min(fellows, key=lambda pod: (pod.created, pod.ref.name))
    if first.group is None:  # the pod belongs to a gang without requests
        return None
    notes = tuple(dict.fromkeys(note for pod in fellows for note in pod.notes))
    return Gang(first.group, first.ref, first.created, False, notes=notes)


def _of_several(brought: Sequence[Work], fellows: Sequence[Unbound]) -> Gang | None:
    """Returns a gang of several objects, represented by its oldest workload, or else its oldest pod. None if
    none of them needs a plan.
    """
    alive = [work for work in brought if not (work.finished or work.leaving)]
    pods = [pod for pod in fellows if pod.member is not None and pod.brought_by == pod.ref.uid]
    entries: list[Work | Unbound] = [*(alive or brought), *pods]
    members = [entry.member for entry in entries if entry.member is not None]
    asks = any(work.gangs for work in brought) or any(pod.group is not None for pod in pods)
    if not members or not asks:
        return None
    first = min(entries, key=lambda entry: (entry.ref.kind == "Pod", entry.created, entry.ref.key))
    everything: list[Work | Unbound] = [*brought, *fellows]
    workload = combined_workload(members)
    (group,) = workload.gangs
    smaller = without_unknown_members(workload, group)
    refs = tuple(work.ref for work in sorted(alive, key=lambda work: work.ref.key) if work.gangs)
    return Gang(
        group,
        first.ref,
        first.created,
        any(work.queued for work in alive),
        bool(brought) and all(work.finished for work in brought) and not fellows,
        any(work.failed for work in brought),
        notes=tuple(dict.fromkeys(note for entry in everything for note in entry.notes)),
        ids=tuple(dict.fromkeys(name for work in alive for name in work.ids)),
        held_back=any(work.kueue for work in alive) or bool(foreign_gates(group)),
        members=tuple(members),
        refs=refs,
        smaller=smaller if smaller is not group else None,
    )
