"""`plan`, the entry point of the planner: the placement of a whole gang, or the reason why it has none.

The same snapshot and gang give the same answer, independent of the order in which nodes were read. A gang
that holds a reservation gets the plan of that reservation again. This module reserves nothing: the caller
turns an admitted answer into a `Reservation` with `reservation_for` and writes it to the ledger.
"""

from __future__ import annotations

from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.explain.diagnosis import diagnose
from planner.extensions.elastic import extra_pods, most_pods
from planner.extensions.place import place_gang
from planner.model.answer import Answer
from planner.model.effort.deadline import poll
from planner.model.effort.work_budget import WorkBudget
from planner.model.podgroup import PodGroup
from planner.planning.admitted import admitted
from planner.planning.growth import or_waits_for_nodes
from planner.planning.replay import replay
from planner.request.resolve import PlacementProblem, resolve
from planner.search.outcome import Outcome


def plan(snapshot: Snapshot, group: PodGroup) -> Answer:
    """Returns the planner's answer for one gang. An invalid request is rejected in the answer, not raised.

    Raises `DeadlinePassed` if the caller has set a deadline (`planner.model.effort.deadline`) and it passes.
    """
    # An object may have thousands of small gangs, whose searches end before they check the deadline.
    poll("search")
    held = snapshot.holding(group.name)
    if held is not None:
        again = replay(snapshot, group, held)
        if again is not None:
            return again
        snapshot = snapshot.without(group.name)
    problem = resolve(snapshot, group)
    outcome = place_gang(problem)
    if outcome.best is None:
        return or_waits_for_nodes(problem, diagnose(problem, outcome, place_gang), place_gang)
    if not extra_pods(problem.gang):
        return admitted(problem, outcome)
    return _elastic(problem, most_pods(problem, outcome, place_gang))


def _elastic(problem: PlacementProblem, outcome: Outcome) -> Answer:
    """Returns the answer for an elastic gang, whose message says how many pods have a place."""
    answer, minimum = admitted(problem, outcome), problem.gang.size
    placed = sum(assignment.count for assignment in answer.assignments)
    extent = f"Elastic: {placed} pods of {minimum} to {minimum + extra_pods(problem.gang)} have a place."
    return replace(answer, message=f"{answer.message} {extent}")


def when_empty(snapshot: Snapshot, group: PodGroup) -> Answer:
    """Returns the answer for the gang in the empty cluster: `admitted`, or `queued` without a message if the
    gang does not fit there.
    """
    problem = resolve(snapshot, group).when_empty()
    outcome = place_gang(problem, WorkBudget())
    return Answer(group.name, "queued") if outcome.best is None else admitted(problem, outcome)
