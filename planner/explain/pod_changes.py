"""Changes of a pod's spec that may give a gang a placement: a toleration, another label value, another
resource, smaller amounts. `alternatives` searches for a placement with a change before it suggests the
change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from planner.cluster.infrastructure import Infrastructure
from planner.cluster.plan_cache import DerivedSection
from planner.cluster.trees.tree import TopologyTree
from planner.explain import numa_messages
from planner.explain.label_values import is_similar, nearest, similar_key, values_of
from planner.explain.obstacles import largest, usable
from planner.model.effort.deadline import poll
from planner.model.labels import Requirement, Taint, Toleration
from planner.model.pod import Alignment
from planner.model.pod_class import PodClass
from planner.model.quantity import show
from planner.model.resolved import ResolvedShape
from planner.node.eligibility import selector_obstacle, untolerated
from planner.node.gpu_sharing import share_named
from planner.node.numa_state import NumaState, alignment_for
from planner.node.topology_manager import closeness
from planner.request.resolve import PlacementProblem
from planner.search.space import search_space

_MAX_TAINTS = 3
"""Maximum number of taints for which a toleration is tried, most frequent first."""


_MAX_VALUES = 2
"""Maximum number of values tried in place of one label value or resource name, most similar first."""


_MAX_CHANGES = 6
"""Maximum number of changes that `other_pods` returns: each costs a search."""


_ALIKE_NAMES = 0.7
"""Minimum `SequenceMatcher` ratio between a misspelt resource name and the name that replaces it. Any two MIG
profiles are this similar, and two kinds of devices of one vendor are not.
"""


_EIGHTHS = (6, 4, 2, 1)
"""Fractions of a raised amount that are tried, in eighths, largest first."""


_GIBIBYTE = 2**30


_UNITS = {"cpu": 1000, "memory": _GIBIBYTE}
"""Whole cores and GiB, to which amounts are rounded down."""


_MAX_ZONES = 4
"""Maximum number of NUMA zones whose amounts are tried: each costs a search."""


_ZoneLimits = tuple[str, tuple[tuple[str, int], ...]]
"""The Topology Manager's scope, and the amounts of a zone by resource."""


_RESOURCES: DerivedSection[str, frozenset[str]] = DerivedSection("resources that some node offers")
"""Caches the names of the resources. The only key is "". Cached because every refusal needs the names."""


@dataclass(frozen=True, slots=True)
class Change:
    """A changed request for which no search was made yet. `words`: text that describes the change."""

    words: str
    problem: PlacementProblem


def other_pods(problem: PlacementProblem, names: Sequence[str]) -> list[Change]:
    """Returns requests in which the pods of these PodSets select another label value, tolerate a taint or
    request another resource.

    A change is left out if no node has the labels that it selects, because that is cheap to check.
    """
    changes = (*_relabelled(problem, names), *tolerations(problem, names), *_renamed(problem, names))
    return [change for change in changes if _helps(change.problem, names)][:_MAX_CHANGES]


def _helps(changed: PlacementProblem, names: Sequence[str]) -> bool:
    """Returns whether, for each of these PodSets, some node has the labels that its pods select."""
    poll("explanation")
    nodes = changed.snapshot.nodes.values()
    return all(any(not selector_obstacle(shape, node) for node in nodes) for shape in _shapes(changed, names))


def as_stated(problem: PlacementProblem, names: Sequence[str]) -> PlacementProblem:
    """Returns the request with the resource amounts that its author stated, without what policies added.

    Admission policies derive the added amounts from the pod, so they would give a changed pod other amounts.
    The policies in `policies/` never raise an amount above what the nodes that could take the pod have.
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
    """Returns the request with a change applied to the pods of these PodSets.

    The text names the changed PodSets unless they are all PodSets of the gang.
    """
    poll("explanation")
    asked = problem.asked
    shapes = {pod_set.name: change(pod_set.shape) for pod_set in asked.pod_sets if pod_set.name in names}
    sets = tuple(replace(s, shape=shapes.get(s.name, s.shape)) for s in asked.pod_sets)
    changed = [new.name for new, old in zip(sets, asked.pod_sets, strict=True) if new.shape != old.shape]
    suffix = f" of {' and '.join(changed)}" if len(sets) > len(changed) else ""
    return Change(f"{words}{suffix}", problem.changed(replace(asked, pod_sets=sets)))


# -- tolerations ---------------------------------------------------------------------------------------------


def tolerations(problem: PlacementProblem, names: Sequence[str]) -> Iterator[Change]:
    """Yields the request with a toleration of one taint, the most frequent taint first.

    Counts, for each node whose labels the pods select, the first taint that they do not tolerate. Temporary
    taints such as `node.kubernetes.io/not-ready` are not counted.
    """
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
    """Yields the request with one selected label changed: to the most similar existing values, or, if no node
    has the label, to the most similar label key, or with the label removed.
    """
    base = problem.snapshot.base
    for key, value in dict.fromkeys(_selected(problem, names)):
        counts = values_of(base, key)
        if not counts:
            other = similar_key(base, key)
            yield _with_label(problem, names, (key, value), (other, value) if other else None)
        for near in nearest(value, counts)[:_MAX_VALUES]:
            yield _with_label(problem, names, (key, value), (key, near))


def _selected(problem: PlacementProblem, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yields the labels that node selectors and required node affinity select, as (key, first value)."""
    classes = problem.snapshot.base.runtime_classes
    for shape in _shapes(problem, names):
        yield from (pair for pair in shape.node_selector.items() if not classes.selects(shape, *pair))
        for term in shape.affinity:
            yield from ((r.key, r.values[0]) for r in term if r.operator == "In" and r.values)


