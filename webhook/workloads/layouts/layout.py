"""The pods of an object: PodSets (`PodSetTemplate`), and which of them start together (`WorkloadLayout`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from planner.manifests.pods.pod_affinity import JOB_KEY
from planner.model.effort.deadline import poll
from planner.model.podgroup import CountField
from webhook.jsontools.path import Path
from webhook.workloads.fields import Field, shown
from webhook.workloads.keys.topology_keys import (
    TEMPLATE,
    TEMPLATE_OF_JOB,
    StatedTopology,
    read_request,
)
from webhook.workloads.layouts.exclusive_placement import PlacementGroup

LARGEST_GANGS = 10_000
"""Maximum number of replicas of one object that are each a gang; Kubernetes itself supports 5,000 nodes."""
LARGEST_REPLICAS = 1_000
"""Maximum number of independent pods planned with their object; further pods are planned when created."""

NOTHING = Field(None)
"""A field that is missing."""

COUNTS = frozenset(("replicas", "minReplicas", "maxReplicas", "numOfHosts", "size"))
"""The fields beside pod templates that say how many pods an object creates, and that may change."""

PodSetKey = tuple[str, int, Path]
"""What identifies a PodSet of an object: its name, its number of pods, and the path of its template."""

NO_FIELD = CountField()
"""Stands for a number of pods that no single field states."""


@dataclass(slots=True, unsafe_hash=True)
class PodSetTemplate:
    """One PodSet of a gang: `count` pods of one template.

    `pod_set` is its name. `metadata` and `spec` are those of the pod; `template` contains both (the object
    itself for a Pod). `annotated`: further metadata that applies only to this PodSet (a JobSet's job
    template). `max_count`: the maximum of an elastic set; 0 for a fixed `count`. `volumes`: templates of the
    claims that each pod gets in addition to those in its spec; `first`: the ordinal of the first pod, from
    which the claims are named. `count_field`: the field from which `count` was read. `placement_group`: the
    child Job or replica that the pods belong to, if the kind has such. `added`: containers that the kind's
    controller adds to the pods; the template does not contain them. Never modified.
    """

    pod_set: str
    count: int
    template: Field
    metadata: Field
    spec: Field
    annotated: tuple[Field, ...] = ()
    max_count: int = 0
    volumes: Field = NOTHING
    first: int = 0
    count_field: CountField = NO_FIELD
    placement_group: PlacementGroup | None = None
    added: tuple[Mapping[str, object], ...] = field(default=(), hash=False)

    @property
    def request(self) -> StatedTopology:
        """The topology request of the PodSet's own metadata. Raises `InputError` for invalid values."""
        group = self.placement_group
        places = TEMPLATE_OF_JOB if group and group.label == JOB_KEY else TEMPLATE
        return read_request(places, self.metadata, *self.annotated)

    @property
    def key(self) -> PodSetKey:
        """What identifies the PodSet. Its name alone does not: the PodSets of one part of a gang (for example
        prefill) have the same name."""
        return self.pod_set, self.count, self.template.path


@dataclass(frozen=True, slots=True)
class WorkloadLayout:
    """The pods of an object. `templates`: its PodSets, each once. `gangs`: for each gang, the PodSets that
    start together, with the gang's counts.

    `indexed`: the gangs are replicas, so their names end in an index. `joint`: either all of the gangs are
    placed, or none. `loose`: the pods need not start together unless the user says so. `warnings` apply to
    every gang. `unplanned`: number of further replicas, which are planned when their pods are created.
    """

    templates: tuple[PodSetTemplate, ...] = ()
    gangs: tuple[tuple[PodSetTemplate, ...], ...] = ()
    indexed: bool = False
    joint: bool = False
    loose: bool = False
    warnings: tuple[str, ...] = ()
    unplanned: int = 0


def pod_set_template(
    pod_set: str,
    count: int,
    template: Field,
    *annotated: Field,
    stated: Path = (),
    pods: int = 1,
    whole_gang: bool = False,
) -> PodSetTemplate:
    """Returns a PodSet for a PodTemplateSpec. `stated`: the path of the field that states the number of pods;
    `pods` and `whole_gang` as in `CountField`. Raises `InputError` if the template or its spec is missing.
    """
    poll("reading")
    spec = template.needed_map().get("spec").needed_map()
    metadata = template.get("metadata")
    metadata.map()
    count_field = CountField(stated, pods, whole_gang)
    return PodSetTemplate(pod_set, count, template, metadata, spec, annotated, count_field=count_field)


def one_gang(templates: list[PodSetTemplate], warnings: tuple[str, ...] = ()) -> WorkloadLayout:
    """Returns one gang of all pods; a PodSet that starts with no pod has a template, but is not in
    the gang."""
    gang = tuple(pod_set for pod_set in templates if pod_set.count)
    return WorkloadLayout(tuple(templates), (gang,) if gang else (), warnings=warnings)


def no_pods(obj: Field) -> WorkloadLayout:
    """Returns an empty layout, for a kind without templates or whose pods are in objects that it creates."""
    return WorkloadLayout()


def one_by_one(every: PodSetTemplate) -> WorkloadLayout:
    """Returns pods of one template, each a gang of its own; at most `LARGEST_REPLICAS` of them."""
    listed = min(every.count, LARGEST_REPLICAS)
    unplanned = every.count - listed
    warnings = (f"plans the first {listed} of {every.count} pods",) if unplanned else ()
    gangs = ((replace(every, count=1),),) * listed
    return WorkloadLayout((every,), gangs, indexed=True, warnings=warnings, unplanned=unplanned)


def name_of(item: Field) -> str:
    name = item.needed_map().get("name")
    text = name.text()
    if not text:
        raise name.error("is missing; each needs a name of its own")
    return text


def unique(templates: list[PodSetTemplate]) -> list[PodSetTemplate]:
    seen: set[str] = set()
    for pod_set in templates:
        if pod_set.pod_set in seen:
            raise pod_set.template.error(
                f"a second group is named {shown(pod_set.pod_set)}; names must differ"
            )
        seen.add(pod_set.pod_set)
    return templates


def at_most(count: int, field: Field) -> int:
    if count > LARGEST_GANGS:
        raise field.error(f"{count} replicas, each a gang; at most {LARGEST_GANGS} in one object are planned")
    return count
