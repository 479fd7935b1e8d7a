"""Changes of single pods that may give a gang a placement: a toleration, another label value, another
resource, smaller amounts. `alternatives` searches each change before it suggests it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from planner.cluster.infrastructure import Infrastructure
from planner.cluster.plan_cache import DerivedSection
from planner.cluster.trees.tree import TopologyTree
from planner.explain.label_values import alike, nearest, similar_key, values_of
from planner.explain.obstacles import largest
from planner.model.deadline import poll
from planner.model.labels import Requirement, Taint, Toleration
from planner.model.quantity import show
from planner.model.resolved import ResolvedShape
from planner.node.eligibility import selector_obstacle, untolerated
from planner.node.gpu_sharing import share_named
from planner.request.resolve import PlacementProblem
from planner.search.space import search_space

_MAX_TAINTS = 3
"""Maximum number of taints whose toleration is tried, those on most nodes first."""


_MAX_VALUES = 2
"""Maximum number of label values or resource names that are tried in place of one, most similar first."""


_MAX_CHANGES = 6
"""Maximum number of changes that are tried for one answer: each is a search."""


_ALIKE_NAMES = 0.7
"""Minimum `SequenceMatcher` ratio of a misspelt resource name: all MIG profiles reach it, and a vendor's
other devices do not.
"""


_EIGHTHS = (6, 4, 2, 1)
"""Fractions of a raised amount that are tried, largest first."""


_GIBIBYTE = 2**30


_RESOURCES: DerivedSection[str, frozenset[str]] = DerivedSection("resources that some node offers")
"""Has the single key "". Cached because every refusal reads it."""


@dataclass(frozen=True, slots=True)
class Change:
    """A changed request, not yet searched, and the text of its difference."""

    words: str
    problem: PlacementProblem


def other_pods(problem: PlacementProblem, names: Sequence[str]) -> list[Change]:
    """Returns requests whose pods ask for another label or resource, or tolerate a taint, most similar first.

    Only changes for which some node has the requested labels are returned; that is cheap to check.
    """
    changes = (*_relabelled(problem, names), *tolerations(problem, names), *_renamed(problem, names))
    return [change for change in changes if _helps(change.problem, names)][:_MAX_CHANGES]


def _helps(changed: PlacementProblem, names: Sequence[str]) -> bool:
    poll("explanation")
    nodes = changed.snapshot.nodes.values()
    return all(any(not selector_obstacle(shape, node) for node in nodes) for shape in _shapes(changed, names))


def as_stated(problem: PlacementProblem, names: Sequence[str]) -> PlacementProblem:
    """Returns the request with the amounts that its author stated.

    Policies may have raised the amounts, and they would give a changed pod others. A policy never raises an
    amount above what an empty node has.
    """
    stated = {
        pod_set.name: pod_set.shape.raised
        for pod_set in problem.asked.pod_sets
        if pod_set.name in names and pod_set.shape.raised
    }
    return problem.with_requests(stated) if stated else problem


def _changed(
    problem: PlacementProblem,
    names: Sequence[str],
    words: str,
    change: Callable[[ResolvedShape], ResolvedShape],
) -> Change:
    """Applies a change to the pods of these PodSets, and names the PodSets that it changed."""
    poll("explanation")
    asked = problem.asked
    shapes = {pod_set.name: change(pod_set.shape) for pod_set in asked.pod_sets if pod_set.name in names}
    sets = tuple(replace(s, shape=shapes.get(s.name, s.shape)) for s in asked.pod_sets)
    changed = [new.name for new, old in zip(sets, asked.pod_sets, strict=True) if new.shape != old.shape]
    suffix = f" of {' and '.join(changed)}" if len(sets) > len(changed) else ""
    return Change(f"{words}{suffix}", problem.changed(replace(asked, pod_sets=sets)))


# -- tolerations ---------------------------------------------------------------------------------------------


def tolerations(problem: PlacementProblem, names: Sequence[str]) -> Iterator[Change]:
    """Yields tolerations of the taints that alone keep pods from nodes, the most frequent taint first."""
    taints: Counter[Taint] = Counter()
    base = problem.snapshot.base
    tainted = [base.nodes[name] for name in base.tainted]
    for shape in _shapes(problem, names):
        for node in tainted:
            taint = untolerated(shape, node.taints, passing=False)
            if taint is not None and not selector_obstacle(shape, node):
                taints[taint] += 1
    for taint, _ in sorted(taints.items(), key=lambda item: (-item[1], str(item[0])))[:_MAX_TAINTS]:
        tolerated = Toleration(taint.key, "Equal" if taint.value else "Exists", taint.value, taint.effect)

        def tolerating(shape: ResolvedShape, extra: Toleration = tolerated) -> ResolvedShape:
            return replace(shape, tolerations=(*shape.tolerations, extra))

        yield _changed(problem, names, f"a toleration of {taint}", tolerating)


# -- labels --------------------------------------------------------------------------------------------------


def _relabelled(problem: PlacementProblem, names: Sequence[str]) -> Iterator[Change]:
    """Yields each requested label with the most similar existing values, or under the most similar key."""
    base = problem.snapshot.base
    for key, value in dict.fromkeys(_selected(problem, names)):
        counts = values_of(base, key)
        if not counts:
            other = similar_key(base, key)
            yield _with_label(problem, names, (key, value), (other, value) if other else None)
        for near in nearest(value, counts)[:_MAX_VALUES]:
            yield _with_label(problem, names, (key, value), (key, near))


def _selected(problem: PlacementProblem, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yields the labels that node selectors and required terms ask for, each with a value."""
    for shape in _shapes(problem, names):
        yield from shape.node_selector.items()
        for term in shape.affinity:
            yield from ((r.key, r.values[0]) for r in term if r.operator == "In" and r.values)