def _with_label(
    problem: PlacementProblem, names: Sequence[str], old: tuple[str, str], new: tuple[str, str] | None
) -> Change:
    """Returns the request that selects label `new` in place of `old`, as (key, value); None removes `old`."""

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
    """Yields the request with a similar device resource of the same vendor in place of one that no node has,
    the most similar first.
    """
    offered = _offered_resources(problem.snapshot.base)
    for asked in dict.fromkeys(name for shape in _shapes(problem, names) for name in shape.requests):
        if asked in offered or "/" not in asked or not _requested_directly(problem, asked):
            continue
        vendor = asked.partition("/")[0]
        taken = {name for shape in _shapes(problem, names) for name in shape.requests}
        candidates = [
            name
            for name in offered - taken
            if name.partition("/")[0] == vendor and is_similar(asked, name, _ALIKE_NAMES)
        ]
        for near in nearest(asked, candidates)[:_MAX_VALUES]:

            def renamed(shape: ResolvedShape, old: str = asked, new: str = near) -> ResolvedShape:
                amounts = {new if name == old else name: n for name, n in shape.requests.items()}
                # The NUMA alignment names the old resource.
                return replace(shape, requests=amounts, alignment=None)

            yield _changed(problem, names, f"{near} in place of {asked}", renamed)


def _offered_resources(base: Infrastructure) -> frozenset[str]:
    nodes = base.nodes.values()
    return base.node_values.get(
        _RESOURCES,
        "",
        lambda: frozenset(name for node in nodes for name, n in node.allocatable.items() if n > 0),
    )


def _requested_directly(problem: PlacementProblem, resource: str) -> bool:
    """Returns whether some pod requests the resource itself. If all pods that have it in their requests have
    device claims, it may only be a pool that the planner counts for these claims.
    """
    shapes = _shapes(problem, [pod_set.name for pod_set in problem.asked.pod_sets])
    return any(resource in shape.requests and not shape.claim_specs for shape in shapes)


# -- smaller amounts -----------------------------------------------------------------------------------------


def own_amounts(problem: PlacementProblem, names: Sequence[str]) -> Iterator[Change]:
    """Yields the request with smaller values of the amounts that policies raised: of one resource at a time,
    then of all raised resources together.
    """
    pod_sets = [s for s in problem.asked.pod_sets if s.name in names and s.shape.raised]
    raised = list(dict.fromkeys(name for pod_set in pod_sets for name in pod_set.shape.raised))
    for resources in (*[[name] for name in raised], *([raised] if len(raised) > 1 else [])):
        for eighths in _EIGHTHS:
            amounts = {s.name: _reduced(s.shape, resources, eighths) for s in pod_sets}
            own = _without_overhead(problem, amounts)
            if all(map(all, map(dict.values, own.values()))):
                yield Change(_amount_words(problem, own), problem.with_requests(amounts))


