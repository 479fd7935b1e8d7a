"""Writes the plan onto an object, and reads it back: Bayplan's annotations and scheduling gate. Pure.

What a scheduler reads (its own annotations, affinity, schedulerName) is written by policies, not here.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from planner.model.effort.deadline import poll
from planner.model.natural_order import natural
from planner.model.topology import HOSTNAME, Domain
from webhook.placement.gate import gated
from webhook.placement.stated_amounts import StatedAmounts, raised_in
from webhook.placement.taints import toleration, with_tolerations
from webhook.placement.workload_plan import WorkloadPlan
from webhook.workloads import KINDS, Path, Template, Workload, asks_for_gpus
from webhook.workloads.keys.annotation_keys import (
    GANG_OF,
    PLACEMENT,
    POD_SET,
    POLICIES,
    RESERVATION,
)
from webhook.workloads.shared_gangs.pod_groups import MAIN
from webhook.workloads.templates import value_at

Json = dict[str, Any]


NEW_NODES = "nodes"
"""Value of `waitsFor` in the placement annotation of a gang whose pods get no gate, so that an autoscaler
sees them and adds nodes."""


EVICTION = "eviction"
"""Value of `waitsFor` in the placement annotation of a gang for which its scheduler evicts other pods, even
if it waits for new nodes too. Its pods have the gate only while other gangs are about to start
(`schedulers.evictions`)."""


OF_PLAN = frozenset((PLACEMENT, RESERVATION, POD_SET, GANG_OF))
"""The annotations that the plan writes into pod templates."""


ONE_GANG = frozenset(row.name for row in KINDS.values() if row.each_pod)
"""Kinds in whose templates admission writes the name of the gang, if their pods are one gang: the kind of a
pod's owner alone does not tell whether they are."""


SCALED = frozenset(row.name for row in KINDS.values() if row.has_scale)
"""Kinds with a subresource `scale` (`WorkloadKind.has_scale`)."""


def annotate(
    obj: Mapping[str, Any], workload: Workload, plan: WorkloadPlan, policies: str, *, fenced: bool = False
) -> Json:
    """Returns a copy of the object with the plan written onto the object and its templates. Writing the same
    plan twice changes nothing.

    `policies`: the value of `bayplan.dev/policies`. `fenced`: reserved domains are tainted, and a pod gets
    the toleration of its own gang.

    Templates are annotated with the plan and the reservations too, so that their pods find them. Only pods
    get the scheduling gate: a gate in a template would be in each pod of it, even if Bayplan is gone and
    nothing removes the gate. A template whose pods are planned one by one (`per_pod`) does not say that they
    wait, because each pod is decided by itself. The plan of a suspended object (`WorkloadPlan.preview`) adds
    no placement annotation."""
    stamped = _opened(obj, workload.templates)
    note = "" if plan.preview else placement_note(plan)
    ids = ",".join(reservation.id for reservation in plan.reservations)
    own = {PLACEMENT: note, RESERVATION: ids, POLICIES: policies}
    _annotate(stamped, own)
    waits = plan.gated
    note_of = _notes_of_parts(note)
    for template in workload.templates:
        pod = _template_of(stamped, template)
        if template.path:
            gang = (
                workload.name if workload.kind in ONE_GANG and not workload.per_pod and (ids or waits) else ""
            )
            says_nothing = workload.per_pod and plan.decision == "queued"
            pod_note = "" if says_nothing else note_of(template.pod_set)
            values = {PLACEMENT: pod_note, RESERVATION: ids, POD_SET: template.pod_set, GANG_OF: gang}
            _annotate(pod, values)
        elif ids and not workload.owner and template.pod_set != MAIN:  # a bare pod records its seats
            _annotate(pod, {POD_SET: template.pod_set})
        pod["spec"] = gated(pod["spec"], waits=waits and not template.path)
        if (
            fenced
            and not template.path
            and any(reservation.mode == "domain" for reservation in plan.reservations)
        ):
            pod["spec"]["tolerations"] = with_tolerations(pod["spec"].get("tolerations"), plan.reservations)
    return stamped


