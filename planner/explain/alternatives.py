"""Finds similar requests that have a placement. A changed request is suggested only if a search finds one.

Changes are applied to the request as received, and the parameter `place` searches them with slices, KAI's
placement policies and leaf-spine rules as it does for a submitted gang. A suggestion is therefore admitted
when it is submitted. The searches for one answer share a budget of steps (`WorkBudget`), apart from those for
slower links, which have another. A change that the budget leaves untried is not suggested.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from planner.cluster.switch_graph import cabled_leaf_spine
from planner.explain.fewer_pods import fewer_pods, fewer_words
from planner.explain.pod_changes import (
    Change,
    as_stated,
    in_one_zone,
    other_pods,
    own_amounts,
    smaller,
    tolerations,
)
from planner.model.effort.deadline import poll
from planner.model.effort.work_budget import WorkBudget
from planner.model.names import object_of, replicas_of
from planner.model.natural_order import natural
from planner.model.podgroup import Constraint, PodGroup
from planner.model.resolved import ResolvedPodGroup, ResolvedPodSet
from planner.model.topology import ROOT, Topology
from planner.request.levels import constraints, inside_host, level_key
from planner.request.resolve import PlacementProblem
from planner.search.outcome import Outcome, Place, domain_of
from planner.search.result import SearchResult

_BUDGET = 1_000_000
"""Steps for the alternatives of one answer: a third of a plan's budget, because the failed search has
already used up to the whole budget of the plan.
"""


_MAX_RELEASED = 16
"""Maximum number of other gangs whose end is tried, those on fewest nodes first. Each costs a search as if
the gang had ended.
"""


_MAX_SAID = 2
"""Maximum number of changes of pods in a message; later changes are less similar to the request."""


_MAX_SPEEDS = 4
"""Maximum number of link speeds that are tried, fastest first: each costs a search."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """A similar request that is admitted.

    `words`: text that describes the change. `ended`: the gang that must end before the unchanged request is
    admitted, or ""; the user cannot choose such an alternative, only wait for it.
    """

    words: str
    group: PodGroup
    ended: str = ""


@dataclass(frozen=True, slots=True)
class Shortfall:
    """The part of a gang that has no placement.

    `names`: the PodSets that do not fit; all PodSets if no single one is the cause. `tried`: the result of
    the failed search. `fits`: the maximum number of their pods that fit at the same time.
    """

    names: tuple[str, ...]
    tried: SearchResult
    fits: int


def alternatives(problem: PlacementProblem, shortfall: Shortfall, place: Place) -> tuple[Alternative, ...]:
    """Returns similar requests that are admitted: now, or in the empty cluster if not `problem.occupied`.

    Tries, in this order:

    1. fewer pods and a coarser level; if neither works, slices at another level and slower links
    2. if `problem.occupied`: if no pod fits, the end of another gang, and a reservation of nodes only; before
       all these, as many replicas of the object as have a place
    3. in the empty cluster, if step 1 found something: a toleration of a taint that excludes nodes
    4. if admission policies raised the pods' amounts: smaller amounts
    5. if no request works so far: changes of the pods (`pod_changes`)

    If some of the gangs that start together have a place, only their number and the end of another gang are
    returned: the others are tried for one of these gangs alone."""
    trial = Trial(place)
    alternatives_found = [
        *_fewer(problem, shortfall.names, shortfall.fits, trial),
        *_coarser(problem, shortfall, trial),
    ]
    alternatives_found = alternatives_found or [
        *_other_slices(problem, shortfall, trial),
        *slower_links(problem, place),
    ]
    attempts = shortfall.tried.attempts
    if problem.occupied and not (attempts and attempts[-1].fits):
        alternatives_found += _room(problem, trial)
    if problem.occupied:
        replicas = [*_fewer_replicas(problem)]
        if replicas and problem.asked.joint:
            return (*replicas, *(way for way in alternatives_found if way.ended))
        alternatives_found = [*replicas, *alternatives_found]
    if alternatives_found and not problem.occupied:
        alternatives_found += _first(tolerations(problem, shortfall.names), trial)
    alternatives_found += _own_amounts(problem, shortfall.names, trial)
    if all(way.ended for way in alternatives_found):
        alternatives_found += _other_pods(problem, shortfall, trial)
    return tuple(alternatives_found)


def has_place(problem: PlacementProblem, place: Place) -> bool:
    """Returns whether a search within the budget finds a placement for the unchanged request."""
    return Trial(place).placed(problem) is not None


def with_fewer_pods(
    problem: PlacementProblem, names: Sequence[str], fits: int, place: Place
) -> tuple[Alternative, ...]:
    """Returns the request with the largest number of pods of these PodSets, at most `fits`, that is admitted;
    () if there is none.
    """
    return tuple(_fewer(problem, names, fits, Trial(place)))


def slower_links(problem: PlacementProblem, place: Place) -> Iterator[Alternative]:
    """Yields the request with a lower link speed: the fastest at which it is admitted; nothing if none is."""
    asked, trial = problem.asked, Trial(place)
    fabrics = (cabled_leaf_spine(problem.snapshot, topology) for topology in problem.snapshot.topologies)
    speeds = {speed for fabric in fabrics if fabric for speed in fabric.speeds if speed < asked.fabric.gbps}
    for gbps in sorted(speeds, reverse=True)[:_MAX_SPEEDS]:
        slower = problem.changed(replace(asked, fabric=replace(asked.fabric, gbps=gbps)))
        if trial.placed(slower):
            yield Alternative(f"links of {gbps:g} Gb/s (topology.scheduler/network-bandwidth)", slower.asked)
            return


class Trial:
    """Places the changed requests of one answer within a shared work budget."""

    def __init__(self, place: Place) -> None:
        self._place, self._budget = place, WorkBudget(_BUDGET, hard=True)

    def placed(self, problem: PlacementProblem) -> Outcome | None:
        """Returns the outcome of placing a changed request; None if no placement is found within the
        budget.
        """
        poll("explanation")
        outcome = self._place(problem, self._budget)
        return None if outcome.best is None else outcome


# -- fewer pods ----------------------------------------------------------------------------------------------


def _fewer(problem: PlacementProblem, names: Sequence[str], fits: int, trial: Trial) -> Iterator[Alternative]:
    """Yields the request with the largest number of pods of these PodSets, at most `fits`, that has a
    placement; nothing if there is none.
    """
    counts = fewer_pods(problem, names, fits, lambda changed: trial.placed(changed) is not None)
    if counts:
        yield Alternative(fewer_words(problem.asked, counts), problem.resized(counts).asked)


def _fewer_replicas(problem: PlacementProblem) -> Iterator[Alternative]:
    """Yields the number of other replicas of the gang's object that have a place; nothing if none has."""
    siblings = _siblings(problem)
    if count := sum(held.gang.startswith(siblings) for held in problem.snapshot.reservations):
        yield Alternative(replicas_of(problem.name, count), problem.asked)


