"""How an answer came about, in numbers: what each level holds, which nodes are left out, what is nearest.

Worked out by whoever shows it, never by `plan`, from the same searches: the figures are those of the answer's
message. Each node of the cluster is counted once: as one that takes a pod of the gang now, or left out by its
first cause.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from planner.cluster.snapshot import Snapshot
from planner.explain.alternatives import Alternative, Alternatives
from planner.explain.diagnosis import closest, culprit_of, tight_of
from planner.explain.obstacles import obstacles
from planner.model.answer import Answer, LevelAttempt
from planner.model.podgroup import PodGroup
from planner.model.topology import ROOT, Topology
from planner.model.work_budget import WorkBudget
from planner.planning.extensions import by_policy
from planner.planning.plan import near_to, requests_of, search, within_reach
from planner.request.device_claims import with_devices
from planner.request.problem import PlacementProblem
from planner.request.validation import Refusal
from planner.search.level_search import LevelSearch
from planner.search.result import SearchResult
from planner.search.space import SearchSpace, search_space

AS_ASKED = "as asked"
"""The nearest request of a gang that has a place as it stands."""


_BUDGET = 200_000


@dataclass(frozen=True, slots=True)
class LevelFit:
    """One level ("" is the whole topology): the best domain now and when empty, with the pods it holds."""

    level: str
    now: LevelAttempt
    empty: LevelAttempt

    def to_json(self) -> dict[str, object]:
        """Plain JSON."""
        return {"level": self.level or None, "now": _best(self.now), "whenEmpty": _best(self.empty)}


@dataclass(frozen=True, slots=True)
class Details:
    """`required`, `preferred`: level keys, "" for none. `levels`: coarse to fine. `nodes`: of the cluster;
    `usable`: those that take a pod of the gang now; `excluded`: the others by cause, `excluded_ever` those
    that take none even when the cluster is empty. `ways_now`, `ways_ever`: the nearest requests that are
    admitted now, and on the empty cluster; empty where there is none."""

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
    def now(self) -> tuple[str, ...]:
        """The nearest requests that are admitted now, in words."""
        return tuple(way.words for way in self.ways_now)

    @property
    def ever(self) -> tuple[str, ...]:
        """The nearest requests that are admitted on the empty cluster, in words."""
        return tuple(way.words for way in self.ways_ever)

    def to_json(self) -> dict[str, object]:
        """Plain JSON."""
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
            "nearest": {"now": list(self.now), "ever": list(self.ever)},
        }


def details(snapshot: Snapshot, group: PodGroup, answer: Answer) -> Details | None:
    """The account of an answer; None for a request that contradicts itself, where nothing was searched.

    `snapshot` is the cluster in which it was planned; what the gang itself holds there is left aside.
    """
    snapshot = snapshot.without(group.name)
    near = near_to(snapshot, group)
    try:
        group = by_policy(snapshot, within_reach(snapshot, with_devices(snapshot, group)))
        asks = requests_of(snapshot, group)
    except Refusal:
        return None
    tried = search(snapshot, group, asks, now=True)
    one = next((t for t in tried if t.found and t.tree.topology.name == answer.topology), closest(tried))
    asked, topology = one.asked, one.tree.topology
    current, empty = search_space(snapshot, one.tree, now=True), search_space(snapshot, one.tree, now=False)
    excluded = _outside(snapshot, one) | obstacles(group, current, asked)
    never = _outside(snapshot, one) | obstacles(group, empty, asked)
    as_asked = (Alternative(AS_ASKED, near.group),)
    admitted = answer.decision == "admitted"
    ever_as_asked = admitted or near.stands(now=False)
    return Details(
        topology=topology.name,
        required=topology.levels[asked.required] if asked.required > ROOT else "",
        preferred=topology.levels[asked.preferred] if asked.preferred > ROOT else "",
        levels=tuple(_levels(group, one, current, empty)),
        nodes=len(snapshot.nodes),
        usable=len(snapshot.nodes) - sum(excluded.values()),
        excluded=excluded,
        excluded_ever=never,
        ways_now=as_asked if admitted else _ways(group, one, near, now=True),
        ways_ever=as_asked if ever_as_asked else _ways_ever(group, asks, one, near),
    )


def _levels(
    group: PodGroup, one: SearchResult, current: SearchSpace, empty: SearchSpace
) -> Iterator[LevelFit]:
    keys = ("", *one.tree.topology.levels)
    return map(LevelFit, keys, _fits(group, one, current), _fits(group, one, empty))


def _fits(group: PodGroup, one: SearchResult, view: SearchSpace) -> list[LevelAttempt]:
    """What the best domain of each level holds, coarse to fine.

    A gang may be in a domain by being in a finer one inside it: in a rack that it could not hold whole, on a
    host of it. So no level holds less than a finer one.
    """
    found: list[LevelAttempt] = []
    inner: LevelAttempt | None = None
    for level in range(one.tree.topology.host_index, ROOT - 1, -1):
        fit = LevelSearch(view, one.asked, group.reserve, WorkBudget(_BUDGET), []).fits_at(level)
        if inner and inner.fits > fit.fits and (level == ROOT or inner.domain[level]):
            fit = replace(fit, domain=inner.domain[: level + 1], fits=inner.fits, note="")
        found.append(fit)
        inner = fit
    return found[::-1]


def _outside(snapshot: Snapshot, one: SearchResult) -> dict[str, int]:
    outside = len(snapshot.nodes) - len(one.tree.nodes)
    return {f"not in topology {one.tree.topology.name}": outside} if outside else {}


def _ways(group: PodGroup, one: SearchResult, near: Alternatives, *, now: bool) -> tuple[Alternative, ...]:
    part, tight = culprit_of(near.snapshot, group, one, now=now)
    return near.ways(tight_of(part, tight), now=now)


def _ways_ever(
    group: PodGroup, asks: Sequence[tuple[Topology, PlacementProblem]], one: SearchResult, near: Alternatives
) -> tuple[Alternative, ...]:
    ever = search(near.snapshot, group, asks, now=False)
    return _ways(group, next((t for t in ever if t.tree is one.tree), ever[0]), near, now=False)


def _best(attempt: LevelAttempt) -> dict[str, object]:
    told: dict[str, object] = {"domain": list(attempt.domain), "pods": attempt.fits, "wanted": attempt.wanted}
    return told | ({"note": attempt.note} if attempt.note else {})
