"""A gang's request in one topology: levels as indexes, and equal pods counted together as pod classes.

Contradictory levels and slices raise `Refusal`, whose message states what would be valid.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

from planner.model.labels import ANY
from planner.model.pod_class import PodClass, merged
from planner.model.podgroup import Constraint
from planner.model.resolved import NodeExclusion, ResolvedPodGroup, ResolvedPodSet, ResolvedShape
from planner.model.topology import ROOT, Domain, Topology
from planner.model.words import pods
from planner.request.levels import NVLINK_WORDS, level_key, nvlink_exclusions, nvlink_group_of
from planner.request.segments import segmented
from planner.request.validation import Refusal


class GpuLimit(NamedTuple):
    """A limit: the gang may use at most `gpus` GPUs in one domain of the level with the index `level`.
    `used`: how many of them other pods of the gang use already, by domain: a tree with labels as additional
    levels has its own `Subtree` of a domain. A domain of nodes without the level's label has no limit.
    """

    level: int
    gpus: int
    used: Mapping[Domain, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TopologyRequest:
    """A gang's request in one topology: its pod classes, and the indexes of the levels that the
    gang as a whole requires and prefers, ROOT for none. `gpu_limit`: None for no limit.
    """

    topology: Topology
    required: int
    preferred: int
    pod_classes: tuple[PodClass, ...]
    warnings: tuple[str, ...] = ()
    gpu_limit: GpuLimit | None = None


def topology_request(
    group: ResolvedPodGroup, topology: Topology, repeating: Collection[str] = ()
) -> TopologyRequest:
    """Returns the request in this topology, which must have all levels that the gang names.

    Raises `Refusal` for invalid slices and for levels that contradict each other. `repeating`: levels with
    values that occur under several parents (rack "1" in each row). For kube-scheduler's anti-affinity all
    nodes with one label value are one domain, so anti-affinity treats such a level as a label outside the
    topology.
    """
    gang = group.constraint
    required, preferred = _index(topology, gang.required), _index(topology, gang.preferred)
    warnings = _no_effect(topology, "", required, preferred)
    pod_classes: list[PodClass] = []
    several = group.size > 1
    for pod_set in group.pod_sets:
        if pod_set.count:
            linked = several and bool(gang or pod_set.constraint)
            pod_class = _pod_class(
                _with_nvlink_domains(group, pod_set, topology), gang, topology, repeating, linked=linked
            )
            widest = max(pod_class.required, required)
            warnings += _no_effect(topology, f"{pod_set.name}: ", widest, pod_class.preferred)
            pod_classes.append(pod_class)
    pod_classes = _with_shared_levels(group, topology, pod_classes)
    required, pod_classes = _with_affinity_levels(topology, required, segmented(group, pod_classes))
    classes = merged(_without_implied_level(pod_class, required) for pod_class in pod_classes)
    return TopologyRequest(topology, required, preferred, classes, tuple(warnings))


def _without_implied_level(pod_class: PodClass, required: int) -> PodClass:
    """Returns the class without its own required level if the level that the whole gang requires implies it,
    so that it can be merged with classes that have none, and counts how many of its pods fit.
    """
    implied = pod_class.required <= required and not pod_class.co_located_at
    return replace(pod_class, required=ROOT) if implied else pod_class


def _with_nvlink_domains(
    group: ResolvedPodGroup, pod_set: ResolvedPodSet, topology: Topology
) -> ResolvedPodSet:
    """Returns the PodSet; if it requires an NVLink domain inside the host, the result has the exclusion of
    nodes with too small domains, and the size of its NVLink groups.
    """
    asked = (group.constraint, pod_set.constraint)
    if not any(
        level in NVLINK_WORDS
        for constraint in asked
        for level in (constraint.required, constraint.slice_level)
    ):
        return pod_set
    resolved = {word: level_key(topology, word) for word in NVLINK_WORDS}
    exclusions, nvlink_group = (
        nvlink_exclusions(group, pod_set, resolved),
        nvlink_group_of(group, pod_set, resolved),
    )
    return replace(
        pod_set,
        shape=replace(
            pod_set.shape, exclusions=(*pod_set.shape.exclusions, *exclusions), nvlink_group=nvlink_group
        ),
    )


def when_alone(asked: TopologyRequest) -> TopologyRequest:
    """Returns the request as it is in a cluster without other pods: without the node exclusions that may end
    by themselves (`passing`), and with its spread constraints as they are there.
    """
    if not any(
        pod_class.shape.exclusions or pod_class.shape.spread_states for pod_class in asked.pod_classes
    ):
        return asked
    return replace(asked, pod_classes=tuple(map(_alone, asked.pod_classes)))


def _alone(pod_class: PodClass) -> PodClass:
    exclusions = tuple(exclusion for exclusion in pod_class.shape.exclusions if not exclusion.passing)
    spreading = tuple(state.when_empty() for state in pod_class.shape.spread_states)
    return replace(pod_class, shape=replace(pod_class.shape, exclusions=exclusions, spread_states=spreading))


def _with_shared_levels(
    group: ResolvedPodGroup, topology: Topology, pod_classes: list[PodClass]
) -> list[PodClass]:
    """Returns the pod classes, one for each PodSet, with the levels in `group.within`: a domain of such a
    level must contain all pods of several PodSets.

    Raises `Refusal` if the level of a part of the gang is coarser than that of a larger part.
    """
    for level, names in group.within:
        index = _index(topology, level)
        words = " and ".join(names)
        _check_not_coarser(topology, words, index, "the gang", _index(topology, group.constraint.required))
        for inner_level, inside in group.within:
            if set(inside) < set(names):
                _check_not_coarser(
                    topology, " and ".join(inside), _index(topology, inner_level), words, index
                )
        for place, pod_class in enumerate(pod_classes):
            if (name := pod_class.parts[0][0]) in names:
                _check_not_coarser(topology, name, pod_class.required, words, index)
                pod_classes[place] = replace(
                    pod_class,
                    shape=_labelled(topology, pod_class.shape, index),
                    required=max(pod_class.required, index),
                    co_located_at=(*pod_class.co_located_at, (index, names)),
                    names=(name,),
                )
    return pod_classes


def _labelled(topology: Topology, shape: ResolvedShape, *levels: int) -> ResolvedShape:
    """Returns the shape restricted to nodes that have the labels of these levels.

    The search of a finer level does not check the labels of coarser levels: the capacity of a host does not
    contain whether the host has a rack label.
    """
    keys = (topology.levels[level] for level in levels if level > ROOT)
    exclusions = (
        NodeExclusion(key, frozenset((ANY,)), f"no label {key}", inside=True, passing=False) for key in keys
    )
    return replace(shape, exclusions=tuple(dict.fromkeys((*shape.exclusions, *exclusions))))


def _check_not_coarser(topology: Topology, part: str, level: int, whole: str, widest: int) -> None:
    if ROOT < level < widest:
        raise Refusal(
            "PodSetLevelTooCoarse",
            f"{part}: the required level {topology.levels[level]} is coarser than that of {whole}, "
            f"{topology.levels[widest]}; use {topology.levels[widest]} or a finer one, or none.",
        )


def _with_affinity_levels(
    topology: Topology, required: int, pod_classes: list[PodClass]
) -> tuple[int, list[PodClass]]:
    """Returns the gang's required level and the pod classes, in which pod affinity over the label of a level
    has become a required level: the gang's if the affinity binds all its PodSets, else the pod class's.
    Affinity to some of the other PodSets also remains a constraint.
    """
    if not any(pod_class.co_located_over for pod_class in pod_classes):
        return required, pod_classes
    all_names = {name for pod_class in pod_classes for name, _ in pod_class.parts}
    placed: list[PodClass] = []
    for pod_class in pod_classes:
        own_required, remaining = pod_class.required, []
        for key, names in pod_class.co_located_over:
            level = topology.index(key) if key in topology.levels else ROOT
            if level > ROOT and set(names) == all_names:
                required = max(required, level)
            elif level > ROOT:
                own_required = max(own_required, level)
            # The required level keeps the pods of this class together. That those of other PodSets are in
            # the same domain remains a constraint.
            if level == ROOT or (len(names) > 1 and set(names) != all_names):
                remaining.append((key, names))
        placed.append(replace(pod_class, required=own_required, co_located_over=tuple(remaining)))
    return required, placed


def _index(topology: Topology, level: str) -> int:
    return topology.index(level_key(topology, level)) if level else ROOT


def _no_effect(topology: Topology, prefix: str, required: int, preferred: int) -> list[str]:
    if preferred == ROOT or required == ROOT or preferred > required:
        return []
    compared = "the same" if preferred == required else "finer"
    text = f"the preferred level {topology.levels[preferred]} has no effect"
    return [f"{prefix}{text}, for the required level {topology.levels[required]} is {compared}"]


def _pod_class(
    pod_set: ResolvedPodSet, gang: Constraint, topology: Topology, repeating: Collection[str], *, linked: bool
) -> PodClass:
    constraint = pod_set.constraint
    size, slice_level = _slices(pod_set, gang, topology)
    anti_affinity, levels = _anti_affinity(pod_set), topology.levels
    nested = [key for key in levels if key not in repeating]
    required = _index(topology, constraint.required)
    whole = _index(topology, gang.required)
    if ROOT < required < whole:
        raise Refusal(
            "PodSetLevelTooCoarse",
            f"{pod_set.name}: its required level {topology.levels[required]} is coarser than the gang's, "
            f"{topology.levels[whole]}; use {topology.levels[whole]} or a finer one, or none.",
        )
    widest = max(required, whole)
    if ROOT < slice_level < widest:
        raise Refusal(
            "SliceLevelTooCoarse",
            f"{pod_set.name}: the slice level {topology.levels[slice_level]} is coarser than the required "
            f"level {topology.levels[widest]}; use {topology.levels[widest]} or a finer one.",
        )
    preferred = _index(topology, constraint.preferred)
    # A PodSet of a single slice requires the slice level for all its pods.
    finest = max(preferred, slice_level if size == pod_set.count else ROOT)
    # Levels that are coarser than the level to be searched: the search does not check that nodes have these.
    hidden = [level for level in (required, slice_level) if ROOT < level < finest]
    shape = _without_zero_requests(pod_set.shape)
    return PodClass(
        parts=((pod_set.name, pod_set.count),),
        count=pod_set.count,
        shape=_labelled(topology, shape, *hidden) if hidden else shape,
        required=required,
        preferred=preferred,
        slice_level=slice_level,
        slice_size=size,
        anti_affinity_levels=tuple(
            topology.index(key) for key, name in anti_affinity if key in nested and name == pod_set.name
        ),
        names=(pod_set.name,) if anti_affinity or pod_set.shape.co_located_over else (),
        anti_affinity_with=tuple((topology.index(key), name) for key, name in anti_affinity if key in nested),
        anti_affinity_over=tuple((key, name) for key, name in anti_affinity if key not in nested),
        co_located_over=pod_set.shape.co_located_over,
        attractions=pod_set.shape.attractions,
        linked=linked,
    )


def _slices(pod_set: ResolvedPodSet, gang: Constraint, topology: Topology) -> tuple[int, int]:
    """Returns the number of pods in a slice (1: no slices), and the index of the level of which one domain
    must contain each slice (ROOT: no such level). Raises `Refusal` if they are invalid.
    """
    constraint = pod_set.constraint
    sliced = constraint if constraint.slice_level or constraint.slice_size else gang
    size = sliced.slice_size or 1
    if size < 1 or (pod_set.count % size and not sliced.segments):
        raise Refusal(
            "SlicesDoNotDivide",
            f"{pod_set.name} has {pod_set.count} pods, which slices of {size} do not divide; "
            f"would work: {_multiples(pod_set.count, size)}.",
        )
    slice_level = _index(topology, sliced.slice_level)
    if size > 1 and slice_level == ROOT:
        raise Refusal(
            "SliceLevelMissing",
            f"{pod_set.name} asks for slices of {size} and names no slice level; "
            f"levels: {', '.join(topology.levels)}.",
        )
    return size, slice_level


def _anti_affinity(pod_set: ResolvedPodSet) -> tuple[tuple[str, str], ...]:
    """Returns pairs of a label key and a PodSet: no pod may be in a domain of the key with a pod of that
    PodSet.
    """
    own = tuple((key, pod_set.name) for key in pod_set.shape.anti_affinity)
    return tuple(sorted({*own, *pod_set.shape.anti_affinity_with}))


def _without_zero_requests(shape: ResolvedShape) -> ResolvedShape:
    """Returns the shape without resources whose amount is 0; if none is left, with 1 of `pods`."""
    if all(shape.requests.values()) and shape.requests:
        return shape
    return replace(shape, requests={name: n for name, n in shape.requests.items() if n} or {"pods": 1})


def _multiples(count: int, size: int) -> str:
    if size < 1:
        return "a slice size of 1 or more"
    below, above = count // size * size, -(-count // size) * size
    return " or ".join(pods(n) for n in (below, above) if n)