def _siblings(problem: PlacementProblem) -> str:
    """Returns the prefix of the names of all replicas of the gang's object; without an object "/", with which
    no name begins.
    """
    return f"{object_of(problem.name)}/"


# -- a coarser level -----------------------------------------------------------------------------------------


def _coarser(problem: PlacementProblem, shortfall: Shortfall, trial: Trial) -> Iterator[Alternative]:
    """Yields the request with the finest coarser required level that has a placement; if none has one,
    without a required level; nothing if that has no placement either.

    If only some PodSets are the cause, only their level is changed.
    """
    asked, topology, required = problem.asked, shortfall.tried.tree.topology, _strictest(shortfall)
    culprits = shortfall.names if _is_own(asked, shortfall) else ()
    if required == ROOT:
        return
    loose = _required_at(problem, "", culprits)
    outcome = trial.placed(loose)
    if outcome is None:
        return
    suffix = f" of {' and '.join(culprits)}" if culprits and _several(asked) else ""
    finest = required if _inside_host(asked, culprits) else required - 1
    if not culprits and (level_of_outcome := _level_of(outcome, topology)) is not None:
        finest = level_of_outcome
    for level in range(finest, ROOT, -1):
        tighter = _required_at(problem, topology.levels[level], culprits)
        # `outcome` itself is in one domain of the level `finest`. It proves that this level works, unless
        # the request has more than constraints (`has_special_requests`), or nodes outside the topology's
        # tree were used.
        proves = not culprits and not asked.has_special_requests and _in_tree(outcome, shortfall)
        if proves or trial.placed(tighter):
            yield Alternative(f"required at {topology.levels[level]}{suffix}", tighter.asked)
            return
    yield Alternative(f"no required level{suffix}", loose.asked)


