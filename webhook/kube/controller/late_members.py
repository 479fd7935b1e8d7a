"""Gangs of several objects that hold a place: the seats of their members, and room for late members. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.model.podgroup import PodGroup
from planner.model.reservation import Reservation
from webhook.kube.state.gangs import Unbound
from webhook.kube.state.gathering import Gang, on_seats
from webhook.kube.state.kueue_flavors import of_pods, within_flavors
from webhook.placement.hold_limits import HoldLimits
from webhook.placement.planning import plan_workload
from webhook.placement.shared_gangs.gang_members import GangMember, SeatNames, seated_gang, with_added_seats
from webhook.placement.workload_plan import GangPlan


def with_seats(snapshot: Snapshot, gang: Gang, held: Reservation) -> tuple[Gang, tuple[GangMember, ...]]:
    """Returns the gang with the PodSets of the reservation `held`, to which its pods are assigned, and the
    late members, for which `held` has no seats. A gang of one object is returned unchanged.
    """
    if not gang.members:
        return gang, ()
    bound = [pod.requests for pod in snapshot.bound.of_gang(gang.name, held.id)]
    seated = seated_gang(snapshot, held, gang.group, gang.members, bound)
    late = {member.uid for member in seated.left}
    refs = tuple(ref for ref in gang.refs if ref.uid not in late)
    pods = on_seats(gang.pods, seated.seats)
    return replace(gang, group=seated.group, pods=pods, refs=refs), seated.left


def waits_for_kueue(member: GangMember, pods: Sequence[Unbound]) -> bool:
    """Returns whether Kueue has not admitted a member's unbound pods, or will gate them when they are created
    (`suspends` is for kinds that Kueue suspends instead).
    """
    to_come = bool(member.workload.kueue) and not member.workload.suspends and not pods
    return to_come or any(pod.awaits_kueue for pod in pods)


def beside_held(
    snapshot: Snapshot,
    held: Reservation,
    group: PodGroup,
    member: GangMember,
    pods: Sequence[Unbound],
    limits: HoldLimits,
) -> tuple[GangPlan, SeatNames]:
    """Returns the plan of the gang with seats for a late member beside the seats that the gang holds, and the
    names of the member's PodSets in the gang, by their names in the member's own object.

    `pods`: the member's unbound pods; its seats are on the nodes of their Kueue flavors.
    """
    workload, seats = with_added_seats(snapshot, held, group, member)
    (group,) = workload.gangs
    stated = of_pods(group, on_seats(pods, {member.uid: seats}))
    own = {name: stated[name] for name in seats.values()}
    workload = replace(workload, gangs=(within_flavors(group, own),))
    (planned,) = plan_workload(snapshot, workload, limits=limits).placed
    return planned, seats
