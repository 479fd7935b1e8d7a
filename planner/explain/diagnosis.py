"""Makes the answer for a gang without a placement: it says whether the gang can ever fit, how close it came,
and what would work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from planner.cluster.capacity import hosts
from planner.explain import fabric_messages, messages, numa_messages, spread_messages
from planner.explain.alternatives import Shortfall, alternatives, slower_links, with_fewer_pods
from planner.explain.domain_choices import different_domains
from planner.explain.label_values import nearest
from planner.explain.node_words import NodeWords
from planner.explain.obstacles import (
    CLAIMS,
    LACKS,
    NodeCounts,
    by_object,
    node_counts,
    pod_counts,
    short_of,
    usable,
)
from planner.leafspine.rules import FabricOutcome, LeafLimits, LinksTooSlow, could_ever
from planner.model.answer import Answer, LevelAttempt, Verdict
from planner.model.effort.work_budget import WorkBudget
from planner.model.pod_class import PodClass
from planner.model.podgroup import PodGroup
from planner.model.resources import GPU
from planner.model.topology import ROOT
from planner.node import nvlink
from planner.node.eligibility import affinity_allows
from planner.node.gpu_sharing import share_in, why_share_never_fits
from planner.request.relaxation import relaxations
from planner.request.resolve import PlacementProblem
from planner.search.level_search import LevelSearch
from planner.search.outcome import Outcome, Place
from planner.search.place import place
from planner.search.result import SearchResult
from planner.search.space import SearchSpace, search_space

_ALONE_BUDGET = 200_000
"""Steps to search for a placement of one pod class alone: a fifteenth of a plan's budget, because a
refusal tests one class after another.
"""


def diagnose(problem: PlacementProblem, outcome: Outcome, place_gang: Place) -> Answer:
    """Returns the queued or rejected answer for a problem whose `outcome` has no placement.

    `place_gang`: the search that returned the outcome; it searches the alternatives too.
    """
    searched = outcome.problem
    if searched.refusal:
        return messages.refused(searched, searched.refusal)
    if isinstance(outcome, FabricOutcome):
        return _not_by_leaf_spine_rules(problem, outcome, place_gang)
    empty_outcome = place(searched.when_empty())
    closest = closest_of(outcome.results)
    space = search_space(searched.snapshot, closest.tree, occupied=True)
    counts = node_counts(searched.gang, space, closest.request)
    culprits: tuple[str, ...] = ()
    decision: Verdict = "queued"
    if empty_outcome.best is not None:
        reason, message = "NoRoomNow", _no_room(problem, searched, closest, counts, place_gang)
        message = _with(message, spread_messages.in_the_way(space, closest.request))
    elif not all(result.complete for result in empty_outcome.results):
        reason = "SearchBudgetExhausted"
        message = (
            "The search ended before every packing was tried; none was found. Would help: fewer pod sets."
        )
    else:
        decision = "rejected"
        reason, message, culprits = _never(problem, empty_outcome, closest, place_gang)
    unproved = () if all(result.complete for result in outcome.results) else (messages.UNPROVED_WARNING,)
    return Answer(
        gang=searched.name,
        decision=decision,
        topology=closest.tree.topology.name,
        reason=reason,
        message=message,
        warnings=(*searched.warnings, *closest.request.warnings, *unproved),
        obstacles=dict(counts.causes),
        culprits=culprits,
        attempts=tuple(reversed(closest.attempts)),
    )


def _no_room(
    problem: PlacementProblem,
    searched: PlacementProblem,
    closest: SearchResult,
    counts: NodeCounts,
    place_gang: Place,
) -> str:
    part, shortfall = culprit_of(searched, closest)
    ways = alternatives(problem, shortfall_of(part, shortfall), place_gang)
    counts = replace(counts, causes=by_object(counts.causes, searched.name))
    nodes = NodeWords(closest.request.pod_classes, occupied=True).why_few(counts)
    choices = [way.words for way in ways if not way.ended]
    awaited = next((way.ended for way in ways if way.ended), "")
    return messages.no_room(part, shortfall, best_attempt(shortfall), nodes, choices, awaited)


def _not_by_leaf_spine_rules(problem: PlacementProblem, outcome: FabricOutcome, place_gang: Place) -> Answer:
    """Returns the answer for a gang without a placement under the hard leaf-spine rules.

    `problem` is the request as received.
    """
    match outcome.shortage:
        case LinksTooSlow() as shortage:
            return _links_too_slow(problem, outcome.problem, shortage, place_gang)
        case LeafLimits() as shortage:
            return _over_limits(problem, outcome.problem, shortage, place_gang)
    raise AssertionError("an outcome of the leaf-spine rules says which of them is not kept")


def _links_too_slow(
    problem: PlacementProblem, searched: PlacementProblem, shortage: LinksTooSlow, place_gang: Place
) -> Answer:
    ways = [way.words for way in slower_links(problem.when_empty(), place_gang)]
    message = fabric_messages.too_slow(searched.gang, shortage.fastest, ways)
    return Answer(
        searched.name, "rejected", reason="NoLinkFastEnough", message=message, warnings=searched.warnings
    )


def _over_limits(
    problem: PlacementProblem, searched: PlacementProblem, shortage: LeafLimits, place_gang: Place
) -> Answer:
    gang, settings = searched.gang, searched.snapshot.base.settings
    could = could_ever(searched, shortage.fabric, place)
    names = [pod_set.name for pod_set in gang.pod_sets]
    asked = problem if could else problem.when_empty()
    ways = [way.words for way in with_fewer_pods(asked, names, gang.size - 1, place_gang)]
    return Answer(
        searched.name,
        "queued" if could else "rejected",
        topology=shortage.fabric.topology.name,
        reason="LimitPerLeaf",
        message=fabric_messages.over_limits(gang, settings, shortage.pods, ways, could=could),
        warnings=searched.warnings,
    )


def _with(message: str, addition: str) -> str:
    return f"{message} {addition}" if addition else message


def closest_of(results: Sequence[SearchResult]) -> SearchResult:
    """Returns the result of the topology in which most pods fit; among equals, that with the most nodes, then
    the first.
    """
    return max(
        results,
        key=lambda result: (best_attempt(result).fits, len(result.tree.nodes), -results.index(result)),
    )


def _never(
    problem: PlacementProblem, outcome: Outcome, closest: SearchResult, place_gang: Place
) -> tuple[str, str, tuple[str, ...]]:
    """Returns the reason, the message and the PodSets at fault for a gang that does not fit the empty
    cluster.
    """
    spaces = [
        search_space(outcome.problem.snapshot, result.tree, occupied=False) for result in outcome.results
    ]
    in_the_way = spread_messages.in_the_way(spaces[0], outcome.results[0].request)
    in_same_tree = next(
        (result for result in outcome.results if result.tree is closest.tree), outcome.results[0]
    )
    empty = problem.when_empty()
    for pod_class in in_same_tree.request.pod_classes:
        unfit = _pod_never(pod_class, spaces)
        if unfit is not None:
            names = tuple(name for name, _ in pod_class.parts)
            # Fewer pods help only if the pods share a domain inside the host that is too small for them all.
            fewer = pod_class.count - 1 if unfit.reason == "TooLargeForLevel" else 0
            ways = alternatives(empty, Shortfall(names, in_same_tree, fewer), place_gang)
            titles = [problem.asked.titles[name] for name in names]
            message = messages.fits_no_node(titles, unfit.nodes, unfit.why, [way.words for way in ways])
            return unfit.reason, _with(message, in_the_way), names
    part, shortfall = culprit_of(outcome.problem, in_same_tree)
    counts = node_counts(
        part, search_space(problem.snapshot, shortfall.tree, occupied=False), shortfall.request
    )
    nodes = NodeWords(shortfall.request.pod_classes).why_few(counts)
    ways = alternatives(empty, shortfall_of(part, shortfall), place_gang)
    reason = "TooLargeForCluster" if shortfall.request.required == ROOT else "TooLargeForLevel"
    message = messages.too_large(
        part,
        shortfall,
        best_attempt(shortfall),
        ". ".join(filter(None, (nodes, different_domains(shortfall.request)))),
        [way.words for way in ways],
    )
    return reason, _with(message, in_the_way), tuple(pod_set.name for pod_set in part.pod_sets)


def culprit_of(problem: PlacementProblem, result: SearchResult) -> tuple[PodGroup, SearchResult]:
    """Returns the part of the gang that has no placement, and the failed search for this part.

    The part is the first pod class with a required level of its own, finer than the gang's, that has no
    placement even alone. If there is no such class, the part is the whole gang.
    """
    gang, space = problem.gang, search_space(problem.snapshot, result.tree, occupied=problem.occupied)
    for pod_class in relaxations(result.request)[-1]:  # the pod classes with their required levels only
        if pod_class.required <= result.request.required:
            continue
        own_class = (replace(pod_class, required=ROOT),)
        request = replace(result.request, required=pod_class.required, pod_classes=own_class)
        search = LevelSearch(space, request, gang.reserve, WorkBudget(_ALONE_BUDGET))
        alone = search.search(request.pod_classes, request.required)
        if alone.placement is None:
            names = {name for name, _ in pod_class.parts}
            part = replace(gang, pod_sets=tuple(p for p in gang.pod_sets if p.name in names))
            return part, SearchResult(result.tree, request, None, alone.attempts, alone.complete)
    return gang, result


@dataclass(frozen=True, slots=True)
class _UnfitPod:
    """Why no node takes a pod, even when empty.

    `reason`: the answer's reason. `nodes`: text that counts all nodes by cause. `why`: a sentence with more
    detail than the causes give, or "".
    """

    reason: str
    nodes: str
    why: str = ""


def _pod_never(pod_class: PodClass, spaces: Sequence[SearchSpace]) -> _UnfitPod | None:
    """Returns why not even one pod of the class fits a node of the empty cluster; None if one fits."""
    counts = _counts_ever(pod_class, spaces)
    if counts.serving:
        return None
    if pod_class.shape.raised:
        # If no node takes the pod even with the amounts that its author stated, the message explains these
        # amounts, and not those that policies raised.
        own = replace(pod_class, shape=replace(pod_class.shape, requests=pod_class.shape.own_requests))
        own_counts = _counts_ever(own, spaces)
        pod_class, counts = (pod_class, counts) if own_counts.serving else (own, own_counts)
    nodes = NodeWords((pod_class,), base=spaces[0].base).of(counts)
    causes = counts.causes
    if any(cause.startswith(numa_messages.NUMA) for cause in causes):
        roomy = (host for host in usable(spaces, pod_class) if not short_of(host, pod_class))
        zones = [host.numa_state for host in roomy if host.numa_state]
        return _UnfitPod("NoNUMAFit", nodes, numa_messages.why_never_aligned(pod_class, zones))
    if any(cause.startswith((nvlink.SMALL, nvlink.UNALIGNED)) for cause in causes):
        return _UnfitPod(
            "TooLargeForLevel", nodes, messages.most_inside(_max_gpus_inside(spaces, pod_class, causes))
        )
    if not any(cause.startswith(LACKS) for cause in causes):
        return _UnfitPod("NoNodeMatches", nodes)
    if any(cause.startswith(f"{LACKS}{CLAIMS}") for cause in causes):
        return _UnfitPod("PodFitsNoNode", nodes)
    share = share_in(pod_class.shape.requests)
    if share and (
        why := why_share_never_fits(
            share, [(h.gpus, (h.free or {}).get(GPU, 0)) for h in usable(spaces, pod_class)]
        )
    ):
        return _UnfitPod("PodFitsNoNode", nodes, messages.fits_no_gpu(share.words(), why))
    return _UnfitPod("PodFitsNoNode", nodes, _absent_device(counts, _devices(spaces)))


def _counts_ever(pod_class: PodClass, spaces: Sequence[SearchSpace]) -> NodeCounts:
    """Returns all nodes, counted by what excludes one pod of the class.

    Of several topologies, only one is counted: one in which the pod fits if there is any, and among these the
    one with the fewest nodes outside.
    """
    counted = [pod_counts(space, pod_class) for space in spaces]
    return min(counted, key=lambda counts: (not counts.serving, counts.outside))


def _max_gpus_inside(spaces: Sequence[SearchSpace], pod_class: PodClass, causes: Mapping[str, int]) -> int:
    """Returns the number of GPUs of the largest domain inside a node that the pod may use.

    Domains are NVLink domains if `causes` has a too small one; otherwise NUMA nodes. Returns 0 if unknown.
    """
    shape = pod_class.shape
    nodes = [
        (node, space.base.numa.get(node.name))
        for space in spaces
        for node in space.tree.nodes
        if affinity_allows(shape, node)
    ]
    if any(cause.startswith(nvlink.SMALL) for cause in causes):
        return max((nvlink.nvlink_size(node) for node, _ in nodes), default=0)
    return max((nvlink.numa_size(node, numa) for node, numa in nodes), default=0)


def _absent_device(counts: NodeCounts, offered: Sequence[str]) -> str:
    """Returns the sentence about the first requested device resource that no node has; "" if there is
    none.
    """
    lacking = [cause.removeprefix(LACKS) for cause in counts.shortages]
    absent = [name for name in lacking if "/" in name and name not in offered]
    return messages.devices_there(nearest(absent[0], offered)) if absent else ""


def _devices(spaces: Sequence[SearchSpace]) -> list[str]:
    """Returns the names of all device resources that some node has, sorted."""
    return sorted(
        {
            name
            for space in spaces
            for host in {*hosts(space.capacity)}
            for name, amount in (host.free or {}).items()
            if "/" in name and amount > 0
        }
    )


def best_attempt(tried: SearchResult) -> LevelAttempt:
    """Returns the attempt at the required level, which is the last and coarsest; an attempt without a domain
    if no level was searched.
    """
    return tried.attempts[-1] if tried.attempts else LevelAttempt("", (), 0, 0)


def shortfall_of(part: PodGroup, result: SearchResult) -> Shortfall:
    """Returns the shortfall of a part of the gang. `result`: its failed search; the largest number of pods
    that fit at any of its levels becomes `Shortfall.fits`.

    Of PodSets that each require one domain, a search counts whole ones, but fewer of their pods may fit.
    """
    sets = [pod_set for pod_set in part.pod_sets if pod_set.count]
    counts_whole_sets = len(sets) > 1 and any(pod_set.constraint.required for pod_set in sets)
    fits = part.size - 1 if counts_whole_sets else max((a.fits for a in result.attempts), default=0)
    return Shortfall(tuple(pod_set.name for pod_set in sets), result, fits)
