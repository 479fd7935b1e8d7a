"""Removes the node affinity that an earlier plan wrote, so that its gang can be planned again. Pure.

Admission wrote the place into the pod templates, and the templates of most kinds are immutable. After a gang
has moved, its new pods therefore arrive with the old place. The terms that a plan wrote are known from its
annotation: the labels of each reserved domain's whole path, or hostnames. For example, if a gang has moved
from rack r1 to r2, a pod arrives with

    required: [{rack In [r1]}, ...]

The term of r1 is removed here, and the policies write the one of r2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model.labels import NODE_NAME_FIELD, Requirement, Term
from planner.model.podgroup import PodGroup
from planner.model.reservation import Reservation
from planner.model.topology import HOSTNAME, Domain, topology_named
from planner.planning.node_affinity import path_term
from webhook.placement.pod_gang import seats_for
from webhook.placement.stamp import PlacementAnnotation, placement_annotation, placement_annotations
from webhook.workloads import Workload
from webhook.workloads.node_affinity import REQUIRED

Json = Mapping[str, Any]


KINDS_OF_MATCH = ("matchExpressions", "matchFields")
"""The fields of a node selector term that have requirements."""


@dataclass(frozen=True, slots=True)
class PlacementTerms:
    """The required node affinity that plans wrote: a term for each whole domain, and the single hosts, by
    hostname label or node name."""

    terms: tuple[Term, ...] = ()
    hosts: frozenset[str] = frozenset()

    def __or__(self, other: PlacementTerms) -> PlacementTerms:
        """Returns the union of both."""
        return PlacementTerms(tuple(dict.fromkeys((*self.terms, *other.terms))), self.hosts | other.hosts)

    def without(self, term: Term) -> Term:
        """Returns a term without the requirements that a plan added to it: all requirements of a domain's
        path, and requirements that select only these hosts."""
        path = next((path for path in self.terms if all(requirement in term for requirement in path)), ())
        return tuple(
            requirement for requirement in term if requirement not in path and not self._names(requirement)
        )

    def _names(self, requirement: Requirement) -> bool:
        return (
            requirement.key in (HOSTNAME, NODE_NAME_FIELD)
            and requirement.operator == "In"
            and bool(requirement.values)
            and self.hosts.issuperset(requirement.values)
        )


def terms_of_domains(
    levels: Sequence[str], domains: Iterable[Domain], nodes: Iterable[str] = ()
) -> PlacementTerms:
    """Returns the affinity that a plan writes for whole domains and for single hosts (`nodes`).

    `levels`: the topology's label keys; without them, the domains are ignored."""
    written = tuple(domains) if levels else ()
    paths = (domain for domain in written if len(domain) < len(levels))
    hosts = (domain[-1] for domain in written if len(domain) == len(levels))
    return PlacementTerms(tuple(path_term(levels, path) for path in paths), frozenset((*hosts, *nodes)))


def terms_of_annotation(snapshot: Snapshot, note: PlacementAnnotation) -> PlacementTerms:
    """Returns the affinity that the plan in this annotation wrote."""
    return terms_of_domains(_levels(snapshot, note.topology), note.domains, note.nodes)


def terms_of_reservation(snapshot: Snapshot, held: Reservation) -> PlacementTerms:
    """Returns the affinity that a plan writes for a gang with this reservation."""
    return terms_of_domains(_levels(snapshot, held.topology), held.domains, hosts_of(snapshot, held))


def hosts_of(snapshot: Snapshot, held: Reservation) -> frozenset[str]:
    """Returns the hosts of a gang that holds single nodes (mode `nodes`); none if it holds whole domains."""
    if held.mode != "nodes":
        return frozenset()
    return frozenset(host_of(snapshot, assignment.node) for assignment in held.assignments)


def host_of(snapshot: Snapshot, name: str) -> str:
    """Returns the hostname label of a node; its name if it has no such label, or if there is no such node."""
    node = snapshot.nodes.get(name)
    return (node.labels.get(HOSTNAME) if node is not None else "") or name


