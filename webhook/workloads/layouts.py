"""The pod layout of each workload kind: one small function per family, from an object to a
`WorkloadLayout`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.model.effort.deadline import poll
from planner.model.podgroup import CountField
from webhook.jsontools.path import Path
from webhook.workloads.fields import Field, shown
from webhook.workloads.keys.annotation_keys import EXCLUSIVE_JOBSET, POLICIES, SUBGROUP_SIZE
from webhook.workloads.options import GANG_SIZE

LARGEST_GANGS = 10_000
"""Maximum number of replicas of one object that are each a gang; Kubernetes itself supports 5,000 nodes."""
LARGEST_REPLICAS = 1_000
"""Maximum number of independent pods planned with their object; further pods are planned when created."""

_UNLIMITED = 2**31 - 1
"""The default of `maxReplicas` in Ray's CRDs."""

NOTHING = Field(None)
"""A field that is missing."""

COUNTS = frozenset(("replicas", "minReplicas", "maxReplicas", "numOfHosts", "size"))
"""The fields beside pod templates that say how many pods an object creates, and that may change."""

PodSetKey = tuple[str, int, Path]
"""What identifies a PodSet of an object: its name, its number of pods, and the path of its template."""

NO_FIELD = CountField()
"""Stands for a number of pods that no single field states."""

BATCH_MIN_MEMBER = "kai.scheduler/batch-min-member"
"""KAI's annotation: how many pods of a Job start together. The policy of the same name writes it, too."""
EXCLUSIVE_SUBGROUP = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"
"""LeaderWorkerSet's annotation: the level of which each subgroup of a replica gets a domain of its own."""


