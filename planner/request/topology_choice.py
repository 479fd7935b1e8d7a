"""Decides in which topologies a gang may be planned, or refuses the request.

A request whose level keys or node selectors belong to two topologies is refused: a scheduler compares domains
only within one topology, so none can keep such a gang together.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from planner.cluster.snapshot import Snapshot
from planner.model.labels import holds, selects
from planner.model.pod import PodShape
from planner.model.podgroup import PodGroup, PodSet
from planner.model.topology import Topology, short
from planner.model.words import counted
from planner.node.eligibility import affinity_allows
from planner.request.levels import level_key, levels_asked, topologies_asked
from planner.request.validation import Refusal

_LONGEST_KEY = 317
"""Maximum length of a label key: a domain of 253 characters, a slash, and a name of 63."""


def candidates(snapshot: Snapshot, group: PodGroup) -> tuple[Topology, ...]:
    """Returns the topologies in which the gang may be planned, in the order of the snapshot.

    Raises `Refusal` with reason `UnknownTopology`, `UnknownLevel` or `MultipleTopologies`.
    """
    asked_topologies = _topologies_by_name(snapshot, group)
    levels = levels_asked(group)
    having = {level: tuple(t for t in snapshot.topologies if level_key(t, level)) for _, level in levels}
    for place, level in levels:
        if not having[level]:
            raise _unknown_level(snapshot, asked_topologies, place, level)
    topologies = asked_topologies or snapshot.topologies
    for place, level in levels:
        matching = tuple(t for t in topologies if t in having[level])
        if not matching:
            first_name, second_name = topologies[0].name, having[level][0].name
            raise Refusal(
                "MultipleTopologies",
                f"The request points into two topologies: {place} is {level}, a level of {second_name}; "
                f"the rest means {first_name} (levels {_list(topologies[0].levels)}). One gang has one "
                f"topology; use the levels of one of them.",
            )
        topologies = matching
    if not asked_topologies:
        topologies = _followed(snapshot, group, topologies)
    if asked_topologies or levels:
        _check_pools(snapshot, group, topologies)
    return topologies


def _followed(snapshot: Snapshot, group: PodGroup, topologies: tuple[Topology, ...]) -> tuple[Topology, ...]:
    """Returns those of `topologies` that the gang's scheduler reads (`PodGroup.follows`); all of them if it
    reads none.

    A gang that is planned in another topology is pinned to domains that its scheduler cannot name. Another
    topology is nevertheless returned too if some of its nodes are in no topology that the scheduler reads,
    because the scheduler places pods without levels on such nodes.
    """
    own = [topology for topology in topologies if topology.source == group.follows]
    if not own or len(own) == len(topologies):
        return topologies
    trees = snapshot.base.trees
    covered = {name for topology in own for name in trees[topology.name].places}
    return tuple(t for t in topologies if t in own or not covered.issuperset(trees[t.name].places))


def _topologies_by_name(snapshot: Snapshot, group: PodGroup) -> tuple[Topology, ...]:
    asked = topologies_asked(group)
    by_name = {topology.name: topology for topology in snapshot.topologies if topology.name}
    different = list(dict.fromkeys(name for _, name in asked))
    if len(different) > 1:
        places = " and ".join(f"{place} says {name}" for place, name in asked)
        raise Refusal(
            "MultipleTopologies",
            f"The request names two topologies: {places}. One gang has one topology; keep one of them.",
        )
    for place, name in asked:
        if name not in by_name:
            raise Refusal(
                "UnknownTopology",
                f"{place} is {name!r}, which the cluster does not have; it has {_list(tuple(by_name))}."
                + (f" Would work: {near}." if (near := _nearest(name, by_name)) else ""),
            )
    return tuple(by_name[name] for name in different)


def _unknown_level(
    snapshot: Snapshot, asked_topologies: tuple[Topology, ...], place: str, level: str
) -> Refusal:
    topologies = asked_topologies or snapshot.topologies
    levels = "; ".join(
        f"{t.title} {'has' if t.name else 'give'} {_list(tuple(map(_titled, t.levels)))}" for t in topologies
    )
    keys = {name: key for t in topologies for key in t.levels for name in (short(key), key)}
    meant = keys.get(_nearest(level, keys), "")
    works = f"Would work: {_titled(meant)}." if meant else "Would work: one of these levels."
    if labelled := sum(level in node.labels for node in snapshot.nodes.values()):
        # JobSet and LeaderWorkerSet accept any node label, and most manifests name that of the node pool.
        works = (
            f"It is a label of {counted(labelled, 'node')}. Would work: one of these levels, a Topology with "
            f'the level {level}, or, for whoever may skip the plan, bayplan.dev/skip: "true".'
        )
    return Refusal("UnknownLevel", f"{place} is {level!r}, which is no level here: {levels}. {works}")


def _titled(level: str) -> str:
    """Returns a level's key and, if it differs, its name in messages: "example.com/rack (rack)"."""
    return level if short(level) == level else f"{level} ({short(level)})"


