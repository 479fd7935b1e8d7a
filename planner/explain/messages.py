"""The messages of answers: a reason, numbers, and what would work, as kubectl prints them."""

from __future__ import annotations

from collections.abc import Sequence

from planner.model.answer import Answer, LevelAttempt
from planner.model.names import object_of, replicas_of
from planner.model.podgroup import Assignment, PodGroup
from planner.model.resolved import ANTI_AFFINITY_CAUSE, SPREAD_CAUSE
from planner.model.topology import ROOT, Domain, Topology, short
from planner.model.words import counted, listed, pods
from planner.request.resolve import PlacementProblem
from planner.request.validation import Refusal
from planner.search.result import SearchResult

WORKS = "Would work: "
"""Precedes the texts of the alternatives in a message."""


BUDGET_WARNING = (
    "SearchBudgetExhausted: the placement is valid, but the search ended before it was proved best"
)


UNPROVED_WARNING = "SearchBudgetExhausted: the search ended before every packing had been tried"


def refused(problem: PlacementProblem, refusal: Refusal) -> Answer:
    """Returns the rejected answer for a request that contradicts itself or the cluster."""
    return Answer(
        problem.name, "rejected", reason=refusal.reason, message=refusal.message, warnings=problem.warnings
    )


def placed(
    group: PodGroup,
    topology: Topology,
    domain: Domain,
    assignments: Sequence[Assignment],
) -> str:
    """Returns the text that says where the gang is placed: "8 pods on 2 nodes in rack b1/r1"."""
    nodes = len({assignment.node for assignment in assignments})
    if len(domain) == len(topology.levels):
        return f"{pods(group.size)} on node {name_of(domain)}"
    where = (
        f"{short(topology.levels[len(domain) - 1])} {name_of(domain)}"
        if domain
        else topology.name or "the cluster"
    )
    return f"{pods(group.size)} on {counted(nodes, 'node')} in {where}"


def too_large(
    group: PodGroup, result: SearchResult, best: LevelAttempt, nodes: str, ways: Sequence[str]
) -> str:
    """Returns the message for a gang that does not fit any domain of its required level even when empty.

    `best`: the best attempt in the empty cluster. `nodes`: all nodes by cause, "" if each has room for a pod.
    `ways`: what would work.
    """
    key = _required_key(result)
    place = f"the largest {key}, {name_of(best.domain)}," if key else "the whole cluster"
    have = _has_room(place, group, best)
    fit = f"{'does' if group.size == 1 else 'do'} not fit the empty cluster"
    return _with_ways(f"{_subject(group, result)} {fit}: {have}.", nodes, ways)


def no_room(
    group: PodGroup, result: SearchResult, best: LevelAttempt, nodes: str, ways: Sequence[str], awaited: str
) -> str:
    """Returns the message for a gang that fits the empty cluster, but not the cluster as it is.

    `best`: the best attempt now. `nodes`: all nodes by cause, "" if each has room for a pod. `ways`: what
    would work now. `awaited`: the gang whose end makes room, or "".
    """
    key = _required_key(result)
    name = f", {name_of(best.domain)}," if best.domain else ""
    place = f"the best {key}{name}" if key else "the cluster"
    have = _has_room(place, group, best)
    fit = f"fit{'s' if group.size == 1 else ''} the empty cluster but not now"
    message = _with_addition(f"{_subject(group, result)} {fit}: {have} now.", nodes)
    waiting = f"{replicas_of(group.name, 1)} more" if object_of(group.name) else "it"
    wait = f"As asked, {waiting} fits once {awaited} ends" if awaited else ""
    return _with_ways(message, wait, ways, moment=" now")


def fits_no_node(names: Sequence[str], nodes: str, why: str, ways: Sequence[str]) -> str:
    """Returns the message for a pod that no node of the empty cluster takes.

    `names`: the PodSets of such pods, as messages name them. `nodes`: all nodes by cause. `why`: more detail
    than the causes give, optionally with "Would work: …"; "" for none. `ways`: what would work.
    """
    reason, _, way = why.removesuffix(".").partition(WORKS)
    message = f"No node takes a pod of {' and '.join(names)}: {nodes}."
    return _with_ways(message, reason.removesuffix(". "), [*([way] if way else []), *ways])


