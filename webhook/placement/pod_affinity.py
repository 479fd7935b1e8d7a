"""A gang without the node affinity that its own former plan wrote, so that it can be planned elsewhere. Pure.

The mutating pass wrote the place into the templates, and most kinds' templates can never be changed. What the
plan wrote is known from its note: the labels of each domain's whole path, or the hosts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model.labels import NODE_NAME_FIELD, Requirement, Term
from planner.model.podgroup import PodGroup
from planner.model.reservation import Reservation
from planner.model.topology import HOSTNAME, Domain
from planner.planning.node_affinity import path_term
from webhook.functions.node_affinity import REQUIRED
from webhook.placement.stamp import PlacementAnnotation, placement_annotation
from webhook.placement.workload_plan import held_for

Json = Mapping[str, Any]


KINDS_OF_MATCH = ("matchExpressions", "matchFields")


@dataclass(frozen=True, slots=True)
class PlacementTerms:
    """What plans wrote: terms that mean whole domains, and hosts, by hostname label or by node name."""

    terms: tuple[Term, ...] = ()
    hosts: frozenset[str] = frozenset()

    def __or__(self, other: PlacementTerms) -> PlacementTerms:
        """Both."""
        return PlacementTerms(tuple(dict.fromkeys((*self.terms, *other.terms))), self.hosts | other.hosts)

    def without(self, term: Term) -> Term:
        """A term less what a plan joined to it: a domain's whole path, and requirements of hosts alone."""
        path = next((pin for pin in self.terms if all(one in term for one in pin)), ())
        return tuple(one for one in term if one not in path and not self._names(one))

    def _names(self, one: Requirement) -> bool:
        return (
            one.key in (HOSTNAME, NODE_NAME_FIELD)
            and one.operator == "In"
            and bool(one.values)
            and self.hosts.issuperset(one.values)
        )


def pins_of(levels: Sequence[str], domains: Iterable[Domain], nodes: Iterable[str] = ()) -> PlacementTerms:
    """What a plan writes for whole domains and for single hosts. Without `levels`, for the hosts alone."""
    found = tuple(domains) if levels else ()
    paths = (domain for domain in found if len(domain) < len(levels))
    hosts = (domain[-1] for domain in found if len(domain) == len(levels))
    return PlacementTerms(tuple(path_term(levels, one) for one in paths), frozenset((*hosts, *nodes)))


def pins_in(snapshot: Snapshot, note: PlacementAnnotation) -> PlacementTerms:
    """What the plan of a note wrote."""
    return pins_of(_levels(snapshot, note.topology), note.domains, note.nodes)


def pins_for(snapshot: Snapshot, held: Reservation) -> PlacementTerms:
    """What the plan writes of a gang that holds this."""
    return pins_of(_levels(snapshot, held.topology), held.domains, hosts_of(snapshot, held))


def hosts_of(snapshot: Snapshot, held: Reservation) -> frozenset[str]:
    """The hosts that a gang of mode `nodes` is pinned to; none for one that holds whole domains."""
    if held.mode != "nodes":
        return frozenset()
    return frozenset(host_of(snapshot, one.node) for one in held.assignments)


def host_of(snapshot: Snapshot, name: str) -> str:
    """A node's hostname label, its name where it has none or is gone."""
    node = snapshot.nodes.get(name)
    return (node.labels.get(HOSTNAME) if node is not None else "") or name


def unpinned(group: PodGroup, pins: PlacementTerms) -> PodGroup:
    """The gang with each PodSet's affinity as it was before the plan's terms were joined to it."""
    sets = []
    for pod_set in group.pod_sets:
        terms = tuple(dict.fromkeys(pins.without(term) for term in pod_set.shape.affinity))
        # A term that the plan alone wrote demands nothing else, and neither do the terms ORed with it.
        free = () if () in terms else terms
        sets.append(replace(pod_set, shape=replace(pod_set.shape, affinity=free)))
    return replace(group, pod_sets=tuple(sets))


def unpinned_affinity(affinity: Json, pins: PlacementTerms) -> dict[str, Any]:
    """The same for a pod's `spec.affinity`; everything else in it stays."""
    node = dict(affinity.get("nodeAffinity") or {})
    former = (node.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
    after = [_stripped(term, pins) for term in former]
    if after == former:
        return dict(affinity)
    if all(any(term.get(kind) for kind in KINDS_OF_MATCH) for term in after):
        node[REQUIRED] = {**node[REQUIRED], "nodeSelectorTerms": after}
    else:
        node.pop(REQUIRED)
    rest = {key: value for key, value in affinity.items() if key != "nodeAffinity"}
    return {**rest, "nodeAffinity": node} if node else rest


def _stripped(term: Json, pins: PlacementTerms) -> dict[str, Any]:
    stated = tuple(_requirement(one) for kind in KINDS_OF_MATCH for one in term.get(kind) or [])
    left = pins.without(stated)
    kept = {
        kind: [one for one in term[kind] or [] if _requirement(one) in left]
        for kind in KINDS_OF_MATCH
        if kind in term
    }
    return {**term, **kept}


def _requirement(expression: Json) -> Requirement:
    values = tuple(expression.get("values") or ())
    return Requirement(str(expression.get("key", "")), str(expression.get("operator", "")), values)


def repinned(pod: Json, snapshot: Snapshot, namespace: str) -> Json:
    """A pod that its template pins to a place which its gang has left, free of that pin; else the pod itself.

    Templates can mostly not be changed, so what the former plan wrote is taken away when the pod arrives, and
    the policies write the plan as it is now. The pod's own note tells where the former plan was. Of an object
    of several gangs the template tells the places of all, and the pod keeps none but its own gang's.
    """
    metadata = pod.get("metadata")
    annotations = (metadata.get("annotations") if isinstance(metadata, Mapping) else None) or {}
    note = placement_annotation(annotations)
    held, known = held_for(snapshot, pod, namespace)
    spec = pod.get("spec")
    affinity = spec.get("affinity") if isinstance(spec, Mapping) else None
    if not known or not isinstance(spec, Mapping) or not isinstance(affinity, Mapping):
        return pod
    now = {domain for one in held for domain in one.domains}
    hosts = frozenset(host for one in held for host in hosts_of(snapshot, one))
    former = PlacementAnnotation(
        note.decision,
        note.topology,
        tuple(domain for domain in note.domains if domain not in now),
        note.nodes if note.nodes != hosts else frozenset(),
    )
    after = unpinned_affinity(affinity, pins_in(snapshot, former))
    return pod if after == affinity else {**pod, "spec": {**spec, "affinity": after}}


def _levels(snapshot: Snapshot, topology: str) -> tuple[str, ...]:
    return next((one.levels for one in snapshot.topologies if one.name == topology), ())
