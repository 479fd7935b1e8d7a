"""nod-ai's leaf-spine rules, as its interface promises them: few nodes on one leaf, more on adjacent ones.

With at most `maxNodesPerLeaf` nodes (4) of a gang in a leaf, up to 4 nodes are one leaf, up to 8 two adjacent
ones, up to 16 four; beyond, as few as hold it. Sets of leaves are ordered by the strategy and each is given
to the planner until one holds the gang. The rules are soft: where no such set has room, the plan is made
without them and says so. The least bandwidth is hard, and so are the limits that a ConfigMap states
(docs/decisions/0050).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice

from planner.cluster.snapshot import Snapshot
from planner.cluster.switch_graph import LeafSpine, Switch, closeness, leaf_spine, names
from planner.explain import messages
from planner.explain.alternatives import Alternatives, Steps
from planner.leafspine.history import UNTRIED, key_of
from planner.leafspine.leaf_capacity import Room, Rooms
from planner.model.answer import Answer
from planner.model.labels import NODE_NAME_FIELD, Requirement
from planner.model.podgroup import PodGroup, PodSet
from planner.model.settings import Settings
from planner.model.topology import HOSTNAME
from planner.request.levels import levels_asked, topologies_asked
from planner.request.topology_choice import candidates
from planner.request.validation import Refusal
from planner.search.space import search_space

_MOST_TRIES = 48


def in_fabric(snapshot: Snapshot, group: PodGroup, steps: Steps) -> Answer:
    """The answer that follows the gang's `FabricWish`; `steps` answer ordinary groups."""
    try:
        spines, group = _spines(snapshot, group)
    except Refusal as refusal:
        return messages.refused(group, refusal)
    if not spines:
        said = "the leaf-spine rules were not followed: no topology here has a level above the host"
        return steps.plan(snapshot, replace(group, warnings=(*group.warnings, said)))
    every = spines
    spines, group = _fast_enough(spines, group)
    if not spines:
        return _too_slow(every, group, steps.near)
    plain = steps.plan(snapshot, _among(snapshot, group, spines))
    spine = next((one for one in spines if one.topology.name == plain.topology), None)
    if plain.decision != "admitted" or spine is None:
        return plain
    return _Fabric(snapshot, group, steps, spine).place(plain)


def _spines(snapshot: Snapshot, group: PodGroup) -> tuple[list[LeafSpine], PodGroup]:
    """The fabrics that the request may mean. Raises `Refusal` where its domain is in another topology."""
    allowed = candidates(snapshot, group)
    every = {t.name: s for t in snapshot.topologies if (s := leaf_spine(snapshot, t)) is not None}
    spines = [every[t.name] for t in allowed if t.name in every]
    domain = group.fabric.domain
    if not domain:
        return spines, group
    having = [spine for spine in spines if spine.inside(domain)]
    if having:
        return having, group
    elsewhere = next((name for name, spine in every.items() if spine.inside(domain)), "")
    if elsewhere and (levels_asked(group) or topologies_asked(group)):
        raise Refusal(
            "MultipleTopologies",
            f"The request points into two topologies: the preferred domain {domain!r} is in {elsewhere}, "
            f"the rest means {', '.join(t.name for t in allowed)}. Name a domain of that one.",
        )
    said = f"the preferred domain {domain!r} is not known; known are {messages.some(names(spines), 12)}"
    return spines, replace(group, warnings=(*group.warnings, said))


def _fast_enough(spines: list[LeafSpine], group: PodGroup) -> tuple[list[LeafSpine], PodGroup]:
    wanted = group.fabric.gbps
    if not wanted:
        return spines, group
    unknown = [spine.topology.name for spine in spines if not spine.cabled]
    if unknown:
        said = f"the least bandwidth was not checked: the Topology {', '.join(unknown)} lists no links"
        group = replace(group, warnings=(*group.warnings, said))
    fast = (spine.faster(wanted) if spine.cabled else spine for spine in spines)
    return [spine for spine in fast if spine.leaves], group


def _among(snapshot: Snapshot, group: PodGroup, spines: Sequence[LeafSpine]) -> PodGroup:
    """The gang, kept to the nodes of these fabrics where they are not all that it could use."""
    left = [name for spine in spines for leaf in spine.leaves for name in leaf.nodes]
    return group if len(left) >= len(snapshot.nodes) else _within(group, left)


def _too_slow(spines: Sequence[LeafSpine], group: PodGroup, near: Alternatives | None) -> Answer:
    if near is None:
        return Answer(group.name, "rejected")
    fastest = max(speed for spine in spines for speed in spine.speeds)
    ways = [way.words for way in near.slower(now=False)]
    message = (
        f"{group.name} asks for links of {group.fabric.gbps:g} Gb/s between its nodes, and no leaf has one; "
        f"the fastest has {fastest:g}. Would work: {ways[0] if ways else 'slower links for fewer pods'}."
    )
    return Answer(group.name, "rejected", reason="NoLinkFastEnough", message=message, warnings=group.warnings)


