"""The answer for a gang with a placement: its nodes, its domain, and what it will hold and why."""

from __future__ import annotations

from planner.explain import messages
from planner.extensions.holding import holding
from planner.model.answer import Answer
from planner.planning.holding_words import held_words
from planner.request.resolve import PlacementProblem
from planner.search.outcome import Outcome, assignments_of, domain_of


def admitted(problem: PlacementProblem, outcome: Outcome) -> Answer:
    """Returns the answer for a placement.

    `problem`: the request as resolved. `outcome.problem`: the variant of it that was placed; that of an
    elastic gang, for example, may have more pods.
    """
    best, searched = outcome.best, outcome.problem
    assert best is not None, "an admitted gang has a placement"
    assert best.placement is not None, "the best result has a placement"
    topology, gang, domain = best.tree.topology, searched.gang, domain_of(best)
    assignments = assignments_of(searched, best)
    held = holding(problem, outcome)
    placed = messages.placed(gang, topology, domain, assignments)
    unproved = () if best.placement.exact else (messages.BUDGET_WARNING,)
    return Answer(
        gang=gang.name,
        decision="admitted",
        topology=topology.name,
        level=topology.levels[len(domain) - 1] if domain else "",
        domain=domain,
        holds=held.mode,
        reserves=held.domains,
        assignments=assignments,
        reason="Placed",
        message=f"{placed}; it {held_words(topology, held, gang, assignments)}.",
        warnings=(*searched.warnings, *best.request.warnings, *unproved, *outcome.notes),
        attempts=tuple(reversed(best.attempts)),
        request=problem.asked,
    )
