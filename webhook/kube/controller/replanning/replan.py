"""Finds another place for the pods of a gang whose nodes are lost, and moves as few pods as possible. Pure.

The search starts in the domain that the gang holds and continues in each wider one, up to the gang's own
constraints; the pods on other nodes stay. Only if that fails is the whole gang planned again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.labels import Requirement, Term
from planner.model.podgroup import Assignment, Constraint, PodGroup, PodSet
from planner.model.reservation import Reservation
from planner.model.topology import HOSTNAME, Domain, Topology, common_domain, contains
from planner.planning.plan import plan
from planner.planning.replay import replay
from planner.planning.reservation import reservation_for


@dataclass(frozen=True, slots=True)
class Move:
    """A new reservation, and the number of pods that it moves. `gone`: the nodes that the gang has to leave.
    `to`: the nodes that get additional pods.
    """

    reservation: Reservation
    moved: int
    gone: tuple[str, ...]
    to: tuple[str, ...]


def lost_nodes(snapshot: Snapshot, reservation: Reservation) -> dict[str, str]:
    """Returns the nodes that the gang holds seats on but cannot use any more, each with a short reason."""
    topology = _topology(snapshot, reservation.topology)
    result: dict[str, str] = {}
    for name in sorted({assignment.node for assignment in reservation.assignments}):
        node = snapshot.nodes.get(name)
        if node is None:
            result[name] = "gone"
        elif not node.ready:
            result[name] = "not ready"
        elif node.cordoned:
            result[name] = "cordoned"
        elif topology is not None and reservation.domains:
            path = topology.path(name, node.labels)
            if not any(contains(domain, path) for domain in reservation.domains):
                result[name] = "relabelled"
    return result


def replan(
    snapshot: Snapshot,
    group: PodGroup,
    held: Reservation,
    lost: Iterable[str],
    keeping: PodGroup | None = None,
) -> Move | Answer:
    """Returns the move to another place, or the planner's answer if there is none.

    `lost`: the nodes that the gang has to leave. `keeping`: the gang with the requirements of the pods that
    stay, if these differ from those of the pods that move (which may need nodes of another flavor).
    """
    gone, keeping = frozenset(lost), keeping or group
    remaining = snapshot.ended(held.gang)  # the pods that stay are added below, so that they count once
    stays = tuple(assignment for assignment in held.assignments if assignment.node not in gone)
    moving = Counter({pod_set.name: 0 for pod_set in group.pod_sets})
    for assignment in held.assignments:
        if assignment.node in gone:
            moving[assignment.pod_set] += assignment.count
    if stays:
        for domain in _wider(held):
            filled = _fill(remaining, group, keeping, held, stays, moving, domain)
            if filled is not None:
                return _move(held, filled, sorted(gone))
    answer = plan(remaining, group)
    fresh = reservation_for(remaining, group, answer)
    return _move(held, fresh, sorted(gone)) if fresh is not None else answer


def _wider(held: Reservation) -> list[Domain]:
    """Returns the gang's domain and those around it, the narrowest first."""
    return [held.domain[:length] for length in range(len(held.domain), -1, -1)]


def _fill(
    remaining: Snapshot,
    group: PodGroup,
    keeping: PodGroup,
    held: Reservation,
    stays: tuple[Assignment, ...],
    moving: Counter[str],
    domain: Domain,
) -> Reservation | None:
    """Returns the reservation with the moved pods placed within a domain; None if they do not fit, or a
    constraint of the gang would be broken.

    `stays`: the assignments that are kept. `moving`: the number of pods to place, by PodSet.
    """
    topology = _topology(remaining, held.topology)
    if topology is None:
        return None
    # Within the domains that the gang holds whole, the moved pods need no further domain.
    inside = domain == held.domain and bool(held.domains)
    # Trailing spaces make two names that no gang has, so that `plan` treats the parts as two new gangs.
    used = replace(
        held, id=held.id + "-stays", gang=f"{held.gang} ", mode="nodes", domains=(), assignments=stays
    )
    used = replace(used, nodes=frozenset(assignment.node for assignment in stays))
    rest = replace(
        group,
        name=f"{held.gang}  ",
        pod_sets=tuple(
            _within(pod_set, topology, domain, moving[pod_set.name])
            for pod_set in group.pod_sets
            if moving[pod_set.name]
        ),
        constraint=Constraint(topology=group.constraint.topology),  # `replay` below checks the gang's own
        reserve="nodes" if inside else held.mode,
    )
    answer = plan(remaining.with_reservation(used), rest)
    if answer.decision != "admitted":
        return None
    taken = _merged(remaining, held, stays, answer, inside=inside)
    return taken if replay(remaining, keeping, taken) is not None else None


def _within(pod_set: PodSet, topology: Topology, domain: Domain, count: int) -> PodSet:
    """Returns a PodSet of `count` moved pods, required to be in the domain."""
    path: Term = tuple(
        Requirement(level, "In", (value,))
        for level, value in zip(topology.levels, domain, strict=False)
        if value and level != HOSTNAME
    )
    shape = pod_set.shape
    terms = tuple((*term, *path) for term in shape.affinity) or ((path,) if path else ())
    own = replace(pod_set.constraint, preferred="", slice_level="", slice_size=0)
    return PodSet(pod_set.name, count, replace(shape, affinity=terms), own)


def _merged(
    remaining: Snapshot,
    held: Reservation,
    stays: tuple[Assignment, ...],
    answer: Answer,
    *,
    inside: bool,
) -> Reservation:
    """Returns one reservation for the pods that stay and those that move. `inside`: whether all pods are
    within the domains that the gang holds whole, so that no domain is added.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for assignment in (*stays, *answer.assignments):
        counts[assignment.pod_set, assignment.node] += assignment.count
    assignments = tuple(Assignment(pod_set, node, count) for (pod_set, node), count in counts.items())
    topology = _topology(remaining, held.topology)
    assert topology is not None, "it was there a moment ago"
    paths = [
        topology.path(assignment.node, remaining.nodes[assignment.node].labels) for assignment in assignments
    ]
    domain = common_domain(paths)
    domains = held.domains if inside else tuple(dict.fromkeys((*held.domains, *answer.reserves)))
    used = tuple(d for d in domains if any(contains(d, path) for path in paths))
    tree = remaining.base.trees[topology.name]
    branches = (tree.branch(d) for d in used)
    inner = frozenset(name for branch in branches if branch for name in tree.names(branch))
    level = topology.levels[len(domain) - 1] if domain else ""
    return replace(held, domain=domain, level=level, domains=used, nodes=inner, assignments=assignments)


def _move(held: Reservation, fresh: Reservation, gone: list[str]) -> Move:
    """Returns the move from `held` to `fresh`. The new reservation keeps the fingerprint of `held`, so that
    the ledger replaces the one by the other in one step.
    """
    before = Counter(
        {(assignment.pod_set, assignment.node): assignment.count for assignment in held.assignments}
    )
    after = Counter(
        {(assignment.pod_set, assignment.node): assignment.count for assignment in fresh.assignments}
    )
    new = after - before
    kept = replace(
        fresh, fingerprint=held.fingerprint, created=held.created, expires=held.expires, state=held.state,
        owner_uid=held.owner_uid,
    )  # fmt: skip
    return Move(kept, sum(new.values()), tuple(gone), tuple(sorted({node for _, node in new})))


def _topology(snapshot: Snapshot, name: str) -> Topology | None:
    return next((topology for topology in snapshot.topologies if topology.name == name), None)
