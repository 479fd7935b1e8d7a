"""A changed request is searched before it is suggested; all that are tried for one answer share a budget."""

from __future__ import annotations

from dataclasses import dataclass

from planner.model.podgroup import PodGroup
from planner.model.work_budget import WorkBudget
from planner.request.resolve import PlacementProblem
from planner.search.outcome import Outcome, Place

_BUDGET = 1_000_000
"""Work for one list of alternatives: a third of a plan's, as they follow a search without a place."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """A request that is admitted, and the words for what differs in it; `ended`: once that gang has ended."""

    words: str
    group: PodGroup
    ended: str = ""


class Trial:
    """What places the changed requests of one list, and the budget that they share."""

    def __init__(self, place: Place) -> None:
        self._place, self._budget = place, WorkBudget(_BUDGET, hard=True)

    def placed(self, problem: PlacementProblem) -> Outcome | None:
        """The placement of a changed request; None where the search finds none within the budget."""
        outcome = self._place(problem, self._budget)
        return None if outcome.best is None else outcome
