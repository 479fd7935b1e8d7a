"""The rules of nod-ai's leaf-spine scheduler: a few nodes use one leaf, more nodes use adjacent leaves.

A gang uses at most `maxNodesPerLeaf` (4) nodes of a leaf: up to 4 nodes use one leaf, up to 8 use two
adjacent leaves, up to 16 use four; a larger gang uses the fewest leaves that suffice. First the gang is
placed without the rules, which gives the fabric and the number of nodes. Then the sets of leaves are sorted
as the gang's strategy asks, and the search is restricted to each set in turn until the gang is placed.

The rules are soft: if no set has room, the plan ignores them with a warning. The required bandwidth is hard.
So are the limits for each leaf (`maxNodesPerLeaf`, `maxGPUsPerLeaf`) if the ConfigMap
topology-scheduler-config states them (`SchedulerSettings.limited`, docs/decisions/0050).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from planner.cluster.snapshot import Snapshot
from planner.cluster.switch_graph import LeafSpine, leaf_level, leaf_spine, names
from planner.leafspine.leaf_capacity import Room, Rooms
from planner.leafspine.leaf_sets import LeafSets
from planner.model.effort.work_budget import WorkBudget
from planner.model.settings import SchedulerSettings
from planner.model.words import listed
from planner.request.levels import levels_asked, topologies_asked
from planner.request.resolve import PlacementProblem
from planner.request.topology_request import GpuLimit
from planner.request.validation import Refusal
from planner.search.outcome import Outcome, Place
from planner.search.space import search_space

_MAX_TRIES = 48
"""Maximum number of sets of leaves that are tried for one gang: each needs a search, and the best sets come
first."""


@dataclass(frozen=True, slots=True)
class LinksTooSlow:
    """No leaf has links as fast as requested; `fastest`: the fastest link in Gb/s."""

    fastest: float


@dataclass(frozen=True, slots=True)
class LeafLimits:
    """There is no placement within the limits that the ConfigMap (see the module) states for each leaf.

    `pods`: how many pods of the gang fit on all leaves of `fabric` together within these limits.
    """

    fabric: LeafSpine
    pods: int


@dataclass(frozen=True, slots=True)
class FabricOutcome(Outcome):
    """An outcome without a placement. `shortage`: the hard rule that no placement satisfies."""

    shortage: LinksTooSlow | LeafLimits | None = None


def in_fabric(problem: PlacementProblem, place: Place, budget: WorkBudget | None = None) -> Outcome:
    """Returns the placement by the leaf-spine rules and the gang's `fabric` settings: preferred domain,
    bandwidth, strategy (`FabricWish` in planner/model/podgroup.py). `place`: the search without the rules.
    """
    if problem.refusal:
        return Outcome(problem)
    try:
        fabrics, problem = _fabrics(problem)
    except Refusal as refusal:
        return Outcome(problem.refused(refusal))
    if not fabrics:
        note = "the leaf-spine rules were not followed: no node here is in a domain above the host"
        return place(problem.noting(note), budget)
    fast, problem = _fast_enough(fabrics, problem)
    if not fast:
        fastest = max(speed for fabric in fabrics for speed in fabric.speeds)
        return FabricOutcome(problem, shortage=LinksTooSlow(fastest))
    # The placement without the rules gives the fabric and the number of nodes.
    plain = place(_among(problem, fast), budget)
    if plain.best is None:
        return _never_within_limits(problem, fast, place) or plain
    used = plain.best.tree.topology.name
    fabric = next((candidate for candidate in fast if candidate.topology.name == used), None)
    return plain if fabric is None else _Fabric(problem, fabric, place, budget).place(plain)


def _never_within_limits(
    problem: PlacementProblem, fabrics: Sequence[LeafSpine], place: Place
) -> FabricOutcome | None:
    """Returns the outcome for a gang that has no place now, and within the limits of a ConfigMap none in the
    empty cluster either: it would wait for ever. None for any other gang.
    """
    if not problem.occupied or not problem.snapshot.base.settings.limited:
        return None
    alone = place(_among(problem, fabrics).when_empty())
    if alone.best is None or any(could_ever(problem, fabric, place) for fabric in fabrics):
        return None
    fabric = next((row for row in fabrics if row.topology.name == alone.best.tree.topology.name), fabrics[0])
    return FabricOutcome(problem, shortage=LeafLimits(fabric, _Fabric(problem, fabric, place).pods))


def could_ever(problem: PlacementProblem, fabric: LeafSpine, place: Place) -> bool:
    """Reports whether the gang could be placed within the limits after other gangs have ended.

    Returns True if that is not certain: for several PodSets, because `Rooms` chooses nodes without knowing
    which PodSet they get; for pods that depend on more than the room of a node, if `Rooms` leaves out nodes;
    and if a node is cordoned or not ready.
    """
    nodes = problem.snapshot.nodes
    unavailable = any(nodes[n].cordoned or not nodes[n].ready for leaf in fabric.leaves for n in leaf.nodes)
    if unavailable or len(problem.gang.pod_sets) > 1:
        return True
    empty = _Fabric(problem.when_empty(), fabric, place)
    anywhere = empty.anywhere()
    if anywhere is not None and anywhere.best is not None:
        return True
    return empty.leaves_out and _depends_on_nodes(problem, fabric)


def _depends_on_nodes(problem: PlacementProblem, fabric: LeafSpine) -> bool:
    """Reports whether it matters which nodes of a leaf the gang gets, besides their room: if it requires a
    level inside the leaf, or a rule ties its pods to each other.
    """
    leaf = leaf_level(fabric.topology)
    return any(
        request.required > leaf
        or any(pod_class.is_tied or pod_class.slice_level > leaf for pod_class in request.pod_classes)
        for request in problem.requests
        if request.topology.name == fabric.topology.name
    )


def _fabrics(problem: PlacementProblem) -> tuple[list[LeafSpine], PlacementProblem]:
    """Returns the fabrics that the request may use, and the problem with warnings added.

    Raises `Refusal` if the preferred domain is in another topology than the one that the request names.
    """
    snapshot, domain = problem.snapshot, problem.gang.fabric.domain
    allowed = [request.topology for request in problem.requests]
    by_topology = {
        t.name: fabric
        for t in snapshot.topologies
        if (fabric := leaf_spine(snapshot, t)) is not None and fabric.leaves
    }
    fabrics = [by_topology[t.name] for t in allowed if t.name in by_topology]
    if not domain:
        return fabrics, problem
    having = [fabric for fabric in fabrics if fabric.leaves_in(domain)]
    if having:
        return having, problem
    # The topology that has the domain, although the request may not use that topology.
    topology_name = next((name for name, fabric in by_topology.items() if fabric.leaves_in(domain)), "")
    if topology_name and (levels_asked(problem.gang) or topologies_asked(problem.gang)):
        raise Refusal(
            "MultipleTopologies",
            f"The request points into two topologies: the preferred domain {domain!r} is in {topology_name}, "
            f"the rest means {', '.join(t.name for t in allowed)}. Name a domain of that one.",
        )
    domain_names = listed(names(fabrics), 12)
    return fabrics, problem.noting(f"the preferred domain {domain!r} is not known; known are {domain_names}")


def _fast_enough(
    fabrics: Sequence[LeafSpine], problem: PlacementProblem
) -> tuple[list[LeafSpine], PlacementProblem]:
    """Returns the fabrics without the links that are slower than required and without the leaves that then
    have no link, and the problem with warnings added. Fabrics without known speeds stay as they are.
    """
    wanted = problem.gang.fabric.gbps
    if not wanted:
        return list(fabrics), problem
    unknown = [fabric.topology.name for fabric in fabrics if not fabric.cabled]
    if unknown:
        problem = problem.noting(
            f"the least bandwidth was not checked: the Topology {', '.join(unknown)} lists no links"
        )
    fast = (fabric.with_min_speed(wanted) if fabric.cabled else fabric for fabric in fabrics)
    return [fabric for fabric in fast if fabric.leaves], problem


def _among(problem: PlacementProblem, fabrics: Sequence[LeafSpine]) -> PlacementProblem:
    """Returns the problem restricted to the nodes of these fabrics; unchanged if they have all nodes."""
    nodes = [name for fabric in fabrics for leaf in fabric.leaves for name in leaf.nodes]
    return problem if len(nodes) >= len(problem.snapshot.nodes) else problem.restricted_to(nodes)


class _Fabric:
    """Places one gang on one fabric. `_rooms`: the leaves with the nodes that the gang may use. `_limit`: the
    maximum number of GPUs in a leaf; None if the gang could not exceed it in any leaf.
    """

    def __init__(
        self, problem: PlacementProblem, fabric: LeafSpine, place: Place, budget: WorkBudget | None = None
    ) -> None:
        base = problem.snapshot.base
        # `Rooms` reads the gang's PodSets, some of whose constraints follow from existing pods, for example
        # from their anti-affinity. For the empty cluster, the gang is resolved again without any pods.
        self._problem = problem if problem.occupied else problem.in_snapshot(Snapshot(base))
        self._gang, self._fabric = self._problem.gang, fabric
        self._search, self._budget = place, budget
        self._settings: SchedulerSettings = base.settings
        space = search_space(
            self._problem.snapshot, base.trees[fabric.topology.name], occupied=problem.occupied
        )
        domain = self._gang.fabric.domain
        inside = {leaf.path for leaf in fabric.leaves_in(domain)} if domain else set()
        rooms = Rooms(space, self._gang, self._settings)
        leaf_rooms = (rooms.of(leaf, preferred=leaf.path in inside) for leaf in fabric.leaves)
        self._rooms = [room for room in leaf_rooms if room.nodes]
        limit = GpuLimit(leaf_level(fabric.topology), self._settings.gpus_per_leaf)
        self._limit = limit if any(room.gpus > limit.gpus for room in self._rooms) else None

    def place(self, plain: Outcome) -> Outcome:
        """Returns the placement by the rules. If there is none, returns the placement within the limits of a
        ConfigMap, if it states any, else `plain`, the placement without the rules.
        """
        if self._gang.fabric.strategy == "distributed":
            spread = self._distributed()
            if spread is None and self._settings.limited:
                return self._within_limits()
            return spread or plain.noting("leaf-spine rules: distributed: no such spread has room")
        assert plain.best is not None, "in_fabric returns before if there is no placement without the rules"
        assert plain.best.placement is not None, "the best result has a placement"
        hosts = len(plain.best.placement.pods_by_node)
        rule = leaves_for(hosts, self._settings.nodes_per_leaf)
        if hosts > 1:  # a gang on one node holds no whole leaf, so other gangs may be on the leaf
            self._rooms = [room for room in self._rooms if self._may_hold(room)]
        sets = LeafSets(self._fabric, self._gang, self._settings, self._rooms)
        for rooms in islice(sets.from_size(rule), _MAX_TRIES):
            outcome = self._placed_in([name for room in rooms for name in room.nodes])
            if outcome.best is not None:
                exception = (
                    f"{len(rooms)} leaves serve, where {rule} would have been the rule for {hosts} nodes"
                )
                return outcome if len(rooms) == rule else outcome.noting(f"leaf-spine rules: {exception}")
        if self._settings.limited:
            return self._within_limits()
        return plain.noting(f"leaf-spine rules: no {rule} adjacent leaves have room for {hosts} nodes")

    @property
    def leaves_out(self) -> bool:
        """Whether the limit of nodes per leaf excludes nodes that the gang could use."""
        return any(room.left_out for room in self._rooms)

    @property
    def pods(self) -> int:
        """How many pods of the gang fit on all leaves together within the limits."""
        return sum(room.pods for room in self._rooms)

    def anywhere(self) -> Outcome | None:
        """Returns the outcome for the usable nodes of all leaves (see `Rooms`) together, within the limits;
        None if there are no such nodes.
        """
        nodes = [name for room in self._rooms for name in room.nodes]
        return self._placed_in(nodes) if nodes else None

    def _placed_in(self, nodes: Sequence[str], *, one_per_node: bool = False) -> Outcome:
        problem = self._problem.restricted_to(nodes, one_per_node=one_per_node)
        if self._limit is not None:
            problem = problem.limited_to(self._fabric.topology.name, self._limit)
        return self._search(problem, self._budget)

    def _within_limits(self) -> Outcome:
        """Returns the placement on all leaves within the limits of a ConfigMap, or why there is none."""
        outcome = self.anywhere()
        if outcome is not None and outcome.best is not None:
            return outcome.noting(
                "leaf-spine rules: over more leaves than the rules have it, within the limits per leaf"
            )
        return FabricOutcome(self._problem, shortage=LeafLimits(self._fabric, self.pods))

    def _may_hold(self, room: Room) -> bool:
        """Reports whether the gang may use the leaf: a gang that will hold whole leaves may use only leaves
        on which no other gang is.
        """
        topology = self._fabric.topology
        if self._gang.reserve != "domain" or topology.reservable_index != len(room.leaf.path) - 1:
            return True
        return not room.gang

    # -- distributed ----------------------------------------------------------------------------------------

    def _distributed(self) -> Outcome | None:
        """Returns a placement with at most one pod of each PodSet on a node, over as many leaves as possible;
        None if there is none.

        Lists the nodes by turns, one of each leaf in each turn; preferred leaves come first, then emptier
        ones. The first nodes of this list, as many as the gang has pods, are on the most leaves and are tried
        first; then all nodes are tried.
        """
        rooms = sorted(self._rooms, key=lambda room: (not room.preferred, room.used, room.leaf.path))
        rows = [room.nodes[: room.pods] for room in rooms]  # no more nodes than pods within the limit
        depth = max(map(len, rows), default=0)
        turns = [row[turn] for turn in range(depth) for row in rows if turn < len(row)]
        if len(turns) < self._gang.size:
            return None
        first_turns = self._placed_in(turns[: self._gang.size], one_per_node=True)
        if first_turns.best is not None:
            return first_turns
        anywhere = self._placed_in(turns, one_per_node=True)
        return anywhere if anywhere.best is not None else None


def leaves_for(nodes: int, per_leaf: int) -> int:
    """Returns the number of leaves for `nodes` by the rules: 1, 2 or 4, beyond that the fewest possible."""
    minimum = -(-nodes // per_leaf)
    return next((leaves for leaves in (1, 2, 4) if minimum <= leaves), minimum)