def _with_ways(message: str, addition: str, ways: Sequence[str], *, moment: str = "") -> str:
    """Returns the message followed by an additional sentence, if any, and by what would work.

    `moment`: " now" if `ways` work in the cluster as it is.
    """
    nearest = (
        f"{WORKS.replace(':', f'{moment}:')}{', or '.join(ways)}."
        if ways
        else f"No similar request fits{moment or ' either'}."
    )
    return f"{_with_addition(message, addition)} {nearest}"


def _with_addition(message: str, addition: str) -> str:
    return f"{message} {addition[0].upper()}{addition[1:]}." if addition else message


def devices_there(names: Sequence[str]) -> str:
    """Returns the sentence that lists the cluster's device resources, for a request for one that no node
    has.
    """
    return f"The cluster's devices: {listed(names, 6) or 'none'}."


def fits_no_gpu(part: str, why: str) -> str:
    """Returns the sentence about a GPU share that no node can ever give. `part`: the share, as text. `why`:
    the result of `why_share_never_fits`.
    """
    return f"It asks for {part}, and {why}"


def most_inside(max_gpus: int) -> str:
    """Returns the sentence about a request for an NVLink domain or NUMA node with more GPUs than any has.

    `max_gpus`: the GPUs of the largest domain; 0 if unknown, which gives "".
    """
    return f"The largest such domain has {counted(max_gpus, 'GPU')}." if max_gpus else ""


def _subject(group: PodGroup, result: SearchResult) -> str:
    """Returns the text for the part of a gang that does not fit, with the levels that it requires. It begins
    with the names of the PodSets if the failed level is their own.
    """
    key = _required_key(result)
    sets = [pod_set for pod_set in group.pod_sets if pod_set.count]
    own_level = key and all(pod_set.constraint.required for pod_set in sets)
    names = f"{' and '.join(pod_set.name for pod_set in sets)}: " if own_level else ""
    gpus = f" ({counted(group.gpus, 'GPU')})" if group.gpus else ""
    required = f" required in one {key}" if key else ""
    return f"{names}{pods(group.size)}{gpus}{required}{_own_levels(result)}"


def _required_key(result: SearchResult) -> str:
    """Returns the short name of the level of which one domain must hold all; "" for no such level."""
    level = result.request.required
    return short(result.tree.topology.levels[level]) if level > ROOT else ""


def _own_levels(result: SearchResult) -> str:
    """Returns text about the slices and PodSets that must be in one domain of a level each; "" for none."""
    texts: dict[str, None] = {}
    sets: dict[str, list[str]] = {}
    for pod_class in result.request.pod_classes:
        size, level = pod_class.slice_size, max(pod_class.slice_level, pod_class.required)
        if level > result.request.required:
            domain = f"in one {short(result.tree.topology.levels[level])}"
            together = next((names for index, names in pod_class.co_located_at if index == level), ())
            if together:
                texts[f"{' and '.join(together)} {domain}"] = None
            elif size == 1 or (len(pod_class.parts) > 1 and pod_class.parts[0][1] == size):
                sets.setdefault(domain, []).extend(name for name, _ in pod_class.parts)
            else:
                texts[f"each slice of {size} {domain}"] = None
    for domain, names in sets.items():
        texts[f"{'each of ' if len(names) > 1 else ''}{' and '.join(names)} {domain}"] = None
    return f", {' and '.join(texts)}," if texts else ""


def _has_room(place: str, group: PodGroup, best: LevelAttempt) -> str:
    several = sum(1 for pod_set in group.pod_sets if pod_set.count) > 1
    if several and not best.fits and best.note in (SPREAD_CAUSE, ANTI_AFFINITY_CAUSE):
        # How many pods of several classes would fit under rules about their positions is not searched.
        return f"{place} has no place for all {pods(group.size)} together under {best.note}"
    pod_gpus = {pod_set.shape.gpus for pod_set in group.pod_sets if pod_set.count}
    gpus = (
        f" ({counted(best.fits * min(pod_gpus), 'GPU')})"
        if len(pod_gpus) == 1 and best.fits and min(pod_gpus)
        else ""
    )
    return f"{place} has room for {best.fits} of {pods(group.size)}{gpus}"


def name_of(domain: Domain) -> str:
    """Returns a domain as text, for example "b1/r1", with "-" for a missing label."""
    return "/".join(value or "-" for value in domain) or "the whole cluster"
