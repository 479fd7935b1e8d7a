"""`place`: the best placement of a problem, by the search that serves its kind of request.

Which search serves which request is one table, `SEARCHES`. Around it, in this order:

- Each topology that the gang may mean is searched, and of their placements the most compact one is taken.
  Where none has any and the gang asks for no level, the same is tried over all nodes of the cluster.
- Preferred levels are first searched as if they were required, then relaxed step by step (`relaxations`).
- A search that ends before it is complete and has no place leaves it to `place_class_by_class`: one kind of
  pods after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from planner.cluster.tree import TopologyTree
from planner.model.pod_class import PodClass
from planner.model.work_budget import WorkBudget
from planner.request.relaxation import relaxations
from planner.request.resolve import PlacementProblem
from planner.request.topology_request import TopologyRequest, when_alone
from planner.search.level_search import LevelSearch
from planner.search.mixtures.class_by_class import place_class_by_class
from planner.search.outcome import Outcome
from planner.search.result import Placement, SearchResult
from planner.search.rules.placement_under_rules import has_rules, place_by_rules
from planner.search.space import search_space

Kinds = tuple[PodClass, ...]


@dataclass(frozen=True, slots=True)
class Search:
    """One way to search a tree: what it `serves`, told by the kinds of pods, and how it `runs`."""

    request: str
    serves: Callable[[Kinds], bool]
    runs: Callable[[LevelSearch, Kinds, int], Placement | None]


SEARCHES = (
    # Rules that a tree cannot keep by itself: branch and bound over level searches of a finer tree with caps
    # and exclusions (search/rules).
    Search("pods apart, together or spread over labels that are no levels", has_rules, place_by_rules),
    # Every mixture of the kinds in every domain; where these are too many, kinds pooled by what they have in
    # common and dealt to hosts afterwards; where that does not decide it either, a beam (search/mixtures).
    Search("several kinds of pods", lambda kinds: len(kinds) > 1, LevelSearch.climb),
    # How many pods go into each domain: a knapsack over its children (search/domain_packing.py).
    Search("one kind of pods", lambda kinds: True, LevelSearch.climb),
)
"""The first row that serves the request is the one that answers it. All of them look for the finest level
that has a domain for the whole gang, and there for the best domain (search/level_search.py)."""


def place(problem: PlacementProblem, budget: WorkBudget | None = None) -> Outcome:
    """The best placement of the problem; where none is found, what was tried.

    `budget`: one for all that is searched; without it each search has its own.
    """
    base = problem.snapshot.base
    results = [
        _try(problem, base.trees[request.topology.name], request, budget) for request in problem.requests
    ]
    if not any(result.found for result in results) and not problem.gang.constraint:
        results += [
            _try(problem, base.wide_trees[request.topology.name], request, budget)
            for request in problem.requests
            if len(base.trees[request.topology.name].nodes) < len(base.nodes)
        ]
    return Outcome(problem, tuple(results), _most_compact(results))


def _try(
    problem: PlacementProblem, tree: TopologyTree, request: TopologyRequest, budget: WorkBudget | None
) -> SearchResult:
    """What a search of the tree finds; where it ends without a place, what is found piece by piece."""
    budget = budget or WorkBudget()
    result = _searched(problem, tree, request, budget)
    if result.found is None and not result.complete and problem.now and not budget.hard:
        return replace(
            result, found=place_class_by_class(problem.snapshot, tree, request, problem.gang.reserve)
        )
    return result


def _searched(
    problem: PlacementProblem, tree: TopologyTree, request: TopologyRequest, budget: WorkBudget
) -> SearchResult:
    """The first relaxation that has a place; of the empty cluster it matters only whether any has. Where the
    last has none, none has: it asks for the least."""
    request = request if problem.now else when_alone(request)
    space, steps = search_space(problem.snapshot, tree, now=problem.now), relaxations(request)
    steps = steps if problem.now else steps[-1:]
    mode, required = problem.gang.reserve, request.required
    last_budget = budget if budget.hard else WorkBudget(budget.left)  # as much as for all the others
    search = LevelSearch(space, request, mode, budget, [])
    found = _run(search, steps[0], required)
    if found is not None or len(steps) == 1:
        return SearchResult(tree, request, found, tuple(search.attempts), search.complete)
    last = LevelSearch(space, request, mode, last_budget, [])
    at_last = _run(last, steps[-1], required)
    if at_last is None and last.complete:
        return SearchResult(tree, request, None, tuple(last.attempts), complete=True)
    for kinds in steps[1:-1]:
        found = _run(search, kinds, required)
        if found is not None:
            return SearchResult(tree, request, found, tuple(search.attempts), search.complete)
    return SearchResult(tree, request, at_last, tuple(last.attempts), search.complete and last.complete)


def _run(search: LevelSearch, kinds: Kinds, required: int) -> Placement | None:
    """The best placement in one domain of the required level, by the search that serves these kinds."""
    for row in SEARCHES:
        if row.serves(kinds):
            return row.runs(search, kinds, required)
    raise AssertionError("the last row serves every request")


def _most_compact(results: Iterable[SearchResult]) -> SearchResult | None:
    """The placement in the finest domain, on the fewest hosts; then by topology name."""
    return min((result for result in results if result.found), key=_compactness, default=None)


def _compactness(result: SearchResult) -> tuple[int, int]:
    assert result.found is not None, "only placements are compared"
    return (result.tree.topology.host_index - result.found.branch.level, len(result.found.placed))