def with_gang_name(obj: Mapping[str, Any], workload: Workload) -> Mapping[str, Any]:
    """Returns the object; if it has no replicas yet, with the name of its gang written into its templates.

    When the object is scaled later, admission sees only its pods. By this name admission knows that the pods
    start together, and lets them wait for each other at the gate."""
    asks = (
        workload.asks
        or workload.claims
        or any(asks_for_gpus(part.shape) for part in workload.planned_elsewhere.pod_sets)
    )
    if workload.gangs or workload.skip or not (workload.holds and workload.kind in SCALED and asks):
        return obj
    stamped = _opened(obj, workload.templates)
    for template in workload.templates:
        _annotate(_template_of(stamped, template), {GANG_OF: workload.name})
    return stamped


def passing_own_fence(obj: Mapping[str, Any], workload: Workload) -> Mapping[str, Any]:
    """Returns the object with a toleration for the taint of its gangs' domains in its templates, if the
    object is in a Kueue queue.

    Kueue's Topology-Aware Scheduling reads the tolerations of the suspended template before there is a place
    or a pod. If only the pods had the toleration, Kueue would not use the gang's own domain, and would evict
    what runs there (Kueue ff69552e, pkg/cache/scheduler/tas_flavor_snapshot.go,
    pkg/controller/tas/node_controller.go)."""
    if not workload.kueue or not any(template.path for template in workload.templates):
        return obj
    stamped = _opened(obj, workload.templates)
    own = toleration(workload.name)
    for template in workload.templates:
        spec = _template_of(stamped, template)["spec"] if template.path else {}
        stated = [dict(entry) for entry in spec.get("tolerations") or ()]
        if template.path and own not in stated:
            spec["tolerations"] = [*stated, own]
    return stamped


def placement_note(plan: WorkloadPlan) -> str:
    """Returns the value of `bayplan.dev/placement`: a summary of the plan as JSON, keys sorted, on one
    line.
    """
    answer = plan.first.answer
    note: Json = {"decision": plan.decision}
    if plan.decision == "admitted":
        note |= {"topology": answer.topology, "level": answer.level, "domain": list(answer.domain)}
        note |= {"reserves": plan.domains}
        if nodes := hosts_of(plan):
            note |= {"nodes": nodes}
    elif plan.decision == "queued" and answer.waits_ungated and not plan.gated:
        note |= {"waitsFor": EVICTION if answer.waits_for_eviction else NEW_NODES}
    elif plan.decision == "queued" and (stated := raised_in(placed.group for placed in plan.placed)):
        note |= {"stated": {name: dict(amounts) for name, amounts in stated}}
    return orjson.dumps(note, option=orjson.OPT_SORT_KEYS).decode()


def _notes_of_parts(note: str) -> Callable[[str], str]:
    """Returns a function that returns the placement annotation of a template, given its PodSet name.

    `note` is the annotation of the object. A template gets only its own PodSet's stated amounts: with those
    of all PodSets in each template, the object would grow with the square of the number of PodSets. The
    template of several PodSets (leader and workers), whose PodSet name is "", gets all of them."""
    if not note or "stated" not in (own := orjson.loads(note)):
        return lambda pod_set: note
    stated = own.pop("stated")

    def note_of(pod_set: str) -> str:
        if not pod_set:
            return note
        amounts = {"stated": {pod_set: stated[pod_set]}} if pod_set in stated else {}
        return orjson.dumps(own | amounts, option=orjson.OPT_SORT_KEYS).decode()

    return note_of


def hosts_of(plan: WorkloadPlan) -> list[str]:
    """Returns the hosts of gangs that hold single nodes (mode `nodes`), sorted: the nodes' hostname labels,
    or the names of nodes without one."""
    nodes = plan.snapshot.nodes
    names = {
        assignment.node
        for placed in plan.placed
        if placed.answer.holds == "nodes"
        for assignment in placed.answer.assignments
    }
    labels = {name: nodes[name].labels.get(HOSTNAME) if name in nodes else "" for name in names}
    return sorted((labels[name] or name for name in names), key=natural)


