"""Gives further seats to a gang beside the seats that it holds and keeps. Pure.

The search starts in the domain that the gang holds and continues in each wider one, up to the gang's own
constraints. For example, a gang that prefers one rack holds the four nodes of r1, and gets two more seats:

    r1: A A A A    no room in r1,
    r2: a a . .    so the wider domain, which contains r1 and r2, has the further seats
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.labels import Requirement, Term
from planner.model.podgroup import Assignment, Constraint, PodGroup, PodSet
from planner.model.reservation import Reservation
from planner.model.topology import HOSTNAME, Domain, Topology, common_domain, contains, topology_named
from planner.planning.plan import plan
from planner.planning.replay import valid_place
from planner.request.affinity.pod_affinity import near_own_seats


def beside(
    remaining: Snapshot,
    group: PodGroup,
    kept: Reservation,
    added: Mapping[str, int],
    keeping: PodGroup | None = None,
    widest: int = 0,
) -> Reservation | None:
    """Returns the reservation `kept` with seats for further pods, in the narrowest domain around it that has
    room; None if no domain has, or if a constraint of the gang would be broken.

    `remaining`: the cluster without the gang's reservation and pods. `kept`: the gang's reservation with the
    seats that stay. `added`: the number of further pods by PodSet. `keeping`: the gang with the requirements
    of the pods that stay, if these differ from those of the further pods. `widest`: the number of values in
    the path of the widest domain that is searched; 0 for the whole topology.
    """
    for length in range(len(kept.domain), widest - 1, -1):
        filled = _filled(remaining, group, kept, added, kept.domain[:length])
        if filled is not None and valid_place(remaining, keeping or group, filled) is not None:
            return filled
    return None


def _filled(
    remaining: Snapshot, group: PodGroup, kept: Reservation, added: Mapping[str, int], domain: Domain
) -> Reservation | None:
    """Returns the reservation with the further pods placed within a domain; None if they do not fit."""
    topology = topology_named(remaining.topologies, kept.topology)
    if topology is None:
        return None
    # Within the domains that the gang holds whole, the further pods need no further domain.
    inside = domain == kept.domain and bool(kept.domains)
    # Trailing spaces make two names that no gang has, so that `plan` treats the parts as two new gangs.
    used = replace(
        kept,
        id=kept.id + "-stays",
        gang=f"{kept.gang} ",
        mode="nodes",
        domains=(),
        nodes=frozenset(assignment.node for assignment in kept.assignments),
    )
    rest = replace(
        group,
        name=f"{kept.gang}  ",
        pod_sets=tuple(
            _within(
                pod_set,
                topology,
                domain,
                added[pod_set.name],
                near_own_seats(remaining, group, pod_set, kept.assignments),
            )
            for pod_set in group.pod_sets
            if added.get(pod_set.name, 0) > 0
        ),
        constraint=Constraint(topology=group.constraint.topology),  # `beside` checks the gang's own
        reserve="nodes" if inside else kept.mode,
    )
    answer = plan(remaining.with_reservation(used), rest) if rest.pod_sets else Answer(kept.gang, "admitted")
    if answer.decision != "admitted":
        return None
    return _merged(remaining, kept, topology, answer, inside=inside)


def _within(pod_set: PodSet, topology: Topology, domain: Domain, count: int, near: Term) -> PodSet:
    """Returns a PodSet of `count` further pods that must be in the domain, on nodes that meet `near`."""
    path: Term = tuple(
        Requirement(level, "In", (value,))
        for level, value in zip(topology.levels, domain, strict=False)
        if value and level != HOSTNAME
    )
    shape, needed = pod_set.shape, (*path, *near)
    terms = tuple((*term, *needed) for term in shape.affinity) or ((needed,) if needed else ())
    own = replace(pod_set.constraint, preferred="", slice_level="", slice_size=0)
    return PodSet(pod_set.name, count, replace(shape, affinity=terms), own)


def _merged(
    remaining: Snapshot, kept: Reservation, topology: Topology, answer: Answer, *, inside: bool
) -> Reservation:
    """Returns one reservation for the pods that stay and the further ones. `inside`: whether all pods are
    within the domains that the gang holds whole, so that no domain is added.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for assignment in (*kept.assignments, *answer.assignments):
        counts[assignment.pod_set, assignment.node] += assignment.count
    assignments = tuple(Assignment(pod_set, node, count) for (pod_set, node), count in counts.items())
    paths = [
        topology.path(assignment.node, remaining.nodes[assignment.node].labels) for assignment in assignments
    ]
    domain = common_domain(paths)
    domains = kept.domains if inside else tuple(dict.fromkeys((*kept.domains, *answer.reserves)))
    used = tuple(d for d in domains if any(contains(d, path) for path in paths))
    tree = remaining.base.trees[topology.name]
    branches = (tree.branch(d) for d in used)
    inner = frozenset(name for branch in branches if branch for name in tree.names(branch))
    level = topology.levels[len(domain) - 1] if domain else ""
    return replace(kept, domain=domain, level=level, domains=used, nodes=inner, assignments=assignments)
