"""Plans a gang while other gangs are planned at the same moment, so that they do not all choose one place.

Replicas of the webhook that plan at the same time choose the same fullest node or the same first rack; one of
them gets it, and all others must plan again. A gang with rivals (the other gangs) therefore skips some of its
best places, as if they were held, and takes another place of equal worth. A hash of the gang's name
determines how many places it skips.

    nodes, the fullest first: n1 n2 n3 n4 ...        with three rivals: gang a takes n2, gang b n4, gang c n1

Gangs that fit on the same nodes together do not exclude each other, so each of these nodes serves several:
with seven rivals, pods of one GPU skip at most three nodes that have two GPUs free, and none that has eight.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.cluster.usage.occupancy import used_by
from planner.model.answer import Answer
from planner.model.podgroup import PodGroup
from planner.model.reservation import Reservation
from planner.model.topology import Domain
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for

MAX_SKIPPED = 7
"""Maximum number of places that a gang skips. Each costs one more plan, a small part of a decision. Skipping
more gains little, because so many rivals seldom choose the same place. `make bench-cluster` prints how many
decisions a pod takes with several replicas."""


def plan_aside(snapshot: Snapshot, group: PodGroup, rivals: int) -> Answer:
    """Returns the plan of a gang while `rivals` other gangs are planned; the same as `plan` if there are
    none.

    A gang that will hold no whole domain accepts another place at the same level with as many nodes, even if
    these are less full. A gang that will hold whole domains accepts only domains of equal capacity whose
    surrounding domains are in use like those of the first place, so that no additional pristine (unused)
    domain is opened. The same snapshot, gang and number of rivals always have the same answer.
    """
    answers, avoiding = [plan(snapshot, group)], snapshot
    # A gang that already holds a reservation keeps its place; one with mode `none` is in no other gang's way.
    held = reservation_for(snapshot, group, answers[0]) if rivals and not answers[0].replayed else None
    skipped = _skipped(group.name, rivals // _sharers(snapshot, held)) if held is not None else 0
    while held is not None and len(answers) <= skipped:
        avoiding = avoiding.with_reservation(_shadow(avoiding, held, len(answers)))
        further = plan(avoiding, group)
        if _kind(snapshot, further) != _kind(snapshot, answers[0]):
            break
        answers.append(further)
        held = reservation_for(avoiding, group, further)
    return answers[skipped % len(answers)]


def _skipped(gang: str, rivals: int) -> int:
    """Returns the number of places that the gang skips, by a hash of its name."""
    return int.from_bytes(hashlib.sha256(gang.encode()).digest()[:4]) % (min(rivals, MAX_SKIPPED) + 1)


def _sharers(snapshot: Snapshot, held: Reservation) -> int:
    """Returns how many gangs that each use as much as `held` fit on its nodes at the same time, at most
    `MAX_SKIPPED` + 1; 1 if that is not known, or if their pods may exclude each other (anti-affinity, host
    ports).
    """
    if held.mode != "nodes" or any(traits.terms for _, traits in held.traits):
        return 1
    sharers = MAX_SKIPPED + 1
    for node, uses in used_by(held).items():
        free = snapshot.plain_free_on(node) or {}
        sharers = min([sharers, *(free.get(name, 0) // amount for name, amount in uses.items() if amount)])
    return max(1, sharers)


def _shadow(snapshot: Snapshot, held: Reservation, number: int) -> Reservation:
    """Returns the reservation of an imaginary gang that fills the nodes of `held`, so that the next plan
    avoids them. `number`: is added to the id and the gang's name, because one plan may need several.
    """
    nodes = sorted({assignment.node for assignment in held.assignments})
    return replace(
        held,
        id=f"{held.id}-{number}",
        gang=f"{held.gang} {number}",
        assignments=tuple(replace(held.assignments[0], pod_set=node, node=node, count=1) for node in nodes),
        requests=tuple((node, snapshot.nodes[node].allocatable) for node in nodes),
        traits=(),
    )


def _kind(snapshot: Snapshot, answer: Answer) -> tuple[object, ...]:
    """Returns the properties of a place that must equal those of the gang's first place (`plan_aside`)."""
    held = sorted(capacity_context(snapshot, answer.topology, domain) for domain in answer.reserves)
    nodes = {assignment.node for assignment in answer.assignments}
    return answer.decision, answer.topology, answer.level, len(nodes), held


def capacity_context(snapshot: Snapshot, topology: str, domain: Domain) -> tuple[tuple[bool, ...], int]:
    """Returns whether each domain that contains this one is in use, from the root down, and the identity of
    this domain's capacity: domains of equal capacity share one object.
    """
    tree = snapshot.base.trees[topology]
    branch, capacity = tree.root, snapshot.capacity(tree)
    opened: list[bool] = []
    while branch.path != domain:
        opened.append(capacity.opened)
        depth = branch.level + 2  # the length of a child's path: the index of its level plus 1
        place = next(n for n, child in enumerate(branch.children) if child.path == domain[:depth])
        branch, capacity = branch.children[place], capacity.children[place]
    return tuple(opened), id(capacity)
