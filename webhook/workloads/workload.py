"""What is read of an object: its pod templates and its gangs. Frozen records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.model.podgroup import Constraint, PodGroup, PodSet
from planner.model.resources import Resources
from webhook.jsontools.path import Path


@dataclass(frozen=True, slots=True)
class Template:
    """A pod template: `path` leads to it (`()` is a Pod itself), `count` pods of it start with the gang(s).

    `metadata_path` and `spec_path` lead to the pod's metadata and PodSpec, which most kinds keep in the
    template under those names. `pod_set` is "" for one template that serves all PodSets (a LeaderWorkerSet
    without a leader template).
    """

    path: Path
    pod_set: str
    count: int
    metadata_path: Path
    spec_path: Path

    @property
    def is_pod_template(self) -> bool:
        """Whether `metadata` and `spec` lie directly under `path`."""
        return self.spec_path == (*self.path, "spec") and self.metadata_path == (*self.path, "metadata")


@dataclass(frozen=True, slots=True)
class GangPart:
    """A subgroup of a gang: the pods that it starts with, and what they require for themselves."""

    count: int
    constraint: Constraint


@dataclass(frozen=True, slots=True)
class GangShare:
    """What an object brings to a gang that other objects join too: `own` of the `size` pods it starts with.

    `known_sets`: the PodSets of the gang as it is put together, less the pods that are known by number alone.
    `parts`: the gang's subgroups by name, with `within` as of `PodGroup`. `seat`: what each pod that is not
    known asks for, `seats`: what those of a part do, `total`: what all pods of the gang do together (base
    units); None, or no such part, where nobody says so.
    `warnings`: from reading the object. `beside`: the gang holds its place already, and these pods are
    planned beside those seats.
    """

    size: int
    own: tuple[PodSet, ...]
    known_sets: tuple[PodSet, ...] = ()
    parts: Mapping[str, GangPart] = field(default_factory=dict)
    within: tuple[tuple[str, tuple[str, ...]], ...] = ()
    seat: Resources | None = None
    seats: Mapping[str, Resources] = field(default_factory=dict)
    total: Resources | None = None
    warnings: tuple[str, ...] = ()
    beside: bool = False


@dataclass(frozen=True, slots=True)
class Workload:
    """What an object asks for. `kind` is "" for one that the table does not have, `name` NAMESPACE/KIND/NAME.

    `templates` are PodTemplateSpecs; `inlined` are pods written in another way (Grove's cliques have a
    podSpec and keep labels beside it), which only `pod_of` and `write_pod` know to show and put back.
    `gangs`: each starts wholly or not at all. `per_pod`: each pod is a gang of its own. `holds`: applying the
    object reserves its gangs; otherwise another object will (the Job of a CronJob, the pods of a Deployment,
    the owner of a child object). A bound pod has no gang: it has its place. `left`: the pods whose gangs are
    another system's to plan (Grove's). `owner`: NAMESPACE/KIND/NAME of the controller, "" for none;
    `owner_has_templates`: that one made this object of a template of its own, or may have, as far as anybody
    knows of its kind. `asks`: a topology or bayplan.dev key is there. `claims`: some pod claims a device.
    `queue`: that of the PodGroup which a pod names, "" for none. `suspended`: it makes no pods until it is
    resumed, and holds nothing till then. `kueue`: its LocalQueue of Kueue's, NAMESPACE/NAME, "" for none:
    Kueue suspends it, or gates its pods where `suspends` says that it cannot. `share`: what it brings to a
    gang of several objects, which `gangs` has whole (`webhook.workloads.merge`); None for gangs of its own.
    """

    kind: str = ""
    name: str = ""
    templates: tuple[Template, ...] = ()
    inlined: tuple[Template, ...] = ()
    gangs: tuple[PodGroup, ...] = ()
    left: tuple[PodSet, ...] = ()
    per_pod: bool = False
    skip: bool = False
    holds: bool = False
    template_immutable: bool = False
    owner: str = ""
    owner_has_templates: bool = False
    asks: bool = False
    claims: bool = False
    queue: str = ""
    suspended: bool = False
    kueue: str = ""
    suspends: bool = False
    awaits_kueue: bool = False
    """Whether Kueue gates its pods until it has quota: they are planned when it has admitted them."""
    kueue_places: bool = False
    """Whether Kueue assigns its pods their nodes: no plan is made."""
    share: GangShare | None = None
    kai_queue: str = ""
    """The queue that it names to KAI, "" for none."""
