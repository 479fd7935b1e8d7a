"""Messages of answers: a reason, the numbers, and what would work, written for kubectl's output."""

from __future__ import annotations

from collections.abc import Sequence

from planner.model.answer import Answer, LevelAttempt
from planner.model.pod_class import PodClass
from planner.model.podgroup import Assignment, PodGroup
from planner.model.quantity import show
from planner.model.topology import HOSTNAME, ROOT, Domain, Topology, short
from planner.model.words import listed, pods
from planner.request.resolve import PlacementProblem
from planner.request.validation import Refusal
from planner.search.result import SearchResult

BUDGET_WARNING = (
    "SearchBudgetExhausted: the placement is valid, but the search ended before it was proved best"
)


_MOST_CAUSES = 8
"""Causes that a message names; the answer's `obstacles` have all."""


UNPROVED_WARNING = "SearchBudgetExhausted: the search ended before every packing had been tried"


def refused(problem: PlacementProblem, refusal: Refusal) -> Answer:
    """The answer to a request that contradicts itself or the cluster."""
    return Answer(
        problem.name, "rejected", reason=refusal.reason, message=refusal.message, warnings=problem.warnings
    )


def placed(
    group: PodGroup,
    topology: Topology,
    domain: Domain,
    assignments: Sequence[Assignment],
    reserves: Sequence[Domain],
) -> str:
    """Where the gang is placed, and what it holds."""
    nodes = len({assignment.node for assignment in assignments})
    if len(domain) == len(topology.levels):
        text = f"{pods(group.size)} on node {name_of(domain)}"
    else:
        where = f"{short(topology.levels[len(domain) - 1])} {name_of(domain)}" if domain else topology.name
        text = f"{pods(group.size)} on {nodes} node{'' if nodes == 1 else 's'} in {where}"
    if tuple(reserves) == (domain,):
        return f"{text}, which is reserved."
    if reserves:
        text += f"; reserved: {listed([name_of(domain) for domain in reserves])}"
    return text + "."


def too_large(group: PodGroup, result: SearchResult, best: LevelAttempt, ways: Sequence[str]) -> str:
    """The message to a gang that does not fit any domain of its required level, or the cluster, even when
    empty.

    `best`: the best attempt in the empty cluster. `ways`: what would work.
    """
    level = result.request.required
    subject = f"{_set_prefix(group, result)}{pods(group.size)}{_gpus(group)}"
    if level == ROOT:
        have = _has_room("the whole cluster", group, best, "even when empty")
    else:
        key = short(result.tree.topology.levels[level])
        subject += f" required in one {key}"
        have = _has_room(f"the largest {key}, {name_of(best.domain)},", group, best, "even when empty")
    would = f"Would work: {', or '.join(ways)}." if ways else "No smaller request fits either."
    return f"{subject} can never fit: {have}. {would}"


def no_room(
    group: PodGroup, result: SearchResult, best: LevelAttempt, obstacles: dict[str, int], ways: Sequence[str]
) -> str:
    """The message to a gang that fits the empty cluster, but not the cluster as it is.

    `best`: the best attempt now. `ways`: what would work now.
    """
    level = result.request.required
    subject = f"{_set_prefix(group, result)}{pods(group.size)}{_gpus(group)}"
    if level == ROOT:
        have = _has_room("the cluster", group, best, "now")
    else:
        key = short(result.tree.topology.levels[level])
        subject += f" required in one {key}"
        place = f"the best {key}, {name_of(best.domain)}," if best.domain else f"the best {key}"
        have = _has_room(place, group, best, "now")
    text = f"{subject} fit{'s' if group.size == 1 else ''} the empty cluster but not now: {have}"
    if obstacles:
        text += f"; in the way: {_in_the_way(obstacles)}"
    return (
        f"{text}. Would work now: {', or '.join(ways)}." if ways else f"{text}. No smaller request fits now."
    )


def _in_the_way(obstacles: dict[str, int]) -> str:
    """Node counts by cause, most frequent first; remaining causes are summed, so that every node counts."""
    named = list(obstacles.items())[:_MOST_CAUSES]
    rest = sum(obstacles.values()) - sum(count for _, count in named)
    parts = [f"{_nodes(count)} {_cause_phrase(cause)}" for cause, count in named]
    if rest:
        more = len(obstacles) - _MOST_CAUSES
        parts.append(f"{_nodes(rest)} for {'another reason' if more == 1 else f'{more} other reasons'}")
    return ", ".join(parts)