def _in_tree(outcome: Outcome, shortfall: Shortfall) -> bool:
    """Returns whether the placement is in the tree in which the search with the level failed."""
    return outcome.best is not None and outcome.best.tree is shortfall.tried.tree


def _level_of(outcome: Outcome, topology: Topology) -> int | None:
    """Returns the index, in `topology`, of the finest level at which one domain contains the placement; None
    if the placement is in another topology, and its level is none of this one.
    """
    assert outcome.best is not None, "only a placement is in a domain"
    domain = domain_of(outcome.best)
    if not domain:
        return ROOT
    level = outcome.best.tree.topology.levels[len(domain) - 1]
    return topology.index(level) if level in topology.levels else None


def _inside_host(group: PodGroup, names: Sequence[str]) -> bool:
    """Returns whether the request asks for a level inside the host; the next coarser level is then the
    host.
    """
    return any(
        inside_host(pod_set.constraint.required) for pod_set in group.pod_sets if pod_set.name in names
    )


def _strictest(shortfall: Shortfall) -> int:
    """Returns the index of the finest level that the failed request requires, ROOT for none."""
    request = shortfall.tried.request
    return max(request.required, *(pod_class.required for pod_class in request.pod_classes))


def _is_own(group: PodGroup, shortfall: Shortfall) -> bool:
    """Returns whether only some of the gang's PodSets, not all, are the cause of the shortfall."""
    return len(shortfall.names) < sum(1 for pod_set in group.pod_sets if pod_set.count)


def _several(group: PodGroup) -> bool:
    return sum(1 for pod_set in group.pod_sets if pod_set.count) > 1


def _required_at(problem: PlacementProblem, level: str, names: Sequence[str]) -> PlacementProblem:
    """Returns the request with this required level ("" for none) for the named PodSets only.

    Without `names`, the level is that of the gang, and the PodSets' own levels are removed.
    """
    asked = problem.asked
    if names:
        sets = tuple(
            _requiring(pod_set, level) if pod_set.name in names else pod_set for pod_set in asked.pod_sets
        )
        rules = tuple(rule for rule in asked.within if not set(rule[1]) & set(names))
        return problem.changed(replace(asked, pod_sets=sets, within=rules))
    sets = tuple(_requiring(pod_set, "") for pod_set in asked.pod_sets)
    constraint = replace(asked.constraint, required=level)
    return problem.changed(replace(asked, pod_sets=sets, within=(), policy="", constraint=constraint))


def _requiring(pod_set: ResolvedPodSet, level: str) -> ResolvedPodSet:
    return replace(pod_set, constraint=replace(pod_set.constraint, required=level))


# -- other slices, room --------------------------------------------------------------------------------------


def _other_slices(problem: PlacementProblem, shortfall: Shortfall, trial: Trial) -> Iterator[Alternative]:
    """Yields the request with its slices at the finest coarser level that has a placement, or without slices;
    nothing if neither has one.
    """
    asked, topology = problem.asked, shortfall.tried.tree.topology
    slice_levels = {constraint.slice_level for _, constraint in constraints(asked) if constraint.slice_level}
    finest = max((topology.index(level_key(topology, level)) for level in slice_levels), default=ROOT)
    for level in range(finest - 1, ROOT - 1, -1):
        sliced = _sliced_at(asked, topology, level)
        if sliced != asked and trial.placed(problem.changed(sliced)):
            words = f"slices at {topology.levels[level]}" if level > ROOT else "no slices"
            yield Alternative(words, sliced)
            return


