"""Gangs that have no place in the cluster as it is, and would have one if a node pool grew.

An autoscaler adds nodes for pods that no scheduler can place, and not for pods behind a scheduling gate. So
such a gang is let in without a place, and the answer says how many nodes of which pool it needs.

Nothing is known of where a new node will be: it is taken to have the levels that its pool's labels state, and
else to be beside all other new nodes. For claims it has the devices of a node of its pool that is there. What
is refused then could not run on new nodes either, as far as anybody tells what they have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from planner.cluster.snapshot import Snapshot
from planner.devices.claims import Claims
from planner.devices.pools import is_claimed
from planner.devices.slices import NO_SLICES, NodeSlices, Slices
from planner.model.answer import Answer
from planner.model.growth import AutoscalerGroup, GrowingPool
from planner.model.labels import ANY, selects
from planner.model.node import Node
from planner.model.quantity import show
from planner.model.resolved import ResolvedPodGroup, ResolvedShape
from planner.model.topology import HOSTNAME
from planner.model.words import counted, pods
from planner.model.work_budget import WorkBudget
from planner.node.eligibility import obstacle
from planner.node.gpu_sharing import shared_gpus_of
from planner.node.packing import max_pods
from planner.request.resolve import PlacementProblem
from planner.search.outcome import Outcome, Place, assignments_of

_BUDGET = 1_000_000
"""Work for all that is tried: a third of a plan's, as it follows a search without a place."""

_NEW = "new node"
"""The level values of nodes that do not exist yet, and how their names begin."""

_PLACES = ("topology.kubernetes.io/", "failure-domain.beta.kubernetes.io/")
"""How the labels begin that say where a node is, which differs from node to node of one pool."""

_MOST_NODES = 512
"""New nodes that are tried, in seconds. Whether a gang that needs more has a place on them is taken from the
number of pods that a node takes: it waits for nodes rather than being refused."""


@dataclass(frozen=True, slots=True)
class _Need:
    """`count` nodes of a pool that has `pool.present`; `shape`: what each has, as far as it is told."""

    pool: GrowingPool
    count: int

    @property
    def words(self) -> str:
        """As text: "4 more nodes of pool h100 (8 nvidia.com/gpu each), which has 2"."""
        devices = {name: n for name, n in (self.pool.capacity or {}).items() if "/" in name and n}
        shape = ", ".join(f"{show(name, amount)} {name}" for name, amount in devices.items())
        shape_words = f" ({shape} each)" if shape else ""
        text = f"{counted(self.count, 'more node')} of pool {self.pool.name}{shape_words}"
        return f"{text}, which has {self.pool.present}" if self.pool.present else text


def or_waits_for_nodes(problem: PlacementProblem, answer: Answer, place: Place) -> Answer:
    """The answer to a gang without a place; where a growing pool would give it one, that it waits for
    nodes."""
    if not problem.snapshot.base.growth or not problem.requests:
        return answer
    moments = (problem, problem.when_empty()) if answer.decision == "rejected" else (problem,)
    needs = _needs(moments, place, _missing(answer))
    if not needs:
        return answer
    gang = problem.gang
    gpus = f" ({gang.gpus} GPUs)" if gang.gpus else ""
    wanted = " and ".join(need.words for need in needs)
    message = f"{pods(gang.size)}{gpus} wait for {wanted}. They hold nothing until then."
    return replace(answer, decision="queued", reason="WaitsForNodes", message=message, grows=True)


def _missing(answer: Answer) -> int:
    """How many pods have no place at the required level."""
    return min((attempt.wanted - attempt.fits for attempt in answer.attempts), default=1)


def _needs(moments: Sequence[PlacementProblem], place: Place, missing: int) -> tuple[_Need, ...]:
    """The fewest nodes of the first pool, by name, that alone would do; else what all pools together give.

    First beside all that runs now, then, for what has no place in the emptied cluster either, there.
    `missing`: so many pods have no place yet, as a guess to begin with.
    """
    problem = moments[0]
    trial = _GrowthTrial(problem, place)
    # Most pools of a cluster have no GPUs.
    growing = [pool for pool in pools(problem.snapshot) if _pods_on(problem, pool)]
    for moment in moments:
        for pool in growing:
            if count := trial.fewest(moment, pool, missing):
                return (_Need(pool, count),)
        if len(growing) > 1 and (needs := trial.together(moment, growing)):
            return needs
    return ()


