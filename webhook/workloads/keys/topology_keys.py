"""Topology requests in the dialect of each supported system: what each annotation means, and on which objects
it is read.

Sources: KAI Scheduler's topology annotations; Kueue's Topology-Aware Scheduling; JobSet's and
LeaderWorkerSet's exclusive placement; nod-ai's leaf-spine scheduler; Run:ai's PodGroup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, cast

from planner.manifests.requirements import NODE_OPERATORS
from planner.model.errors import InputErrors
from planner.model.labels import Requirement
from planner.model.podgroup import Constraint, FabricStrategy, FabricWish
from planner.model.topology import HOSTNAME
from planner.node.gpu_sharing import DEVICES, FRACTION, MEMORY
from webhook.workloads.fields import Field
from webhook.workloads.keys.annotation_keys import EXCLUSIVE_JOBSET, EXCLUSIVE_LWS, SUBGROUP_SIZE

Meaning = Literal[
    "topology", "required", "preferred", "unconstrained", "slice", "slice-preferred", "slice-size",
    "together", "gpu-count", "preferred-domain", "bandwidth", "latency", "strategy", "part",
]  # fmt: skip
"""What an annotation requests; `_MEANINGS` in `known_keys` describes each value."""


Place = Literal["object", "template", "job"]
"""Where an annotation is read: on the object, on a pod template, or on the templates of a JobSet's job."""


Origin = tuple[str, str, str]
"""A field's path, its meaning (one of `TOLD_MEANINGS`), and its value. For messages about the request."""


TOLD_MEANINGS: tuple[Meaning, ...] = ("topology", "required", "preferred", "slice")
"""The meanings that are recorded as origins: those of keys that name a topology or a level of one."""


_LEAF_SPINE: tuple[Meaning, ...] = ("gpu-count", "preferred-domain", "bandwidth", "latency", "strategy")
"""The meanings of nod-ai's keys: a gang with one of them is placed by nod-ai's leaf-spine rules."""


_BANDWIDTH = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*(?:([MGT])(?:b|bps|b/s|bit|bit/s))?")


_GIGABITS = {"M": 0.001, "G": 1.0, "T": 1000.0, None: 1.0}


_NO_CONSTRAINT = Constraint()


_NO_WISH = FabricWish()


OBJECT_AND_TEMPLATE: frozenset[Place] = frozenset({"object", "template"})


OBJECT: frozenset[Place] = frozenset({"object"})


TEMPLATE: frozenset[Place] = frozenset({"template"})


OBJECT_AND_JOB: frozenset[Place] = frozenset({"object", "job"})


TEMPLATE_OF_JOB: frozenset[Place] = frozenset({"template", "job"})


@dataclass(frozen=True, slots=True)
class Key:
    """An annotation. `places`: where its own system reads it, on the object or on the pod template. `values`:
    the valid values; () for any.
    """

    name: str
    meaning: Meaning
    places: frozenset[Place] = OBJECT_AND_TEMPLATE
    values: tuple[str, ...] = ()


STRATEGIES = ("consolidated", "distributed", "balanced")
"""nod-ai's placement strategies."""


KAI_TOPOLOGY = "kai.scheduler/topology"


KAI_REQUIRED = "kai.scheduler/topology-required-placement"


KAI_PREFERRED = "kai.scheduler/topology-preferred-placement"


SEGMENT_LEVEL = "kai.scheduler/segment-topology-required-placement"
"""KAI's key for the level of which one domain must hold each segment."""


OLD_SCOPE = "scheduling.run.ai/topology-policy"
"""Run:ai's older annotation on pods: a scope, or the name of a policy in KAI's ConfigMap."""


REQUIRED_LEVEL = "bayplan.dev/required-level"
"""Bayplan's own key for the required level, for clusters without KAI."""


PREFERRED_LEVEL = "bayplan.dev/preferred-level"
"""Bayplan's own key for the preferred level, for clusters without KAI."""


