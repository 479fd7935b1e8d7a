"""From a kind's layout to the planner's PodGroups: names, shapes, constraints, what is reserved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from planner.manifests.pod import shape_of
from planner.model.labels import Requirement
from planner.model.pod import NOTHING, PodShape
from planner.model.podgroup import Constraint, FabricWish, PodGroup, PodSet, ReserveMode
from planner.model.resources import SHARED_GPU
from planner.node.gpu_sharing import share_in
from webhook.workloads.layouts import PodSetTemplate, WorkloadLayout
from webhook.workloads.options import Options
from webhook.workloads.topology_keys import TEMPLATE, Asked, asked

NUMA_ALIGNMENT = "bayplan.dev/numa-alignment"
"""Annotation of pods, "warn": the plan does not look whether the kubelet's NUMA zones have room for them."""


@dataclass(frozen=True, slots=True)
class Shaped:
    """A PodSet with what else its template says: its own topology request and whether it shares GPUs."""

    pod_set: PodSet
    asked: Asked
    shares: bool
    claims: bool


def shaped(one: PodSetTemplate, own: bool, given: Mapping[str, str]) -> Shaped:
    """A member as the planner sees it. `own`: it is the object itself, whose keys were read already; `given`:
    labels that its pods will have besides.

    Raises `InputError` for a malformed pod spec or key.
    """
    found = Asked() if own else asked(TEMPLATE, one.metadata, *one.annotated)
    labels = {**given, **{key: value.text() for key, value in one.metadata.get("labels").entries()}}
    notes = one.metadata.get("annotations")
    shape = shape_of(
        one.spec.map(), one.spec.where, labels=labels, annotations=notes.map(), noted=notes.where
    )
    if notes.get(NUMA_ALIGNMENT).choice(("refuse", "warn")) == "warn":
        shape = replace(shape, alignment=NOTHING)
    shares = bool(share_in(shape.requests) or shape.requests.get(SHARED_GPU) or shape.mig_slices)
    claims = bool(one.spec.get("resourceClaims").items())
    return Shaped(PodSet(one.pod_set, one.count, shape, found.constraint, one.most), found, shares, claims)


def gangs(
    layout: WorkloadLayout,
    name: str,
    chosen: Options,
    top: Asked,
    sets: Mapping[tuple[str, int], Shaped],
    reserve: ReserveMode,
    within: tuple[tuple[str, tuple[str, ...]], ...] = (),
) -> tuple[PodGroup, ...]:
    """One PodGroup for each gang of the layout; alike replicas share everything but the name.

    `within`: levels in one domain of which some PodSets are required together."""
    made: dict[tuple[tuple[str, int], ...], PodGroup] = {}
    groups = []
    for index, members in enumerate(layout.gangs):
        key = tuple((one.pod_set, one.count) for one in members)
        if key not in made:
            one = _gang([sets[part] for part in key], chosen, top, reserve, layout.warnings)
            made[key] = replace(one, within=within)
        groups.append(replace(made[key], name=f"{name}/{index}" if layout.indexed else name))
    return tuple(groups)


def _gang(
    parts: list[Shaped], chosen: Options, top: Asked, reserve: ReserveMode, warnings: tuple[str, ...]
) -> PodGroup:
    constraint, pod_sets, notes = _constrained(parts, top)
    origins = dict.fromkeys((*top.origins, *(origin for one in parts for origin in one.asked.origins)))
    theirs = (warning for one in parts for warning in one.asked.warnings)
    said = dict.fromkeys((*warnings, *top.warnings, *theirs, *notes))
    asked_ = [top, *(one.asked for one in parts)]
    wish = next((one.fabric for one in asked_ if one.fabric), FabricWish())
    if wish.strategy == "distributed":
        reserve = "nodes"  # whole leaves held for a pod on each would be absurd
    group = PodGroup(
        "",
        _at_least(pod_sets, chosen.gang_min),
        constraint,
        chosen.reserve or reserve,
        chosen.on_unavailable,
        tuple(origins),
        fabric=wish,
        policy=next((one.policy for one in asked_ if one.policy), ""),
        balanced=chosen.balanced,
        presumed=chosen.reserve is None,
    )
    return replace(group, warnings=(*said, *_counted(group, top)))


