"""Recognises the scheduling systems of a cluster; `SYSTEMS` has a row for each.

A system is present if an object of one of its kinds exists, if the API server serves one of its kinds (its
CustomResourceDefinition exists), if a pod runs its scheduler, or if a pod was bound by it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from planner.manifests.fields import maps, text
from planner.manifests.schedulers.kai_queues import KaiQueues
from planner.manifests.schedulers.kueue_queues import KueueQueues
from planner.model.errors import Where
from planner.model.pod import DEFAULT_SCHEDULER, BoundPod
from planner.model.schedulers import BAYPLAN, KAI, KUEUE, RUNAI, SchedulersSeen
from planner.model.topology import Topology

Kind = tuple[str, str]
"""API group and kind."""


Witnesses = Iterable[tuple[str, tuple[str, ...]]]
"""Pods as NAMESPACE/NAME, with the schedulers that each of them indicates."""


@dataclass(frozen=True, slots=True)
class SchedulingSystem:
    """One system. `name`: its usual schedulerName (for Kueue its own name). `kinds`: API group and kind, with
    the plural of its CustomResourceDefinition. `images`: suffixes of the image repository of its scheduler.
    `apps`: values of the labels `app` and `app.kubernetes.io/name` of its scheduler. `on`: the system
    that can be installed on top of this one; it contains this system's kinds and replaces its scheduler.
    """

    name: str
    kinds: Mapping[Kind, str] = field(default_factory=dict)
    images: tuple[str, ...] = ()
    apps: tuple[str, ...] = ()
    on: str = ""


SYSTEMS = (
    SchedulingSystem(
        KAI,
        {
            ("kai.scheduler", "Topology"): "topologies",
            ("kai.scheduler", "SchedulingShard"): "schedulingshards",
            ("kai.scheduler", "Config"): "configs",
            ("scheduling.run.ai", "Queue"): "queues",
            ("scheduling.run.ai", "PodGroup"): "podgroups",
            ("scheduling.run.ai", "BindRequest"): "bindrequests",
        },
        images=("kai-scheduler/scheduler",),
        apps=(KAI, "kai-scheduler-default"),
        on=RUNAI,
    ),
    SchedulingSystem(
        KUEUE,
        {
            ("kueue.x-k8s.io", "ClusterQueue"): "clusterqueues",
            ("kueue.x-k8s.io", "LocalQueue"): "localqueues",
            ("kueue.x-k8s.io", "ResourceFlavor"): "resourceflavors",
            ("kueue.x-k8s.io", "Topology"): "topologies",
            ("kueue.x-k8s.io", "Workload"): "workloads",
        },
        images=("kueue/kueue",),
        apps=("kueue",),
    ),
    SchedulingSystem(
        RUNAI,
        {("run.ai", "Project"): "projects", ("run.ai", "RunaiJob"): "runaijobs"},
        apps=(RUNAI,),
    ),
    SchedulingSystem(
        "volcano",
        {
            ("scheduling.volcano.sh", "Queue"): "queues",
            ("scheduling.volcano.sh", "PodGroup"): "podgroups",
            ("topology.volcano.sh", "HyperNode"): "hypernodes",
        },
        images=("volcanosh/vc-scheduler",),
        apps=("volcano-scheduler",),
    ),
    SchedulingSystem(
        "topology-aware-scheduler",
        {("topology.scheduler", "TopologySchedulerConfig"): "topologyschedulerconfigs"},
        images=("topology-aware-scheduler",),
        apps=("topology-aware-scheduler",),
    ),
)
"""The systems that are recognised. KAI names its pods `kai-scheduler-SHARD`. The image repositories are those
of KAI's, Kueue's and Volcano's charts.
"""


DEFINITION = "CustomResourceDefinition"


_QUEUES: Mapping[Kind, str] = {("scheduling.run.ai", "Queue"): KAI, ("kueue.x-k8s.io", "LocalQueue"): KUEUE}
"""The kinds of queues that workloads name by label, each with its system."""


SYSTEM_OF: Mapping[Kind, str] = {kind: row.name for row in SYSTEMS for kind in row.kinds}
"""The system that an object of a kind indicates."""


DEFINITIONS: Mapping[str, str] = {
    f"{plural}.{group}": row.name for row in SYSTEMS for (group, _), plural in row.kinds.items()
}
"""The system that a CustomResourceDefinition indicates, by its name."""


FOLLOWED_BY: Mapping[str, str] = {
    "kai.scheduler": KAI,
    "kueue.x-k8s.io": KUEUE,
    "bayplan.dev": BAYPLAN,
}
"""The system that uses the Topology objects of an API group."""


_FLAG = "--scheduler-name"


def is_sign(group: str, kind: str) -> bool:
    """Reports whether objects of this kind indicate a scheduling system."""
    return (group, kind) in SYSTEM_OF or kind == DEFINITION


def schedulers_of(spec: Mapping[str, object], labels: Mapping[str, str], where: Where) -> tuple[str, ...]:
    """Returns the schedulers that a bound pod indicates: the one that bound it, unless it is the default one,
    and those that the pod runs.
    """
    own = text(spec.get("schedulerName"), where.at_path("spec.schedulerName"))
    names = [own] if own and own != DEFAULT_SCHEDULER else []
    return tuple(dict.fromkeys((*names, *schedulers_run_by(spec, labels, where))))


def schedulers_run_by(spec: Mapping[str, object], labels: Mapping[str, str], where: Where) -> tuple[str, ...]:
    """Returns the schedulers that a pod runs, by its labels, images and flags."""
    apps = {labels.get("app", ""), labels.get("app.kubernetes.io/name", "")}
    names = [row.name for row in SYSTEMS if not apps.isdisjoint(row.apps)]
    for container in maps(spec.get("containers"), where.at_path("spec.containers")):
        names += _run_by(container)
    return tuple(dict.fromkeys(names))


def _run_by(container: Mapping[str, object]) -> Iterator[str]:
    """Yields the schedulers that a container runs, by its image and its flag `--scheduler-name`."""
    repository = re.sub(r"(@.*|:[^/]*)$", "", str(container.get("image") or ""))
    yield from (row.name for row in SYSTEMS if any(f"/{repository}".endswith(f"/{i}") for i in row.images))
    for part in ("command", "args"):
        words = container.get(part)
        words = [str(word) for word in words] if isinstance(words, list) else []
        for word, following in pairwise([*words, ""]):
            name = following if word == _FLAG else word.removeprefix(f"{_FLAG}=")
            # `name` equals `word` for another flag that begins with the same text.
            if word.startswith(_FLAG) and name not in (word, "", DEFAULT_SCHEDULER):
                yield name


@dataclass(slots=True)
class SchedulerSigns:
    """The indications of scheduling systems that were read so far; `seen` sums them up.

    `objects`: by system, the first object that indicates it, as text. `queues`: by system, the names of its
    queues; systems without any queue are left out. `flavored`: the Kueue Topologies that a ResourceFlavor
    names, None if no ResourceFlavor was read.
    """

    objects: dict[str, str] = field(default_factory=dict)
    queues: dict[str, set[str]] = field(default_factory=dict)
    flavored: set[str] | None = None
    kueue: KueueQueues = field(default_factory=KueueQueues)
    kai: KaiQueues = field(default_factory=KaiQueues)

    def add(self, group: str, kind: str, key: str) -> None:
        """Records an object; its key is NAMESPACE/NAME, with "default" for an object without a namespace."""
        name = key.partition("/")[2]
        system = DEFINITIONS.get(name) if kind == DEFINITION else SYSTEM_OF.get((group, kind))
        if system is None:
            return
        self.objects.setdefault(system, f"{kind} {name}" + ("" if kind == DEFINITION else f" ({group})"))
        if (group, kind) in _QUEUES:
            self.queues.setdefault(system, set()).add(key if system == KUEUE else name)

    def seen(self, pods: Witnesses, topologies: Iterable[Topology]) -> SchedulersSeen:
        """Returns the summary, with the pods that indicate schedulers and the Topology objects."""
        return SchedulersSeen(
            _shown(self.objects, pods),
            {system: frozenset(names) for system, names in sorted(self.queues.items())},
            self._followed(topologies),
            self.kueue.topologies(),
            gpu_limits=self.kai.lowest_limits(),
            quotas=self.kai.lowest_quotas(),
            queue_tolerations=self.kueue.tolerations(),
        )

    def _followed(self, topologies: Iterable[Topology]) -> dict[str, dict[str, tuple[str, ...]]]:
        """Returns by system and name the levels of each Topology that the system uses. Kueue uses only those
        that a ResourceFlavor names; all count if no ResourceFlavor was read.
        """
        followed: dict[str, dict[str, tuple[str, ...]]] = {}
        for topology in topologies:
            system = FOLLOWED_BY.get(topology.source, "")
            if not system:
                continue
            own = followed.setdefault(system, {})
            if system != KUEUE or self.flavored is None or topology.name in self.flavored:
                own[topology.name] = topology.levels
        return followed


def watched(seen: SchedulersSeen, pods: Witnesses, unread: Collection[Kind] = ()) -> SchedulersSeen:
    """Returns the summary for a cluster that Bayplan watches, with the pods that indicate schedulers.

    There, what was not seen does not exist: a system without queues or Topologies has empty entries, while a
    missing entry means unknown. `unread`: kinds that Bayplan has no permission to read; they stay unknown.
    """
    listed_systems = [system for kind, system in _QUEUES.items() if kind not in unread]
    return SchedulersSeen(
        _shown(seen.shown, pods),
        {system: seen.queues.get(system, frozenset()) for system in listed_systems},
        {system: seen.topologies.get(system, {}) for system in (KAI, KUEUE, BAYPLAN)},
        seen.queue_topologies,
        gpu_limits=seen.gpu_limits,
        quotas=seen.quotas,
        queue_tolerations=seen.queue_tolerations,
        watched=True,
    )


def _shown(objects: Mapping[str, str], pods: Witnesses) -> dict[str, str]:
    """Returns by name, for each scheduling system that is present, the object or pod that indicates it, as
    text.

    Objects of a system also exist if another system is installed on top of it (Run:ai on KAI). If that upper
    system is present, the lower one is left out unless a pod runs its scheduler or was bound by it.
    """
    running: dict[str, str] = {}
    for pod, names in pods:
        for name in names:
            running.setdefault(name, f"pod {pod}")
    shown = {**running, **objects}
    hidden = {row.name for row in SYSTEMS if row.on in shown and row.name not in running}
    return {name: sign for name, sign in sorted(shown.items()) if name not in hidden}


def scheduler_pods(pods: Iterable[BoundPod]) -> Witnesses:
    """Returns the pods that indicate schedulers."""
    return [(pod.name, pod.shows) for pod in pods if pod.shows]