KEYS: tuple[Key, ...] = (
    Key(KAI_TOPOLOGY, "topology"),
    Key(KAI_REQUIRED, "required"),
    Key(KAI_PREFERRED, "preferred"),
    Key(REQUIRED_LEVEL, "required"),
    Key(PREFERRED_LEVEL, "preferred"),
    Key("kai.scheduler/segment-size", "slice-size"),
    Key(SEGMENT_LEVEL, "slice"),
    Key("kai.scheduler/segment-topology-preferred-placement", "slice-preferred"),
    Key("kueue.x-k8s.io/podset-required-topology", "required", TEMPLATE),
    Key("kueue.x-k8s.io/podset-preferred-topology", "preferred", TEMPLATE),
    Key("kueue.x-k8s.io/podset-unconstrained-topology", "unconstrained", TEMPLATE, ("true", "false")),
    Key("kueue.x-k8s.io/podset-slice-required-topology", "slice", TEMPLATE),
    Key("kueue.x-k8s.io/podset-slice-size", "slice-size", TEMPLATE),
    Key("kueue.x-k8s.io/podset-group-name", "together", TEMPLATE),
    Key(EXCLUSIVE_JOBSET, "required", OBJECT_AND_JOB),
    Key(EXCLUSIVE_LWS, "required", OBJECT),
    Key(FRACTION, "part", TEMPLATE),
    Key(MEMORY, "part", TEMPLATE),
    Key(DEVICES, "part", TEMPLATE),
    Key("topology.scheduler/gpu-count", "gpu-count"),
    Key("topology.scheduler/preferred-domain", "preferred-domain"),
    Key("topology.scheduler/network-bandwidth", "bandwidth"),
    Key("topology.scheduler/latency-sensitive", "latency", OBJECT_AND_TEMPLATE, ("true", "false")),
    Key("topology.scheduler/placement-strategy", "strategy", OBJECT_AND_TEMPLATE, STRATEGIES),
)


_BY_NAME: Mapping[str, Key] = {key.name: key for key in KEYS}


SCOPES: Mapping[str, str] = {
    "gpu": HOSTNAME,
    "nvlink-domain": "nvlink-domain",
    "node": HOSTNAME,
    "rack": "rack",
    "zone": "zone",
}
"""The level for each `topologyPolicy.scope` of Run:ai: a node-label key, or a short name that the planner
resolves in the gang's topology.
"""


@dataclass(frozen=True, slots=True)
class StatedTopology:
    """The topology request of an object, a template or a PodGroup.

    `together`: the name of Kueue's PodSet group. `gpus`: the field of nod-ai's GPU count, and the count.
    `affinity`: node requirements that every pod must meet. `stated`: at least one key is present. `fabric`:
    the requests in nod-ai's other keys. `policy`: the name of a policy in KAI's ConfigMap.
    """

    constraint: Constraint = _NO_CONSTRAINT
    origins: tuple[Origin, ...] = ()
    warnings: tuple[str, ...] = ()
    together: str = ""
    gpus: tuple[str, int] | None = None
    affinity: tuple[Requirement, ...] = ()
    stated: bool = False
    fabric: FabricWish = _NO_WISH
    policy: str = ""


NOTHING_STATED = StatedTopology()
"""The topology request of an object without topology keys."""


