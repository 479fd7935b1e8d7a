"""Where a search of several classes has ended without a place: one class after another, the largest pods
first.

    a: 3 pods of 4 GPUs    b: 5 pods of 2 GPUs       first all of a, then all of b beside them

Each is then a search of one class, and these have an end. What is found so is a place, though hardly the
best; where nothing is found, there may yet be one.
"""

from __future__ import annotations

from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.cluster.tree import TopologyTree
from planner.model.pod_class import PodClass
from planner.model.podgroup import Assignment, ReserveMode
from planner.model.reservation import Reservation, traits_of
from planner.model.topology import ROOT
from planner.model.work_budget import WorkBudget
from planner.request.relaxation import relaxations
from planner.request.topology_request import TopologyRequest
from planner.search.level_search import LevelSearch
from planner.search.result import Placement
from planner.search.space import search_space


def place_class_by_class(
    snapshot: Snapshot, tree: TopologyTree, asked: TopologyRequest, mode: ReserveMode
) -> Placement | None:
    """A place for each kind beside those before it, those of the largest pods first. None for what must be in
    one domain together, or keeps any other rule between the kinds."""
    kinds = relaxations(asked)[-1]
    if asked.required > ROOT or len(kinds) == 1 or any(map(_tied, kinds)):
        return None
    placed: dict[int, list[int]] = {}
    for at in sorted(range(len(kinds)), key=lambda at: _size(kinds[at]), reverse=True):
        alone = replace(asked, kinds=(kinds[at],))
        found = LevelSearch(search_space(snapshot, tree, now=True), alone, mode, WorkBudget(), []).anywhere(
            alone.kinds
        )
        if found is None:
            return None
        for place, (count,) in found.placed:
            placed.setdefault(place, [0] * len(kinds))[at] += count
        snapshot = snapshot.with_reservation(_taken(tree, kinds[at], at, found))
    whole = [(place, tuple(counts)) for place, counts in sorted(placed.items())]
    return Placement(tree.root, kinds, whole, 0, exact=False)


def _tied(kind: PodClass) -> bool:
    """Whether where its pods may be hangs on those of others."""
    return bool(
        kind.anti_affinity_with
        or kind.anti_affinity_over
        or kind.co_located_over
        or kind.co_located_at
        or kind.is_split
        or kind.shape.spread_states
    )


def _size(kind: PodClass) -> tuple[int, int, int]:
    requests = kind.shape.requests
    return (kind.shape.gpus, requests.get("memory", 0), requests.get("cpu", 0))


def _taken(tree: TopologyTree, kind: PodClass, at: int, found: Placement) -> Reservation:
    """What the kind's pods take, for those that come after it."""
    (name, _), *_ = kind.parts
    hosts = tree.root.leaves_at([place for place, _ in found.placed])
    seats = zip(hosts, found.placed, strict=True)
    traits = traits_of(kind.shape)
    return Reservation(
        id=f"piece-{at}",
        gang=f"\0{at}",
        topology=tree.topology.name,
        level="",
        domain=(),
        mode="nodes",
        domains=(),
        nodes=frozenset(),
        assignments=tuple([Assignment(name, host.node, count) for host, (_, (count,)) in seats]),
        requests=((name, kind.shape.seat),),
        fingerprint="",
        traits=((name, traits),) if traits else (),
    )
