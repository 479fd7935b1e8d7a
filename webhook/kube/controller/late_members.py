"""A gang of several objects that holds a place: the seats of its members, and room for members that join
later. Pure.
"""

from __future__ import annotations

from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.model.podgroup import PodGroup
from planner.model.reservation import Reservation
from webhook.kube.state.gathering import Gang, on_seats
from webhook.placement.gang_members import GangMember, SeatNames, grown, seated_gang
from webhook.placement.hold_limits import HoldLimits
from webhook.placement.workload_plan import GangPlan, plan_workload


def with_seats(snapshot: Snapshot, gang: Gang, held: Reservation) -> tuple[Gang, tuple[GangMember, ...]]:
    """Returns the gang with its pods on the seats that it holds, and the members that wait for additional
    seats. A gang of one object is returned unchanged.
    """
    if not gang.members:
        return gang, ()
    bound = [pod.requests for pod in snapshot.bound.of_gang(gang.name, held.id)]
    seated = seated_gang(held, gang.group, gang.members, bound)
    late = {member.uid for member in seated.left}
    refs = tuple(ref for ref in gang.refs if ref.uid not in late)
    pods = on_seats(gang.pods, seated.seats)
    return replace(gang, group=seated.group, pods=pods, refs=refs), seated.left


def beside_held(
    snapshot: Snapshot, held: Reservation, group: PodGroup, member: GangMember, limits: HoldLimits
) -> tuple[GangPlan, SeatNames]:
    """Returns the plan of a gang with seats for this member beside those that it holds."""
    workload, seats = grown(held, group, member)
    (planned,) = plan_workload(snapshot, workload, limits=limits).placed
    return planned, seats
