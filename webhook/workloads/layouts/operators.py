"""The layouts of the kinds of training operators, Ray and Grove."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from planner.model.podgroup import CountField
from webhook.workloads.fields import Field
from webhook.workloads.layouts.layout import (
    LARGEST_GANGS,
    PodSetTemplate,
    WorkloadLayout,
    name_of,
    one_gang,
    pod_set_template,
    unique,
)

_WORKER = "worker"

_RANKS = ("Chief", "Master", "Launcher", "PS", "Evaluator", "Server", "Scheduler")
"""Replica types of which a training job needs all pods: they come before the workers, which `_cut` cuts."""

_UNLIMITED = 2**31 - 1
"""The default of `maxReplicas` in Ray's CRDs."""

_AUTOSCALER = {side: {"cpu": "500m", "memory": "512Mi"} for side in ("requests", "limits")}
"""The resources of Ray's autoscaler, unless `autoscalerOptions.resources` states others."""

_SUBMITTER = {
    "requests": {"cpu": "500m", "memory": "200Mi"},
    "limits": {"cpu": "1", "memory": "1Gi"},
}
"""The resources of the submitter in the head pod."""


def training_job(obj: Field, replicas: str) -> WorkloadLayout:
    """Returns one gang of a training job's replicas; a stated minimum reduces the number of workers."""
    spec = obj.get("spec").needed_map()
    templates = []
    for name, replica in spec.get(replicas).needed_map().entries():
        count, stated = replica.needed_map().count_of("replicas", 1), (*replica.path, "replicas")
        pod_set = pod_set_template(name.lower(), count, replica.get("template"), stated=stated)
        templates.append((name in _RANKS, pod_set))
    ordered = [pod_set for ranked in (True, False) for is_ranked, pod_set in templates if is_ranked == ranked]
    run = spec.get("runPolicy", "schedulingPolicy", "minAvailable")
    elastic = spec.get("elasticPolicy", "minReplicas")
    minimum = run if run.value is not None else elastic
    if minimum.value is None:
        return one_gang(ordered)
    kept = _cut(ordered, minimum)
    if run.value is not None:
        return one_gang(kept)
    # The minimum is that of `elasticPolicy`. Only with metrics the operator creates an autoscaler, which may
    # let the job grow to its maxReplicas by more workers.
    total = sum(pod_set.count for pod_set in ordered)
    max_pods = spec.get("elasticPolicy", "maxReplicas").count(total)
    if not spec.get("elasticPolicy", "metrics").items():
        max_pods = min(max_pods, total)
    others = sum(pod_set.count for pod_set in kept if pod_set.pod_set != _WORKER)
    return one_gang(
        [
            replace(pod_set, max_count=max_pods - others) if pod_set.pod_set == _WORKER else pod_set
            for pod_set in kept
        ]
    )


def _cut(templates: list[PodSetTemplate], minimum: Field) -> list[PodSetTemplate]:
    """Returns the PodSets with only `minimum` pods in all: the last PodSets lose pods first."""
    left, total = minimum.count(0, minimum=1), sum(pod_set.count for pod_set in templates)
    if left > total:
        raise minimum.error(f"asks for {left} pods together, the job makes {total}; use at most {total}")
    kept, field = [], CountField(minimum.path, whole_gang=True)
    for pod_set in templates:
        count = min(left, pod_set.count)
        left -= count
        kept.append(replace(pod_set, count=count, count_field=field))
    return kept


def ray_cluster(obj: Field, cluster: tuple[str, ...]) -> WorkloadLayout:
    """Returns the layout of a RayCluster, RayJob or RayService: one head pod, and for each worker group that
    is not suspended its minReplicas (replicas if that is 0) times numOfHosts pods. The maximum is `replicas`,
    and with Ray's autoscaler (`enableInTreeAutoscaling`) maxReplicas. A RayJob on an existing cluster
    (`clusterSelector`) creates no pods. KubeRay adds the containers of `_added_to_head` to the head pod.

    `cluster`: the path of the RayClusterSpec below `spec`.
    """
    spec = obj.get("spec").needed_map().get(*cluster)
    if spec.value is None:
        return WorkloadLayout()
    head = pod_set_template("head", 1, spec.get("headGroupSpec").needed_map().get("template"))
    templates = [replace(head, added=_added_to_head(obj, spec))]
    autoscaled = spec.get("enableInTreeAutoscaling").flag()
    for group in spec.get("workerGroupSpecs").items():
        name = group.needed_map().get("groupName").text("worker")
        min_pods, max_pods = (0, 0) if group.get("suspend").flag() else _ray_workers(group, autoscaled)
        stated = (*group.path, "minReplicas" if group.count_of("minReplicas", 0) else "replicas")
        hosts = group.get("numOfHosts").count(1, minimum=1)
        workers = pod_set_template(name, min_pods, group.get("template"), stated=stated, pods=hosts)
        templates.append(replace(workers, max_count=max_pods))
    return one_gang(unique(templates))


def _added_to_head(obj: Field, cluster: Field) -> tuple[Mapping[str, object], ...]:
    """Returns the containers that KubeRay adds to the head pod: Ray's autoscaler, and the submitter of a
    RayJob in SidecarMode. `cluster`: the RayClusterSpec.

    Source: KubeRay 1.5.1, ray-operator/controllers/ray/common: pod.go (`BuildAutoscalerContainer`) and job.go
    (`GetDefaultSubmitterContainer`, which no field changes).
    """
    added: list[Mapping[str, object]] = []
    if cluster.get("enableInTreeAutoscaling").flag():
        resources = cluster.get("autoscalerOptions", "resources")
        stated = resources.map() if resources.value is not None else _AUTOSCALER
        added.append({"name": "autoscaler", "resources": stated})
    if obj.get("kind").value == "RayJob" and obj.get("spec", "submissionMode").text() == "SidecarMode":
        added.append({"name": "ray-job-submitter", "resources": _SUBMITTER})
    return tuple(added)


def _ray_workers(group: Field, autoscaled: bool) -> tuple[int, int]:
    """Returns the minimum and maximum pods of a group; the maximum is 0 if only one number is stated.

    KubeRay keeps `replicas` between minReplicas and maxReplicas; the latter takes precedence
    (GetWorkerGroupDesiredReplicas in KubeRay 00cc9f33, ray-operator/controllers/ray/utils/util.go).
    """
    hosts, limit = group.get("numOfHosts").count(1, minimum=1), group.count_of("maxReplicas", _UNLIMITED)
    stated_minimum = group.count_of("minReplicas", 0)
    replicas = min(max(group.count_of("replicas", 0), stated_minimum), limit)
    min_replicas = min(stated_minimum, limit) or replicas
    # A larger maxReplicas only says that the group has no limit.
    max_replicas = limit if autoscaled and limit <= LARGEST_GANGS else replicas
    return min_replicas * hosts, max_replicas * hosts if max_replicas > min_replicas else 0


def grove(obj: Field) -> WorkloadLayout:
    """Returns the templates of Grove's cliques, so that pod policies apply to them, but no gangs: Grove plans
    these itself.
    """
    templates = []
    for clique in obj.get("spec").needed_map().get("template", "cliques").items():
        spec = clique.needed_map().get("spec")
        count = spec.count_of("replicas", 1)
        templates.append(
            PodSetTemplate(name_of(clique), count, clique, clique, spec.get("podSpec").needed_map())
        )
    return WorkloadLayout(tuple(templates))