def _within(group: PodGroup, nodes: Sequence[str], *, apart: bool = False) -> PodGroup:
    """The gang, held to these nodes; `apart`: no two pods of a PodSet on one."""
    needed = Requirement(NODE_NAME_FIELD, "In", tuple(nodes))

    def held(pod_set: PodSet) -> PodSet:
        shape = pod_set.shape
        terms = tuple((*term, needed) for term in shape.affinity) or ((needed,),)
        keys = tuple(dict.fromkeys((*shape.anti_affinity, HOSTNAME))) if apart else shape.anti_affinity
        return replace(pod_set, shape=replace(shape, affinity=terms, anti_affinity=keys))

    return replace(group, pod_sets=tuple(held(pod_set) for pod_set in group.pod_sets))


class _Fabric:
    """One gang on one fabric."""

    def __init__(self, snapshot: Snapshot, group: PodGroup, steps: Steps, spine: LeafSpine) -> None:
        self._snapshot = snapshot if steps.now else Snapshot(snapshot.base)
        self._group, self._steps, self._spine = group, steps, spine
        self._settings: Settings = snapshot.base.settings
        view = search_space(self._snapshot, snapshot.base.trees[spine.topology.name], now=steps.now)
        inside = {leaf.path for leaf in spine.inside(group.fabric.domain)} if group.fabric.domain else set()
        rooms = Rooms(view, group, self._settings)
        every = (rooms.of(leaf, preferred=leaf.path in inside) for leaf in spine.leaves)
        self._rooms = [room for room in every if room.nodes]

    def place(self, plain: Answer) -> Answer:
        """The plan by the rules; `plain` is the one without them, which serves where they cannot be kept."""
        if self._group.fabric.strategy == "distributed":
            spread = self._distributed()
            if spread is None and self._settings.limited:
                return self._within_limits()
            return spread or self._noted(plain, "distributed: no such spread has room")
        hosts = len({one.node for one in plain.assignments})
        rule = leaves_for(hosts, self._settings.nodes_per_leaf)
        if hosts > 1:
            self._rooms = [room for room in self._rooms if self._may_hold(room)]
        tries = 0
        for size in range(rule, min(len(self._rooms), 4 * rule) + 1):
            for rooms in self._sets(size):
                tries += 1
                answer = self._steps.seek(
                    self._snapshot, _within(self._group, [n for r in rooms for n in r.nodes])
                )
                if answer.decision == "admitted":
                    more = f"{size} leaves serve, where {rule} would have been the rule for {hosts} nodes"
                    return answer if size == rule else self._noted(answer, more)
                if tries >= _MOST_TRIES:
                    break
        if self._settings.limited:
            return self._within_limits()
        return self._noted(plain, f"no {rule} adjacent leaves have room for {hosts} nodes")

    def _within_limits(self) -> Answer:
        """The plan over all leaves within the limits that a ConfigMap states; or why there is none."""
        answer = self._anywhere()
        if answer is not None and answer.decision == "admitted":
            return self._noted(answer, "over more leaves than the rules have it, within the limits per leaf")
        near = self._steps.near
        if near is None:
            return Answer(self._group.name, "queued")
        could = self._could_ever()
        when = "fits the empty cluster but not now" if could else "can never fit"
        limits = f"{self._settings.nodes_per_leaf} nodes and {self._settings.gpus_per_leaf} GPUs of a gang"
        room = sum(room.pods for room in self._rooms)
        names = [pod_set.name for pod_set in self._group.pod_sets]
        ways = [way.words for way in near.fewer(names, self._group.size - 1, now=could)]
        message = (
            f"{messages.pods(self._group.size)} within the limits of {limits} in one leaf "
            f"(topologyConstraints of topology-scheduler-config) {when}: the leaves have room for at most "
            f"{messages.pods(room)} now. Would work{' now' if could else ''}: "
            f"{', or '.join([*ways, 'higher limits', *(['the end of other gangs'] if could else [])])}."
        )
        return Answer(
            self._group.name,
            "queued" if could else "rejected",
            topology=self._spine.topology.name,
            reason="LimitPerLeaf",
            message=message,
            warnings=self._group.warnings,
        )

    def _could_ever(self) -> bool:
        """Whether the gang may have a place within the limits once others have gone. Where that is not known
        for sure (PodSets of several shapes, nodes that are out of order now), it may."""
        nodes = self._snapshot.nodes
        away = any(nodes[n].cordoned or not nodes[n].ready for leaf in self._spine.leaves for n in leaf.nodes)
        if away or len(self._group.pod_sets) > 1:
            return True
        steps = replace(self._steps.silent, now=False)
        ever = _Fabric(self._snapshot, self._group, steps, self._spine)._anywhere()
        return ever is not None and ever.decision == "admitted"

    def _anywhere(self) -> Answer | None:
        """The plan over the nodes of all leaves that the limits leave; None where they leave none."""
        nodes = [name for room in self._rooms for name in room.nodes]
        return self._steps.seek(self._snapshot, _within(self._group, nodes)) if nodes else None

    def _noted(self, answer: Answer, what: str) -> Answer:
        return replace(answer, warnings=(*answer.warnings, f"leaf-spine rules: {what}"))

    def _may_hold(self, room: Room) -> bool:
        """Whether the gang could hold the leaf, where it holds each that it uses: nobody else is there."""
        topology = self._spine.topology
        if self._group.reserve != "domain" or topology.reservable_index != len(room.leaf.path) - 1:
            return True
        return not room.gang

    # -- sets of leaves -------------------------------------------------------------------------------------

    def _sets(self, size: int) -> Iterator[tuple[Room, ...]]:
        """Sets of so many leaves, each around another leaf, in the order of the strategy."""
        found: dict[frozenset[tuple[str, ...]], tuple[Room, ...]] = {}
        near: dict[frozenset[Switch], list[Room]] = {}
        for seed in self._rooms:
            kin = self._spine.kin(seed.leaf)
            if kin not in near:
                near[kin] = sorted(self._rooms, key=partial(self._nearness, seed))
            others = islice((room for room in near[kin] if room is not seed), size - 1)
            chosen = (seed, *others)
            if len(chosen) == size and sum(room.pods for room in chosen) >= self._least():
                ordered = tuple(sorted(chosen, key=lambda room: room.leaf.path))
                found.setdefault(frozenset(room.leaf.path for room in chosen), ordered)
        return iter(sorted(found.values(), key=self._order))

    def _nearness(self, seed: Room, room: Room) -> tuple[int, bool, int, float]:
        """How soon a leaf joins the seed's set; the seed's kin, itself among them, are two hops away."""
        hops = self._spine.hops(seed.leaf, room.leaf) or 2
        return hops, not room.preferred, -room.pods, -room.used

    def _least(self) -> int:
        """The pods that the largest PodSet has: fewer can never be enough."""
        return max(pod_set.count for pod_set in self._group.pod_sets)

    def _order(self, rooms: tuple[Room, ...]) -> tuple[object, ...]:
        """Preferred leaves first; then by hops, or by the weighted score; then by name."""
        hops = closeness(self._spine, [room.leaf for room in rooms])
        outside = sum(not room.preferred for room in rooms)
        names_ = tuple(room.leaf.path for room in rooms)
        if self._group.fabric.strategy == "consolidated" and not self._group.fabric.latency:
            used = -sum(room.used for room in rooms)
            return (outside, hops, used, names_)
        score = round(self._score(rooms, hops), 9)
        if self._group.fabric.latency:
            return (hops, outside, -score, names_)
        return (outside, -score, hops, names_)

    def _score(self, rooms: Sequence[Room], hops: float) -> float:
        """The weighted sum of what is available (1 where it suffices), close, in use already, and proved."""
        weights, count = self._settings.weights, len(rooms)
        name, history = self._spine.topology.name, self._settings.history
        proved = (history.get(key_of(name, room.leaf.path), UNTRIED) for room in rooms)
        return (
            weights["resourceAvailability"] * min(1.0, sum(room.pods for room in rooms) / self._group.size)
            + weights["topologyAlignment"] / (1 + hops / 2)
            + weights["domainUtilization"] * sum(room.used for room in rooms) / count
            + weights["historicalPerformance"] * sum(proved) / count
        )

    # -- distributed ----------------------------------------------------------------------------------------

    def _distributed(self) -> Answer | None:
        """One pod a node, over as many leaves as there are, in turns; preferred and emptier leaves first."""
        rooms = sorted(self._rooms, key=lambda room: (not room.preferred, room.used, room.leaf.path))
        depth = max((len(room.nodes) for room in rooms), default=0)
        turns = [room.nodes[turn] for turn in range(depth) for room in rooms if turn < len(room.nodes)]
        if len(turns) < self._group.size:
            return None
        wide = self._steps.seek(self._snapshot, _within(self._group, turns[: self._group.size], apart=True))
        if wide.decision == "admitted":
            return wide
        anywhere = self._steps.seek(self._snapshot, _within(self._group, turns, apart=True))
        return anywhere if anywhere.decision == "admitted" else None


def leaves_for(nodes: int, per_leaf: int) -> int:
    """Leaves that the rules give to so many nodes: 1, 2 or 4, beyond that as few as hold them."""
    least = -(-nodes // per_leaf)
    return next((leaves for leaves in (1, 2, 4) if least <= leaves), least)
