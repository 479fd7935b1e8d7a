"""The result of reading an object: its pod templates and its gangs. Frozen records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from planner.model.podgroup import Constraint, PodGroup, PodSet
from planner.model.resources import Resources
from webhook.jsontools.path import Path

NO_PODS: Final = PodGroup("", ())
"""What stands for the pods of an object that has none."""


# Like `Field`, not frozen: each reading of an object creates one for each of its hundreds of templates.
@dataclass(slots=True, unsafe_hash=True)
class Template:
    """A pod template. `path`: its location (`()` is a Pod itself); `count`: the number of pods of its PodSets
    in `WorkloadLayout.templates`, 0 if no pod starts.

    `metadata_path` and `spec_path` lead to the pod's metadata and PodSpec, which most kinds keep in the
    template under those names. `pod_set` is "" for one template that serves all PodSets (a LeaderWorkerSet
    without a leader template). Never modified.
    """

    path: Path
    pod_set: str
    count: int
    metadata_path: Path
    spec_path: Path

    @property
    def is_pod_template(self) -> bool:
        """Whether `metadata` and `spec` are directly under `path`."""
        return self.spec_path == (*self.path, "spec") and self.metadata_path == (*self.path, "metadata")


@dataclass(frozen=True, slots=True)
class GangPart:
    """A subgroup of a gang: the number of pods that it starts with, and their own constraint."""

    count: int
    constraint: Constraint


@dataclass(frozen=True, slots=True)
class GangShare:
    """The share of an object in a gang of several objects: the PodSets `own`, of the gang's `size` pods.

    `known_sets`: the PodSets of the combined gang, without the members that are known only by number.
    `parts`: the gang's subgroups by name, with `within` as in `PodGroup`. `seat`: the stated request of each
    unknown member; `seats`: by part, the stated request of each of its unknown members; `total`: the stated
    request of all pods of the gang together. All are in base units, and None or missing if not stated.
    `warnings`: from reading the object. `adds_seats`: the gang has a reservation already, and these pods get
    a place in addition to its seats.
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
    adds_seats: bool = False


@dataclass(frozen=True, slots=True)
class Workload:
    """An object as pod templates and gangs. `kind` is "" for an unknown kind, `name` is NAMESPACE/KIND/NAME.

    - `templates`: PodTemplateSpecs. `inlined`: pods in another form (Grove's cliques have a podSpec, and
      labels beside it), which only `pod_of` and `write_pod` can convert.
    - `gangs`: each starts completely or not at all. `unplanned`: number of further gangs of a large object,
      which are planned when their pods are created. `per_pod`: each pod is a gang of its own. A bound pod has
      no gang, because it has a node already.
    - `skip`: the object or its owner opts out of planning, or Bayplan ignores the object (`left_alone`).
    - `holds`: applying the object reserves its gangs. False if another object does (the Job of a CronJob, the
      pods of a Deployment, the owner of a child object), and while the object is suspended.
    - `planned_elsewhere`: the pods of an object without gangs: another system plans them (Grove), or no pod
      starts yet. The PodGroup has no name.
    - `owner`: NAMESPACE/KIND/NAME of the controller, "" for none. `owner_has_templates`: the owner created
      this object from a template; also true for an owner of an unknown kind, which may have done so.
      `owner_suspends`: Kueue would suspend the owner itself.
    - `asks`: the object has a topology key or a bayplan.dev key. `claims`: some pod has a device claim.
    - `queue`: the queue of the PodGroup that a pod names, "" for none.
    - `suspends`: the object's kind has a field that suspends it. `suspended`: that field is set, or
      Kueue sets it at creation, so the object creates no pods and has no reservation until it is resumed.
    - `kueue`: its Kueue LocalQueue, NAMESPACE/NAME, "" for none. Kueue suspends the object, or gates its pods
      if `suspends` is False.
    - `template_immutable`: the API server refuses changes of the pod templates of the stored object.
    - `share`: its share in a gang of several objects, which `gangs` contains completely
      (`webhook.workloads.shared_gangs.merge`); None for gangs of its own.
    """

    kind: str = ""
    name: str = ""
    templates: tuple[Template, ...] = ()
    inlined: tuple[Template, ...] = ()
    gangs: tuple[PodGroup, ...] = ()
    planned_elsewhere: PodGroup = NO_PODS
    unplanned: int = 0
    per_pod: bool = False
    skip: bool = False
    holds: bool = False
    template_immutable: bool = False
    owner: str = ""
    owner_has_templates: bool = False
    owner_suspends: bool = False
    asks: bool = False
    claims: bool = False
    queue: str = ""
    suspended: bool = False
    kueue: str = ""
    suspends: bool = False
    awaits_kueue: bool = False
    """Whether Kueue gates the pods until there is quota: they are planned when Kueue has admitted them."""
    kueue_places: bool = False
    """Whether Kueue assigns the nodes of the pods: a plan only shows whether they can ever run."""
    share: GangShare | None = None
    kai_queue: str = ""
    """The KAI queue that the object names, "" for none."""
