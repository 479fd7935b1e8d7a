"""`place`: the best placement of a problem, by the search that serves its kind of request.

    b1: r1 ...  r2 ...        a dot is a free node; a PodSet of four pods of a node each, rack preferred
    b2: r3 ..

As if the rack were required: no place. With no level at all, which is the last step and asks for the least:
there is one, so the steps between are worth a search. As if the block were required: b1, the answer. Had the
last step had no place, none would have had.

Which search serves which request is one table, `SEARCHES`. Around it, in this order:

- Each topology that the gang may mean is searched, and of their placements the most compact one is taken.
  Where none has any and the gang asks for no level, the same is tried over all nodes of the cluster.
- Preferred levels are first searched as if they were required, then relaxed step by step (`relaxations`).
- A search that ends before it is complete and has no place leaves it to `place_class_by_class`: one class
  of pods after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from planner.cluster.tree import TopologyTree
from planner.model.pod_class import PodClasses
from planner.model.work_budget import WorkBudget
from planner.request.relaxation import relaxations
from planner.request.resolve import PlacementProblem
from planner.request.topology_request import TopologyRequest, when_alone
from planner.search.level_search import LevelSearch
from planner.search.mixtures.class_by_class import place_class_by_class
from planner.search.outcome import Outcome
from planner.search.result import LevelSearchResult, SearchResult
from planner.search.rules.placement_under_rules import has_rules, place_by_rules
from planner.search.space import search_space


@dataclass(frozen=True, slots=True)
class Search:
    """One way to search a tree: what it `serves`, told by the classes of pods, and how it `runs`."""

    request: str
    serves: Callable[[PodClasses], bool]
    runs: Callable[[LevelSearch, PodClasses, int], LevelSearchResult]


SEARCHES = (
    # Rules that a tree cannot keep by itself: branch and bound over level searches of a finer tree with caps
    # and exclusions (search/rules).
    Search("pods apart, together or spread over labels that are no levels", has_rules, place_by_rules),
    # Every mixture of the classes in every domain; where these are too many, classes pooled by what they have
    # in common and dealt to hosts afterwards; where that does not decide it either, a beam (search/mixtures).
    Search("several kinds of pods", lambda pod_classes: len(pod_classes) > 1, LevelSearch.search),
    # How many pods go into each domain: a knapsack over its children (search/packing/domain_packing.py).
    Search("one kind of pods", lambda pod_classes: True, LevelSearch.search),
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
    if not any(result.placement for result in results) and not problem.gang.constraint:
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
    if result.placement is None and not result.complete and problem.occupied and not budget.hard:
        return replace(
            result, placement=place_class_by_class(problem.snapshot, tree, request, problem.gang.reserve)
        )
    return result


def _searched(
    problem: PlacementProblem, tree: TopologyTree, request: TopologyRequest, budget: WorkBudget
) -> SearchResult:
    """The first relaxation that has a place; of the empty cluster it matters only whether any has. Where the
    last has none, none has: it asks for the least."""
    request = request if problem.occupied else when_alone(request)
    space, steps = search_space(problem.snapshot, tree, occupied=problem.occupied), relaxations(request)
    steps = steps if problem.occupied else steps[-1:]
    mode, required = problem.gang.reserve, request.required
    last_budget = budget if budget.hard else WorkBudget(budget.left)  # as much as for all the others
    search = LevelSearch(space, request, mode, budget)
    result = _run(search, steps[0], required)
    if result.placement is not None or len(steps) == 1:
        return _in_tree(tree, request, result, complete=True)
    last = _run(LevelSearch(space, request, mode, last_budget), steps[-1], required)
    if last.placement is None and last.complete:
        return _in_tree(tree, request, last, complete=True)
    complete = result.complete
    for pod_classes in steps[1:-1]:
        result = _run(search, pod_classes, required)
        if result.placement is not None:
            return _in_tree(tree, request, result, complete=complete)
        complete = complete and result.complete
    return _in_tree(tree, request, last, complete=complete)


def _in_tree(
    tree: TopologyTree, request: TopologyRequest, result: LevelSearchResult, *, complete: bool
) -> SearchResult:
    """The result in its topology; `complete`: whether the relaxations before it were searched completely."""
    placement = result.placement
    if placement is not None and not complete:
        placement = replace(placement, exact=False)
    return SearchResult(tree, request, placement, result.attempts, complete and result.complete)


def _run(search: LevelSearch, pod_classes: PodClasses, required: int) -> LevelSearchResult:
    """The best placement in one domain of the required level, by the search that serves these pod classes."""
    for row in SEARCHES:
        if row.serves(pod_classes):
            return row.runs(search, pod_classes, required)
    raise AssertionError("the last row serves every request")


def _most_compact(results: Iterable[SearchResult]) -> SearchResult | None:
    """The placement in the finest domain, on the fewest hosts; then by topology name."""
    return min((result for result in results if result.placement), key=_compactness, default=None)


def _compactness(result: SearchResult) -> tuple[int, int]:
    assert result.placement is not None, "only placements are compared"
    return (
        result.tree.topology.host_index - result.placement.branch.level,
        len(result.placement.pods_by_node),
    )
