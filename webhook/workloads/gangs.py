"""Builds the planner's PodGroups from a kind's layout: names, shapes, constraints, reserve modes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from planner.manifests.pods.injected import with_containers, with_injected
from planner.manifests.pods.pod import AMOUNTS, remembered_shape, shape_of
from planner.manifests.volumes import claim_templates
from planner.model.effort.deadline import poll
from planner.model.labels import Requirement
from planner.model.pod import NOTHING, PodShape
from planner.model.podgroup import Constraint, CountField, FabricWish, PodGroup, PodSet
from planner.model.resources import MISSPELT_DEVICES, SHARED_GPU
from planner.node.gpu_sharing import share_in
from webhook.workloads.keys.topology_keys import NOTHING_STATED, StatedTopology
from webhook.workloads.layouts.exclusive_placement import PlacementGroup
from webhook.workloads.layouts.layout import PodSetKey, PodSetTemplate, WorkloadLayout
from webhook.workloads.options import DEFAULT_RESERVE, GANG_MIN, Options
from webhook.workloads.shared_gangs.pod_groups import MAIN

NUMA_ALIGNMENT = "bayplan.dev/numa-alignment"
"""Annotation of pods; "warn": the plan does not check whether the pods fit the kubelet's NUMA zones."""


@dataclass(frozen=True, slots=True)
class PodSetRequest:
    """A PodSet with further properties of its template: its own topology request, and whether it claims
    devices.
    """

    pod_set: PodSet
    request: StatedTopology
    claims: bool


def pod_set_request(
    template: PodSetTemplate, own: bool, implied: Mapping[str, str], name: str = ""
) -> PodSetRequest:
    """Returns the PodSet of a template for the planner.

    `own`: the template's topology keys apply to the whole object or gang (a Pod is its own template), and
    were read for that already, so they are not read here. `implied`: labels that its pods will have in
    addition. `name`: the object's name, from which the names of its claims are derived. Raises `InputError`
    for a malformed pod spec or key.
    """
    request = NOTHING_STATED if own else template.request
    labels = {
        **implied,
        **{key: value.text() for key, value in template.metadata.get("labels").entries()},
    }
    notes = template.metadata.get("annotations")
    spec, annotations = template.spec.map(), notes.map()
    admitted = with_containers(with_injected(spec, annotations), template.added)
    shape = remembered_shape(admitted, labels, annotations)
    if shape is None:
        of_spec = partial(
            shape_of, where=template.spec.where, labels=labels, annotations=annotations, noted=notes.where
        )
        shape = of_spec(spec)  # an error names the index that a container has in the manifest
        shape = shape if admitted is spec else of_spec(admitted)
    if template.volumes.value is not None:
        of_templates = claim_templates(template.volumes.value, name, template.first, template.volumes.where)
        shape = replace(shape, volumes=(*shape.volumes, *of_templates))
    if notes.get(NUMA_ALIGNMENT).choice(("refuse", "warn")) == "warn":
        shape = replace(shape, alignment=NOTHING)
    if names := _pod_level_devices(spec):
        place = template.spec.get("resources").where.field
        only = f"Kubernetes takes only cpu, memory and hugepages for a whole pod, not {', '.join(names)}"
        warning = f"{place}: {only}. What would work: these resources in a container"
        request = replace(request, warnings=(*request.warnings, warning))
    claims = bool(template.spec.get("resourceClaims").items())
    return PodSetRequest(
        PodSet(
            template.pod_set,
            template.count,
            shape,
            request.constraint,
            template.max_count,
            template.count_field,
            _title(template),
        ),
        request,
        claims,
    )


def _pod_level_devices(spec: Mapping[str, object]) -> list[str]:
    """Returns the devices among the resources of a whole pod, where they are when `resources` is indented too
    little.
    """
    resources = spec.get("resources")
    if not isinstance(resources, Mapping):
        return []
    lists = (resources.get(name) for name in AMOUNTS)
    names = (str(name) for part in lists if isinstance(part, Mapping) for name in part)
    return list(dict.fromkeys(name for name in names if "/" in name))


def _title(template: PodSetTemplate) -> str:
    """Returns the name of the first container, for a PodSet whose name is in no manifest."""
    if template.pod_set != MAIN:
        return ""
    containers = template.spec.map().get("containers")
    first = containers[0] if isinstance(containers, list) and containers else None
    name = first.get("name") if isinstance(first, Mapping) else None
    return name if isinstance(name, str) else ""