def _with_label(
    problem: PlacementProblem, names: Sequence[str], old: tuple[str, str], new: tuple[str, str] | None
) -> Change:
    """Replaces one label by another, or removes it if `new` is None."""

    def requirement(asked: Requirement) -> Iterator[Requirement]:
        if asked.operator != "In" or (asked.key, *asked.values[:1]) != old:
            yield asked
        elif new is not None:
            yield Requirement(new[0], "In", (new[1], *asked.values[1:]))

    def labelled(shape: ResolvedShape) -> ResolvedShape:
        selector = dict(filter(None, (new if pair == old else pair for pair in shape.node_selector.items())))
        terms = (tuple(r for asked in term for r in requirement(asked)) for term in shape.affinity)
        return replace(shape, node_selector=selector, affinity=tuple(filter(None, terms)))

    return _changed(problem, names, f"{new[0]}: {new[1]}" if new else f"no {old[0]}: {old[1]}", labelled)


# -- resources -----------------------------------------------------------------------------------------------


def _renamed(problem: PlacementProblem, names: Sequence[str]) -> Iterator[Change]:
    """Yields each device resource that no node has, under the most similar names of the same vendor."""
    offered = _offered_resources(problem.snapshot.base)
    for asked in dict.fromkeys(name for shape in _shapes(problem, names) for name in shape.requests):
        if asked in offered or "/" not in asked or not _offered(problem, asked):
            continue
        vendor = asked.partition("/")[0]
        taken = {name for shape in _shapes(problem, names) for name in shape.requests}
        candidates = [
            name
            for name in offered - taken
            if name.partition("/")[0] == vendor and alike(asked, name, _ALIKE_NAMES)
        ]
        for near in nearest(asked, candidates)[:_MAX_VALUES]:

            def renamed(shape: ResolvedShape, old: str = asked, new: str = near) -> ResolvedShape:
                amounts = {new if name == old else name: n for name, n in shape.requests.items()}
                return replace(shape, requests=amounts, alignment=None)

            yield _changed(problem, names, f"{near} in place of {asked}", renamed)


def _offered_resources(base: Infrastructure) -> frozenset[str]:
    nodes = base.nodes.values()
    return base.derived.get(
        _RESOURCES,
        "",
        lambda: frozenset(name for node in nodes for name, n in node.allocatable.items() if n > 0),
    )


def _offered(problem: PlacementProblem, resource: str) -> bool:
    """Returns whether a device plugin would offer the resource; False for claims and GPU shares."""
    shapes = _shapes(problem, [pod_set.name for pod_set in problem.asked.pod_sets])
    return any(resource in shape.requests and not shape.claim_specs for shape in shapes)


# -- smaller amounts -----------------------------------------------------------------------------------------


def own_amounts(problem: PlacementProblem, names: Sequence[str]) -> Iterator[Change]:
    """Yields smaller values of the amounts that policies raised: of one resource each, then of all."""
    pod_sets = [s for s in problem.asked.pod_sets if s.name in names and s.shape.raised]
    raised = list(dict.fromkeys(name for pod_set in pod_sets for name in pod_set.shape.raised))
    for resources in (*[[name] for name in raised], *([raised] if len(raised) > 1 else [])):
        for eighths in _EIGHTHS:
            amounts = {s.name: _reduced(s.shape, resources, eighths) for s in pod_sets}
            if all(map(all, map(dict.values, amounts.values()))):
                yield Change(_amount_words(problem, amounts), problem.with_requests(amounts))


def _reduced(shape: ResolvedShape, resources: Sequence[str], eighths: int) -> dict[str, int]:
    """Returns `eighths` eighths of the raised amounts, in whole cores and GiB, at least what the author
    stated.
    """
    units = {"cpu": 1000, "memory": _GIBIBYTE}
    return {
        name: max(stated, shape.requests[name] * eighths // 8 // (unit := units.get(name, 1)) * unit)
        for name, stated in shape.raised.items()
        if name in resources
    }


def smaller(problem: PlacementProblem, tree: TopologyTree, names: Sequence[str]) -> Iterator[Change]:
    """Yields the same pods with each lacking resource reduced to the largest amount on a node."""
    space = search_space(problem.snapshot, tree, occupied=problem.occupied)
    request = next((r for r in problem.requests if r.topology.name == tree.topology.name), None)
    offers: dict[str, dict[str, int]] = {}
    for kind in request.kinds if request else ():
        have = {name: largest([space], kind, name) for name in kind.shape.requests if not share_named(name)}
        lacking = {name: n for name, n in have.items() if n < kind.shape.requests[name]}
        offers |= {name: lacking for name, _ in kind.parts if lacking and name in names}
    if offers and all(map(all, map(dict.values, offers.values()))):
        yield Change(_amount_words(problem, offers), problem.with_requests(offers))


def _amount_words(problem: PlacementProblem, amounts: Mapping[str, Mapping[str, int]]) -> str:
    several = len(problem.asked.pod_sets) > 1
    raised = {pod_set.name: pod_set.shape.raised for pod_set in problem.asked.pod_sets}
    parts = [
        f"{'limits of' if resource in raised[name] else 'at most'} {show(resource, amount)} {resource} a pod"
        f"{f' of {name}' if several else ''}"
        for name, lacking in amounts.items()
        for resource, amount in lacking.items()
    ]
    return " and ".join(parts)


def _shapes(problem: PlacementProblem, names: Sequence[str]) -> list[ResolvedShape]:
    return [pod_set.shape for pod_set in problem.asked.pod_sets if pod_set.name in names]
