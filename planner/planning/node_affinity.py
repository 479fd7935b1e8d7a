"""The required node affinity that pins a gang's pods to their placement, as ORed terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.effort.deadline import poll
from planner.model.labels import Requirement, Term
from planner.model.natural_order import natural
from planner.model.podgroup import PodGroup, PodSet
from planner.model.topology import HOSTNAME, Domain, Topology, contains, held_level, topology_named


def requirements(snapshot: Snapshot, group: PodGroup, answer: Answer) -> Mapping[str, tuple[Term, ...]]:
    """Returns the node-affinity terms of an admitted gang by PodSet; `()` for a PodSet without terms.

    Reserve mode `domain`: one term for each held domain that the PodSet uses, with the labels of its whole
    path (for hosts only the hostnames). Mode `nodes`: the terms for the nodes that the PodSet uses
    (`_hosts`). Mode `none`: the terms for the domains that mode `domain` would have reserved; the caller
    writes them as preferences. PodSets with the same shape and constraint get the same terms, because the
    planner treats their pods as equal, unless rules of the gang relate pods to pods (`_equal_pod_sets`).
    """
    topology = topology_named(snapshot.topologies, answer.topology)
    nodes: dict[str, dict[str, None]] = {}
    for assignment in answer.assignments:
        nodes.setdefault(assignment.pod_set, {})[assignment.node] = None
    by_pod_set: dict[str, tuple[Term, ...]] = {}
    for names in _equal_pod_sets(group):
        used = list(dict.fromkeys(node for name in names for node in nodes.get(name, ())))
        terms = _terms(snapshot, topology, answer, used) if used and topology is not None else ()
        by_pod_set.update(dict.fromkeys(names, terms))
    return by_pod_set


def _terms(snapshot: Snapshot, topology: Topology, answer: Answer, nodes: list[str]) -> tuple[Term, ...]:
    """Returns the terms of pods on these nodes."""
    if answer.holds == "nodes":
        return _hosts(snapshot, nodes)
    domains = answer.reserves if answer.holds == "domain" else _would_reserve(snapshot, topology, answer)
    used = [domain for domain in domains if any(_within(snapshot, topology, n, domain) for n in nodes)]
    hosts = {domain for domain in used if len(domain) == len(topology.levels)}
    wider = tuple(path_term(topology.levels, domain) for domain in used if domain not in hosts)
    return wider + _hosts(snapshot, [n for n in nodes if _path(snapshot, topology, n) in hosts])


def _hosts(snapshot: Snapshot, nodes: list[str]) -> tuple[Term, ...]:
    """Returns terms for these nodes: one with the values of all hostname labels, and for each node without
    this label one with its name.

    `metadata.name` accepts a single value (core/v1 NodeSelectorTerm.matchFields).
    """
    distinct = sorted(nodes, key=natural)
    labelled = [n for n in distinct if n in snapshot.nodes and snapshot.nodes[n].labels.get(HOSTNAME)]
    hosts = sorted({_hostname(snapshot, node) for node in labelled}, key=natural)
    by_host: tuple[Term, ...] = ((Requirement(HOSTNAME, "In", tuple(hosts)),),) if hosts else ()
    return by_host + tuple((Requirement("metadata.name", "In", (n,)),) for n in distinct if n not in labelled)


def _equal_pod_sets(group: PodGroup) -> list[list[str]]:
    """Returns the names of the PodSets in lists, one for each distinct shape and constraint.

    Each PodSet has a list of its own if the gang has spread constraints, affinity or anti-affinity to pods:
    these are checked with each pod on the nodes of its PodSet, and shapes that differ in them are equal.
    """
    if any(pod_set.shape.spread or pod_set.shape.terms for pod_set in group.pod_sets):
        return [[pod_set.name] for pod_set in group.pod_sets]
    alike: list[tuple[PodSet, list[str]]] = []
    for pod_set in group.pod_sets:
        poll("policies")  # quadratic if all PodSets differ
        names = next(
            (
                names
                for first, names in alike
                if first.constraint == pod_set.constraint and first.shape == pod_set.shape
            ),
            None,
        )
        if names is None:
            alike.append((pod_set, [pod_set.name]))
        else:
            names.append(pod_set.name)
    return [names for _, names in alike]


def path_term(levels: Sequence[str], domain: Domain) -> Term:
    """Returns the term that selects a domain: the labels of its whole path, or for a host only the
    hostname.

    `levels`: the label keys of the topology, coarse to fine.
    """
    if len(domain) == len(levels):
        return (Requirement(HOSTNAME, "In", (domain[-1],)),)
    return tuple(
        Requirement(level, "In", (value,)) for level, value in zip(levels, domain, strict=False) if value
    )


def _hostname(snapshot: Snapshot, name: str) -> str:
    node = snapshot.nodes.get(name)
    return (node.labels.get(HOSTNAME) if node else "") or name


def _path(snapshot: Snapshot, topology: Topology, name: str) -> Domain:
    """Returns the node's path in the topology; for a node outside the topology, a path with empty values and
    the hostname; `()` for an unknown node.
    """
    node = snapshot.nodes.get(name)
    if node is None:
        return ()
    if name not in snapshot.base.trees[topology.name].places:
        return (*("" for _ in topology.levels[1:]), _hostname(snapshot, name))
    return topology.path(name, node.labels)


def _within(snapshot: Snapshot, topology: Topology, name: str, domain: Domain) -> bool:
    return contains(domain, _path(snapshot, topology, name))


def _would_reserve(snapshot: Snapshot, topology: Topology, answer: Answer) -> tuple[Domain, ...]:
    """Returns the domains that mode `domain` would have reserved; for a node without the label of their
    level, the path of the node alone.
    """
    level = held_level(topology, answer.domain)
    paths = (_path(snapshot, topology, a.node) for a in answer.assignments)
    return tuple(dict.fromkeys(path[: level + 1] if path[level] else path for path in paths if path))