def policies_note(obj: Mapping[str, Any], names: Iterable[str], revision: str) -> str:
    """Returns the value of `bayplan.dev/policies`: the policies that changed the object, and their revision.

    Policies that the annotation names already are kept if the revision is the same. If no policy changed
    anything (`names` is empty), the value is the current one."""
    metadata = obj.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    before = str(annotations.get(POLICIES, "")) if isinstance(annotations, Mapping) else ""
    new = set(names)
    if not new:
        return before
    former, _, of_revision = before.rpartition("@")
    earlier = former.split(",") if former and of_revision == revision else []
    return f"{','.join(sorted(new.union(earlier)))}@{revision}"


def _opened(obj: Mapping[str, Any], templates: Iterable[Template]) -> Json:
    """Returns a copy of the object in which its templates and their specs may be changed.

    Everything else is shared with the object: a full copy took a tenth of the time to decide on a large
    object."""
    opened: Json = dict(obj)
    own: dict[Path, Any] = {(): opened}
    for template in templates:
        poll("reading")
        for place in _prefixes((*template.path, "spec")):
            holder = own[place[:-1]]
            if place not in own:
                own[place] = holder[place[-1]] = copy.copy(holder[place[-1]])
    return opened


def _prefixes(path: Path) -> Iterator[Path]:
    """Yields the prefixes of a path, the shortest first and the path itself last."""
    return (path[:length] for length in range(1, len(path) + 1))


def _template_of(obj: Json, template: Template) -> Json:
    place: Any = obj
    for step in template.path:
        place = place[step]
    return place  # type: ignore[no-any-return]


def _annotate(obj: Json, values: Mapping[str, str]) -> None:
    metadata = obj.get("metadata") if isinstance(obj.get("metadata"), dict) else {}
    annotations = dict(metadata.get("annotations") or {}) if metadata else {}
    for key, value in values.items():
        if value:
            annotations[key] = value
        else:
            annotations.pop(key, None)
    obj["metadata"] = {**(metadata or {}), "annotations": annotations}


@dataclass(frozen=True, slots=True)
class PlacementAnnotation:
    """The content of `bayplan.dev/placement`, a summary of the plan.

    `decision`: "" if there is no plan. `domains`: those that the gangs hold whole. `nodes`: the hosts of
    gangs that hold single nodes, by hostname label, or by name if a node has none. `in_queue`: the object
    waits in Bayplan's queue, not for new nodes or evictions. `stated`: of a waiting object, the amounts that
    its author stated, if policies raised them. `waits_for_eviction`: the object waits for its scheduler to
    evict other pods.
    """

    decision: str = ""
    topology: str = ""
    domains: tuple[Domain, ...] = ()
    nodes: frozenset[str] = frozenset()
    in_queue: bool = False
    stated: StatedAmounts = ()
    waits_for_eviction: bool = False


def placement_annotation(annotations: Any) -> PlacementAnnotation:
    """Returns the content of `bayplan.dev/placement`; an empty one if it is missing or malformed.

    Anybody can write the annotation, and admission runs before the API server checks types."""
    try:
        note = orjson.loads(str(annotations.get(PLACEMENT, "{}")))
        domains = tuple(tuple(str(value) for value in domain) for domain in note.get("reserves") or [])
        nodes = frozenset(str(name) for name in note.get("nodes") or [])
        decision, waits_for = str(note.get("decision", "")), note.get("waitsFor")
        stated = tuple(
            (str(pod_set), tuple((str(name), int(amount)) for name, amount in amounts.items()))
            for pod_set, amounts in (note.get("stated") or {}).items()
        )
        waits = decision == "queued" and waits_for not in (NEW_NODES, EVICTION)
        topology, waits_for_eviction = str(note.get("topology", "")), waits_for == EVICTION
        return PlacementAnnotation(decision, topology, domains, nodes, waits, stated, waits_for_eviction)
    except (orjson.JSONDecodeError, AttributeError, TypeError, ValueError, RecursionError):
        return PlacementAnnotation()


def placement_annotations(obj: Mapping[str, Any], workload: Workload) -> tuple[PlacementAnnotation, ...]:
    """Returns the placement annotations of an object and each of its templates, without repetitions.

    They differ once the gang has grown or moved: templates keep the annotation of the first place."""
    places = [("metadata",), *(template.metadata_path for template in workload.templates)]
    notes = (placement_annotation((value_at(obj, place) or {}).get("annotations") or {}) for place in places)
    return tuple(dict.fromkeys(note for note in notes if note.decision))
