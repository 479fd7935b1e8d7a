"""A gang without the node affinity that its own former plan wrote, so that it can be planned elsewhere. Pure.

The mutating pass wrote the place into the templates, and most kinds' templates can never be changed. What the
plan wrote is known from the place: the labels of each domain's whole path, or the hostnames.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from planner.pins import path_term
from planner.podgroup import PodGroup, Requirement, Term
from planner.snapshot import Snapshot
from planner.topology import Domain
from webhook.names import PLACEMENT, RESERVATION

Json = Mapping[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def terms_of(levels: Sequence[str], domains: Iterable[Domain]) -> tuple[Term, ...]:
    """The terms that a plan writes for whole domains."""
    return tuple(path_term(levels, domain) for domain in domains)


def unpinned(group: PodGroup, pins: Sequence[Term]) -> PodGroup:
    """The gang with each PodSet's affinity as it was before the plan's terms were joined to it."""
    sets = []
    for pod_set in group.pod_sets:
        terms = tuple(dict.fromkeys(_without(term, pins) for term in pod_set.shape.affinity))
        # A term that the plan alone wrote demands nothing else, and neither do the terms ORed with it.
        free = () if () in terms else terms
        sets.append(replace(pod_set, shape=replace(pod_set.shape, affinity=free)))
    return replace(group, pod_sets=tuple(sets))


def _without(term: Term, pins: Sequence[Term]) -> Term:
    for pin in pins:
        if all(requirement in term for requirement in pin):
            left = list(term)
            for requirement in pin:
                left.remove(requirement)
            return tuple(left)
    return term


def unpinned_affinity(affinity: Json, pins: Sequence[Term]) -> dict[str, Any]:
    """The same for a pod's `spec.affinity`; everything else in it stays."""
    node = dict(affinity.get("nodeAffinity") or {})
    ours = [[_expression(one) for one in pin] for pin in pins]
    former = (node.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
    after = [_stripped(term, ours) for term in former]
    if after == former:
        return dict(affinity)
    if all(term.get("matchExpressions") or term.get("matchFields") for term in after):
        node[REQUIRED] = {**node[REQUIRED], "nodeSelectorTerms": after}
    else:
        node.pop(REQUIRED)
    rest = {key: value for key, value in affinity.items() if key != "nodeAffinity"}
    return {**rest, "nodeAffinity": node} if node else rest


def _stripped(term: Json, ours: list[list[dict[str, Any]]]) -> dict[str, Any]:
    expressions = list(term.get("matchExpressions") or [])
    for pin in ours:
        if all(one in expressions for one in pin):
            for one in pin:
                expressions.remove(one)
            break
    return {**term, "matchExpressions": expressions}


def _expression(requirement: Requirement) -> dict[str, Any]:
    return {"key": requirement.key, "operator": requirement.operator, "values": list(requirement.values)}


def repinned(pod: Json, snapshot: Snapshot) -> Json:
    """A pod that its template pins to a place which its gang has left, free of that pin; else the pod itself.

    Templates can mostly not be changed, so what the former plan wrote is taken away when the pod arrives, and
    the policies write the plan as it is now. The pod's own note tells where the former plan was.
    """
    metadata = pod.get("metadata")
    annotations = (metadata.get("annotations") if isinstance(metadata, Mapping) else None) or {}
    ids = str(annotations.get(RESERVATION, "")).split(",")
    note = _note(annotations)
    held = [one for one in snapshot.reservations if one.id in ids]
    now = {domain for one in held for domain in one.domains}
    former = [domain for domain in note.domains if domain not in now]
    levels = next((t.levels for t in snapshot.topologies if t.name == note.topology), ())
    spec = pod.get("spec")
    if not held or not former or not levels or not isinstance(spec, Mapping):
        return pod
    affinity = spec.get("affinity")
    if not isinstance(affinity, Mapping):
        return pod
    return {**pod, "spec": {**spec, "affinity": unpinned_affinity(affinity, terms_of(levels, former))}}


@dataclass(frozen=True, slots=True)
class _Note:
    topology: str = ""
    domains: tuple[Domain, ...] = ()


def _note(annotations: Json) -> _Note:
    """What `bayplan.dev/placement` says; nothing where it does not read, for anybody can write there."""
    try:
        note = orjson.loads(str(annotations.get(PLACEMENT, "")))
        domains = tuple(tuple(str(value) for value in domain) for domain in note.get("reserves") or [])
        return _Note(str(note.get("topology", "")), domains)
    except (orjson.JSONDecodeError, AttributeError, TypeError):
        return _Note()
