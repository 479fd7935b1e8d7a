"""The table of workload kinds: where each keeps its pod templates, and which pods start together.

A new kind is a new row in `KINDS` and, if no function of `layouts` fits it, one small function there.
Sources: each kind's own API, and the grouping rules of the schedulers that run them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from webhook.workloads.fields import Field
from webhook.workloads.layouts import kubernetes, operators, placement_groups
from webhook.workloads.layouts.layout import WorkloadLayout, no_pods


@dataclass(frozen=True, slots=True)
class PodPlaces:
    """Where objects of a kind keep the specs of their pods, and metadata that applies to these pods.

    Fields are in dotted form, with `[]` after a list and `{}` after a mapping:
    `spec.replicatedJobs[].template.spec`. The API server's match conditions are generated from them
    (tests/manifests/conditions.py).
    """

    specs: tuple[str, ...] = ()
    metadata: tuple[str, ...] = ()


def _templates(*paths: str, besides: tuple[str, ...] = ()) -> PodPlaces:
    """Returns where PodTemplateSpecs at `paths` have spec and metadata; `besides`: more metadata of pods."""
    specs, metadata = (tuple(f"{path}.{part}" for path in paths) for part in ("spec", "metadata"))
    return PodPlaces(specs, (*metadata, *besides))


@dataclass(frozen=True, slots=True)
class WorkloadKind:
    """A kind of workload. `resource` is the lower-case plural, as in webhook rules. `layout`: returns the
    PodSets and gangs of an object of this kind.

    `each_pod`: each pod is planned alone unless the object is annotated as a gang. `holds`: applying the
    object reserves its gangs (False if other objects, such as the Jobs of a CronJob, are the gangs).
    `template_immutable`: the API server refuses changes of an existing object's pod template. `suspend`: the
    field that suspends the object, () for none. `pods`: the places where `layout` finds the pods, for the API
    server's match conditions. `has_scale`: the kind has a subresource `scale` (`kubectl scale`, autoscalers);
    a request to it does not contain the pod template, so Bayplan's webhooks are not called for it. `grows`:
    one gang of such an object may get more pods by a request in which Bayplan does not see the object, or has
    no place for them. Not the gang of a Job, which starts a pod as soon as another has ended: a snapshot may
    not show that yet. `surges`: a rolling update starts pods before it ends others (`maxSurge`).
    """

    group: str
    versions: tuple[str, ...]
    name: str
    resource: str
    layout: Callable[[Field], WorkloadLayout]
    pods: PodPlaces = PodPlaces()
    each_pod: bool = False
    holds: bool = True
    template_immutable: bool = True
    suspend: tuple[str, ...] = ()
    has_scale: bool = False
    grows: bool = False
    surges: bool = False

    @property
    def has_templates(self) -> bool:
        """Whether objects of the kind describe their pods."""
        return self.layout is not no_pods

    @property
    def makes_pods(self) -> bool:
        """Whether pods are made from templates of the kind's objects."""
        return self.has_templates and self.layout is not kubernetes.pod

    @property
    def placed_by_grove(self) -> bool:
        """Whether Grove plans the pods of the kind's objects together, and Bayplan each by itself."""
        return self.layout is operators.grove

    @property
    def makes_workloads(self) -> bool:
        """Whether the kind's objects have no pods of their own, but other workloads are made of them."""
        return not self.has_templates and bool(self.suspend)


def _training(name: str, resource: str, replicas: str, versions: tuple[str, ...] = ("v1",)) -> WorkloadKind:
    layout = partial(operators.training_job, replicas=replicas)
    places = _templates(f"spec.{replicas}{{}}.template")
    return WorkloadKind(
        "kubeflow.org", versions, name, resource, layout, places,
        suspend=("spec", "runPolicy", "suspend"), grows=True,
    )  # fmt: skip


def _ray(name: str, resource: str, *cluster: str) -> WorkloadKind:
    layout = partial(operators.ray_cluster, cluster=cluster)
    spec = ".".join(("spec", *cluster))
    places = _templates(f"{spec}.headGroupSpec.template", f"{spec}.workerGroupSpecs[].template")
    return WorkloadKind(
        "ray.io", ("v1", "v1alpha1"), name, resource, layout, places, template_immutable=False,
        suspend=_SUSPEND, grows=True,
    )  # fmt: skip


def _pod_group(group: str, versions: tuple[str, ...]) -> WorkloadKind:
    return WorkloadKind(group, versions, "PodGroup", "podgroups", no_pods, holds=False)


_SUSPEND = ("spec", "suspend")