def gangs(
    layout: WorkloadLayout,
    name: str,
    chosen: Options,
    top: StatedTopology,
    sets: Mapping[PodSetKey, PodSetRequest],
    within: tuple[tuple[str, tuple[str, ...]], ...] = (),
    *,
    owner: str,
) -> tuple[PodGroup, ...]:
    """Returns one PodGroup for each gang of the layout; equal replicas share everything except the name and
    what tells their pods apart under exclusive placement.

    `top`: the topology request of the whole object. `sets`: the object's PodSets. `within`: levels, each with
    PodSets that are required together in one domain of it. `owner`: NAMESPACE/NAME of the object.
    """
    by_key: dict[tuple[PodSetKey, ...], PodGroup] = {}
    by_placement_group: dict[tuple[tuple[PodSetKey, ...], tuple[PlacementGroup | None, ...]], PodGroup] = {}
    groups = []
    for index, templates in enumerate(layout.gangs):
        poll("reading")
        key = tuple(template.key for template in templates)
        if key not in by_key:
            joint = name if layout.joint else ""
            by_key[key] = _gang(
                name, [sets[part] for part in key], chosen, top, layout.warnings, within, joint
            )
        alike = key, tuple(template.placement_group for template in templates)
        if alike not in by_placement_group:
            by_placement_group[alike] = _with_placement_groups(by_key[key], templates, owner)
        group = by_placement_group[alike]
        groups.append(replace(group, name=f"{name}/{index}") if layout.indexed else group)
    return tuple(groups)


def _with_placement_groups(group: PodGroup, templates: tuple[PodSetTemplate, ...], owner: str) -> PodGroup:
    """Returns the gang with pods that have the labels and the anti-affinity of their placement groups."""
    if not any(template.placement_group for template in templates):
        return group
    pod_sets = (
        replace(pod_set, shape=template.placement_group.pod(pod_set.shape, owner))
        if template.placement_group
        else pod_set
        for pod_set, template in zip(group.pod_sets, templates, strict=True)
    )
    group = replace(group, pod_sets=tuple(pod_sets))
    level = next(iter({part.placement_group.level for part in templates if part.placement_group}), "")
    stated = {group.constraint.required, *(pod_set.constraint.required for pod_set in group.pod_sets)}
    if not level or level in stated:
        return group
    # Another required level was stated before: both hold, because the group gets one domain of its own level.
    together = level, tuple(pod_set.name for pod_set in group.pod_sets)
    return replace(group, within=(*group.within, together))


def without_gang(parts: list[PodSetRequest], chosen: Options, top: StatedTopology) -> PodGroup:
    """Returns the pods of an object that has no gang as a PodGroup without a name, with the keys that state
    their placement. `parts`: its PodSets, which may have no pods."""
    return _gang("", parts, replace(chosen, gang_min=None), top, (), (), "")


def _gang(
    name: str,
    parts: list[PodSetRequest],
    chosen: Options,
    top: StatedTopology,
    warnings: tuple[str, ...],
    within: tuple[tuple[str, tuple[str, ...]], ...],
    joint: str,
) -> PodGroup:
    constraint, pod_sets, notes = _constrained(parts, top)
    origins = dict.fromkeys((*top.origins, *(origin for part in parts for origin in part.request.origins)))
    part_warnings = (warning for part in parts for warning in part.request.warnings)
    texts = dict.fromkeys((*warnings, *top.warnings, *part_warnings, *notes))
    requests = [top, *(part.request for part in parts)]
    wish = next((request.fabric for request in requests if request.fabric), FabricWish())
    group = PodGroup(
        name,
        _at_least(pod_sets, chosen.gang_min),
        constraint,
        chosen.reserve or DEFAULT_RESERVE.mode,
        chosen.on_unavailable,
        tuple(origins),
        fabric=wish,
        policy=next((request.policy for request in requests if request.policy), ""),
        balanced=chosen.balanced,
        reserve_is_default=chosen.reserve is None,
        within=within,
        joint=joint,
        warnings=tuple(texts),
    )
    counted = _counted(group, top)
    return replace(group, warnings=(*texts, *counted)) if counted else group


def _at_least(sets: tuple[PodSet, ...], gang_min: int | None) -> tuple[PodSet, ...]:
    """Returns the PodSets of a gang that starts with `gang_min` pods: the largest PodSet becomes elastic."""
    if gang_min is None:
        return sets
    largest = max(sets, key=lambda pod_set: pod_set.count)
    others = sum(pod_set.count for pod_set in sets if pod_set is not largest)
    smallest = replace(
        largest,
        count=max(1, gang_min - others),
        max_count=largest.max_count or largest.count,
        count_field=CountField(("metadata", "annotations", GANG_MIN), whole_gang=True),
    )
    return tuple(smallest if pod_set is largest else pod_set for pod_set in sets)