def _at_least(sets: tuple[PodSet, ...], gang_min: int | None) -> tuple[PodSet, ...]:
    """The PodSets of a gang that starts with so many pods: the largest has fewer, and at most what it had."""
    if gang_min is None:
        return sets
    largest = max(sets, key=lambda one: one.count)
    others = sum(one.count for one in sets if one is not largest)
    least = replace(largest, count=max(1, gang_min - others), most=largest.most or largest.count)
    return tuple(least if one is largest else one for one in sets)


def _constrained(parts: list[Shaped], top: Asked) -> tuple[Constraint, tuple[PodSet, ...], tuple[str, ...]]:
    """The gang's constraint and its PodSets with theirs, each part where its dialect wants it."""
    constraint = top.constraint
    notes: tuple[str, ...] = ()
    sets = [one.pod_set for one in parts]
    if constraint.slice_level:
        sets = _segments(sets, constraint)
        constraint = replace(constraint, slice_level="", slice_size=0)
    names = {one.asked.together for one in parts}
    if names != {""}:
        if len(names) == 1 and len(sets) > 1:
            constraint, sets = _lifted(constraint, sets)
        elif len(sets) > 1:
            notes = ("podset-group-name joins some PodSets only; they are planned as part of the whole gang",)
    launcher = [one for one in sets if one.name == "launcher" and not one.shape.gpus and not one.constraint]
    if launcher and len(sets) > 1 and constraint:
        # A launcher that asks for no GPU need not be in the domain (MPIJob): the constraint is its workers'.
        theirs = {one.name: _over(one.constraint, constraint) for one in sets if one not in launcher}
        sets = [replace(one, constraint=theirs.get(one.name, one.constraint)) for one in sets]
        constraint = Constraint(topology=constraint.topology)
    return constraint, tuple(_needing(one, top.affinity) for one in sets), notes


def _segments(sets: list[PodSet], segment: Constraint) -> list[PodSet]:
    """KAI's segments concern the workers, or all PodSets where none is called so."""
    workers = [one for one in sets if one.name == "worker"] or sets
    sliced = {
        one.name: replace(one.constraint, slice_level=segment.slice_level, slice_size=segment.slice_size)
        for one in workers
        if not one.constraint.slice_level
    }
    return [replace(one, constraint=sliced.get(one.name, one.constraint)) for one in sets]


def _lifted(constraint: Constraint, sets: list[PodSet]) -> tuple[Constraint, list[PodSet]]:
    """PodSets of one Kueue group go to one domain: what they ask for is the gang's."""
    shared = _over(constraint, sets[0].constraint)
    gang = replace(shared, slice_level="", slice_size=0)
    slices = [Constraint("", "", "", one.constraint.slice_level, one.constraint.slice_size) for one in sets]
    return gang, [replace(one, constraint=own) for one, own in zip(sets, slices, strict=True)]


def _over(first: Constraint, second: Constraint) -> Constraint:
    """`first`, and `second` where it says nothing."""
    sliced = first if first.slice_level else second
    return Constraint(
        first.topology or second.topology,
        first.required or second.required,
        first.preferred or second.preferred,
        sliced.slice_level,
        sliced.slice_size,
    )


def _needing(pod_set: PodSet, needed: tuple[Requirement, ...]) -> PodSet:
    if not needed:
        return pod_set
    terms = tuple((*term, *needed) for term in pod_set.shape.affinity) or (needed,)
    return replace(pod_set, shape=replace(pod_set.shape, affinity=terms))


def _counted(group: PodGroup, top: Asked) -> tuple[str, ...]:
    if top.gpus is None or top.gpus[1] == group.gpus:
        return ()
    field, stated = top.gpus
    return (f"{field} says {stated} GPUs, the pods ask for {group.gpus}: the plan is for {group.gpus}",)


def default_reserve(alone: bool, parts: list[Shaped]) -> ReserveMode:
    """`domain`, but `nodes` for pods that are each for themselves or use only parts of GPUs.

    A whole host held for one MIG slice or one replica of a Deployment would be absurd.
    """
    whole = any(one.pod_set.shape.gpus for one in parts)
    return "nodes" if alone or (not whole and any(one.shares for one in parts)) else "domain"


def asks_for_gpus(shape: PodShape) -> bool:
    """Whole GPUs, MIG slices, time-shared ones or parts of one."""
    return bool(shape.gpus or shape.mig_slices or shape.requests.get(SHARED_GPU) or share_in(shape.requests))
