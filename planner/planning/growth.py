"""Finds the nodes that an autoscaler must add for a gang that has no placement in the cluster as it is.

An autoscaler adds nodes for pods that no scheduler can place, but not for pods with a scheduling gate. If a
gang would fit new nodes, its answer is therefore "queued" with `waits_for_nodes`, which asks for no gate. The
message says how many nodes of which pool the gang needs.

The location of a new node is unknown. The plan assumes that it has the levels that the labels of its pool
state, and that at all other levels the new nodes share one domain. For labels over which pods of the gang
must be apart or spread, it assumes one domain after the other. For device claims, it assumes the devices of
an existing node of the pool. A gang that has no placement under these assumptions could not run on new nodes
either, as far as the pool's description tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from planner.cluster.snapshot import Snapshot
from planner.devices.claims import Claims
from planner.devices.pools import is_claimed
from planner.devices.slices import NO_SLICES, NodeSlices, Slices
from planner.model.answer import Answer
from planner.model.effort.work_budget import WorkBudget
from planner.model.growth import AutoscalerGroup, GrowingPool
from planner.model.labels import ANY, holds, selects
from planner.model.natural_order import natural
from planner.model.node import Node
from planner.model.quantity import show
from planner.model.resolved import ResolvedPodGroup, ResolvedShape
from planner.model.topology import HOSTNAME
from planner.model.words import counted, pods
from planner.node.eligibility import is_excluded, obstacle
from planner.node.gpu_sharing import shared_gpus_of
from planner.node.packing import max_pods
from planner.request.levels import constraints, level_key
from planner.request.resolve import PlacementProblem
from planner.search.outcome import Outcome, Place, assignments_of

_BUDGET = 1_000_000
"""Steps for all trials of one gang: a third of a plan's budget, because the failed search has already
used up to the whole budget of the plan.
"""

_NEW = "new node"
"""The label value of assumed new nodes at unknown levels, and the prefix of their names."""

_PLACES = ("topology.kubernetes.io/", "failure-domain.beta.kubernetes.io/")
"""Prefixes of labels for zone and region, which can differ between the nodes of a pool."""

_MOST_NODES = 512
"""Maximum number of new nodes in a trial, because a trial with more takes seconds. A larger number is not
tried but estimated from how many pods one node takes, so that the gang waits for nodes and is not refused.
"""


@dataclass(frozen=True, slots=True)
class _Need:
    """A number of additional nodes of a pool, beside the `pool.present` existing ones."""

    pool: GrowingPool
    count: int

    @property
    def words(self) -> str:
        """The need as text: "4 more nodes of pool h100 (8 nvidia.com/gpu each), which has 2"."""
        devices = {name: n for name, n in (self.pool.capacity or {}).items() if "/" in name and n}
        shape = ", ".join(f"{show(name, amount)} {name}" for name, amount in devices.items())
        shape_words = f" ({shape} each)" if shape else ""
        text = f"{counted(self.count, 'more node')} of pool {self.pool.name}{shape_words}"
        return f"{text}, which has {self.pool.present}" if self.pool.present else text


def or_waits_for_nodes(problem: PlacementProblem, answer: Answer, place: Place) -> Answer:
    """Returns the answer that the gang waits for nodes, if it has a placement once a pool has grown.

    Otherwise returns the given answer.
    """
    if not problem.snapshot.base.growth or not problem.requests:
        return answer
    moments = (problem, problem.when_empty()) if answer.decision == "rejected" else (problem,)
    needs = _needs(moments, place, _pods_without_place(answer))
    if not needs:
        return answer
    gang = problem.gang
    gpus = f" ({gang.gpus} GPUs)" if gang.gpus else ""
    wanted = " and ".join(need.words for need in needs)
    message = f"{pods(gang.size)}{gpus} wait for {wanted}. They hold nothing until then."
    return replace(answer, decision="queued", reason="WaitsForNodes", message=message, waits_for_nodes=True)


def _pods_without_place(answer: Answer) -> int:
    """Returns how many pods had no place in the search at the level at which most had one; 1 if no level was
    searched.
    """
    return min((attempt.wanted - attempt.fits for attempt in answer.attempts), default=1)


def _needs(moments: Sequence[PlacementProblem], place: Place, missing: int) -> tuple[_Need, ...]:
    """Returns the nodes that the gang needs: of the first pool, by name, that suffices alone; if none does,
    of several pools. Returns () if all pools together do not suffice.

    `moments`: the cluster as it is and, for a rejected gang, also without other pods; the first that works
    counts. `missing`: how many pods have no place, for the first guess of the number of nodes.
    """
    problem = moments[0]
    trial = _GrowthTrial(problem, place)
    # Leaves out pools that take no pod: most pools of a cluster have no GPUs.
    growing = [pool for pool in pools(problem.snapshot) if _pods_on(problem, pool)]
    for moment in moments:
        for pool in growing:
            if count := trial.fewest(moment, pool, missing):
                return (_Need(pool, count),)
        if len(growing) > 1 and (needs := trial.joint_needs(moment, growing)):
            return needs
    return ()


def _pods_on(problem: PlacementProblem, pool: GrowingPool) -> int:
    """Returns how many pods a new node takes, of the PodSet of which it takes most."""
    (node,) = _new_nodes(problem.snapshot, _Need(pool, 1), problem.gang)
    counts = (
        max_pods(node.allocatable, _without_claims(pod_set.shape, node), shared_gpus_of(node), pod_set.count)
        for pod_set in problem.gang.pod_sets
        if pod_set.count and not obstacle(pod_set.shape, node, occupied=False)
    )
    return max(counts, default=0)


def _without_claims(shape: ResolvedShape, node: Node) -> ResolvedShape:
    """Returns the shape without device claims, also those for extended resources that the node does not
    offer, to estimate how many pods a new node takes: only the trials assume devices on new nodes.
    """
    extended = {name for name, _ in shape.extended_claims if name not in node.allocatable}
    requests = {
        name: amount
        for name, amount in shape.requests.items()
        if not is_claimed(name) and name not in extended
    }
    return replace(shape, requests=requests, claim_specs=(), extended_claims=())


class _GrowthTrial:
    """Places the gang in the cluster with additional nodes. All trials share a work budget."""

    def __init__(self, problem: PlacementProblem, place: Place) -> None:
        self._gang = problem.gang
        self._place = place
        self._budget = WorkBudget(_BUDGET, hard=True)

    def fewest(self, moment: PlacementProblem, pool: GrowingPool, missing: int) -> int | None:
        """Returns how many more nodes of the pool the gang needs; None if the pool cannot grow enough.

        Searches by halving, from an estimate based on `missing`, the number of pods without a place. A number
        above `_MOST_NODES` is returned as estimated, without a trial.
        """
        max_new = self._max_new_nodes(pool)
        needed = -(-missing // max(1, _pods_on(moment, pool)))
        if needed > _MOST_NODES:
            return needed if needed <= max_new else None
        max_nodes = min(max_new, _MOST_NODES)
        guess = max(1, min(needed, max_nodes))
        if max_nodes < 1:
            return None
        low, high = (0, guess) if self._enough(moment, pool, guess) else (guess, max_nodes)
        # The guess was too few: if the maximum is too few as well, no number suffices.
        if low and not (high > low and self._enough(moment, pool, high)):
            return None
        middle = high - 1  # usually the guess is the answer, which is proved if one node less is too few
        while high - low > 1:
            low, high = (low, middle) if self._enough(moment, pool, middle) else (middle, high)
            middle = (low + high) // 2
        return high

    def _enough(self, moment: PlacementProblem, pool: GrowingPool, count: int) -> bool:
        return self._placed(moment, [_Need(pool, count)]) is not None

    def joint_needs(self, moment: PlacementProblem, growing: Sequence[GrowingPool]) -> tuple[_Need, ...]:
        """Returns the new nodes that the gang uses of each pool if all pools grow to their maximum.

        Returns () if that is not enough, or if it is more than `_MOST_NODES` nodes.
        """
        max_needs = [_Need(pool, self._max_new_nodes(pool)) for pool in growing]
        if sum(need.count for need in max_needs) > _MOST_NODES:
            return ()
        outcome = self._placed(moment, max_needs)
        if outcome is None or outcome.best is None:
            return ()
        used = {assignment.node for assignment in assignments_of(outcome.problem, outcome.best)}
        counts = ((pool, sum(name.startswith(_name(pool, "")) for name in used)) for pool in growing)
        return tuple(_Need(pool, count) for pool, count in counts if count)

    def _max_new_nodes(self, pool: GrowingPool) -> int:
        """Returns how many nodes of the pool to add at most: by its size, its resource limits, and the number
        of pods, since each pod needs at most one new node.
        """
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
    """Returns the devices of all nodes; each new node has the same devices as an existing node of its pool.

    New nodes of a pool get no devices if no existing node of the pool has any. Returns `NO_SLICES` if that is
    so for all pools: the caller then leaves the cluster's devices as they are.
    """
    by_node: dict[str, NodeSlices] = {}
    slices = snapshot.base.claims.slices
    present = slices.by_node
    for need in needs if present else ():
        labels = need.pool.labels
        # A slice may outlive its node.
        alike = (
            name
            for name in present
            if labels and name in snapshot.nodes and selects(labels, snapshot.nodes[name].labels)
        )
        if (model := next(alike, None)) is not None:
            for number in range(1, need.count + 1):
                name = _name(need.pool, str(number))
                pieces = (replace(piece, node=name, pool=name) for piece in present[model].slices)
                by_node[name] = NodeSlices(tuple(pieces))
    return replace(slices, by_node={**present, **by_node}) if by_node else NO_SLICES


def pools(snapshot: Snapshot) -> tuple[GrowingPool, ...]:
    """Returns the pools that may grow, sorted by name, without Cluster Autoscaler groups that have no
    nodes.
    """
    growing = [
        _of_group(snapshot, entry) if isinstance(entry, AutoscalerGroup) else _counted(snapshot, entry)
        for entry in snapshot.base.growth
    ]
    return tuple(sorted((pool for pool in growing if pool and pool.max_added), key=lambda pool: pool.name))


def _counted(snapshot: Snapshot, pool: GrowingPool) -> GrowingPool:
    """Returns the pool; if its number of existing nodes (`present`) is 0, with the number of nodes that have
    its labels.
    """
    if pool.present or not pool.labels:
        return pool
    return replace(pool, present=sum(selects(pool.labels, node.labels) for node in snapshot.nodes.values()))


def _of_group(snapshot: Snapshot, group: AutoscalerGroup) -> GrowingPool | None:
    """Returns the pool for a Cluster Autoscaler group, with what its nodes have in common; None without
    nodes.

    A node belongs to the group if its name begins with the group's name, as the instance names of cloud
    providers do, or if the value of one of its labels is the group's name.
    """
    name = group.name.rpartition("/")[2]
    # Google names the nodes of NAME-grp NAME-x7k2, Azure those of NAME NAME000001.
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
    """Returns the largest request of any pod, per resource."""
    names = {name for pod_set in gang.pod_sets for name in pod_set.shape.requests}
    return {name: max(p.shape.requests.get(name, 0) for p in gang.pod_sets) for name in names}


def _new_nodes(snapshot: Snapshot, need: _Need, gang: ResolvedPodGroup) -> Iterator[Node]:
    """Yields the assumed new nodes of a pool.

    Labels that the pool leaves open have the values that the PodSet with the most GPUs per pod asks for.
    """
    pool = need.pool
    levels = {
        level
        for topology in snapshot.topologies
        if selects(topology.node_selector, pool.labels)
        for level in topology.levels[:-1]
    }
    leading = max(gang.pod_sets, key=lambda pod_set: (pod_set.shape.gpus, pod_set.count))
    chosen = {key: _chosen(leading.shape, key, values) for key, values in pool.choices.items() if values}
    chosen |= {
        key: value
        for key, value in _wanted(leading.shape)
        if key in levels or value in pool.choices.get(key, ()) or _is_free(pool, key)
    }
    labels = {**dict.fromkeys(levels, _NEW), **chosen, **pool.labels}
    places = {
        key: _values(snapshot, pool, key, leading.shape)
        for key in _apart_over(snapshot, gang)
        if key not in pool.labels and (key in levels or key in pool.choices or _is_free(pool, key))
    }
    for number in range(1, need.count + 1):
        name = _name(pool, str(number))
        apart = {
            key: values[(number - 1) % len(values)] if values else f"{_NEW} {number}"
            for key, values in places.items()
        }
        yield Node(name, {**labels, **apart, HOSTNAME: name}, pool.capacity or _largest(gang), pool.taints)


def _apart_over(snapshot: Snapshot, gang: ResolvedPodGroup) -> list[str]:
    """Returns the labels over which pods of the gang must be apart or spread, sorted; without the hostname,
    and without levels of which one domain must have several of its pods.
    """
    shapes = [pod_set.shape for pod_set in gang.pod_sets if pod_set.count]
    apart = {spread.key for shape in shapes for spread in shape.spread}
    apart |= {term.key for shape in shapes for term in shape.terms if not term.attracts}
    apart |= {key for shape in shapes for key in shape.anti_affinity}
    together = {term.key for shape in shapes for term in shape.terms if term.attracts}
    together |= {level for _, asked in constraints(gang) for level in (asked.required, asked.slice_level)}
    for topology in snapshot.topologies:
        keys = {level_key(topology, level) for level in together - {""}}
        finest = max((topology.index(key) for key in keys if key in topology.levels), default=-1)
        apart -= {*topology.levels[: finest + 1]}
    return sorted(apart - together - {HOSTNAME})


def _values(snapshot: Snapshot, pool: GrowingPool, key: str, shape: ResolvedShape) -> list[str]:
    """Returns the values of the label that new nodes may have for the pod; [] for any new value."""
    wanted = [value for name, value in _wanted(shape) if name == key]
    wanted = wanted[-1:] if key in shape.node_selector else wanted
    values = list(pool.choices.get(key, ()))
    if not values and key.startswith(_PLACES):
        existing = {node.labels.get(key, "") for node in snapshot.nodes.values()} - {""}
        values = sorted(existing, key=natural)
    return [value for value in values if not wanted or value in wanted] or wanted


def _name(pool: GrowingPool, number: str) -> str:
    return f"{_NEW}/{pool.name}/{number}"


def _chosen(shape: ResolvedShape, key: str, values: Sequence[str]) -> str:
    """Returns the first of the label's values that neither the node affinity of the pod nor its exclusions
    rule out; the first of all if there is none.
    """

    def serves(value: str) -> bool:
        if any(is_excluded(own, Node("", {key: value}, {})) for own in shape.exclusions if own.key == key):
            return False
        terms = [[own for own in term if own.key == key] for term in shape.affinity]
        return not terms or any(all(holds(own, value) for own in term) for term in terms)

    return next(filter(serves, values), values[0])


def _wanted(shape: ResolvedShape) -> Iterator[tuple[str, str]]:
    """Yields the labels that a node must have for the pod, as (key, value).

    If a key occurs several times, the last one counts: node selectors override affinity.
    """
    for exclusion in shape.exclusions:
        if exclusion.inside and exclusion.values and ANY not in exclusion.values:
            yield exclusion.key, min(exclusion.values)
    for requirement in shape.affinity[0] if shape.affinity else ():
        if requirement.operator == "In" and requirement.values:
            # Of several values of a label, the last one yielded counts; this must be the first in the spec.
            yield from ((requirement.key, value) for value in reversed(requirement.values))
    yield from shape.node_selector.items()


def _is_free(pool: GrowingPool, key: str) -> bool:
    """Returns whether a new node may have any value of the label, because the autoscaler chooses the value or
    because it depends on the node's location (zone, region).
    """
    if key in pool.choices:
        return not pool.choices[key]
    return key.startswith((*pool.free, *_PLACES))
