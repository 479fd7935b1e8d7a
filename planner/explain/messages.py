"""The messages of answers: a reason, numbers, and what would work, as kubectl prints them."""

from __future__ import annotations

from collections.abc import Sequence

from planner.model.answer import Answer, LevelAttempt
from planner.model.pod_class import PodClass
from planner.model.podgroup import Assignment, PodGroup
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
    level = result.request.required
    subject = f"{_set_prefix(group, result)}{pods(group.size)}{_gpus(group)}"
    if level == ROOT:
        have = _has_room("the whole cluster", group, best)
    else:
        key = short(result.tree.topology.levels[level])
        subject += f" required in one {key}"
        have = _has_room(f"the largest {key}, {name_of(best.domain)},", group, best)
    return _with_ways(f"{subject} {_fit(group)} not fit the empty cluster: {have}.", nodes, ways)


def no_room(
    group: PodGroup, result: SearchResult, best: LevelAttempt, nodes: str, ways: Sequence[str], awaited: str
) -> str:
    """Returns the message for a gang that fits the empty cluster, but not the cluster as it is.

    `best`: the best attempt now. `nodes`: all nodes by cause, "" if each has room for a pod. `ways`: what
    would work now. `awaited`: the gang whose end makes room, or "".
    """
    level = result.request.required
    subject = f"{_set_prefix(group, result)}{pods(group.size)}{_gpus(group)}"
    if level == ROOT:
        have = _has_room("the cluster", group, best)
    else:
        key = short(result.tree.topology.levels[level])
        subject += f" required in one {key}"
        place = f"the best {key}, {name_of(best.domain)}," if best.domain else f"the best {key}"
        have = _has_room(place, group, best)
    fit = f"fit{'s' if group.size == 1 else ''} the empty cluster but not now"
    message = _with_addition(f"{subject} {fit}: {have} now.", nodes)
    wait = f"As asked, it fits once {awaited} ends" if awaited else ""
    return _with_ways(message, wait, ways, moment=" now")


def fits_no_node(pod_class: PodClass, nodes: str, why: str, ways: Sequence[str]) -> str:
    """Returns the message for a pod that no node of the empty cluster takes.

    `nodes`: all nodes by cause. `why`: more detail than the causes give, optionally with "Would work: …"; ""
    for none. `ways`: what would work.
    """
    reason, _, way = why.removesuffix(".").partition(WORKS)
    message = f"No node takes a pod of {_sets(pod_class)}: {nodes}."
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


def _sets(pod_class: PodClass) -> str:
    return " and ".join(name for name, _ in pod_class.parts)


def _fit(group: PodGroup) -> str:
    return "does" if group.size == 1 else "do"


def _set_prefix(group: PodGroup, result: SearchResult) -> str:
    """Returns the PodSet's name and a colon if the failed level is the PodSet's own, else ""."""
    has_own_level = any(p.constraint.required or p.constraint.preferred for p in group.pod_sets)
    return f"{group.pod_sets[0].name}: " if has_own_level and result.request.required > ROOT else ""


def _has_room(place: str, group: PodGroup, best: LevelAttempt) -> str:
    pod_gpus = {pod_set.shape.gpus for pod_set in group.pod_sets if pod_set.count}
    gpus = (
        f" ({_gpu_count(best.fits * min(pod_gpus))})"
        if len(pod_gpus) == 1 and best.fits and min(pod_gpus)
        else ""
    )
    return f"{place} has room for {best.fits} of {pods(group.size)}{gpus}"


def _gpus(group: PodGroup) -> str:
    return f" ({_gpu_count(group.gpus)})" if group.gpus else ""


def _gpu_count(count: int) -> str:
    return counted(count, "GPU")


def name_of(domain: Domain) -> str:
    """Returns a domain as text, for example "b1/r1", with "-" for a missing label."""
    return "/".join(value or "-" for value in domain) or "the whole cluster"