# Like `Field`, not frozen: each reading of an object creates one for each of its hundreds of templates.
@dataclass(slots=True, unsafe_hash=True)
class PodSetTemplate:
    """One PodSet of a gang: `count` pods of one template.

    `pod_set` is its name. `metadata` and `spec` are those of the pod; `template` contains both (the object
    itself for a Pod). `annotated`: further metadata that applies only to this PodSet (a JobSet's job
    template). `max_count`: the maximum of an elastic set; 0 for a fixed `count`. `volumes`: templates of the
    claims that each pod gets in addition to those in its spec; `first`: the ordinal of the first pod, from
    which the claims are named. `count_field`: the field from which `count` was read. Never modified.
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


def pod(obj: Field) -> WorkloadLayout:
    """Returns a pod as its own template; `shared_gangs` finds the gang that it joins."""
    return one_gang([pod_set_template("main", 1, obj)])


def replicas(obj: Field) -> WorkloadLayout:
    """Returns the layout of a Deployment, ReplicaSet or StatefulSet: `spec.replicas` independent pods."""
    spec = obj.get("spec").needed_map()
    count = spec.count_of("replicas", 1)
    every = replace(
        pod_set_template("main", count, spec.get("template"), stated=(*spec.path, "replicas")),
        volumes=spec.get("volumeClaimTemplates"),
        first=spec.get("ordinals", "start").count(0),
    )
    return one_by_one(every)


def as_one(layout: WorkloadLayout, size: int | None) -> WorkloadLayout:
    """Returns the layout of pods that are annotated as a gang: one gang of `size` pods, by default all."""
    # The kinds that may be annotated so (Deployment, ReplicaSet, StatefulSet) have a single PodSet.
    field = CountField(("metadata", "annotations", GANG_SIZE))
    templates = [
        replace(pod_set_template, count=size, count_field=field) if size else pod_set_template
        for pod_set_template in layout.templates
        if pod_set_template.count
    ]
    gangs = (tuple(templates),) if templates else ()
    return replace(layout, gangs=gangs, indexed=False, warnings=(), unplanned=0)


def one_by_one(every: PodSetTemplate) -> WorkloadLayout:
    """Returns pods of one template, each a gang of its own; at most `LARGEST_REPLICAS` of them."""
    listed = min(every.count, LARGEST_REPLICAS)
    unplanned = every.count - listed
    warnings = (f"plans the first {listed} of {every.count} pods",) if unplanned else ()
    gangs = ((replace(every, count=1),),) * listed
    return WorkloadLayout((every,), gangs, indexed=True, warnings=warnings, unplanned=unplanned)


def job(obj: Field) -> WorkloadLayout:
    """Returns the layout of a Job: `parallelism` pods at a time, never more than `completions`.

    They start together if the Job is Indexed or KAI's annotation says so; else they are `loose`.
    """
    main = _job_template("main", obj.get("spec"))
    stated = obj.get("metadata", "annotations", BATCH_MIN_MEMBER)
    own = stated.count_in_text()
    if own is not None and policy_wrote_size(obj.get("metadata", "annotations", POLICIES).value):
        own = main.count  # it was right when the Job was new; the controller lowers it
    if _is_loose(obj.get("spec"), main, own):
        return replace(one_gang([main]), loose=True)
    if own is None or own == main.count:
        return one_gang([main])
    if own > main.count > 0:
        runs = f"the Job runs {main.count} at a time and would never start"
        raise stated.error(f"asks for {own} pods together, {runs}; use at most {main.count}")
    differs = f"{BATCH_MIN_MEMBER} is {own}, the Job runs {main.count} pods at a time"
    return one_gang([main], (f"{differs}: KAI may start it with {own}, the plan is for {main.count}",))


def policy_wrote_size(policies: object) -> bool:
    """Returns whether Bayplan's policy wrote `BATCH_MIN_MEMBER`, not a user. `policies`: the value of the
    annotation `bayplan.dev/policies`, NAME,NAME@REVISION."""
    return "kai-batch-min-member" in str(policies or "").partition("@")[0].split(",")


def cron_job(obj: Field) -> WorkloadLayout:
    """Returns the layout of the Jobs that a CronJob creates; each Job is reserved only when it exists."""
    job_template = obj.get("spec").needed_map().get("jobTemplate").needed_map()
    spec, metadata = job_template.get("spec"), job_template.get("metadata")
    main = _job_template("main", spec, metadata)
    own = metadata.get("annotations", BATCH_MIN_MEMBER).count_in_text()
    return replace(one_gang([main]), loose=_is_loose(spec, main, own))


def _is_loose(spec: Field, main: PodSetTemplate, min_member: int | None) -> bool:
    indexed = spec.get("completionMode").text() == "Indexed"
    return main.count > 1 and not indexed and (min_member is None or min_member < 2)


def _job_template(name: str, spec: Field, *annotated: Field) -> PodSetTemplate:
    parallelism = spec.needed_map().count_of("parallelism", 1)
    completions = spec.count_of("completions", parallelism)
    stated, count = (*spec.path, "parallelism"), min(parallelism, completions)
    return pod_set_template(name, count, spec.get("template"), *annotated, stated=stated)


def job_set(obj: Field) -> WorkloadLayout:
    """Returns the layout of a JobSet: all replicated jobs are one gang, also if they start in order
    (`startupPolicy: InOrder`, `dependsOn`).

    With `exclusive-topology` on the JobSet, each child Job is a gang with a domain of its own. Unless they
    start in order, these gangs are `joint`: KAI starts no child Job before all have room (`minSubGroup` is
    the number of replicas: KAI-Scheduler d5bc503a,
    pkg/podgrouper/podgrouper/plugins/jobset/jobset_grouper.go).
    """
    in_order = obj.get("spec", "startupPolicy", "startupPolicyOrder").text() == "InOrder"
    templates, children = [], []
    for replicated in obj.get("spec").needed_map().get("replicatedJobs").items():
        name = _name_of(replicated)
        copies = replicated.count_of("replicas", 1)
        in_order = in_order or bool(replicated.get("dependsOn").items())
        job_template = replicated.get("template").needed_map()
        child = _job_template(name, job_template.get("spec"), job_template.get("metadata"))
        jobs = CountField((*replicated.path, "replicas"), max(1, child.count))
        templates.append(
            child if copies == 1 else replace(child, count=copies * child.count, count_field=jobs)
        )
        if child.count:
            children.append((copies, child))
    _unique(templates)
    if not obj.get("metadata", "annotations", EXCLUSIVE_JOBSET).text():
        return one_gang(templates)
    _at_most(sum(copies for copies, _ in children), obj.get("spec", "replicatedJobs"))
    gangs = tuple((child,) for copies, child in children for _ in range(copies))
    return WorkloadLayout(tuple(templates), gangs, indexed=True, joint=not in_order)


def leader_worker_set(obj: Field) -> WorkloadLayout:
    """Returns a LeaderWorkerSet's layout: each replica is a gang of one leader and `size` − 1 workers.

    Without a leader template, the leader has the workers' template.
    """
    spec = obj.get("spec").needed_map()
    count = _at_most(spec.count_of("replicas", 1), spec.get("replicas"))
    group = spec.get("leaderWorkerTemplate").needed_map()
    size = group.get("size").count(1, minimum=1)
    worker_template, leader_template = group.get("workerTemplate"), group.get("leaderTemplate")
    subgroups = _subgroups(group.get("subGroupPolicy", "subGroupSize"))
    leader = pod_set_template(
        "leader", 1, worker_template if leader_template.value is None else leader_template, *subgroups
    )
    worker = pod_set_template(
        "worker", size - 1, worker_template, *subgroups, stated=(*group.path, "size"), whole_gang=True
    )
    gang = (leader, worker) if worker.count else (leader,)
    exclusive = obj.get("metadata", "annotations", EXCLUSIVE_SUBGROUP)
    wants = "is not planned: LeaderWorkerSet's webhook gives each subgroup a domain of its own"
    works = "a LeaderWorkerSet for each subgroup, with leaderworkerset.sigs.k8s.io/exclusive-topology"
    note = f"{exclusive.where.field} {wants}, and the plan may pin several to one. What would work: {works}"
    warnings = (note,) if exclusive.text() else ()
    return WorkloadLayout((leader, worker), (gang,) * count, indexed=True, warnings=warnings)


def _subgroups(size: Field) -> tuple[Field, ...]:
    """Returns the annotation that LeaderWorkerSet gives its pods for subgroups of this size; () for none."""
    if size.value is None:
        return ()
    annotations = {SUBGROUP_SIZE: str(size.count(1, minimum=1))}
    return (Field({"annotations": annotations}, size.path, size.root),)


_WORKER = "worker"
_RANKS = ("Chief", "Master", "Launcher", "PS", "Evaluator", "Server", "Scheduler")
"""Replica types of which a training job needs all pods: they come before the workers, which `_cut` cuts."""


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
    (`clusterSelector`) creates no pods.

    `cluster`: the path of the RayClusterSpec below `spec`.
    """
    spec = obj.get("spec").needed_map().get(*cluster)
    if spec.value is None:
        return WorkloadLayout()
    templates = [pod_set_template("head", 1, spec.get("headGroupSpec").needed_map().get("template"))]
    autoscaled = spec.get("enableInTreeAutoscaling").flag()
    for group in spec.get("workerGroupSpecs").items():
        name = group.needed_map().get("groupName").text("worker")
        min_pods, max_pods = (0, 0) if group.get("suspend").flag() else _ray_workers(group, autoscaled)
        stated = (*group.path, "minReplicas" if group.count_of("minReplicas", 0) else "replicas")
        hosts = group.get("numOfHosts").count(1, minimum=1)
        workers = pod_set_template(name, min_pods, group.get("template"), stated=stated, pods=hosts)
        templates.append(replace(workers, max_count=max_pods))
    return one_gang(_unique(templates))


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
            PodSetTemplate(_name_of(clique), count, clique, clique, spec.get("podSpec").needed_map())
        )
    return WorkloadLayout(tuple(templates))


def _name_of(item: Field) -> str:
    name = item.needed_map().get("name")
    text = name.text()
    if not text:
        raise name.error("is missing; each needs a name of its own")
    return text


def _unique(templates: list[PodSetTemplate]) -> list[PodSetTemplate]:
    seen: set[str] = set()
    for pod_set in templates:
        if pod_set.pod_set in seen:
            raise pod_set.template.error(
                f"a second group is named {shown(pod_set.pod_set)}; names must differ"
            )
        seen.add(pod_set.pod_set)
    return templates


def _at_most(count: int, field: Field) -> int:
    if count > LARGEST_GANGS:
        raise field.error(f"{count} replicas, each a gang; at most {LARGEST_GANGS} in one object are planned")
    return count
