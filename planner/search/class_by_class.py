"""Places one pod class after another, the largest pods first: used if the search of all classes together runs
out of budget without a placement.

    a: 3 pods of 4 GPUs    b: 5 pods of 2 GPUs       first all of a, then all of b beside them

The search of a single class stays within its budget. The result is a valid placement, but rarely the best
one. If there is no result, the gang may still have a placement.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.cluster.trees.subtree import Subtree
from planner.cluster.trees.tree import TopologyTree
from planner.model.effort.work_budget import WorkBudget
from planner.model.pod_class import PodClass
from planner.model.podgroup import Assignment, ReserveMode
from planner.model.reservation import Reservation, traits_of
from planner.model.topology import ROOT
from planner.request.relaxation import relaxations
from planner.request.topology_request import TopologyRequest
from planner.search.level_search import LevelSearch
from planner.search.result import Placement
from planner.search.space import search_space


def place_class_by_class(
    snapshot: Snapshot, tree: TopologyTree, request: TopologyRequest, mode: ReserveMode
) -> Placement | None:
    """Returns a placement of all pod classes, each placed beside the classes before it; None if one of them
    then does not fit.

    None also if there is a single class, if the gang requires a level, or if a rule ties a class to other
    pods: to place one class at a time could break the rule. Under a limit of GPUs in a domain, each class may
    use what the classes before it have left. In reserve mode `domain`, each class gets domains of its own,
    because those of the classes before it count as another gang's: a placement that shares them is missed.
    """
    pod_classes = relaxations(request)[-1]
    is_tied = any(pod_class.is_tied for pod_class in pod_classes)
    if request.required > ROOT or len(pod_classes) == 1 or is_tied:
        return None
    placed: dict[int, list[int]] = {}
    gpus: Counter[Subtree] = Counter()
    for index in sorted(range(len(pod_classes)), key=lambda index: _size(pod_classes[index]), reverse=True):
        own_request = replace(request, pod_classes=(pod_classes[index],))
        space = search_space(snapshot, tree, occupied=True)
        if request.gpu_limit is not None:
            space = replace(space, gpu_limit=request.gpu_limit._replace(used=gpus))
        placement = LevelSearch(space, own_request, mode, WorkBudget()).anywhere(own_request.pod_classes)
        if placement is None:
            return None
        for host_index, (count,) in placement.pods_by_node:
            placed.setdefault(host_index, [0] * len(pod_classes))[index] += count
        if request.gpu_limit is not None:
            gpus.update(_gpus_by_domain(tree, request.gpu_limit.level, pod_classes[index], placement))
        snapshot = snapshot.with_reservation(_reservation_of(tree, pod_classes[index], index, placement))
    pods_by_node = [(host_index, tuple(counts)) for host_index, counts in sorted(placed.items())]
    return Placement(tree.root, pod_classes, pods_by_node, 0, exact=False)


def _gpus_by_domain(
    tree: TopologyTree, level: int, pod_class: PodClass, placement: Placement
) -> dict[Subtree, int]:
    """Returns the GPUs that the placed pods use in each named domain of the level."""
    hosts = tree.root.leaves_at([host_index for host_index, _ in placement.pods_by_node])
    used: Counter[Subtree] = Counter()
    for host, (_, (count,)) in zip(hosts, placement.pods_by_node, strict=True):
        if (domain := tree.branch(host.path[: level + 1])) is not None:
            used[domain] += count * pod_class.shape.gpus
    return used


def _size(pod_class: PodClass) -> tuple[int, int, int]:
    requests = pod_class.shape.requests
    return (pod_class.shape.gpus, requests.get("memory", 0), requests.get("cpu", 0))


def _reservation_of(tree: TopologyTree, pod_class: PodClass, index: int, placement: Placement) -> Reservation:
    """Returns a reservation of what the placed pods use, so that the following classes do not use it."""
    (name, _), *_ = pod_class.parts
    hosts = tree.root.leaves_at([host_index for host_index, _ in placement.pods_by_node])
    seats = zip(hosts, placement.pods_by_node, strict=True)
    traits = traits_of(pod_class.shape)
    return Reservation(
        id=f"piece-{index}",
        gang=f"\0{index}",  # a name that no gang has
        topology=tree.topology.name,
        level="",
        domain=(),
        mode="nodes",
        domains=(),
        nodes=frozenset(),
        assignments=tuple([Assignment(name, host.node, count) for host, (_, (count,)) in seats]),
        requests=((name, pod_class.shape.amounts_per_pod),),
        fingerprint="",
        traits=((name, traits),) if traits else (),
    )