def _nodes(count: int) -> str:
    return f"{count} node{'' if count == 1 else 's'}"


def _cause_phrase(cause: str) -> str:
    """A cause worded to follow "12 nodes"."""
    if cause in ("node selector", "node affinity"):
        return f"outside the {cause}"
    if cause.startswith(("taint ", "insufficient ", "NUMA")):
        return f"with {cause}"
    return cause.replace("no label ", "without label ", 1)


def fits_no_node(kind: PodClass, lacking: dict[str, int], known: Sequence[str]) -> str:
    """The message to a pod that no node can ever take; `lacking` maps each resource to the largest amount of
    a node.
    """
    sets = " and ".join(name for name, _ in kind.parts)
    asked = kind.shape.requests
    if not lacking:
        amounts = ", ".join(f"{show(name, asked[name])} {name}" for name in sorted(asked) if name != "pods")
        return f"One pod of {sets} asks for {amounts}, and no node has all of that together. Ask for less."
    parts = [
        f"{show(name, asked[name])} {name}, and the most that any node it may use has is "
        f"{show(name, max_amount)}"
        for name, max_amount in lacking.items()
    ]
    text = f"One pod of {sets} asks for {'; '.join(parts)}: all of a pod's resources come from one node."
    name, max_amount = next(iter(lacking.items()))
    if max_amount:
        return f"{text} Would work: {show(name, max_amount)} or less a pod."
    return f"{text} The cluster has: {listed(known) or 'no devices'}."


def fits_no_gpu(kind: PodClass, part: str, why: str) -> str:
    """The message to a pod that asks for a part of a GPU that no node can ever give; `why` says what would
    work.
    """
    return f"One pod of {' and '.join(name for name, _ in kind.parts)} asks for {part}, and {why}"


def fits_no_devices(kind: PodClass, causes: dict[str, int]) -> str:
    """The message to a pod whose claims no eligible node can ever satisfy; `causes`: node counts by cause."""
    sets = " and ".join(name for name, _ in kind.parts)
    reasons = ", ".join(f"{_nodes(count)} with {cause}" for cause, count in causes.items())
    return (
        f"No node that a pod of {sets} may use has what it claims: {reasons}. "
        "Would work: fewer devices or constraints in one pod's claims."
    )


def fits_no_inside(kind: PodClass, causes: dict[str, int], max_gpus: int) -> str:
    """The message to a request for a domain inside the host that is larger than any; `max_gpus`: GPUs of the
    largest.
    """
    sets = " and ".join(name for name, _ in kind.parts)
    reasons = ", ".join(
        f"{cause} ({count} node{'' if count == 1 else 's'})" for cause, count in causes.items()
    )
    ways = [f"{max_gpus} GPUs or fewer together"] if max_gpus else []
    return (
        f"{sets}: no node has such a domain for all of it: {reasons}. "
        f"Would work: {', or '.join([*ways, f'required at {HOSTNAME}'])}."
    )


def matches_no_node(kind: PodClass, causes: dict[str, int]) -> str:
    """The message to a pod that no node accepts, whatever its size."""
    sets = " and ".join(name for name, _ in kind.parts)
    reasons = ", ".join(
        f"{cause} ({count} node{'' if count == 1 else 's'})" for cause, count in causes.items()
    )
    reasons = reasons or "the cluster has no nodes for it"
    return (
        f"No node takes a pod of {sets}: {reasons}. "
        "Would work: selectors and tolerations that some node meets."
    )


def _set_prefix(group: PodGroup, result: SearchResult) -> str:
    """The PodSet's name and a colon where the level that failed is the PodSet's own, else ""."""
    has_own_level = any(p.constraint.required or p.constraint.preferred for p in group.pod_sets)
    return f"{group.pod_sets[0].name}: " if has_own_level and result.request.required > ROOT else ""


def _has_room(place: str, group: PodGroup, best: LevelAttempt, when: str) -> str:
    pod_gpus = {pod_set.shape.gpus for pod_set in group.pod_sets if pod_set.count}
    gpus = (
        f" ({best.fits * min(pod_gpus)} GPUs)" if len(pod_gpus) == 1 and best.fits and min(pod_gpus) else ""
    )
    return f"{place} has room for {best.fits} of {pods(group.size)}{gpus} {when}"


def _gpus(group: PodGroup) -> str:
    return f" ({group.gpus} GPUs)" if group.gpus else ""


def name_of(domain: Domain) -> str:
    """A domain as shown to people."""
    return "/".join(value or "-" for value in domain) or "the whole cluster"
