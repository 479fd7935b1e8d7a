"""The numbers behind an answer: how many pods fit at each level, which nodes are excluded, and what would
work.

`plan` does not compute these numbers; callers that show them call `details`. They come from the same searches
as the answer's message and so agree with it. Each node of the cluster is counted once: as usable, or by the
first cause that excludes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from planner.cluster.snapshot import Snapshot
from planner.explain.alternatives import Alternative, alternatives, has_place
from planner.explain.diagnosis import closest_of, culprit_of, shortfall_of
from planner.explain.obstacles import node_counts
from planner.extensions.place import place_gang
from planner.model.answer import Answer, LevelAttempt
from planner.model.effort.work_budget import WorkBudget
from planner.model.podgroup import PodGroup
from planner.model.topology import ROOT
from planner.request.resolve import PlacementProblem, resolve
from planner.search.level_search import LevelSearch
from planner.search.place import place
from planner.search.result import SearchResult
from planner.search.space import SearchSpace, search_space

AS_ASKED = "as asked"
"""The text that names the nearest admitted request if the unchanged request itself is admitted."""


_BUDGET = 200_000
"""Maximum number of search steps (`WorkBudget`) for each level, a fifteenth of a plan's budget: every level
is searched twice, in the current and in the empty cluster. If the budget ends, the note of the level says so.
"""


@dataclass(frozen=True, slots=True)
class LevelFit:
    """The best domain of one level, with the number of pods that fit there.

    `level`: its label key, "" for the whole topology. `now`: with the pods and reservations of the snapshot;
    `empty`: in the empty cluster.
    """

    level: str
    now: LevelAttempt
    empty: LevelAttempt

    def to_json(self) -> dict[str, object]:
        """Returns the level as plain JSON."""
        return {"level": self.level or None, "now": _best(self.now), "whenEmpty": _best(self.empty)}


@dataclass(frozen=True, slots=True)
class Details:
    """The numbers behind one answer.

    `required`, `preferred`: label keys of levels, "" for none. `levels`: coarse to fine. `nodes`: number of
    nodes in the cluster; `usable`: number of nodes with room for a pod of the gang now; `excluded`: number of
    the other nodes, by cause; `excluded_ever`: number of nodes without room even in the empty cluster, by
    cause. `ways_now`, `ways_ever`: the nearest requests that are admitted now, and in the empty cluster.
    """

    topology: str
    required: str
    preferred: str
    levels: tuple[LevelFit, ...]
    nodes: int
    usable: int
    excluded: dict[str, int]
    excluded_ever: dict[str, int]
    ways_now: tuple[Alternative, ...]
    ways_ever: tuple[Alternative, ...]

    @property
    def admitted_now(self) -> tuple[str, ...]:
        """The nearest requests that are admitted now, as text."""
        return tuple(way.words for way in self.ways_now)

    @property
    def admitted_if_empty(self) -> tuple[str, ...]:
        """The nearest requests that are admitted in the empty cluster, as text."""
        return tuple(way.words for way in self.ways_ever)

    def to_json(self) -> dict[str, object]:
        """Returns the numbers as plain JSON."""
        return {
            "required": self.required or None,
            "preferred": self.preferred or None,
            "levels": [level.to_json() for level in self.levels],
            "nodes": {
                "total": self.nodes,
                "usable": self.usable,
                "excluded": self.excluded,
                "excludedWhenEmpty": self.excluded_ever,
            },
            "nearest": {"now": list(self.admitted_now), "ever": list(self.admitted_if_empty)},
        }


def details(snapshot: Snapshot, group: PodGroup, answer: Answer) -> Details | None:
    """Returns the numbers behind an answer, or None if the request contradicts itself: such a request is
    refused without a search.

    `snapshot`: the cluster in which the gang was planned; the gang's own reservation there is ignored.
    """
    problem = resolve(snapshot.without(group.name), group)
    if problem.refusal:
        return None
    snapshot, gang, results = problem.snapshot, problem.gang, place(problem).results
    result = next(
        (
            candidate
            for candidate in results
            if candidate.placement and candidate.tree.topology.name == answer.topology
        ),
        closest_of(results),
    )
    asked, topology = result.request, result.tree.topology
    current = search_space(snapshot, result.tree, occupied=True)
    empty = search_space(snapshot, result.tree, occupied=False)
    counts = node_counts(gang, current, asked)
    as_asked = (Alternative(AS_ASKED, problem.asked),)
    admitted = answer.decision == "admitted"
    stands_when_empty = admitted or has_place(problem.when_empty(), place_gang)
    return Details(
        topology=topology.name,
        required=topology.levels[asked.required] if asked.required > ROOT else "",
        preferred=topology.levels[asked.preferred] if asked.preferred > ROOT else "",
        levels=tuple(_levels(gang, result, current, empty)),
        nodes=counts.total,
        usable=counts.serving,
        excluded=dict(counts.causes),
        excluded_ever=dict(node_counts(gang, empty, asked).causes),
        ways_now=as_asked if admitted else _ways(problem, result),
        ways_ever=as_asked if stands_when_empty else _ways_ever(problem, result),
    )


def _levels(
    group: PodGroup, result: SearchResult, current: SearchSpace, empty: SearchSpace
) -> Iterator[LevelFit]:
    keys = ("", *result.tree.topology.levels)
    return map(LevelFit, keys, _fits(group, result, current), _fits(group, result, empty))


def _fits(group: PodGroup, result: SearchResult, space: SearchSpace) -> list[LevelAttempt]:
    """Returns the best domain of each level, from the whole topology down to the host.

    A rack with a node of another gang may be excluded because the gang would hold the rack whole, and yet
    the gang may fit on one host inside it. A level therefore never reports fewer pods than a finer level.
    """
    fits: list[LevelAttempt] = []
    inner: LevelAttempt | None = None
    for level in range(result.tree.topology.host_index, ROOT - 1, -1):
        best = LevelSearch(space, result.request, group.reserve, WorkBudget(_BUDGET)).fits_at(level)
        if inner and inner.fits > best.fits and (level == ROOT or inner.domain[level]):
            best = replace(best, domain=inner.domain[: level + 1], fits=inner.fits, note="")
        fits.append(best)
        inner = best
    return fits[::-1]


def _ways(problem: PlacementProblem, result: SearchResult) -> tuple[Alternative, ...]:
    part, shortfall = culprit_of(problem, result)
    return alternatives(problem, shortfall_of(part, shortfall), place_gang)


def _ways_ever(problem: PlacementProblem, result: SearchResult) -> tuple[Alternative, ...]:
    outcome = place(problem.when_empty())
    in_same_tree = next(
        (candidate for candidate in outcome.results if candidate.tree is result.tree), outcome.results[0]
    )
    return _ways(outcome.problem, in_same_tree)


def _best(attempt: LevelAttempt) -> dict[str, object]:
    entry: dict[str, object] = {
        "domain": list(attempt.domain),
        "pods": attempt.fits,
        "wanted": attempt.wanted,
    }
    return entry | ({"note": attempt.note} if attempt.note else {})