def _nearest(written: str, names: Iterable[str]) -> str:
    """Returns the name that is most similar to the text, or to its short name; "" if none is."""
    texts = dict.fromkeys((written[:_LONGEST_KEY], short(written)[:_LONGEST_KEY]))
    close = (get_close_matches(text, names, 1) for text in texts)
    return next((matches[0] for matches in close if matches), "")


def _check_pools(snapshot: Snapshot, group: PodGroup, topologies: tuple[Topology, ...]) -> None:
    """Raises `Refusal` if node selectors or affinity of the gang's pods select node pools of different
    topologies, or of none of these topologies.
    """
    pools: dict[str, str] = {}
    for pod_set in group.pod_sets:
        for topology in snapshot.topologies:
            if pod_set.count and topology.node_selector and _points_at(pod_set.shape, topology):
                pools.setdefault(topology.name, pod_set.name)
    outside = [name for name in pools if name not in {t.name for t in topologies}]
    meant = [name for name in pools if name not in outside] or [topologies[0].name]
    if outside:
        raise _two_pools(meant[0], outside[0], pools[outside[0]])
    if len(pools) > 1:
        first_name, second_name = list(pools)[:2]
        raise _two_pools(first_name, second_name, pools[second_name])
    for pod_set in group.pod_sets:
        _check_nodes(snapshot, pod_set, topologies)


def _check_nodes(snapshot: Snapshot, pod_set: PodSet, topologies: tuple[Topology, ...]) -> None:
    """Raises `Refusal` if the PodSet's node selector or affinity selects only nodes of other topologies than
    these.
    """
    shape = pod_set.shape
    if not pod_set.count or not (shape.node_selector or shape.affinity):
        return
    trees = snapshot.base.trees
    if any(len(trees[t.name].places) == len(snapshot.nodes) for t in topologies):
        return  # one topology covers all nodes, so none is outside
    other_topology = ""
    for node in snapshot.nodes.values():
        if affinity_allows(shape, node):
            if any(node.name in trees[t.name].places for t in topologies):
                return
            other_names = (n for n, tree in trees.items() if node.name in tree.places)
            other_topology = other_topology or next(other_names, "")
    if other_topology:
        raise _two_pools(topologies[0].name, other_topology, pod_set.name)


def _two_pools(topology: str, other_topology: str, pod_set: str) -> Refusal:
    return Refusal(
        "MultipleTopologies",
        f"The request points into two topologies: it means {topology}, and the node selector or affinity of "
        f"{pod_set} points at the nodes of {other_topology}. One gang has one "
        "topology; select the nodes of one.",
    )


def _points_at(shape: PodShape, topology: Topology) -> bool:
    """Reports whether the pod's node selector or affinity selects the node pool of this topology by label."""
    wanted = {k: v for k, v in shape.node_selector.items() if k in topology.node_selector}
    if wanted:
        return selects(wanted, topology.node_selector)
    return any(
        any(r.key in topology.node_selector and r.operator == "In" for r in term)
        and all(holds(r, topology.node_selector[r.key]) for r in term if r.key in topology.node_selector)
        for term in shape.affinity
    )


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "none"
