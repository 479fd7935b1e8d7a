"""Places any gang: by the extensions that it requests, else by the search alone."""

from __future__ import annotations

from planner.extensions.equal_parts import in_equal_parts
from planner.extensions.holding import place_holding
from planner.leafspine.rules import in_fabric
from planner.model.effort.work_budget import WorkBudget
from planner.request.resolve import PlacementProblem
from planner.search.outcome import Outcome
from planner.search.place import place


def place_gang(problem: PlacementProblem, budget: WorkBudget | None = None) -> Outcome:
    """Returns the placement of the gang with its minimum pod counts.

    `budget`: the limit of search steps, shared by all searches for the gang; None gives each its own.
    """
    if problem.gang.reserve == "auto":
        return place_holding(problem, _place, budget)
    return _place(problem, budget)


def _place(problem: PlacementProblem, budget: WorkBudget | None = None) -> Outcome:
    if problem.gang.fabric:
        return in_fabric(problem, place, budget)
    if problem.gang.balanced:
        return in_equal_parts(problem, place, budget)
    return place(problem, budget)
