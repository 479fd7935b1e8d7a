"""`place`: the best placement of a problem, by the search for its kind of request.

    b1: r1 ...  r2 ...        a dot is a free node; a PodSet of four pods of a whole node each, rack preferred
    b2: r3 ..

With the rack required there is no placement. Next, the last relaxation is searched, which requires no level.
It is the least strict: without a placement of the last relaxation, no relaxation has one. Here it has one, so
the relaxations between are searched too: with the block required, b1 is the answer.

The table `SEARCHES` lists the search for each kind of request. In addition:

- Each topology that the gang may mean is searched, and the most compact placement is returned. If there is
  none and the gang asks for no level, all nodes of the cluster are searched in the same way.
- Preferred levels are first searched as if they were required, then relaxed step by step (`relaxations`).
- If a search ends incomplete and without a placement, `place_class_by_class` places one pod class after
  another. The same follows if PodSets with affinity to each other have no place together in one domain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from planner.cluster.trees.tree import TopologyTree
from planner.model.effort.work_budget import WorkBudget
from planner.model.pod_class import PodClasses
from planner.request.relaxation import relaxations
from planner.request.resolve import PlacementProblem
from planner.request.topology_request import TopologyRequest, when_alone
from planner.search.beside_a_pod import place_beside_a_pod
from planner.search.class_by_class import place_class_by_class
from planner.search.level_search import LevelSearch
from planner.search.outcome import Outcome
from planner.search.result import LevelSearchResult, SearchResult
from planner.search.rules.placement_under_rules import has_rules, place_by_rules
from planner.search.space import search_space


@dataclass(frozen=True, slots=True)
class Search:
    """A search of a tree. `request`: the kind of request, as text; `serves`: reports whether the search is
    for these pod classes; `runs`: the search itself.
    """

    request: str
    serves: Callable[[PodClasses], bool]
    runs: Callable[[LevelSearch, PodClasses, int], LevelSearchResult]


SEARCHES = (
    # Rules that a search of the tree cannot enforce by itself: branch and bound over level searches of a tree
    # with the labels as additional levels, and with caps and exclusions (search/rules).
    Search("pods apart, together or spread over labels that are no levels", has_rules, place_by_rules),
    # Every combination of counts of the classes in every domain. If these are too many, classes are pooled
    # and assigned to hosts afterwards; if that gives no result either, a beam search follows
    # (search/mixtures).
    Search("several kinds of pods", lambda pod_classes: len(pod_classes) > 1, LevelSearch.search),
    # How many pods go into each domain: a knapsack over its children (search/packing/domain_packing.py).
    Search("one kind of pods", lambda pod_classes: True, LevelSearch.search),
)
"""The first row that serves the pod classes is used. All searches look for the finest level with a domain for
the whole gang, and for the best domain of that level (search/level_search.py).
"""


def place(problem: PlacementProblem, budget: WorkBudget | None = None) -> Outcome:
    """Returns the outcome for the problem: the result in each topology, and the best placement, if any.

    `budget`: shared by all searches; None gives each search its own.
    """
    base = problem.snapshot.base  # a tree of `trees` has the nodes of its topology, of `wide_trees` all nodes
    results = [_try(problem, base.trees[topology], forms, budget) for topology, forms in _forms(problem)]
    if not any(result.placement for result in results) and not problem.gang.constraint:
        results += [
            _try(problem, base.wide_trees[topology], forms, budget)
            for topology, forms in _forms(problem)
            if len(base.trees[topology].nodes) < len(base.nodes)
        ]
    return Outcome(problem, tuple(results), _most_compact(results))


def _forms(problem: PlacementProblem) -> Iterator[tuple[str, Sequence[TopologyRequest]]]:
    """Yields, for each topology, its name and the request in the forms that are to be tried, in order.

    In the empty cluster only the least strict form is searched: it has a placement wherever another has one.
    """
    for forms in zip(problem.requests, *problem.looser, strict=True):
        yield forms[0].topology.name, forms if problem.occupied else forms[-1:]


def _try(
    problem: PlacementProblem,
    tree: TopologyTree,
    forms: Sequence[TopologyRequest],
    budget: WorkBudget | None,
) -> SearchResult:
    """Returns the result of searching the tree. If the budget ends before a placement is found, the classes
    are placed one after the other instead, unless the budget is hard: then no further search is allowed.
    """
    budget = budget or WorkBudget()
    result = _searched(problem, tree, forms[0], budget)
    if result.placement is not None or budget.hard or not problem.occupied:
        return result
    if len(forms) > 1:
        return _in_looser_forms(problem, tree, forms[1:], result)
    return result if result.complete else _class_by_class(problem, tree, forms[0], result)


def _in_looser_forms(
    problem: PlacementProblem, tree: TopologyTree, forms: Sequence[TopologyRequest], strict: SearchResult
) -> SearchResult:
    """Returns the result of the first form with a placement.

    The last form is `scattered`, of which a search ignores the affinity between PodSets. Without a placement
    of it, there is none. With one, the pods with affinity are placed beside one pod to which they have it, or
    the classes one after the other. That these find no place is no proof that there is none.
    """
    for request in forms[:-1]:
        result = _searched(problem, tree, request, WorkBudget())
        if result.placement is not None:
            return result
    scattered = forms[-1]
    ignoring_affinity = _searched(problem, tree, scattered, WorkBudget())
    if ignoring_affinity.placement is None and ignoring_affinity.complete:
        return ignoring_affinity
    result = SearchResult(tree, scattered, None, strict.attempts, complete=False)
    placement = place_beside_a_pod(problem.snapshot, tree, scattered, problem.gang.reserve, _run)
    if placement is not None:
        return replace(result, placement=placement)
    return _class_by_class(problem, tree, scattered, result)


def _class_by_class(
    problem: PlacementProblem, tree: TopologyTree, request: TopologyRequest, result: SearchResult
) -> SearchResult:
    mode = problem.gang.reserve
    return replace(result, placement=place_class_by_class(problem.snapshot, tree, request, mode, _run))


def _searched(
    problem: PlacementProblem, tree: TopologyTree, request: TopologyRequest, budget: WorkBudget
) -> SearchResult:
    """Returns the result of the first relaxation with a placement.

    In the empty cluster only the last relaxation is searched, since only the existence of a placement
    matters. If the last relaxation has no placement, no relaxation has one, because the last is the least
    strict.
    """
    request = request if problem.occupied else when_alone(request)
    space = search_space(problem.snapshot, tree, occupied=problem.occupied)
    space = replace(space, gpu_limit=request.gpu_limit)
    steps = relaxations(request) if problem.occupied else relaxations(request)[-1:]
    mode, required = problem.gang.reserve, request.required
    # Unless the budget is hard, the last relaxation gets as much as all the others together.
    last_budget = budget if budget.hard else WorkBudget(budget.left)
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
    """Returns the level-search result of one relaxation as the `SearchResult` of the tree.

    `complete`: whether all earlier relaxations were searched completely; if not, the placement is not proved
    best.
    """
    placement = result.placement
    if placement is not None and not complete:
        placement = replace(placement, exact=False)
    return SearchResult(tree, request, placement, result.attempts, complete and result.complete)


def _run(search: LevelSearch, pod_classes: PodClasses, required: int) -> LevelSearchResult:
    """Returns the best placement in one domain of the required level, by the search for these pod classes."""
    for row in SEARCHES:
        if row.serves(pod_classes):
            return row.runs(search, pod_classes, required)
    raise AssertionError("the last row serves every request")


def _most_compact(results: Iterable[SearchResult]) -> SearchResult | None:
    """Returns the result with the placement in the finest domain; of several, the one on the fewest hosts,
    then the first. None if there is no placement.
    """
    return min((result for result in results if result.placement), key=_compactness, default=None)


def _compactness(result: SearchResult) -> tuple[int, int]:
    assert result.placement is not None, "only placements are compared"
    return (
        result.tree.topology.host_index - result.placement.branch.level,
        len(result.placement.pods_by_node),
    )
