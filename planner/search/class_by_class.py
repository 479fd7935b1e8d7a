"""Places one pod class after another, the largest pods first: used if the search of all classes together runs
out of budget without a placement.

    a: 3 pods of 4 GPUs    b: 5 pods of 2 GPUs       first all of a, then all of b beside them

Rules between classes are checked for the class that is placed later (`rules.beside_placed_classes`). The
search of a single class stays within its budget. The result is a valid placement, but rarely the best one. If
there is no result, the gang may still have a placement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

from planner.cluster.capacity import DomainCapacity
from planner.cluster.snapshot import Snapshot
from planner.cluster.trees.subtree import Subtree
from planner.cluster.trees.tree import TopologyTree
from planner.model.effort.work_budget import WorkBudget
from planner.model.pod_class import PodClass, PodClasses
from planner.model.podgroup import Assignment, ReserveMode
from planner.model.reservation import Reservation, traits_of
from planner.model.resolved import NodeExclusion
from planner.model.topology import ROOT, Domain
from planner.request.relaxation import relaxations
from planner.request.topology_request import TopologyRequest
from planner.search.level_search import LevelSearch
from planner.search.result import LevelSearchResult, Placement
from planner.search.rules.beside_placed_classes import PlacedClasses, inside, outside
from planner.search.rules.bindable_placement import bindable
from planner.search.rules.spread_over_labels import rules_of
from planner.search.space import SearchSpace, search_space

Run = Callable[[LevelSearch, PodClasses, int], LevelSearchResult]
"""Searches for pod classes in one domain of a level."""


def place_class_by_class(
    snapshot: Snapshot, tree: TopologyTree, request: TopologyRequest, mode: ReserveMode, run: Run
) -> Placement | None:
    """Returns a placement of all pod classes, each placed beside the classes before it; None if a class then
    does not fit. `run`: the search for a class with rules about the relative positions of its pods.

    None also if there is a single class. If the gang requires a level, the classes are placed in the domain
    that is best without rules over labels. Under a limit of GPUs in a domain, each class may use what the
    classes before it have left. In reserve mode `domain`, each class gets domains of its own, because those
    of the classes before it count as another gang's: a placement that shares them is missed.
    """
    pod_classes = relaxations(request)[-1]
    if len(pod_classes) == 1:
        return None
    run_of_classes = _ClassByClass(snapshot, tree, request, mode, run)
    if request.required == ROOT:
        return run_of_classes.placed(pod_classes, None)
    return run_of_classes.in_one_domain(pod_classes)


class _ClassByClass:
    def __init__(
        self, snapshot: Snapshot, tree: TopologyTree, request: TopologyRequest, mode: ReserveMode, run: Run
    ) -> None:
        self._snapshot, self._tree, self._request, self._mode, self._run = snapshot, tree, request, mode, run

    def in_one_domain(self, pod_classes: PodClasses) -> Placement | None:
        """Returns a placement inside one domain of the required level."""
        level = self._request.required
        if self._mode == "domain" and level >= self._tree.topology.reservable_index:
            return None  # no class has the domain to itself
        search = self._search(self._snapshot, pod_classes, Counter(), WorkBudget(hard=True))
        ignoring_rules = search.search(tuple(map(_without_label_rules, pod_classes)), level)
        if ignoring_rules.placement is None:
            return None
        return self.placed(pod_classes, ignoring_rules.placement.branch)

    def placed(self, pod_classes: PodClasses, domain: Subtree | None) -> Placement | None:
        """Returns a placement of the classes, all inside the domain, if one is given."""
        snapshot, gpus = self._snapshot, Counter[Domain]()
        before = PlacedClasses(self._tree)
        placements: list[Placement] = []
        kept_inside = (inside(frozenset(self._tree.names(domain))),) if domain else ()
        for index in _order(pod_classes):
            pod_class = before.rules_beside(pod_classes[index])
            search = self._search(snapshot, (pod_class,), gpus, WorkBudget())
            pod_class = pod_class.excluding(*kept_inside, *self._domains_of_others(search.space))
            placement = self._placed(search, pod_class)
            if placement is None:
                return None
            placement = _with_rules_of(pod_classes[index], placement)
            if self._request.gpu_limit is not None:
                gpus.update(_gpus_by_domain(self._tree, self._request.gpu_limit.level, placement))
            hosts = self._tree.root.leaves_at([host_index for host_index, _ in placement.pods_by_node])
            counts = [sum(counts) for _, counts in placement.pods_by_node]
            before.add(pod_classes[index], [(host.node, n) for host, n in zip(hosts, counts, strict=True)])
            snapshot = snapshot.with_reservation(_reservation_of(self._tree, index, placement))
            placements.append(placement)
        together = _together(domain or self._tree.root, placements)
        rules = rules_of(together.pod_classes)
        return bindable(search, rules, together) if rules else together

    def _search(
        self, snapshot: Snapshot, pod_classes: PodClasses, gpus: Counter[Domain], budget: WorkBudget
    ) -> LevelSearch:
        limit = self._request.gpu_limit
        space = search_space(snapshot, self._tree, occupied=True)
        space = replace(space, gpu_limit=limit and limit._replace(used=gpus))
        return LevelSearch(space, replace(self._request, pod_classes=pod_classes), self._mode, budget)

    def _domains_of_others(self, space: SearchSpace) -> tuple[NodeExclusion, ...]:
        """Returns the exclusion of all domains that the gang cannot hold, because other gangs or the classes
        placed before use them; none if the gang holds no domains.

        A search for a single class may use a free host of such a domain: if all pods were on it, the gang
        would hold no more than this host.
        """
        if self._mode != "domain":
            return ()
        level = self._tree.topology.reservable_index
        used = _domains_in_use(self._tree.root, space.capacity, level)
        nodes = frozenset([name for domain in used for name in self._tree.names(domain)])
        return (outside(nodes),) if nodes else ()

    def _placed(self, search: LevelSearch, pod_class: PodClass) -> Placement | None:
        if pod_class.is_tied:
            return self._run(search, (pod_class,), ROOT).placement
        return search.anywhere((pod_class,))


def _domains_in_use(branch: Subtree, capacity: DomainCapacity, level: int) -> Iterator[Subtree]:
    """Yields the named domains of the level, inside this domain, that a gang uses or holds."""
    if branch.level < level:
        for child, child_capacity in zip(branch.children, capacity.children, strict=True):
            yield from _domains_in_use(child, child_capacity, level)
    elif branch.has_name and capacity.gang:
        yield branch


def _order(pod_classes: PodClasses) -> list[int]:
    """Returns the indexes of the classes in the order of their placement: the largest pods first, but before
    them those that a spread constraint of other classes counts and that need not satisfy it, because they may
    be on any node. Classes with affinity to pods of other classes come after all others.
    """
    only_counted = {
        index for rule in rules_of(pod_classes) for index in rule.counted if index not in rule.keepers
    }
    return sorted(
        range(len(pod_classes)),
        key=lambda index: (
            not pod_classes[index].attractions,
            index in only_counted,
            _size(pod_classes[index]),
        ),
        reverse=True,
    )


def _without_label_rules(pod_class: PodClass) -> PodClass:
    """Returns the class without rules over labels, so that a search of the tree alone serves it."""
    shape = replace(pod_class.shape, spread_states=())
    return replace(pod_class, shape=shape, anti_affinity_over=(), co_located_over=())


def _with_rules_of(pod_class: PodClass, placement: Placement) -> Placement:
    """Returns the placement of this class's pods with the class's own rules, without the exclusions of nodes
    that stand for its rules about other classes.
    """
    pieces = [replace(pod_class, parts=piece.parts, count=piece.count) for piece in placement.pod_classes]
    return replace(placement, pod_classes=tuple(pieces))


def _together(domain: Subtree, placements: list[Placement]) -> Placement:
    """Returns the placement in the domain of the pod classes of all these placements."""
    pod_classes = tuple([pod_class for placement in placements for pod_class in placement.pod_classes])
    rows: dict[int, list[int]] = {}
    start = 0
    for placement in placements:
        for host_index, counts in placement.pods_by_node:
            row = rows.setdefault(host_index, [0] * len(pod_classes))
            row[start : start + len(counts)] = counts
        start += len(placement.pod_classes)
    pods_by_node = [(host_index, tuple(counts)) for host_index, counts in sorted(rows.items())]
    return Placement(domain, pod_classes, pods_by_node, 0, exact=False)


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