def without_placement_affinity(group: PodGroup, written: PlacementTerms) -> PodGroup:
    """Returns the gang with each PodSet's affinity as it was before the plan added its terms."""
    sets = []
    for pod_set in group.pod_sets:
        terms = tuple(dict.fromkeys(written.without(term) for term in pod_set.shape.affinity))
        # Terms are ORed. If one is empty without the plan's requirements, the pod required nothing before.
        free = () if () in terms else terms
        sets.append(replace(pod_set, shape=replace(pod_set.shape, affinity=free)))
    return replace(group, pod_sets=tuple(sets))


def remove_placement_affinity(affinity: Json, written: PlacementTerms) -> dict[str, Any]:
    """Returns a pod's `spec.affinity` without the requirements that plans wrote; the rest is unchanged."""
    node = dict(affinity.get("nodeAffinity") or {})
    former = _required(affinity)
    after = [_stripped(term, written) for term in former]
    if after == former:
        return dict(affinity)
    # Terms are ORed: if one is empty now, the pod required nothing before the plan added to it.
    if all(any(term.get(kind) for kind in KINDS_OF_MATCH) for term in after):
        node[REQUIRED] = {**node[REQUIRED], "nodeSelectorTerms": after}
    else:
        node.pop(REQUIRED)
    rest = {key: value for key, value in affinity.items() if key != "nodeAffinity"}
    return {**rest, "nodeAffinity": node} if node else rest


def is_pinned(affinity: Json, written: PlacementTerms) -> bool:
    """Returns whether a pod with this `spec.affinity` has required terms, and each of them contains a
    requirement that a plan wrote (`written`).
    """
    terms = [_term(term) for term in _required(affinity)]
    return bool(terms) and all(written.without(term) != term for term in terms)


def _required(affinity: Json) -> list[Json]:
    return ((affinity.get("nodeAffinity") or {}).get(REQUIRED) or {}).get("nodeSelectorTerms") or []


def _stripped(term: Json, written: PlacementTerms) -> dict[str, Any]:
    left = written.without(_term(term))
    kept = {
        kind: [expression for expression in term[kind] or [] if _requirement(expression) in left]
        for kind in KINDS_OF_MATCH
        if kind in term
    }
    return {**term, **kept}


def _term(term: Json) -> Term:
    return tuple(_requirement(expression) for kind in KINDS_OF_MATCH for expression in term.get(kind) or [])


def _requirement(expression: Json) -> Requirement:
    values = tuple(expression.get("values") or ())
    return Requirement(str(expression.get("key", "")), str(expression.get("operator", "")), values)


def without_former_placement(pod: Json, snapshot: Snapshot, namespace: str) -> Json:
    """Returns a new pod without the affinity to places that its gang has left; the pod itself if it has none.

    The pod's annotation names the place of the earlier plan. The template of an object with several gangs
    names the places of all of them; the pod keeps only that of its own gang."""
    metadata = pod.get("metadata")
    annotations = (metadata.get("annotations") if isinstance(metadata, Mapping) else None) or {}
    note = placement_annotation(annotations)
    held, is_held = seats_for(snapshot, pod, namespace)
    spec = pod.get("spec")
    affinity = spec.get("affinity") if isinstance(spec, Mapping) else None
    if not is_held or not isinstance(spec, Mapping) or not isinstance(affinity, Mapping):
        return pod
    domains = {domain for reservation in held for domain in reservation.domains}
    hosts = frozenset(host for reservation in held for host in hosts_of(snapshot, reservation))
    # If the gang has grown into further places, no place of the annotation may exclude them.
    current = domains.intersection(note.domains) if domains.issubset(note.domains) else ()
    former = PlacementAnnotation(
        note.decision,
        note.topology,
        tuple(domain for domain in note.domains if domain not in current),
        note.nodes if note.nodes != hosts else frozenset(),
    )
    after = remove_placement_affinity(affinity, terms_of_annotation(snapshot, former))
    return pod if after == affinity else {**pod, "spec": {**spec, "affinity": after}}


def terms_of_object(obj: Json, workload: Workload, snapshot: Snapshot) -> PlacementTerms:
    """Returns the affinity that plans wrote into the templates of an object, by its annotations."""
    notes = placement_annotations(obj, workload)
    return reduce(or_, (terms_of_annotation(snapshot, note) for note in notes), PlacementTerms())


def _levels(snapshot: Snapshot, topology: str) -> tuple[str, ...]:
    of_name = topology_named(snapshot.topologies, topology)
    return of_name.levels if of_name is not None else ()
