"""The planner's words: a reason, the numbers, and what would work, for a reader of kubectl's output."""

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
    """Where the gang goes, and what it holds."""
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
    """The message to a gang that no domain of its required level, or no cluster as this, can ever hold.

    `best`: what the best domain holds when empty. `ways`: what would work.
    """
    level = result.asked.required
    what = f"{_whose(group, result)}{pods(group.size)}{_gpus(group)}"
    if level == ROOT:
        have = _has_room("the whole cluster", group, best, "even when empty")
    else:
        key = short(result.tree.topology.levels[level])
        what += f" required in one {key}"
        have = _has_room(f"the largest {key}, {name_of(best.domain)},", group, best, "even when empty")
    would = f"Would work: {', or '.join(ways)}." if ways else "No smaller request fits either."
    return f"{what} can never fit: {have}. {would}"


def no_room(
    group: PodGroup, result: SearchResult, best: LevelAttempt, obstacles: dict[str, int], ways: Sequence[str]
) -> str:
    """The message to a gang that fits the empty cluster, and not the cluster as it is.

    `best`: what the best domain holds now. `ways`: what would work now.
    """
    level = result.asked.required
    what = f"{_whose(group, result)}{pods(group.size)}{_gpus(group)}"
    if level == ROOT:
        have = _has_room("the cluster", group, best, "now")
    else:
        key = short(result.tree.topology.levels[level])
        what += f" required in one {key}"
        where = f"the best {key}, {name_of(best.domain)}," if best.domain else f"the best {key}"
        have = _has_room(where, group, best, "now")
    text = f"{what} fit{'s' if group.size == 1 else ''} the empty cluster but not now: {have}"
    if obstacles:
        text += f"; in the way: {_in_the_way(obstacles)}"
    return (
        f"{text}. Would work now: {', or '.join(ways)}." if ways else f"{text}. No smaller request fits now."
    )


def _in_the_way(obstacles: dict[str, int]) -> str:
    """The nodes by cause, the most frequent causes first; the rest as one, so that all are counted."""
    named = list(obstacles.items())[:_MOST_CAUSES]
    rest = sum(obstacles.values()) - sum(count for _, count in named)
    parts = [f"{_nodes(count)} {_said(cause)}" for cause, count in named]
    if rest:
        more = len(obstacles) - _MOST_CAUSES
        parts.append(f"{_nodes(rest)} for {'another reason' if more == 1 else f'{more} other reasons'}")
    return ", ".join(parts)


def _nodes(count: int) -> str:
    return f"{count} node{'' if count == 1 else 's'}"


def _said(cause: str) -> str:
    """A cause as it is said after "12 nodes"."""
    if cause in ("node selector", "node affinity"):
        return f"outside the {cause}"
    if cause.startswith(("taint ", "insufficient ", "NUMA")):
        return f"with {cause}"
    return cause.replace("no label ", "without label ", 1)


def fits_no_node(kind: PodClass, lacking: dict[str, int], known: Sequence[str]) -> str:
    """The message to a pod that no node can ever take; `lacking`: resource to the most that a node has."""
    whose = " and ".join(name for name, _ in kind.parts)
    asked = kind.shape.requests
    if not lacking:
        amounts = ", ".join(f"{show(name, asked[name])} {name}" for name in sorted(asked) if name != "pods")
        return f"One pod of {whose} asks for {amounts}, and no node has all of that together. Ask for less."
    parts = [
        f"{show(name, asked[name])} {name}, and the most that any node it may use has is {show(name, most)}"
        for name, most in lacking.items()
    ]
    text = f"One pod of {whose} asks for {'; '.join(parts)}: all of a pod's resources come from one node."
    name, most = next(iter(lacking.items()))
    if most:
        return f"{text} Would work: {show(name, most)} or less a pod."
    return f"{text} The cluster has: {listed(known) or 'no devices'}."


def fits_no_gpu(kind: PodClass, part: str, why: str) -> str:
    """The message to a pod whose part of a GPU no node can ever give; `why` says what would work."""
    return f"One pod of {' and '.join(name for name, _ in kind.parts)} asks for {part}, and {why}"


def fits_no_devices(kind: PodClass, causes: dict[str, int]) -> str:
    """The message to a pod whose claims no node that it may use can ever give; `causes`: nodes by why."""
    whose = " and ".join(name for name, _ in kind.parts)
    why = ", ".join(f"{_nodes(count)} with {cause}" for cause, count in causes.items())
    return (
        f"No node that a pod of {whose} may use has what it claims: {why}. "
        "Would work: fewer devices or constraints in one pod's claims."
    )


def fits_no_inside(kind: PodClass, causes: dict[str, int], most: int) -> str:
    """The message to a request for a domain inside the host that is larger than any; `most`: its GPUs."""
    whose = " and ".join(name for name, _ in kind.parts)
    why = ", ".join(f"{cause} ({count} node{'' if count == 1 else 's'})" for cause, count in causes.items())
    ways = [f"{most} GPUs or fewer together"] if most else []
    return (
        f"{whose}: no node has such a domain for all of it: {why}. "
        f"Would work: {', or '.join([*ways, f'required at {HOSTNAME}'])}."
    )


def matches_no_node(kind: PodClass, causes: dict[str, int]) -> str:
    """The message to a pod that may never be on any node, whatever its size."""
    whose = " and ".join(name for name, _ in kind.parts)
    why = ", ".join(f"{cause} ({count} node{'' if count == 1 else 's'})" for cause, count in causes.items())
    why = why or "the cluster has no nodes for it"
    return (
        f"No node takes a pod of {whose}: {why}. Would work: selectors and tolerations that some node meets."
    )


def _whose(group: PodGroup, result: SearchResult) -> str:
    """The PodSet's name where its own level is at stake, not the gang's."""
    has_own_level = any(p.constraint.required or p.constraint.preferred for p in group.pod_sets)
    return f"{group.pod_sets[0].name}: " if has_own_level and result.asked.required > ROOT else ""


def _has_room(where: str, group: PodGroup, best: LevelAttempt, when: str) -> str:
    each = {pod_set.shape.gpus for pod_set in group.pod_sets if pod_set.count}
    gpus = f" ({best.fits * min(each)} GPUs)" if len(each) == 1 and best.fits and min(each) else ""
    return f"{where} has room for {best.fits} of {pods(group.size)}{gpus} {when}"


def _gpus(group: PodGroup) -> str:
    return f" ({group.gpus} GPUs)" if group.gpus else ""


def name_of(domain: Domain) -> str:
    """A domain as a person writes it."""
    return "/".join(value or "-" for value in domain) or "the whole cluster"