_TEMPLATE = _templates("spec.template")

_RUNTIME_PATCH = "spec.runtimePatches[].trainingRuntimeSpec.template"

_APPS = partial(
    WorkloadKind, "apps", ("v1",), pods=_TEMPLATE, each_pod=True, holds=False, template_immutable=False,
    has_scale=True, grows=True,
)  # fmt: skip

_ROWS = (
    WorkloadKind("", ("v1",), "Pod", "pods", kubernetes.pod, PodPlaces(("spec",))),
    WorkloadKind("batch", ("v1",), "Job", "jobs", kubernetes.job, _TEMPLATE, suspend=_SUSPEND),
    WorkloadKind(
        "batch", ("v1",), "CronJob", "cronjobs", kubernetes.cron_job,
        _templates("spec.jobTemplate.spec.template", besides=("spec.jobTemplate.metadata",)),
        holds=False, template_immutable=False,
    ),
    WorkloadKind(
        "jobset.x-k8s.io", ("v1alpha2",), "JobSet", "jobsets", placement_groups.job_set,
        _templates(
            "spec.replicatedJobs[].template.spec.template",
            besides=("spec.replicatedJobs[].template.metadata",),
        ),
        suspend=_SUSPEND,
    ),
    WorkloadKind(
        # A TrainJob's controller creates a JobSet with the annotations of these places: of the first two
        # until Kubeflow trainer v2.1, of the others since v2.2.
        "trainer.kubeflow.org", ("v1alpha1",), "TrainJob", "trainjobs", no_pods,
        PodPlaces(
            metadata=(
                "spec",
                "spec.podTemplateOverrides[].metadata",
                f"{_RUNTIME_PATCH}.metadata",
                f"{_RUNTIME_PATCH}.spec.replicatedJobs[].template.metadata",
                f"{_RUNTIME_PATCH}.spec.replicatedJobs[].template.spec.template.metadata",
            )
        ),
        holds=False, suspend=_SUSPEND,
    ),
    WorkloadKind(
        "leaderworkerset.x-k8s.io", ("v1",), "LeaderWorkerSet", "leaderworkersets",
        placement_groups.leader_worker_set,
        _templates("spec.leaderWorkerTemplate.workerTemplate", "spec.leaderWorkerTemplate.leaderTemplate"),
        template_immutable=False, has_scale=True,
    ),
    _training("PyTorchJob", "pytorchjobs", "pytorchReplicaSpecs"),
    _training("TFJob", "tfjobs", "tfReplicaSpecs"),
    _training("XGBoostJob", "xgboostjobs", "xgbReplicaSpecs"),
    _training("JAXJob", "jaxjobs", "jaxReplicaSpecs"),
    _training("PaddleJob", "paddlejobs", "paddleReplicaSpecs"),
    _training("MPIJob", "mpijobs", "mpiReplicaSpecs", ("v1", "v2beta1")),
    _ray("RayCluster", "rayclusters"),
    _ray("RayJob", "rayjobs", "rayClusterSpec"),
    _ray("RayService", "rayservices", "rayClusterConfig"),
    _APPS("Deployment", "deployments", kubernetes.replicas, surges=True),
    _APPS("ReplicaSet", "replicasets", kubernetes.replicas),
    _APPS("StatefulSet", "statefulsets", kubernetes.replicas),
    _pod_group("scheduling.run.ai", ("v2", "v2alpha2")),
    _pod_group("scheduling.k8s.io", ("v1alpha2", "v1beta1")),
    _pod_group("scheduling.volcano.sh", ("v1beta1",)),
    WorkloadKind(
        "grove.io", ("v1alpha1",), "PodCliqueSet", "podcliquesets", operators.grove,
        PodPlaces(("spec.template.cliques[].spec.podSpec",), ("spec.template.cliques[]",)), holds=False,
    ),
)  # fmt: skip

KINDS: Mapping[tuple[str, str], WorkloadKind] = {(row.group, row.name): row for row in _ROWS}
"""Rows by API group and kind: all versions of a kind are read in the same way."""


_BY_WORD = {word: row.name for row in KINDS.values() for word in (row.name.lower(), row.resource)}


def kind_named(word: str) -> str:
    """Returns the kind that kubectl means by a word: `Job` for `job` and `jobs`. Other words are returned
    unchanged.
    """
    return _BY_WORD.get(word.lower(), word)


def row_of(api_version: str, kind: str) -> WorkloadKind | None:
    """Returns the row of a kind, None if the table has none."""
    group, _, _ = api_version.rpartition("/")
    return KINDS.get((group, kind))
