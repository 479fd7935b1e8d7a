"""The answer to a gang that has no place now: will it ever, how close did it come, and what would work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from planner.cluster.capacity import hosts
from planner.cluster.snapshot import Snapshot
from planner.explain import messages, numa_messages, spread_messages
from planner.explain.alternatives import Alternatives, Shortfall
from planner.explain.obstacles import CLAIMS, FITS, causes_for, largest, obstacles, short_of, usable
from planner.model.answer import Answer, LevelAttempt, Verdict
from planner.model.pod_class import PodClass
from planner.model.podgroup import PodGroup
from planner.model.resources import GPU
from planner.model.topology import ROOT
from planner.model.work_budget import WorkBudget
from planner.node import nvlink
from planner.node.eligibility import affinity_allows
from planner.node.gpu_sharing import never, share_in, share_named
from planner.request.relaxation import relaxations
from planner.search.level_search import LevelSearch
from planner.search.result import SearchResult
from planner.search.space import SearchSpace, search_space

_ALONE_BUDGET = 200_000


def not_placed(
    snapshot: Snapshot,
    group: PodGroup,
    now: Sequence[SearchResult],
    ever: Sequence[SearchResult],
    *,
    fits_empty: bool,
    near: Alternatives,
) -> Answer:
    """The queued or rejected answer, from what was tried in the cluster as it is and in the empty one.

    `near` tells of other requests, to say what would work.
    """
    one = closest(now)
    decision: Verdict = "queued"
    unproved = () if all(tried.complete for tried in now) else (messages.UNPROVED_WARNING,)
    views = [search_space(snapshot, tried.tree, now=False) for tried in ever]
    current = search_space(snapshot, one.tree, now=True)
    causes = obstacles(group, current, one.asked)
    if fits_empty:
        reason = "NoRoomNow"
        part, tight = culprit_of(snapshot, group, one, now=True)
        ways = near.ways(tight_of(part, tight), now=True)
        message = messages.no_room(part, tight, best_attempt(tight), causes, [way.words for way in ways])
        message = _with(message, spread_messages.in_the_way(current, one.asked))
    elif not all(tried.complete for tried in ever):
        reason = "SearchBudgetExhausted"
        message = (
            "The search ended before every packing was tried; none was found. Would help: fewer pod sets."
        )
    else:
        decision = "rejected"
        reason, message = _never(snapshot, group, one, ever, views, near)
        message = _with(message, spread_messages.in_the_way(views[0], ever[0].asked))
    return Answer(
        gang=group.name,
        decision=decision,
        topology=one.tree.topology.name,
        reason=reason,
        message=message,
        warnings=(*group.warnings, *one.asked.warnings, *unproved),
        obstacles=causes,
        attempts=tuple(reversed(one.attempts)),
    )


def _with(message: str, more: str) -> str:
    return f"{message} {more}" if more else message


def closest(tried: Sequence[SearchResult]) -> SearchResult:
    """The topology in which the gang comes closest to a place; the first of equals."""
    return max(tried, key=lambda one: (best_attempt(one).fits, -tried.index(one)))


def _never(
    snapshot: Snapshot,
    group: PodGroup,
    one: SearchResult,
    ever: Sequence[SearchResult],
    views: Sequence[SearchSpace],
    near: Alternatives,
) -> tuple[str, str]:
    same = next((tried for tried in ever if tried.tree is one.tree), ever[0])
    for kind in same.asked.kinds:
        reason = _pod_never(kind, views)
        if reason is not None:
            return reason
    part, tight = culprit_of(snapshot, group, same, now=False)
    ways = near.ways(tight_of(part, tight), now=False)
    reason_token = "TooLargeForCluster" if tight.asked.required == ROOT else "TooLargeForLevel"
    return reason_token, messages.too_large(part, tight, best_attempt(tight), [way.words for way in ways])


def culprit_of(
    snapshot: Snapshot, group: PodGroup, one: SearchResult, *, now: bool
) -> tuple[PodGroup, SearchResult]:
    """The PodSet that has no domain of its own required level even alone; the whole gang where none is."""
    view = search_space(snapshot, one.tree, now=now)
    for kind in relaxations(one.asked)[-1]:
        if kind.required <= one.asked.required:
            continue
        alone = replace(one.asked, required=kind.required, kinds=(replace(kind, required=ROOT),))
        climb = LevelSearch(view, alone, group.reserve, WorkBudget(_ALONE_BUDGET), [])
        if climb.climb(alone.kinds, alone.required) is None:
            names = {name for name, _ in kind.parts}
            part = replace(group, pod_sets=tuple(p for p in group.pod_sets if p.name in names))
            return part, SearchResult(one.tree, alone, None, tuple(climb.attempts), climb.complete)
    return group, one


def _pod_never(kind: PodClass, views: Sequence[SearchSpace]) -> tuple[str, str] | None:
    """Why not even one pod of the kind has a node in the empty cluster; None where it has."""
    causes: Counter[str] = Counter()
    for view in views[:1] if len({len(v.tree.nodes) for v in views}) == 1 else views:
        causes.update(causes_for(view, kind))
    if causes[FITS]:
        return None
    if misaligned := sum(n for cause, n in causes.items() if cause.startswith(numa_messages.NUMA)):
        roomy = (h for h in usable(views, kind) if not short_of(h.free or {}, kind, h.gpus, h.stock))
        zones = [host.zones for host in roomy if host.zones]
        return "NoNUMAFit", numa_messages.never(kind, zones, misaligned)
    if any(cause.startswith((nvlink.SMALL, nvlink.UNALIGNED)) for cause in causes):
        return "TooLargeForLevel", messages.fits_no_inside(
            kind, {c: n for c, n in causes.items() if n}, _inside(views, kind, causes)
        )
    if not any(cause.startswith("insufficient") for cause in causes):
        return "NoNodeMatches", messages.matches_no_node(kind, {c: n for c, n in causes.items() if n})
    if unmet := {c: n for c, n in causes.items() if c.startswith(f"insufficient {CLAIMS}")}:
        return "PodFitsNoNode", messages.fits_no_devices(kind, unmet)
    share = share_in(kind.shape.requests)
    if share and (why := never(share, [(h.gpus, (h.free or {}).get(GPU, 0)) for h in usable(views, kind)])):
        return "PodFitsNoNode", messages.fits_no_gpu(kind, share.words(), why)
    have = {name: largest(views, kind, name) for name in kind.shape.requests if not share_named(name)}
    lacking = {
        n: have[n] for n in sorted(have, key=lambda n: "/" not in n) if have[n] < kind.shape.requests[n]
    }
    return "PodFitsNoNode", messages.fits_no_node(kind, lacking, _devices(views))


def _inside(views: Sequence[SearchSpace], kind: PodClass, causes: Mapping[str, int]) -> int:
    """The GPUs of the largest domain inside a node: NVLink domain, or NUMA node where that was asked for."""
    shape = kind.shape
    nodes = [
        (node, view.base.numa.get(node.name))
        for view in views
        for node in view.tree.nodes
        if affinity_allows(shape, node)
    ]
    if any(cause.startswith(nvlink.SMALL) for cause in causes):
        return max((nvlink.nvlink_size(node) for node, _ in nodes), default=0)
    return max((nvlink.numa_size(node, numa) for node, numa in nodes), default=0)


def _devices(views: Sequence[SearchSpace]) -> list[str]:
    """Every device that some node has."""
    return sorted(
        {
            name
            for view in views
            for content in {*hosts(view.content)}
            for name, amount in (content.free or {}).items()
            if "/" in name and amount > 0
        }
    )


def best_attempt(tried: SearchResult) -> LevelAttempt:
    """What was tried at the required level (the last, coarsest one)."""
    return tried.attempts[-1] if tried.attempts else LevelAttempt("", (), 0, 0)


def tight_of(part: PodGroup, one: SearchResult) -> Shortfall:
    """What has no place, by what was tried for it."""
    fits = max((tried.fits for tried in one.attempts), default=0)
    return Shortfall(tuple(p.name for p in part.pod_sets if p.count), one, fits)