def _reduced(shape: ResolvedShape, resources: Sequence[str], eighths: int) -> dict[str, int]:
    """Returns `eighths` / 8 of the requests of these resources that policies have raised, in base units.

    CPU and memory are rounded down to whole cores and GiB. No amount is below what the pod's author stated.
    """
    own, overhead = shape.requests_without_overhead, Counter(shape.overhead)
    return {
        name: max(stated, own[name] * eighths // 8 // (unit := _UNITS.get(name, 1)) * unit + overhead[name])
        for name, stated in shape.raised.items()
        if name in resources
    }


def smaller(problem: PlacementProblem, tree: TopologyTree, names: Sequence[str]) -> Iterator[Change]:
    """Yields the request in which each amount that no node has is lowered to the largest amount on a node.

    Yields nothing if no amount is too large, or if some resource is on no node at all.
    """
    space = search_space(problem.snapshot, tree, occupied=problem.occupied)
    offers: dict[str, dict[str, int]] = {}
    for pod_class in _pod_classes(problem, tree):
        requests = pod_class.shape.requests
        have = {name: largest([space], pod_class, name) for name in requests if not share_named(name)}
        lacking = {name: n for name, n in have.items() if n < requests[name]}
        offers |= {name: lacking for name, _ in pod_class.parts if lacking and name in names}
    own = _without_overhead(problem, offers)
    if offers and all(map(all, map(dict.values, own.values()))):
        yield Change(_amount_words(problem, own), problem.with_requests(offers))


def _without_overhead(
    problem: PlacementProblem, amounts: Mapping[str, dict[str, int]]
) -> dict[str, dict[str, int]]:
    """Returns these amounts, by PodSet, without the overhead of the pods' RuntimeClass, at least 0."""
    overheads = {pod_set.name: pod_set.shape.overhead for pod_set in problem.asked.pod_sets}
    return {
        name: {resource: max(0, n - overheads[name].get(resource, 0)) for resource, n in own.items()}
        for name, own in amounts.items()
    }


def _pod_classes(problem: PlacementProblem, tree: TopologyTree) -> tuple[PodClass, ...]:
    requests = (r.pod_classes for r in problem.requests if r.topology.name == tree.topology.name)
    return next(requests, ())


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


# -- amounts of one NUMA zone --------------------------------------------------------------------------------


def in_one_zone(problem: PlacementProblem, tree: TopologyTree, names: Sequence[str]) -> Iterator[Change]:
    """Yields the request in which each container, or each pod where the Topology Manager's scope is the pod,
    requests at most what one NUMA zone has, for several zones: the one that comes closest first.

    Each is one real zone of an empty node that the pods may use. A zone that has nothing of a requested
    resource is left out.
    """
    space = search_space(problem.snapshot, tree, occupied=False)
    limits: dict[_ZoneLimits, tuple[int, ...]] = {}
    for pod_class in _pod_classes(problem, tree):
        if any(name in names for name, _ in pod_class.parts):
            for host in usable([space], pod_class):
                if host.numa_state is not None:
                    limits.update(_zone_limits(host.numa_state, alignment_for(pod_class.shape)))
    for scope, amounts in sorted(limits, key=limits.__getitem__, reverse=True)[:_MAX_ZONES]:
        yield from _within(problem, names, scope, dict(amounts))


def _zone_limits(zones: NumaState, alignment: Alignment) -> Iterator[tuple[_ZoneLimits, tuple[int, ...]]]:
    """Yields what each zone has of the resources of which it has too little, with its closeness."""
    requests: dict[str, int] = {}
    for ask in alignment.asks(zones.scope):
        for name, amount in ask.requests.items():
            if any(name in dict(zone) for zone in zones.allocatable):
                requests[name] = max(amount, requests.get(name, 0))
    for zone in map(dict, zones.allocatable):
        lacking = {name: zone.get(name, 0) for name, amount in requests.items() if zone.get(name, 0) < amount}
        # Rounded down, because only whole CPUs are aligned, and messages round memory.
        limits = {name: offer // (unit := _UNITS.get(name, 1)) * unit for name, offer in lacking.items()}
        if limits and all(limits.values()):
            yield (zones.scope, tuple(sorted(limits.items()))), closeness(zone, requests)


def _within(
    problem: PlacementProblem, names: Sequence[str], scope: str, limits: Mapping[str, int]
) -> Iterator[Change]:
    """Yields the request with at most these amounts in each container, or in each pod if `scope` is "pod".

    Yields nothing if a pod does not request a resource of which its containers have too much: then policies
    added the amount, and may add it again.
    """
    requests: dict[str, dict[str, int]] = {}
    for pod_set in problem.asked.pod_sets:
        if pod_set.name in names:
            alignment = alignment_for(pod_set.shape)
            new = {
                n: amount
                for ask in alignment.limited(limits, scope).pod
                for n, amount in ask.requests.items()
            }
            requests[pod_set.name] = {
                name: pod_set.shape.requests.get(name, 0) - old + new[name]
                for ask in alignment.pod
                for name, old in ask.requests.items()
                if new[name] < old
            }
    if all(amount > 0 for amounts in requests.values() for amount in amounts.values()):

        def limited(shape: ResolvedShape) -> ResolvedShape:
            return replace(shape, alignment=alignment_for(shape).limited(limits, scope))

        words = _limit_words(problem, names, limits)
        unit = "pod" if scope == "pod" else "container"
        yield _changed(problem.with_requests(requests), names, f"{words} a {unit}", limited)


def _limit_words(problem: PlacementProblem, names: Sequence[str], limits: Mapping[str, int]) -> str:
    raised = {name for shape in _shapes(problem, names) for name in shape.raised}
    stated = numa_messages.amounts({name: n for name, n in limits.items() if name not in raised})
    added = numa_messages.amounts({name: n for name, n in limits.items() if name in raised})
    parts = (f"at most {stated}" if stated else "", f"limits of {added}" if added else "")
    return " and ".join(filter(None, parts))


def _shapes(problem: PlacementProblem, names: Sequence[str]) -> list[ResolvedShape]:
    return [pod_set.shape for pod_set in problem.asked.pod_sets if pod_set.name in names]