def read_request(places: frozenset[Place], *metadata: Field) -> StatedTopology:
    """Returns the topology request in the annotations of these metadata.

    If several annotations have the same meaning, the first one counts; those of `TOLD_MEANINGS` are all
    recorded in `origins`. `places`: what the metadata belongs to; both places for a Pod, which is an object
    and a template at once. Raises `InputError` for invalid values.
    """
    fields: dict[Meaning, list[Field]] = {}
    warnings: list[str] = []
    errors = InputErrors()
    for annotated in metadata:
        if not annotated.has("annotations"):
            continue
        for name, value in annotated.get("annotations").entries():
            key = _BY_NAME.get(name)
            if key is None or not value.text():
                continue
            if not places & key.places:
                right = "pod templates" if key.places == TEMPLATE else "the object itself"
                warnings.append(f"{value.where.field} has no effect there: {name} belongs on {right}")
                continue
            if key.values:
                errors.read(partial(value.choice, key.values), "")
            fields.setdefault(key.meaning, []).append(value)
    if not fields and not warnings:
        return NOTHING_STATED
    subgroups = [part.get("annotations", SUBGROUP_SIZE) for part in metadata if part.has("annotations")]
    if "slice" in fields and _is_kais(fields, fields["slice"][0].text()):
        # KAI prefers the subgroups of a LeaderWorkerSet to its own annotation.
        own_sizes = fields.get("slice-size", [])
        fields["slice-size"] = [*(size for size in subgroups if size.text()), *own_sizes]
        if not fields["slice-size"]:
            del fields["slice-size"]
    stated = errors.read(partial(_sum_up, fields, warnings), NOTHING_STATED)
    errors.raise_any()
    return stated


def _sum_up(fields: Mapping[Meaning, list[Field]], warnings: list[str]) -> StatedTopology:
    """Returns the request in fields that are given by meaning; the first field of a meaning counts.

    Raises `InputError` for slices of which only the level or only the size is stated.
    """

    def first(meaning: Meaning) -> str:
        return fields[meaning][0].text() if meaning in fields else ""

    size = fields["slice-size"][0].count_in_text() if "slice-size" in fields else None
    level = first("slice")
    if level and not size:
        raise fields["slice"][0].error("names a level for slices, but nothing says how many pods make one")
    if size and not level and not first("slice-preferred"):
        raise fields["slice-size"][0].error("says how many pods make a slice, but nothing names their level")
    if not level and first("slice-preferred"):
        wish = f"preferred segment level {first('slice-preferred')}"
        warnings.append(f"{wish} is not followed; only a required segment level is")
    of_slice = size if level and size else 0
    gpus = fields["gpu-count"][0].count_in_text() if "gpu-count" in fields else None
    return StatedTopology(
        Constraint(
            first("topology"), first("required"), first("preferred"), level, of_slice, _is_kais(fields, level)
        ),
        tuple(_origin(field, meaning) for meaning in TOLD_MEANINGS for field in fields.get(meaning, ())),
        tuple(warnings),
        first("together"),
        (fields["gpu-count"][0].where.field, gpus) if gpus is not None else None,
        stated=bool(fields),
        fabric=_fabric(fields),
    )


def _is_kais(fields: Mapping[Meaning, list[Field]], level: str) -> bool:
    """Returns whether the slices are stated as KAI's segments (`Constraint.segments`)."""
    return bool(level) and fields["slice"][0].where.field.endswith(f"[{SEGMENT_LEVEL}]")


def _fabric(fields: Mapping[Meaning, list[Field]]) -> FabricWish:
    """Returns the request in nod-ai's keys. Raises `InputError` for a malformed bandwidth."""

    def first(meaning: Meaning) -> str:
        return fields[meaning][0].text() if meaning in fields else ""

    return FabricWish(
        first("preferred-domain"),
        _gigabits(fields["bandwidth"][0]) if "bandwidth" in fields else 0.0,
        cast(FabricStrategy, first("strategy")),
        first("latency") == "true",
        any(meaning in fields for meaning in _LEAF_SPINE),
    )


def _gigabits(field: Field) -> float:
    """Returns a bandwidth in Gb/s. The text is "200Gb", "200Gbps", "0.4Tb", or a number of Gb/s.

    Raises `InputError` for any other text.
    """
    match = _BANDWIDTH.fullmatch(field.text().strip())
    if match is None:
        raise field.error(f"{field.text()!r} is no bandwidth; write for example 200Gb")
    return float(match[1]) * _GIGABITS[match[2]]


def _origin(field: Field, meaning: Meaning) -> Origin:
    return field.where.field, meaning, field.text()


