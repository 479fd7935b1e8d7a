"""Places one pod class after another, the largest pods first: used if the search of all classes together runs
out of budget without a placement.

    a: 3 pods of 4 GPUs    b: 5 pods of 2 GPUs       first all of a, then all of b beside them

The search of a single class stays within its budget. The result is a valid placement, but rarely the best
one. If there is no result, the gang may still have a placement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.cluster.trees.tree import TopologyTree
from planner.model.effort.work_budget import WorkBudget
from planner.model.pod_class import PodClass, PodClasses
from planner.model.podgroup import Assignment, ReserveMode
from planner.model.reservation import Reservation, traits_of
from planner.model.topology import ROOT, Domain
from planner.request.relaxation import relaxations
from planner.request.topology_request import TopologyRequest
from planner.search.level_search import LevelSearch
from planner.search.result import LevelSearchResult, Placement
from planner.search.rules.spread_over_labels import rules_of
from planner.search.space import search_space

Run = Callable[[LevelSearch, PodClasses, int], LevelSearchResult]
"""Searches for pod classes in one domain of a level."""


def place_class_by_class(
    snapshot: Snapshot, tree: TopologyTree, request: TopologyRequest, mode: ReserveMode, run: Run
) -> Placement | None:
    """Returns a placement of all pod classes, each placed beside the classes before it; None if a class then
    does not fit. `run`: the search for a class with rules about the relative positions of its pods.

    None also if there is a single class, if the gang requires a level, or if a rule ties pods of two classes:
    to place one class at a time could break the rule. Under a limit of GPUs in a domain, each class may
    use what the classes before it have left. In reserve mode `domain`, each class gets domains of its own,
    because those of the classes before it count as another gang's: a placement that shares them is missed.
    """
    pod_classes = relaxations(request)[-1]
    if request.required > ROOT or len(pod_classes) == 1 or _are_tied(pod_classes):
        return None
    placements: list[Placement] = []
    gpus: Counter[Domain] = Counter()
    for index in sorted(range(len(pod_classes)), key=lambda index: _size(pod_classes[index]), reverse=True):
        own_request = replace(request, pod_classes=(pod_classes[index],))
        space = search_space(snapshot, tree, occupied=True)
        if request.gpu_limit is not None:
            space = replace(space, gpu_limit=request.gpu_limit._replace(used=gpus))
        search = LevelSearch(space, own_request, mode, WorkBudget())
        placement = _placed(search, pod_classes[index], run)
        if placement is None:
            return None
        if request.gpu_limit is not None:
            gpus.update(_gpus_by_domain(tree, request.gpu_limit.level, placement))
        snapshot = snapshot.with_reservation(_reservation_of(tree, index, placement))
        placements.append(placement)
    return _together(tree, placements)


def _are_tied(pod_classes: PodClasses) -> bool:
    """Reports whether a rule ties the nodes of a class's pods to the nodes of another class's pods."""
    spread = any(len({*rule.keepers, *rule.counted}) > 1 for rule in rules_of(pod_classes))
    return spread or any(
        pod_class.is_split or not _related_pod_sets(pod_class) <= set(pod_class.names)
        for pod_class in pod_classes
    )


def _related_pod_sets(pod_class: PodClass) -> set[str]:
    """Returns the PodSets that the class's rules of affinity and anti-affinity name."""
    apart = (name for _, name in (*pod_class.anti_affinity_with, *pod_class.anti_affinity_over))
    together = (names for _, names in (*pod_class.co_located_over, *pod_class.co_located_at))
    return {*apart, *(name for names in together for name in names)}


def _placed(search: LevelSearch, pod_class: PodClass, run: Run) -> Placement | None:
    if not pod_class.is_tied:
        return search.anywhere((pod_class,))
    placement = run(search, (pod_class,), ROOT).placement
    if placement is None or not pod_class.shape.spread_states or search.mode != "domain":
        return placement
    # The gang's plan pins the pods to whole domains of the reservable level. In a placement inside a finer
    # domain, the search proved only that the pods can be bound one by one on the nodes of that domain.
    finer = placement.branch.level > search.space.tree.topology.reservable_index
    return None if finer else placement


def _together(tree: TopologyTree, placements: list[Placement]) -> Placement:
    """Returns the placement of the pod classes of all these placements."""
    pod_classes = tuple([pod_class for placement in placements for pod_class in placement.pod_classes])
    rows: dict[int, list[int]] = {}
    start = 0
    for placement in placements:
        for host_index, counts in placement.pods_by_node:
            row = rows.setdefault(host_index, [0] * len(pod_classes))
            row[start : start + len(counts)] = counts
        start += len(placement.pod_classes)
    pods_by_node = [(host_index, tuple(counts)) for host_index, counts in sorted(rows.items())]
    return Placement(tree.root, pod_classes, pods_by_node, 0, exact=False)


def _gpus_by_domain(tree: TopologyTree, level: int, placement: Placement) -> dict[Domain, int]:
    """Returns the GPUs that the placed pods use in each named domain of the level."""
    hosts = tree.root.leaves_at([host_index for host_index, _ in placement.pods_by_node])
    used: Counter[Domain] = Counter()
    for host, (_, counts) in zip(hosts, placement.pods_by_node, strict=True):
        if (domain := tree.branch(host.path[: level + 1])) is not None:
            used[domain.path] += sum(
                count * pod_class.shape.gpus
                for pod_class, count in zip(placement.pod_classes, counts, strict=True)
            )
    return used


def _size(pod_class: PodClass) -> tuple[int, int, int]:
    requests = pod_class.shape.requests
    return (pod_class.shape.gpus, requests.get("memory", 0), requests.get("cpu", 0))


def _reservation_of(tree: TopologyTree, index: int, placement: Placement) -> Reservation:
    """Returns a reservation of what the placed pods use, so that the following classes do not use it."""
    hosts = tree.root.leaves_at([host_index for host_index, _ in placement.pods_by_node])
    names = [pod_class.parts[0][0] for pod_class in placement.pod_classes]
    shapes = [(name, pod_class.shape) for name, pod_class in zip(names, placement.pod_classes, strict=True)]
    return Reservation(
        id=f"piece-{index}",
        gang=f"\0{index}",  # a name that no gang has
        topology=tree.topology.name,
        level="",
        domain=(),
        mode="nodes",
        domains=(),
        nodes=frozenset(),
        assignments=tuple(
            [
                Assignment(name, host.node, count)
                for host, (_, counts) in zip(hosts, placement.pods_by_node, strict=True)
                for name, count in zip(names, counts, strict=True)
                if count
            ]
        ),
        requests=tuple([(name, shape.amounts_per_pod) for name, shape in shapes]),
        fingerprint="",
        traits=tuple([(name, traits) for name, shape in shapes if (traits := traits_of(shape))]),
    )
