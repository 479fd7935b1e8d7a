"""Decides what a gang holds under reserve mode `auto`: whole domains, or only what it uses.

Racks of four nodes with 8 GPUs each; a letter is a node that the gang of that name uses:

    r1: A A A .    A requires a rack: r1 is the finest domain that contains A, so A holds it
    r2: B B B .    B requires no level and takes 24 of the 32 GPUs of r2, at least half: B holds r2
    r3: C . . .    C requires no level and takes 8 of 32 GPUs: C holds what it uses
    r4: D D n .    D requires a rack, but n belongs to another gang: D holds what it uses

A gang holds a domain whole if several of its pods require a level, or if it takes a large enough share of the
domain's GPUs (`PodGroup.whole_from`). The domain is never coarser than the requested level or the reservable
level (`Topology.reservable`, by default the one above the host). It is never a zone or region unless a level
is required; a zone or region is the level above the host if no racks are known. A gang of one pod holds its
node only if the pod takes all GPUs of the node. A gang holds only what it uses if it lies in one of several
NVLink domains of a node, takes only parts of GPUs, or is distributed by leaf-spine rules. A gang does not
wait until other gangs in its domain have ended: if it requires a level, a placement in domains without other
gangs is searched; if there is none, it holds what it uses.

The search under `auto` may use all nodes that no gang holds whole, as under `nodes`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from planner.cluster.capacity import DomainCapacity
from planner.model.effort.work_budget import WorkBudget
from planner.model.holding import DomainShare, Holding
from planner.model.pod_class import PodClass
from planner.model.podgroup import PodGroup
from planner.model.resources import WHOLE_GPUS
from planner.model.topology import FAILURE_DOMAINS, ROOT, Domain, held_level
from planner.request.resolve import PlacementProblem
from planner.request.topology_request import TopologyRequest
from planner.search.outcome import Outcome, Place, deal_to_pod_sets, domain_of
from planner.search.result import SearchResult
from planner.search.space import search_space


def place_holding(problem: PlacementProblem, place: Place, budget: WorkBudget | None = None) -> Outcome:
    """Returns the placement of a gang under `auto`.

    If the gang requires a level, and only other gangs in its domains prevent it from holding them whole, a
    placement in domains without other gangs is preferred.
    """
    outcome = place(problem, budget)
    if outcome.best is None or not problem.occupied:
        return outcome
    held = holding(problem, outcome)
    outcome = replace(outcome, holding=held)
    shared = held.level > ROOT and any(share.other_gang for share in held.shares)
    if not shared or not all(_is_enough(problem.gang, share) for share in held.shares):
        return outcome
    alone = place(problem.reserving("domain"), budget)
    return outcome if alone.best is None else alone


def holding(problem: PlacementProblem, outcome: Outcome) -> Holding:
    """Returns what the gang of a placement holds; `problem`: the request as received."""
    if outcome.holding is not None:
        return outcome.holding
    best, gang = outcome.best, outcome.problem.gang
    assert best is not None, "only a placement is held"
    wish, levels = problem.gang.reserve, best.tree.topology.levels
    if wish == "domain":
        return Holding(wish, tuple([part.domain for part in _touched(best)]))
    if wish != "auto":
        return Holding(wish)
    parts = list(_touched(best, _coarsest_asked(best.request)))
    level = min(_required(best.request), default=ROOT) if gang.size > 1 else ROOT
    wide = level == ROOT and any(levels[len(part.domain) - 1] in FAILURE_DOMAINS for part in parts)
    if wide or _takes_only_parts(gang) or gang.fabric.strategy == "distributed":
        return Holding("nodes")
    shares = tuple(_shares(outcome, best, parts))
    if all(not share.other_gang and _is_enough(gang, share) for share in shares):
        return Holding("domain", tuple([part.domain for part in parts]), shares, level)
    return Holding("nodes", (), shares, level)


@dataclass(frozen=True, slots=True, eq=False)
class _DomainPods:
    """The part of a placement that is in one domain: the index of one of its hosts, and the pods of each pod
    class there."""

    domain: Domain
    host: int
    counts: tuple[int, ...]


def _touched(result: SearchResult, coarsest: int = ROOT) -> Iterator[_DomainPods]:
    """Yields the part of the placement in each domain that the gang would hold whole (`held_level`).

    The hosts of a domain are adjacent in the tree's order, so one bisection per domain finds them. Reading
    the path of each host instead took a quarter of a repeated plan of 144 pods.
    """
    assert result.placement is not None, "only a placement has parts"
    pods_by_node, root = result.placement.pods_by_node, result.tree.root
    hosts = [host for host, _ in pods_by_node]
    level = held_level(result.tree.topology, domain_of(result), coarsest)
    first = 0
    while first < len(hosts):
        branch, end = root.domain_at(hosts[first], level)
        after = bisect_left(hosts, end, first)
        columns = zip(*[counts for _, counts in pods_by_node[first:after]], strict=True)
        yield _DomainPods(branch.path, hosts[first], tuple(map(sum, columns)))
        first = after


def _is_enough(gang: PodGroup, share: DomainShare) -> bool:
    """Reports whether the gang holds the domain whole if no other gang is in it."""
    if share.parted:
        return False
    if gang.size == 1:
        return 0 < share.gpus == share.taken
    return share.required or 0 < share.gpus * gang.whole_from <= share.taken


def _coarsest_asked(request: TopologyRequest) -> int:
    """Returns the coarsest required level, else the coarsest preferred one; ROOT if there is neither."""
    preferred = [request.preferred, *(pod_class.preferred for pod_class in request.pod_classes)]
    asked = _required(request) or [level for level in preferred if level > ROOT]
    return min(asked, default=ROOT)


def _required(request: TopologyRequest) -> list[int]:
    """Returns every level that the gang, some of its pods or its slices require."""
    levels = [
        request.required,
        *(level for pod_class in request.pod_classes for level in _levels_of(pod_class)),
    ]
    return [level for level in levels if level > ROOT]


def _levels_of(pod_class: PodClass) -> tuple[int, ...]:
    return pod_class.required, pod_class.slice_level, *(level for level, _ in pod_class.co_located_at)


def _takes_only_parts(gang: PodGroup) -> bool:
    shapes = [pod_set.shape for pod_set in gang.pod_sets if pod_set.count]
    return any(shape.takes_parts for shape in shapes) and not any(shape.gpus for shape in shapes)


def _shares(outcome: Outcome, best: SearchResult, parts: Sequence[_DomainPods]) -> Iterator[DomainShare]:
    """Yields what the gang takes of each domain (see `DomainShare`)."""
    assert best.placement is not None, "only a placement has shares"
    problem, request = outcome.problem, best.request
    demanding = {
        name
        for pod_class in request.pod_classes
        for name, _ in pod_class.parts
        if max(request.required, *_levels_of(pod_class)) > ROOT
    }
    gpus = {pod_set.name: pod_set.shape.gpus for pod_set in problem.gang.pod_sets}
    taken, required = dict.fromkeys(parts, 0), dict.fromkeys(parts, True)
    for pod_set, part, count in deal_to_pod_sets(
        best.placement.pod_classes, [(part, part.counts) for part in parts]
    ):
        taken[part] += count * gpus[pod_set]
        required[part] = required[part] and pod_set in demanding
    occupied = search_space(problem.snapshot, best.tree, occupied=problem.occupied)
    empty = search_space(problem.snapshot, best.tree, occupied=False)
    gpus_of: dict[DomainCapacity, int] = {}
    for part in parts:
        level = len(part.domain) - 1
        whole = empty.domain_above(part.host, level)[1]
        parted = 0 < whole.nvlink_size < _gpus(whole) and taken[part] <= whole.nvlink_size
        other = occupied.domain_above(part.host, level)[1].gang
        yield DomainShare(part.domain, taken[part], _gpus_in(whole, gpus_of), required[part], parted, other)


def _gpus_in(capacity: DomainCapacity, counts: dict[DomainCapacity, int]) -> int:
    """Returns the number of GPUs in a domain. `counts`: a memo, since equal domains are one object."""
    if capacity not in counts:
        inner = sum(_gpus_in(child, counts) for child in capacity.children)
        counts[capacity] = inner if capacity.free is None else _gpus(capacity)
    return counts[capacity]


def _gpus(host: DomainCapacity) -> int:
    """Returns the number of GPUs of a host; GPUs offered by device plugin and for claims count once."""
    free = host.free or {}
    return max(free.get(name, 0) for name in WHOLE_GPUS)