def _pods_on(problem: PlacementProblem, pool: GrowingPool) -> int:
    """How many pods of the PodSet that fits best a new node takes."""
    (node,) = _new_nodes(problem.snapshot, _Need(pool, 1), problem.gang)
    counts = (
        max_pods(node.allocatable, _without_claims(pod_set.shape), shared_gpus_of(node), pod_set.count)
        for pod_set in problem.gang.pod_sets
        if pod_set.count and not obstacle(pod_set.shape, node, occupied=False)
    )
    return max(counts, default=0)


def _without_claims(shape: ResolvedShape) -> ResolvedShape:
    """What a pod asks for beside its claims, as a guess of how many a node takes; a trial counts devices."""
    requests = {name: amount for name, amount in shape.requests.items() if not is_claimed(name)}
    return replace(shape, requests=requests, claim_specs=())


class _GrowthTrial:
    """Places the gang among more nodes; all trials share a budget."""

    def __init__(self, problem: PlacementProblem, place: Place) -> None:
        self._gang = problem.gang
        self._place = place
        self._budget = WorkBudget(_BUDGET, hard=True)

    def fewest(self, moment: PlacementProblem, pool: GrowingPool, missing: int) -> int | None:
        """How many more nodes of the pool the gang needs; None where no number that may come is enough."""
        coming = self._coming(pool)
        needed = -(-missing // max(1, _pods_on(moment, pool)))
        if needed > _MOST_NODES:
            return needed if needed <= coming else None
        max_nodes = min(coming, _MOST_NODES)
        guess = max(1, min(needed, max_nodes))
        if max_nodes < 1:
            return None
        low, high = (0, guess) if self._enough(moment, pool, guess) else (guess, max_nodes)
        if low and not (high > low and self._enough(moment, pool, high)):
            return None
        middle = high - 1  # the guess is mostly right
        while high - low > 1:
            low, high = (low, middle) if self._enough(moment, pool, middle) else (middle, high)
            middle = (low + high) // 2
        return high

    def _enough(self, moment: PlacementProblem, pool: GrowingPool, count: int) -> bool:
        return self._placed(moment, [_Need(pool, count)]) is not None

    def together(self, moment: PlacementProblem, growing: Sequence[GrowingPool]) -> tuple[_Need, ...]:
        """What the gang uses of all pools, each grown as far as it may; () where that is not enough."""
        max_needs = [_Need(pool, self._coming(pool)) for pool in growing]
        if sum(need.count for need in max_needs) > _MOST_NODES:
            return ()
        outcome = self._placed(moment, max_needs)
        if outcome is None or outcome.best is None:
            return ()
        used = {assignment.node for assignment in assignments_of(outcome.problem, outcome.best)}
        counts = ((pool, sum(name.startswith(_name(pool, "")) for name in used)) for pool in growing)
        return tuple(_Need(pool, count) for pool, count in counts if count)

    def _coming(self, pool: GrowingPool) -> int:
        """How many nodes may come, by number and by what they may have together; a pod each is enough."""
        asked = pool.capacity or _largest(self._gang)
        bounds = [pool.limits[name] // asked[name] for name in pool.limits if asked.get(name)]
        return min([pool.max_added, self._gang.size, *bounds])

    def _placed(self, moment: PlacementProblem, needs: Iterable[_Need]) -> Outcome | None:
        new = [node for need in needs for node in _new_nodes(moment.snapshot, need, self._gang)]
        grown = moment.snapshot.with_nodes(new)
        if slices := _slices(moment.snapshot, needs):
            grown = grown.with_claims(Claims({}, {}, {}, slices))
        outcome = self._place(moment.in_snapshot(grown), self._budget)
        return None if outcome.best is None else outcome


def _slices(snapshot: Snapshot, needs: Iterable[_Need]) -> Slices:
    """The devices of all nodes, those of the new ones as of a node of their pool that is there and has some;
    none where there is no such node."""
    by_node: dict[str, NodeSlices] = {}
    slices = snapshot.base.claims.slices
    present = slices.by_node
    for need in needs if present else ():
        labels = need.pool.labels
        alike = (name for name in present if labels and selects(labels, snapshot.nodes[name].labels))
        if (model := next(alike, None)) is not None:
            for number in range(1, need.count + 1):
                name = _name(need.pool, str(number))
                pieces = (replace(piece, node=name, pool=name) for piece in present[model].slices)
                by_node[name] = NodeSlices(tuple(pieces))
    return replace(slices, by_node={**present, **by_node}) if by_node else NO_SLICES


def pools(snapshot: Snapshot) -> tuple[GrowingPool, ...]:
    """The pools that may grow, by name; a group whose nodes alone tell what they are like, if it has some."""
    growing = [
        _of_group(snapshot, entry) if isinstance(entry, AutoscalerGroup) else _counted(snapshot, entry)
        for entry in snapshot.base.growth
    ]
    return tuple(sorted((pool for pool in growing if pool and pool.max_added), key=lambda pool: pool.name))


def _counted(snapshot: Snapshot, pool: GrowingPool) -> GrowingPool:
    """The pool with the number of its nodes, where its labels alone tell them."""
    if pool.present or not pool.labels:
        return pool
    return replace(pool, present=sum(selects(pool.labels, node.labels) for node in snapshot.nodes.values()))


def _of_group(snapshot: Snapshot, group: AutoscalerGroup) -> GrowingPool | None:
    """The pool of a group of the Cluster Autoscaler, from its nodes; None without any.

    A node is in the group that its name begins with, as the names of cloud providers' instances do, or that
    the value of a label names.
    """
    name = group.name.rpartition("/")[2]
    stems = tuple(name.removesuffix("-grp") + sign for sign in "-0")
    nodes = [
        node
        for node in snapshot.nodes.values()
        if node.name.startswith(stems) or name in node.labels.values()
    ]
    if not nodes:
        return None
    first = nodes[0]
    labels = {
        key: value
        for key, value in first.labels.items()
        if key != HOSTNAME and all(node.labels.get(key) == value for node in nodes)
    }
    taints = tuple(taint for taint in first.taints if all(taint in node.taints for node in nodes))
    capacity = {key: max(node.allocatable.get(key, 0) for node in nodes) for key in first.allocatable}
    return GrowingPool(name, max(0, group.max_size - group.present), group.present, labels, taints, capacity)


def _largest(gang: ResolvedPodGroup) -> dict[str, int]:
    """The largest request of any pod, resource by resource."""
    names = {name for pod_set in gang.pod_sets for name in pod_set.shape.requests}
    return {name: max(p.shape.requests.get(name, 0) for p in gang.pod_sets) for name in names}


def _new_nodes(snapshot: Snapshot, need: _Need, gang: ResolvedPodGroup) -> Iterator[Node]:
    """New nodes of a pool. Of labels that nobody states yet they have what the largest pods ask for."""
    pool = need.pool
    levels = {
        level
        for topology in snapshot.topologies
        if selects(topology.node_selector, pool.labels)
        for level in topology.levels[:-1]
    }
    leading = max(gang.pod_sets, key=lambda pod_set: (pod_set.shape.gpus, pod_set.count))
    chosen = {key: values[0] for key, values in pool.choices.items() if values}
    chosen |= {
        key: value
        for key, value in _wanted(leading.shape)
        if key in levels or value in pool.choices.get(key, ()) or _is_free(pool, key)
    }
    labels = {**dict.fromkeys(levels, _NEW), **chosen, **pool.labels}
    for number in range(1, need.count + 1):
        name = _name(pool, str(number))
        yield Node(name, {**labels, HOSTNAME: name}, pool.capacity or _largest(gang), pool.taints)


def _name(pool: GrowingPool, number: str) -> str:
    return f"{_NEW}/{pool.name}/{number}"


def _wanted(shape: ResolvedShape) -> Iterator[tuple[str, str]]:
    """Label values that a node must have for the pod, each with its key, the more binding later."""
    for bar in shape.exclusions:
        if bar.inside and bar.values and ANY not in bar.values:
            yield bar.key, min(bar.values)
    for requirement in shape.affinity[0] if shape.affinity else ():
        if requirement.operator == "In" and requirement.values:
            yield from ((requirement.key, value) for value in reversed(requirement.values))
    yield from shape.node_selector.items()


def _is_free(pool: GrowingPool, key: str) -> bool:
    """Whether a new node may have any value of a label: the autoscaler chooses, or places nodes by it."""
    if key in pool.choices:
        return not pool.choices[key]
    return key.startswith((*pool.free, *_PLACES))
