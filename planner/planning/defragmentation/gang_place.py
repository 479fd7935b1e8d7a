"""The cheapest moves after which a queued gang has a place.

The search covers the domains of the level that the gang requires. A bundle is a set of movables that leave
together. In a domain with few movables each movable is a bundle of its own; else the movables of each node
are one bundle, because a pod that uses a whole node needs all movables there to leave. The sets of bundles
that could make room for all pods are visited in order of cost, across all domains. For each set, the gang is
planned in the cluster without the movables of the set, then these movables are planned outside the gang's
nodes.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from planner.cluster.census.domains import gpus_of
from planner.cluster.snapshot import Snapshot
from planner.cluster.trees.subtree import Subtree
from planner.cluster.trees.tree import TopologyTree
from planner.model.answer import Answer
from planner.model.podgroup import PodGroup
from planner.model.topology import Topology, topology_named
from planner.model.words import counted
from planner.planning.defragmentation.cheapest import Bundle, CheapestFirst, Chosen
from planner.planning.defragmentation.evacuation import WithoutPlace, evacuate, moved, without_movables
from planner.planning.defragmentation.joint_plan import Plan
from planner.planning.defragmentation.movable import Cost, Movable, Relocation, cost_of
from planner.planning.defragmentation.occupants import Occupants
from planner.planning.defragmentation.result import ATTEMPTS, Defragmentation, NoMoves
from planner.planning.reservation import reservation_for
from planner.request.resolve import resolve

ALONE = 12
"""Maximum number of movables in a domain for which every subset is searched: 4,096 subsets. In a domain with
more movables, those of a node leave together.
"""


def gang_place(
    snapshot: Snapshot,
    movables: Iterable[Movable],
    group: PodGroup,
    plan: Plan,
    attempts: int = ATTEMPTS,
    max_lost: float = inf,
    *,
    whole_nodes: bool = False,
) -> Defragmentation | NoMoves:
    """Returns the moves that make room for the gang, or a `NoMoves` that says why there are none. If the gang
    fits as the cluster is, the result is a `Defragmentation` without moves.

    `attempts`: maximum number of sets that are planned. `max_lost`: maximum GPU seconds of work that all
    moves together may lose. `whole_nodes`: no other pods may stay on the gang's nodes; set if the moves are
    to be carried out, which cordons and clears these nodes.
    """
    answer = plan(snapshot, group)
    if answer.decision == "admitted":
        return _place(snapshot, group, answer, (), exact=True)
    if answer.decision == "rejected":
        return NoMoves(answer.reason, answer.message)
    domains = _domains(snapshot, group)
    offered, free = _gpus(snapshot, {tree.topology.name: tree for tree, _ in domains}.values())
    if free < group.gpus <= offered:  # moves gather free GPUs but do not add any
        asked = f"it asks for {counted(group.gpus, 'GPU')}, and {free} are free in all"
        return NoMoves("TooFewGpus", f"moves make no GPUs free, they gather those that are: {asked}")
    occupants = Occupants.of(snapshot, movables)
    searches = [_DomainSearch.of(occupants, tree, branch, group, max_lost) for tree, branch in domains]
    stuck: WithoutPlace | None = None
    planned = 0
    for _, search, chosen in heapq.merge(
        *(_with_search(search) for search in searches), key=lambda item: item[0]
    ):
        if planned == attempts:
            break
        planned += 1
        outcome = _attempt(occupants, group, search.names(chosen), plan, whole_nodes=whole_nodes)
        if isinstance(outcome, WithoutPlace):
            stuck = stuck or outcome
        elif outcome is not None:
            answer, moves = outcome
            exact = all(search.exact for search in searches)
            return _place(snapshot, group, answer, moves, exact=exact)
    exact = planned < attempts and all(search.exact for search in searches)
    over = min((search.search.over for search in searches), default=inf)
    return _no_moves(stuck, over, _kept(occupants), exact=exact)


@dataclass(slots=True)
class _DomainSearch:
    """The sets of bundles of one domain that could make room in it for the gang.

    `alone`: whether each movable is a bundle of its own.
    """

    search: CheapestFirst
    alone: bool

    @property
    def exact(self) -> bool:
        """Whether the search covers every set of movables."""
        return self.alone and not self.search.spent

    def names(self, chosen: Chosen) -> list[str]:
        """Returns the names of the movables of a set of bundles."""
        return self.search.names(chosen)

    @staticmethod
    def of(
        occupants: Occupants, tree: TopologyTree, branch: Subtree, group: PodGroup, max_lost: float
    ) -> _DomainSearch:
        """Returns the search over the bundles of one domain, the cheapest first."""
        nodes = tree.names(branch)
        by_node = [occupants.leaving([node])[0] for node in nodes]
        free_to_go = sorted(frozenset().union(*by_node))
        alone = len(free_to_go) <= ALONE
        bundles = [frozenset((name,)) for name in free_to_go] if alone else sorted(set(by_node), key=sorted)
        bundles = [bundle for bundle in bundles if bundle]
        bundles.sort(
            key=lambda bundle: (cost_of(occupants.movables[name] for name in bundle), sorted(bundle))
        )
        seats = _Seats.of(occupants.snapshot, nodes, group)
        gains = [seats.gain(occupants, bundle) for bundle in bundles]
        best_gain = max(gains, default=0)

        def lacking(chosen: Chosen) -> int:
            # At least one bundle, because the gang was already planned without moves.
            if not seats.wanted:
                return int(not chosen)
            left = {name for index in chosen for name in bundles[index]}
            missing = seats.wanted - seats.free(occupants, left)
            if missing <= 0:
                return int(not chosen)
            # If no bundle makes room, a number larger than that of all bundles: no set is sufficient.
            return -(-missing // best_gain) if best_gain else len(bundles) + 1

        search = CheapestFirst(bundles, dict(occupants.movables), lacking, further=True, max_lost=max_lost)
        return _DomainSearch(search, alone)


@dataclass(frozen=True, slots=True)
class _Seats:
    """Computes an upper bound of the gang's pods that fit on some nodes, from the numbers of their GPUs.

    `wanted`: the number of pods that request GPUs; `per_pod`: the minimum number of GPUs that one of them
    requests. `room`: the number of all GPUs and of free GPUs by node.
    """

    wanted: int
    per_pod: int
    room: Mapping[str, tuple[int, int]]

    @staticmethod
    def of(snapshot: Snapshot, nodes: Sequence[str], group: PodGroup) -> _Seats:
        """Returns the bound for these nodes and this gang."""
        asking = [pod_set for pod_set in group.pod_sets if pod_set.shape.gpus]
        room = {}
        for name in nodes:
            node = snapshot.nodes[name]
            offered = gpus_of(node.allocatable) if node.ready and not node.cordoned else 0
            room[name] = (offered, max(0, offered - gpus_of(snapshot.taken_on(name))))
        wanted = sum(pod_set.count for pod_set in asking)
        return _Seats(wanted, min((pod_set.shape.gpus for pod_set in asking), default=1), room)

    def free(self, occupants: Occupants, left: Iterable[str]) -> int:
        """Returns at most how many pods fit after the movables named in `left` have left the nodes."""
        gone = dict.fromkeys(self.room, 0)
        for name in left:
            for node, amount in _gpus_by_node(occupants.snapshot, occupants.movables[name]).items():
                if node in gone:
                    gone[node] += amount
        return sum(
            min(offered, free + gone[node]) // self.per_pod for node, (offered, free) in self.room.items()
        )

    def gain(self, occupants: Occupants, bundle: Bundle) -> int:
        """Returns at most how many more pods fit because a bundle leaves, whichever other bundles leave too:
        as many as the nodes of the bundle hold when empty.
        """
        nodes = {
            node
            for name in bundle
            for node in _gpus_by_node(occupants.snapshot, occupants.movables[name])
            if node in self.room
        }
        return sum(self.room[node][0] // self.per_pod for node in nodes)


def _gpus_by_node(snapshot: Snapshot, movable: Movable) -> dict[str, int]:
    """Returns by node the number of GPUs that the movable's pods use or that its reservation contains there,
    whichever is more; all GPUs of the node if the movable holds whole domains.
    """
    used = dict.fromkeys(movable.nodes, 0)
    for pod in movable.pods:
        used[pod.node] += gpus_of(pod.requests)
    held = snapshot.holding(movable.name)
    if held is None:
        return used
    if held.mode == "domain":
        return {node: gpus_of(snapshot.nodes[node].allocatable) for node in snapshot.held_nodes(held)}
    per_pod = {pod_set: gpus_of(amounts) for pod_set, amounts in held.requests}
    promised: Counter[str] = Counter()
    for seat in held.assignments:
        promised[seat.node] += per_pod[seat.pod_set] * seat.count
    return {node: max(used.get(node, 0), promised[node]) for node in (*used, *promised)}


def _gpus(snapshot: Snapshot, trees: Iterable[TopologyTree]) -> tuple[int, int]:
    """Returns the number of GPUs on schedulable nodes of these topologies, and how many of them are free.

    GPUs that nodes offer only as devices for ResourceClaims are not counted.
    """
    names = {name for tree in trees for name in tree.names(tree.root)}
    nodes = [node for node in (snapshot.nodes[name] for name in names) if node.ready and not node.cordoned]
    offered = {node.name: gpus_of(node.allocatable) for node in nodes}
    free = (max(0, count - gpus_of(snapshot.taken_on(name))) for name, count in offered.items())
    return sum(offered.values()), sum(free)


def _with_search(search: _DomainSearch) -> Iterator[tuple[Cost, _DomainSearch, Chosen]]:
    for cost, chosen in search.search:
        yield cost, search, chosen


def _domains(snapshot: Snapshot, group: PodGroup) -> list[tuple[TopologyTree, Subtree]]:
    """Returns the domains of the level that the gang requires, in each topology that it may use; the whole
    topologies if it requires no level.
    """
    result = []
    for request in resolve(snapshot, group).requests:
        tree = snapshot.base.trees[request.topology.name]
        branches = [tree.root]
        while branches and branches[0].level < request.required:
            branches = [child for branch in branches for child in branch.children]
        result += [(tree, branch) for branch in branches]
    return result


def _attempt(
    occupants: Occupants, group: PodGroup, names: Sequence[str], plan: Plan, *, whole_nodes: bool
) -> tuple[Answer, tuple[Relocation, ...]] | WithoutPlace | None:
    """Returns the gang's answer after the movables named `names` have left, and their moves.

    Returns a `WithoutPlace` if one of these movables has no other place, and None if the gang does not fit
    or, with `whole_nodes`, if other pods stay on its nodes.
    """
    snapshot = occupants.snapshot
    leavers = [occupants.movables[name] for name in names]
    answer = plan(without_movables(snapshot, leavers), group)
    if answer.decision != "admitted":
        return None
    nodes = _nodes_of(snapshot, answer)
    staying, why = occupants.leaving(sorted(nodes))
    if whole_nodes and (why or staying - set(names)):
        return None
    moves = evacuate(snapshot, leavers, nodes, plan)
    return moves if isinstance(moves, WithoutPlace) else (answer, tuple(moves))


def _nodes_of(snapshot: Snapshot, answer: Answer) -> frozenset[str]:
    """Returns the names of the nodes that the gang will use or hold according to its answer."""
    tree = snapshot.base.trees[answer.topology]
    held = (tree.branch(domain) for domain in answer.reserves)
    inside = (name for branch in held if branch for name in tree.names(branch))
    return frozenset((*inside, *(assignment.node for assignment in answer.assignments)))


def _place(
    snapshot: Snapshot, group: PodGroup, answer: Answer, moves: Sequence[Relocation], *, exact: bool
) -> Defragmentation:
    topology = _topology(snapshot, answer)
    after = moved(snapshot, moves)
    reservation = reservation_for(after, group, answer)
    if reservation is not None:
        after = after.with_reservation(reservation)
    return Defragmentation(
        topology,
        answer.level,
        answer.reserves or (answer.domain,),
        tuple(sorted(_nodes_of(snapshot, answer))),
        tuple(moves),
        snapshot,
        after,
        exact,
        answer,
    )


def _topology(snapshot: Snapshot, answer: Answer) -> Topology:
    topology = topology_named(snapshot.topologies, answer.topology)
    assert topology is not None, "the answer is of this snapshot"
    return topology


def _kept(occupants: Occupants) -> str:
    """Returns an example of a movable with GPUs that may not be moved, and the number of the others, as the
    end of a sentence ("" if all may be moved).

    A movable that may be moved later is preferred as the example.
    """
    kept = [movable for movable in occupants.movables.values() if movable.kept_because and movable.group.gpus]
    if not kept:
        return ""
    first = min(kept, key=lambda movable: (not movable.kept_for_now, movable.name))
    others = f", and {counted(len(kept) - 1, 'other')} may not be moved either" if len(kept) > 1 else ""
    return f": {first.name} {first.kept_because}{others}"


def _no_moves(stuck: WithoutPlace | None, over: float, kept: str, *, exact: bool) -> NoMoves:
    """Returns the explanation why there are no moves.

    `stuck`: a movable that would have to leave and has no other place. `over`: the smallest loss, in GPU
    seconds, of a set that was left out because it would lose too much work. `kept`: the text of `_kept`.
    """
    tried = "" if exact else ", as far as was searched"
    if over < inf:
        message = f"all moves that make room for it lose too much work{tried}; they"
        return NoMoves("TooMuchWork", f"{message} lose {over / 3600:.1f} GPU-hours or more", exact=exact)
    if stuck is None:
        message = f"no moves of the gangs and pods that may be moved make room for it{tried}{kept}"
        return NoMoves("NoRoom", message, exact=exact)
    cheapest = f"{stuck.movable.name} would have to leave and has no other place: {stuck.answer.message}"
    return NoMoves("NoOtherPlace", f"no moves make room for it{tried}; {cheapest}", exact=exact)
