"""The placement of any gang: by the rules of the extension that it asks for, else by the search alone."""

from __future__ import annotations

from planner.extensions.equal_parts import in_equal_parts
from planner.leafspine.rules import in_fabric
from planner.model.work_budget import WorkBudget
from planner.request.resolve import PlacementProblem
from planner.search.outcome import Outcome
from planner.search.place import place


def place_gang(problem: PlacementProblem, budget: WorkBudget | None = None) -> Outcome:
    """Where the gang goes, with all that it asks for; `budget` as `place` has it."""
    if problem.gang.fabric:
        return in_fabric(problem, place, budget)
    if problem.gang.balanced:
        return in_equal_parts(problem, place, budget)
    return place(problem, budget)
