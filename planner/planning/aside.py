"""Where a gang goes while others are planned at the same moment: not all of them to the one best place.

Replicas that plan at once choose the same fullest node or the same first rack, and all but one are planned
again. So a gang with rivals passes over some of the places that it would be given, as if they were held, for
others that are as good; how many follows from its name.

    nodes by how full they are: n1 n2 n3 n4 ...      with three rivals: gang a takes n2, gang b n4, gang c n1
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.podgroup import PodGroup
from planner.model.reservation import Reservation
from planner.model.topology import Domain
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for

MAX_PASSED = 7
"""Places that are passed over at most. Each is one more plan, which costs a small part of a decision; of more
places a gang gains little, since so many rivals seldom choose the same one. How many decisions a pod takes
with several replicas is a column of `make bench-cluster`."""


def plan_aside(snapshot: Snapshot, group: PodGroup, rivals: int) -> Answer:
    """The plan of a gang while so many others are planned; `plan` where there are none.

    A gang that holds nothing whole passes over a place for one at the same level with as many nodes, so it
    may use a node that is less full; one that holds domains, for domains of equal content in domains that are
    in use alike, so it breaks no more. The same snapshot, gang and number give the same answer.
    """
    answers = [plan(snapshot, group)]
    around, passed = snapshot, _passed(group.name, rivals)
    while len(answers) <= passed:
        held = None if answers[-1].replayed else reservation_for(around, group, answers[-1])
        if held is None:
            break
        around = around.with_reservation(_shadow(around, held, len(answers)))
        further = plan(around, group)
        if _kind(snapshot, further) != _kind(snapshot, answers[0]):
            break
        answers.append(further)
    return answers[passed % len(answers)]


def _passed(gang: str, rivals: int) -> int:
    return int.from_bytes(hashlib.sha256(gang.encode()).digest()[:4]) % (min(rivals, MAX_PASSED) + 1)


def _shadow(snapshot: Snapshot, held: Reservation, number: int) -> Reservation:
    """What keeps the gang from the place that it was given: another gang that leaves nothing there."""
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
    """What two places have in common of which a gang may take either."""
    held = sorted(_content(snapshot, answer.topology, domain) for domain in answer.reserves)
    nodes = {assignment.node for assignment in answer.assignments}
    return answer.decision, answer.topology, answer.level, len(nodes), held


def _content(snapshot: Snapshot, topology: str, domain: Domain) -> tuple[tuple[bool, ...], int]:
    """Which of the domains around it are in use, and what is in it: equal contents are one object."""
    tree = snapshot.base.trees[topology]
    branch, capacity = tree.root, snapshot.capacity(tree)
    opened: list[bool] = []
    while branch.path != domain:
        opened.append(capacity.opened)
        depth = branch.level + 2
        place = next(n for n, child in enumerate(branch.children) if child.path == domain[:depth])
        branch, capacity = branch.children[place], capacity.children[place]
    return tuple(opened), id(capacity)