def _constrained(
    parts: list[PodSetRequest], top: StatedTopology
) -> tuple[Constraint, tuple[PodSet, ...], tuple[str, ...]]:
    """Returns the gang's constraint, its PodSets with their own constraints, and warnings.

    Each dialect defines which of its keys apply to the gang, and which to a PodSet.
    """
    constraint = top.constraint
    notes: tuple[str, ...] = ()
    sets = [part.pod_set for part in parts]
    if constraint.slice_level:
        sets = _segments(sets, constraint)
        constraint = replace(constraint, slice_level="", slice_size=0, segments=False)
    names = {part.request.together for part in parts}
    if names != {""}:
        if len(names) == 1 and len(sets) > 1:
            constraint, sets = _lifted(constraint, sets)
        elif len(sets) > 1:
            notes = ("podset-group-name joins some PodSets only; they are planned as part of the whole gang",)
    launcher = [
        pod_set
        for pod_set in sets
        if pod_set.name == "launcher" and not pod_set.shape.gpus and not pod_set.constraint
    ]
    if launcher and len(sets) > 1 and constraint:
        # A launcher without GPUs need not be in the domain (MPIJob): the constraint applies to its workers.
        worker_constraints = {
            pod_set.name: _over(pod_set.constraint, constraint) for pod_set in sets if pod_set not in launcher
        }
        sets = [
            replace(pod_set, constraint=worker_constraints.get(pod_set.name, pod_set.constraint))
            for pod_set in sets
        ]
        constraint = Constraint(topology=constraint.topology)
    return constraint, tuple(_needing(pod_set, top.affinity) for pod_set in sets), notes


def _segments(sets: list[PodSet], segment: Constraint) -> list[PodSet]:
    """Returns the PodSets with KAI's segments on those named "worker", or on all if none has that name."""
    workers = [pod_set for pod_set in sets if pod_set.name == "worker"] or sets
    sliced = {
        pod_set.name: replace(
            pod_set.constraint,
            slice_level=segment.slice_level,
            slice_size=segment.slice_size,
            segments=segment.segments,
        )
        for pod_set in workers
        if not pod_set.constraint.slice_level
    }
    return [replace(pod_set, constraint=sliced.get(pod_set.name, pod_set.constraint)) for pod_set in sets]


def _lifted(constraint: Constraint, sets: list[PodSet]) -> tuple[Constraint, list[PodSet]]:
    """Returns the gang's constraint, completed by that of the PodSet group (Kueue) of all these PodSets, and
    the PodSets with only their slices as constraints.
    """
    shared = _over(constraint, sets[0].constraint)
    gang = replace(shared, slice_level="", slice_size=0, segments=False)
    slices = [replace(pod_set.constraint, topology="", required="", preferred="") for pod_set in sets]
    return gang, [replace(pod_set, constraint=own) for pod_set, own in zip(sets, slices, strict=True)]


def _over(first: Constraint, second: Constraint) -> Constraint:
    """Returns `first`, completed by `second`."""
    sliced = first if first.slice_level else second
    return replace(
        sliced,
        topology=first.topology or second.topology,
        required=first.required or second.required,
        preferred=first.preferred or second.preferred,
    )


def _needing(pod_set: PodSet, needed: tuple[Requirement, ...]) -> PodSet:
    if not needed:
        return pod_set
    # The terms of node affinity are alternatives, so each of them gets the needed requirements.
    terms = tuple((*term, *needed) for term in pod_set.shape.affinity) or (needed,)
    return replace(pod_set, shape=replace(pod_set.shape, affinity=terms))


def _counted(group: PodGroup, top: StatedTopology) -> tuple[str, ...]:
    if top.gpus is None or top.gpus[1] == group.gpus:
        return ()
    field, stated = top.gpus
    return (f"{field} says {stated} GPUs, the pods ask for {group.gpus}: the plan is for {group.gpus}",)


def asks_for_gpus(shape: PodShape) -> bool:
    """Returns whether the shape requests whole GPUs, MIG slices, time slices or shares of a GPU, also by a
    common misspelling of their names: no node has `nvidia.com/gpus`, so such pods never start.
    """
    requests = shape.requests
    misspelt = any(requests[name] for name in MISSPELT_DEVICES.keys() & requests.keys())
    return bool(shape.gpus or shape.mig_slices or requests.get(SHARED_GPU) or share_in(requests) or misspelt)