def _sliced_at(group: ResolvedPodGroup, topology: Topology, level: int) -> ResolvedPodGroup:
    def changed(constraint: Constraint) -> Constraint:
        if not constraint.slice_level:
            return constraint
        if level == ROOT:
            return replace(constraint, slice_level="", slice_size=0)
        return replace(constraint, slice_level=topology.levels[level])

    return replace(
        group,
        constraint=changed(group.constraint),
        pod_sets=tuple(
            replace(pod_set, constraint=changed(pod_set.constraint)) for pod_set in group.pod_sets
        ),
    )


def _room(problem: PlacementProblem, trial: Trial) -> Iterator[Alternative]:
    """Yields the unchanged request after the end of another gang, the smallest whose end makes room; and the
    request with a reservation of nodes instead of domains. Replicas of the same object do not end for each
    other: the object requests all of them.
    """
    asked, snapshot, siblings = problem.asked, problem.snapshot, _siblings(problem)
    others = (held for held in snapshot.reservations if not held.gang.startswith(siblings))
    by_size = sorted(others, key=lambda held: (len(held.touched), natural(held.gang)))
    for reservation in by_size[:_MAX_RELEASED]:
        if trial.placed(problem.in_snapshot(snapshot.ended(reservation.gang))):
            yield Alternative(f"as asked, once {reservation.gang} ends", asked, reservation.gang)
            break
    if asked.reserve == "domain":
        nodes = problem.changed(replace(asked, reserve="nodes"))
        if trial.placed(nodes):
            words = "bayplan.dev/reserve: nodes, which holds no more than the gang uses"
            yield Alternative(words, nodes.asked)


# -- other pods ----------------------------------------------------------------------------------------------


def _first(changes: Iterable[Change], trial: Trial) -> Iterator[Alternative]:
    """Yields the first of these changes with which the request has a placement; nothing if none has one."""
    for change in changes:
        if trial.placed(change.problem):
            yield Alternative(change.words, change.problem.asked)
            return


def _own_amounts(problem: PlacementProblem, names: Sequence[str], trial: Trial) -> Iterator[Alternative]:
    """Yields the request with smaller values of amounts that admission policies raised, the largest that fit.

    No tried value is below what the pods' author stated. If the request has no placement with the author's
    amounts, nothing else is tried.
    """
    stated = as_stated(problem, names)
    if stated is not problem and trial.placed(stated):
        yield from _first(own_amounts(problem, names), trial)


def _other_pods(problem: PlacementProblem, shortfall: Shortfall, trial: Trial) -> Iterator[Alternative]:
    """Yields the request with smaller amounts, or with those of one NUMA zone, another label, resource or
    toleration.

    A pod can fail for two causes at once, for example a misspelt product and more GPUs than a node of that
    product has. Each change is therefore tried alone, and if none works, together with smaller amounts or a
    toleration. For a queued gang, only smaller amounts are tried: its pods fit nodes of the empty cluster.
    """
    names, tree = shortfall.names, shortfall.tried.tree
    zones = in_one_zone(problem, tree, names)  # as raised: the kubelet aligns what policies added too
    problem = problem if problem.occupied else as_stated(problem, names)
    alternatives_found = [*_first(smaller(problem, tree, names), trial)]
    if alternatives_found or problem.occupied:
        yield from alternatives_found
        return
    alternatives_found += _first(zones, trial)
    changes = other_pods(problem, names)
    for change in changes:
        alternatives_found += _first([change], trial)
    if alternatives_found:
        yield from alternatives_found[:_MAX_SAID]
        return
    for change in changes:
        changed = change.problem
        shrunk = smaller(changed, tree, names), in_one_zone(changed, tree, names)
        for further in (*shrunk, tolerations(changed, names)):
            for way in _first(further, trial):
                yield replace(way, words=f"{change.words} with {way.words}")
                return
