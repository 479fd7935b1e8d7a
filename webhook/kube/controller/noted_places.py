"""Whether workloads and pods name the place that their gang holds. Pure.

The annotation of a workload is written after the place is reserved. If that write fails, or the leader ends
before it, the workload names a former place or says that it waits. Any later round sees this, whichever
replica leads. Pods that were created for a former place are pinned to it for ever.
"""

from __future__ import annotations

from collections.abc import Iterable

from planner.cluster.snapshot import Snapshot
from planner.model.reservation import Reservation
from webhook.kube.controller.replanning.replan import empty_seats
from webhook.kube.controller.world import World
from webhook.kube.state.gangs import Unbound, Work
from webhook.kube.state.gathering import Gang
from webhook.placement.pod_affinity import hosts_of


def names_another_place(world: World, snapshot: Snapshot, gang: Gang) -> bool:
    """Returns whether a workload of a gang that holds a place says that it waits, or names another place.

    `snapshot`: has the reservations. A workload without the annotation says nothing.
    """
    works = (world.works_by_uid.get(ref.uid) for ref in gang.refs)
    return any(work is not None and (work.queued or _is_outdated(work, snapshot, gang)) for work in works)


def _is_outdated(work: Work, snapshot: Snapshot, gang: Gang) -> bool:
    note = work.note
    if not note.decision:
        return False
    groups = (gang.group,) if gang.members else work.gangs
    held = [own for group in groups if (own := snapshot.holding(group.name)) is not None]
    domains = frozenset(domain for own in held for domain in own.domains)
    nodes = frozenset(host for own in held for host in hosts_of(snapshot, own))
    if gang.members:  # a gang grows with each further member, and former members need not be written again
        return not (note.nodes <= nodes and domains.issuperset(note.domains))
    return note.nodes != nodes or frozenset(note.domains) != domains


def of_former_place(
    snapshot: Snapshot, held: Reservation | None, pods: Iterable[Unbound]
) -> tuple[Unbound, ...]:
    """Returns those of a gang's unbound pods that are pinned to a former place: the nodes that they may use
    have no seat without a pod. Empty if the gang has no such seat.
    """
    free = frozenset(empty_seats(snapshot, held)) if held is not None else frozenset()
    return tuple(
        pod
        for pod in pods
        if free
        and any(note.decision == "admitted" and free.isdisjoint(note.nodes) for note in pod.notes)
        and not (pod.gated or pod.brought_by)
    )
