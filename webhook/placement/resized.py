"""Changes how many pods a gang has seats for, while the seats that it needs on stay where they are. Pure.

Its pods run already, so that a plan of the whole gang would move them on paper only. For example, gang A
grows from five pods to seven, and B shrinks from four to three:

    r1: A A A A        r1: A A A A
    r2: A . . .   ->   r2: A A A .    or any other rack, if there is no room in r2
    r3: B B B B        r3: B B B .
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.extensions.elastic import counts_with, extra_pods, with_most
from planner.model.answer import Answer
from planner.model.labels import NODE_NAME_FIELD, Requirement
from planner.model.natural_order import natural
from planner.model.podgroup import Assignment, PodGroup
from planner.model.reservation import Reservation, traits_of
from planner.model.resolved import ResolvedPodGroup
from planner.planning.beside import beside
from planner.planning.plan import plan
from planner.planning.replay import fingerprint
from planner.planning.reservation import reservation_for
from planner.request.created_pods import as_created
from planner.request.validation import Refusal
from webhook.placement.hold_limits import HOLD_LIMIT, HoldLimits, over_limit
from webhook.placement.planning import NO_ROOM_BESIDE


def resized(snapshot: Snapshot, group: PodGroup, held: Reservation) -> Reservation | Answer | None:
    """Returns the reservation of a gang that asks for other numbers of pods than `held` has seats for.

    If there is no place for further pods beside the seats that stay, returns the planner's answer for the
    whole gang in a cluster in which it holds nothing and has no pods. Returns None if the pods themselves
    differ from those of `held`, or if all its nodes have vanished: then no seat can stay.
    """
    try:
        gang = as_created(snapshot, group)
    except Refusal:
        return None
    amounts = dict(held.requests)
    alike = all(
        amounts.get(pod_set.name, pod_set.shape.amounts_per_pod) == pod_set.shape.amounts_per_pod
        for pod_set in gang.pod_sets
    )
    seats = _needed_seats(snapshot, gang, held)
    if not alike or not seats:
        return None
    remaining = snapshot.ended(held.gang)
    kept = replace(
        held,
        mode="nodes",
        domains=(),
        nodes=frozenset(),
        assignments=seats,
        requests=tuple((p.name, p.shape.amounts_per_pod) for p in gang.pod_sets),
        traits=tuple((p.name, traits) for p in gang.pod_sets if (traits := traits_of(p.shape))),
        fingerprint=fingerprint(group),
    )
    seated = _by_pod_set(seats)

    def extended(extra: int) -> Reservation | None:
        counts = counts_with(gang, extra)
        added = {name: max(0, counts[name] - seated[name]) for name in counts}
        return _near_first(remaining, gang, kept, added)

    fresh = with_most(extended, 0, extra_pods(gang))
    return plan(remaining, group) if fresh is None else _as_it_holds(remaining, gang, held, fresh)


def further_pods(group: PodGroup, held: Reservation) -> int:
    """Returns how many more pods the gang needs than it has seats for."""
    seats = _by_pod_set(held.assignments)
    return sum(max(0, pod_set.count - seats[pod_set.name]) for pod_set in group.pod_sets)


def surplus_seats(group: PodGroup, held: Reservation) -> int:
    """Returns how many seats the gang has that it can never use."""
    needed = Counter({pod_set.name: max(pod_set.count, pod_set.max_count) for pod_set in group.pod_sets})
    return (_by_pod_set(held.assignments) - needed).total()


def with_surge(snapshot: Snapshot, group: PodGroup, held: Reservation, unbound: int) -> PodGroup:
    """Returns the gang with as many pods as exist now, if that is more than it asks for. For `SURGING_KINDS`.

    A rolling update with `maxSurge` starts pods before it ends others. Pinned to the seats of the old pods, a
    new one would wait for their end, and they end only once it is ready.

    `unbound`: the number of its unbound pods. Bound pods count on the nodes where the gang has seats: those
    on a lost node end, and have no seat.
    """
    seated = {seat.node for seat in held.assignments}
    standing = sum(pod.node in seated for pod in snapshot.bound.of_gang(held.gang, held.id))
    return replace(
        group,
        pod_sets=tuple(
            replace(pod_set, count=max(pod_set.count, standing + unbound)) for pod_set in group.pod_sets
        ),
    )


def resized_within(
    snapshot: Snapshot, group: PodGroup, held: Reservation, limits: HoldLimits
) -> Reservation | Answer | None:
    """Returns the result of `resized` within the limits of the gang's namespace. An answer is `queued` or
    `rejected`, and says what the gang lacks beside its seats."""
    outcome = resized(snapshot, group, held)
    if isinstance(outcome, Reservation):
        limit = over_limit(snapshot, outcome, limits) if further_pods(group, held) else ""
        if not limit:
            return outcome
        return Answer(group.name, "queued", reason=HOLD_LIMIT, message=f"{limit}.")
    if outcome is not None and outcome.decision == "admitted":
        where = "/".join(outcome.domain) or "other nodes"
        message = (
            f"its pods stay where they run. All of it would fit in {where}, if deleted and applied again."
        )
        return Answer(group.name, "queued", reason=NO_ROOM_BESIDE, message=message)
    return outcome


def _needed_seats(snapshot: Snapshot, gang: PodGroup, held: Reservation) -> tuple[Assignment, ...]:
    """Returns the seats that the gang still needs; first those on nodes where its pods are bound."""
    bound = {pod.node for pod in snapshot.bound.of_gang(held.gang, held.id)}
    left = Counter({pod_set.name: max(pod_set.count, pod_set.max_count) for pod_set in gang.pod_sets})
    kept = []
    for seat in sorted(held.assignments, key=lambda seat: (seat.node not in bound, natural(seat.node))):
        count = min(seat.count, left[seat.pod_set]) if seat.node in snapshot.nodes else 0
        left[seat.pod_set] -= count
        if count:
            kept.append(replace(seat, count=count))
    return tuple(kept)


def _near_first(
    remaining: Snapshot, gang: PodGroup, kept: Reservation, added: Mapping[str, int]
) -> Reservation | None:
    """Returns `kept` with seats for all further pods: as many of them as possible in the domain that contains
    the kept seats, the others around it; all in one wider domain if only that satisfies the gang's levels.
    """
    places = [name for name, count in added.items() for _ in range(count)]

    def inside(count: int) -> Reservation | None:
        return beside(remaining, gang, kept, Counter(places[:count]), widest=len(kept.domain))

    nearest = with_most(inside, 0, len(places))
    if nearest is not None:
        seated = _by_pod_set(nearest.assignments) - _by_pod_set(kept.assignments)
        rest = Counter(added) - seated
        if not rest:
            return nearest
        spread = beside(remaining, gang, nearest, rest)
        if spread is not None:
            return spread
    return beside(remaining, gang, kept, added)


def _as_it_holds(
    remaining: Snapshot, gang: ResolvedPodGroup, held: Reservation, fresh: Reservation
) -> Reservation:
    """Returns the reservation as a hold with what the gang holds on these nodes: whole domains, or what it
    uses. That is what a plan on these nodes alone says. If it would leave out some of them, whole domains
    that contain all of them stay held.
    """
    counts = _by_pod_set(fresh.assignments)
    inside = Requirement(NODE_NAME_FIELD, "In", tuple(sorted(fresh.touched, key=natural)))
    sets = (
        replace(
            pod_set,
            count=counts[pod_set.name],
            max_count=0,
            shape=replace(
                pod_set.shape, affinity=tuple((*term, inside) for term in pod_set.shape.affinity or ((),))
            ),
        )
        for pod_set in gang.pod_sets
        if counts[pod_set.name]
    )
    pinned = replace(gang, pod_sets=tuple(sets))
    again = reservation_for(remaining, pinned, plan(remaining, pinned))
    fresh = replace(fresh, created=0.0, expires=None, state="held", owner_uid="")
    used = {seat.node for seat in fresh.assignments}
    if again is not None and {seat.node for seat in again.assignments} == used:
        return replace(fresh, mode=again.mode, domains=again.domains, nodes=again.nodes)
    if used <= held.nodes:
        return replace(fresh, mode=held.mode, domains=held.domains, nodes=held.nodes)
    return fresh


def _by_pod_set(assignments: tuple[Assignment, ...]) -> Counter[str]:
    """Returns the number of seats by PodSet."""
    counts: Counter[str] = Counter()
    for seat in assignments:
        counts[seat.pod_set] += seat.count
    return counts
