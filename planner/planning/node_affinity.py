"""The required node affinity that pins a gang's pods to their placement, as terms that are ORed."""

from __future__ import annotations

from collections.abc import Sequence

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.labels import Requirement, Term
from planner.model.natural_order import natural
from planner.model.podgroup import PodGroup
from planner.model.topology import HOSTNAME, Domain, Topology, contains, held_level


def requirements(snapshot: Snapshot, group: PodGroup, answer: Answer, pod_set: str) -> tuple[Term, ...]:
    """The node-affinity terms for one PodSet of an admitted gang; `()` for no terms.

    Whole domains: a term for each of them that the PodSet uses, with the labels of its whole path (only the
    hostname for a host). What the gang uses: one term with the hostnames. Nothing: a term for each domain
    that mode `domain` would have reserved; the caller writes it as a preference. PodSets that are equal but
    for their names are planned together and get the same terms.
    """
    alike = _alike(group, pod_set)
    nodes = list(dict.fromkeys(a.node for a in answer.assignments if a.pod_set in alike))
    topology = next((t for t in snapshot.topologies if t.name == answer.topology), None)
    if not nodes or topology is None:
        return ()
    if answer.holds == "nodes":
        return _hosts(snapshot, nodes)
    domains = answer.reserves if answer.holds == "domain" else _would_reserve(snapshot, topology, answer)
    used = [domain for domain in domains if any(_within(snapshot, topology, n, domain) for n in nodes)]
    hosts = {domain for domain in used if len(domain) == len(topology.levels)}
    wider = tuple(path_term(topology.levels, domain) for domain in used if domain not in hosts)
    return wider + _hosts(snapshot, [n for n in nodes if _path(snapshot, topology, n) in hosts])


def _hosts(snapshot: Snapshot, nodes: list[str]) -> tuple[Term, ...]:
    """Terms for these nodes: one by hostname labels, and one by name for each node without that label.

    `metadata.name` takes a single value (core/v1 NodeSelectorTerm.matchFields).
    """
    distinct = sorted(nodes, key=natural)
    labelled = [n for n in distinct if n in snapshot.nodes and snapshot.nodes[n].labels.get(HOSTNAME)]
    hosts = sorted({_hostname(snapshot, node) for node in labelled}, key=natural)
    by_host: tuple[Term, ...] = ((Requirement(HOSTNAME, "In", tuple(hosts)),),) if hosts else ()
    return by_host + tuple((Requirement("metadata.name", "In", (n,)),) for n in distinct if n not in labelled)


def _alike(group: PodGroup, name: str) -> set[str]:
    """The PodSets with the same shape and constraint, this one included; empty for an unknown name."""
    pod_set = next((p for p in group.pod_sets if p.name == name), None)
    return {
        p.name
        for p in group.pod_sets
        if pod_set and (p is pod_set or (p.constraint == pod_set.constraint and p.shape == pod_set.shape))
    }


def path_term(levels: Sequence[str], domain: Domain) -> Term:
    """The term for a domain: the labels of its whole path, or only the hostname for a host."""
    if len(domain) == len(levels):
        return (Requirement(HOSTNAME, "In", (domain[-1],)),)
    return tuple(
        Requirement(level, "In", (value,)) for level, value in zip(levels, domain, strict=False) if value
    )


def _hostname(snapshot: Snapshot, name: str) -> str:
    node = snapshot.nodes.get(name)
    return (node.labels.get(HOSTNAME) if node else "") or name


def _path(snapshot: Snapshot, topology: Topology, name: str) -> Domain:
    """The node's path in the topology; a node outside it has only its host."""
    node = snapshot.nodes.get(name)
    if node is None:
        return ()
    if name not in snapshot.base.trees[topology.name].index:
        return (*("" for _ in topology.levels[1:]), _hostname(snapshot, name))
    return topology.path(name, node.labels)


def _within(snapshot: Snapshot, topology: Topology, name: str, domain: Domain) -> bool:
    return contains(domain, _path(snapshot, topology, name))


def _would_reserve(snapshot: Snapshot, topology: Topology, answer: Answer) -> tuple[Domain, ...]:
    level = held_level(topology, answer.domain)
    paths = (_path(snapshot, topology, a.node) for a in answer.assignments)
    return tuple(dict.fromkeys(path[: level + 1] if path[level] else path for path in paths if path))