def request_of_pod_group(group: Field) -> StatedTopology:
    """Returns the request of a PodGroup object: KAI's `topologyConstraint`, Run:ai's `topologyPolicy`,
    Kubernetes' `schedulingConstraints`, and its annotations. Raises `InputError` for malformed ones.
    """
    spec = group.get("spec")
    fields = _fields_of(spec)
    for level in spec.get("schedulingConstraints", "topology").items():
        fields.setdefault("required", []).append(level.get("key"))
    policy = spec.get("topologyPolicy")
    scope = policy.get("scope")
    by_policy = _sum_up(fields, [])
    annotated = read_request(OBJECT, group.get("metadata"))
    by_scope = request_of_scope(scope) if scope.text() else StatedTopology()
    return merged((by_policy, by_scope, annotated), _affinity(policy.get("affinity")))


def request_of_constraint(part: Field) -> StatedTopology:
    """Returns the request in the `topologyConstraint` of `part`: a KAI PodGroup's spec, or a subgroup."""
    return _sum_up(_fields_of(part), [])


def _fields_of(part: Field) -> dict[Meaning, list[Field]]:
    fields = ((meaning, part.get(*place)) for meaning, place in _POD_GROUP_FIELDS)
    return {meaning: [field] for meaning, field in fields if field.text()}


_POD_GROUP_FIELDS: tuple[tuple[Meaning, tuple[str, ...]], ...] = (
    ("topology", ("topologyConstraint", "topology")),
    ("required", ("topologyConstraint", "requiredTopologyLevel")),
    ("preferred", ("topologyConstraint", "preferredTopologyLevel")),
)


def request_of_scope(scope: Field) -> StatedTopology:
    """Returns a Run:ai scope as a required level. Raises `InputError` for an unknown scope."""
    level = SCOPES[scope.choice(tuple(SCOPES))]
    return StatedTopology(Constraint(required=level), ((scope.where.field, "required", level),), stated=True)


def requests_of_older_recipe(metadata: Field) -> list[StatedTopology]:
    """Returns a list of the request in Run:ai's older annotation (`OLD_SCOPE`), [] without it."""
    if not metadata.has("annotations"):
        return []
    scope = metadata.get("annotations", OLD_SCOPE)
    if scope.text() in SCOPES:
        return [request_of_scope(scope)]
    return [StatedTopology(policy=scope.text(), stated=True)] if scope.text() else []


def _affinity(affinity: Field) -> tuple[Requirement, ...]:
    requirements = []
    for entry in affinity.get("required").items():
        operator = entry.get("operator").choice(NODE_OPERATORS) or "In"
        values = tuple(value.text() for value in entry.get("values").items())
        requirements.append(Requirement(entry.get("key").text(), operator, values))
    return tuple(requirements)


def merged(parts: Iterable[StatedTopology], affinity: tuple[Requirement, ...] = ()) -> StatedTopology:
    """Combines several requests for the same pods: each field has the value of the first request that states
    it; slice level and size come from the same request. A given `affinity` replaces those of the requests.
    """
    listed = [part for part in parts if part is not NOTHING_STATED]
    if len(listed) <= 1 and not affinity:
        return listed[0] if listed else NOTHING_STATED

    def first(name: str) -> str:
        return next((text for request in listed if (text := getattr(request.constraint, name))), "")

    sliced = next((r.constraint for r in listed if r.constraint.slice_level), _NO_CONSTRAINT)
    return StatedTopology(
        replace(sliced, topology=first("topology"), required=first("required"), preferred=first("preferred")),
        tuple(origin for request in listed for origin in request.origins),
        tuple(warning for request in listed for warning in request.warnings),
        next((request.together for request in listed if request.together), ""),
        next((request.gpus for request in listed if request.gpus is not None), None),
        affinity or next((request.affinity for request in listed if request.affinity), ()),
        any(request.stated for request in listed),
        next((request.fabric for request in listed if request.fabric), _NO_WISH),
        next((request.policy for request in listed if request.policy), ""),
    )
