"""How each workload kind lays out its pods: one small function a family, from an object to a
`WorkloadLayout`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.model.deadline import poll
from webhook.workloads.fields import Field, shown

LARGEST_GANGS = 10_000
"""Replicas of one object that are each a gang; more is refused: Kubernetes itself supports 5,000 nodes."""
LARGEST_REPLICAS = 1_000
"""Pods that are each for themselves and planned with their object; further ones are planned as they come."""

NOTHING = Field(None)

BATCH_MIN_MEMBER = "kai.scheduler/batch-min-member"
EXCLUSIVE_JOBSET = "alpha.jobset.sigs.k8s.io/exclusive-topology"


@dataclass(frozen=True, slots=True)
class PodSetTemplate:
    """One PodSet of a gang: `count` pods of one template.

    `metadata` and `spec` are the pod's; `template` holds both (the object itself for a Pod). `annotated` are
    further metadata that speak for this PodSet alone (a JobSet's job template). `max_count`: an elastic set
    may have up to so many pods; 0 for `count` and no more. `volumes`: templates of the claims that each pod
    gets, beside those in its spec; `first`: the ordinal of the first pod, by which the claims are named.
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


@dataclass(frozen=True, slots=True)
class WorkloadLayout:
    """`members`: every template once per PodSet. `gangs`: which of them start together, gang by gang.

    `indexed`: the gangs are replicas, so their names end in an index. `joint`: none of them starts before
    all have their place. `loose`: its pods need not start together, unless somebody says so. `warnings`
    concern every gang.
    """

    members: tuple[PodSetTemplate, ...] = ()
    gangs: tuple[tuple[PodSetTemplate, ...], ...] = ()
    indexed: bool = False
    joint: bool = False
    loose: bool = False
    warnings: tuple[str, ...] = ()


def member(pod_set: str, count: int, template: Field, *annotated: Field) -> PodSetTemplate:
    """A PodSet of a PodTemplateSpec. Raises `InputError` where the template or its spec is missing."""
    poll("reading")
    spec = template.needed_map().get("spec").needed_map()
    metadata = template.get("metadata")
    metadata.map()
    return PodSetTemplate(pod_set, count, template, metadata, spec, annotated)


def together(members: list[PodSetTemplate], warnings: tuple[str, ...] = ()) -> WorkloadLayout:
    """One gang of all pods; PodSets that start with no pod are templates only."""
    gang = tuple(pod_set for pod_set in members if pod_set.count)
    return WorkloadLayout(tuple(members), (gang,) if gang else (), warnings=warnings)


def no_pods(obj: Field) -> WorkloadLayout:
    """Nothing to place: the kind has no template, or leaves its pods to objects that it makes."""
    return WorkloadLayout()


def pod(obj: Field) -> WorkloadLayout:
    """A pod is its own template; a wider gang is found by `membership`."""
    return together([member("main", 1, obj)])


def replicas(obj: Field) -> WorkloadLayout:
    """Deployment, ReplicaSet, StatefulSet: `spec.replicas` pods, each for itself."""
    spec = obj.get("spec").needed_map()
    count = spec.get("replicas").count(1)
    every = replace(
        member("main", count, spec.get("template")),
        volumes=spec.get("volumeClaimTemplates"),
        first=spec.get("ordinals", "start").count(0),
    )
    return one_by_one(every)


def as_one(layout: WorkloadLayout, size: int | None) -> WorkloadLayout:
    """A StatefulSet (or Deployment) annotated as a gang: all its replicas, or as many as it says."""
    members = [replace(member, count=size or member.count) for member in layout.members if member.count]
    return replace(layout, gangs=(tuple(members),) if members else (), indexed=False, warnings=())


def one_by_one(every: PodSetTemplate) -> WorkloadLayout:
    """Pods of one template, each a gang by itself."""
    listed = min(every.count, LARGEST_REPLICAS)
    warnings = (f"plans the first {listed} of {every.count} pods",) if listed < every.count else ()
    return WorkloadLayout((every,), ((replace(every, count=1),),) * listed, indexed=True, warnings=warnings)


def job(obj: Field) -> WorkloadLayout:
    """`parallelism` pods at a time, never more than `completions`.

    They start together where the Job is Indexed or KAI's annotation says so; else each is for itself.
    """
    main = _job_member("main", obj.get("spec"))
    stated = obj.get("metadata", "annotations", BATCH_MIN_MEMBER)
    own = stated.count_in_text()
    if _is_loose(obj.get("spec"), main, own):
        return replace(together([main]), loose=True)
    if own is None or own == main.count:
        return together([main])
    if own > main.count > 0:
        runs = f"the Job runs {main.count} at a time and would never start"
        raise stated.error(f"asks for {own} pods together, {runs}; use at most {main.count}")
    differs = f"{BATCH_MIN_MEMBER} is {own}, the Job runs {main.count} pods at a time"
    return together([main], (f"{differs}: KAI may start it with {own}, the plan is for {main.count}",))


def cron_job(obj: Field) -> WorkloadLayout:
    """As the Job that it makes; the Job, once made, is what gets planned and reserved."""
    job_template = obj.get("spec").needed_map().get("jobTemplate").needed_map()
    spec, metadata = job_template.get("spec"), job_template.get("metadata")
    main = _job_member("main", spec, metadata)
    own = metadata.get("annotations", BATCH_MIN_MEMBER).count_in_text()
    return replace(together([main]), loose=_is_loose(spec, main, own))


def _is_loose(spec: Field, main: PodSetTemplate, min_member: int | None) -> bool:
    indexed = spec.get("completionMode").text() == "Indexed"
    return main.count > 1 and not indexed and (min_member is None or min_member < 2)


def _job_member(name: str, spec: Field, *annotated: Field) -> PodSetTemplate:
    parallelism = spec.needed_map().get("parallelism").count(1)
    completions = spec.get("completions").count(parallelism)
    return member(name, min(parallelism, completions), spec.get("template"), *annotated)


def job_set(obj: Field) -> WorkloadLayout:
    """All replicated jobs are one gang, also under `startupPolicy: InOrder`.

    With `exclusive-topology` on the JobSet, each child Job is a gang, with a domain of its own. They start
    together all the same: KAI starts none before each has room (`minSubGroup` of its PodGroup is the number
    of replicas: KAI-Scheduler d5bc503a, pkg/podgrouper/podgrouper/plugins/jobset/jobset_grouper.go).
    """
    members, children = [], []
    for replicated in obj.get("spec").needed_map().get("replicatedJobs").items():
        name = _name_of(replicated)
        copies = replicated.get("replicas").count(1)
        job_template = replicated.get("template").needed_map()
        child = _job_member(name, job_template.get("spec"), job_template.get("metadata"))
        members.append(child if copies == 1 else replace(child, count=copies * child.count))
        if child.count:
            children.append((copies, child))
    _unique(members)
    if not obj.get("metadata", "annotations", EXCLUSIVE_JOBSET).text():
        return together(members)
    _at_most(sum(copies for copies, _ in children), obj.get("spec", "replicatedJobs"))
    gangs = tuple((child,) for copies, child in children for _ in range(copies))
    together_or_none = obj.get("spec", "startupPolicy", "startupPolicyOrder").text() != "InOrder"
    return WorkloadLayout(tuple(members), gangs, indexed=True, joint=together_or_none)


def leader_worker_set(obj: Field) -> WorkloadLayout:
    """Each replica is a gang of one leader and `size` − 1 workers; without its own, the leader's template
    is the workers'."""
    spec = obj.get("spec").needed_map()
    count = _at_most(spec.get("replicas").count(1), spec.get("replicas"))
    group = spec.get("leaderWorkerTemplate").needed_map()
    size = group.get("size").count(1, minimum=1)
    worker_template, leader_template = group.get("workerTemplate"), group.get("leaderTemplate")
    leader = member("leader", 1, worker_template if leader_template.value is None else leader_template)
    worker = member("worker", size - 1, worker_template)
    gang = (leader, worker) if worker.count else (leader,)
    return WorkloadLayout((leader, worker), (gang,) * count, indexed=True)


_WORKER = "worker"
_RANKS = ("Chief", "Master", "Launcher", "PS", "Evaluator", "Server", "Scheduler")
"""Replica types of which a job needs all; what a smaller gang leaves out are workers."""


def training_job(obj: Field, replicas: str) -> WorkloadLayout:
    """The sum of all replicas, or the explicit minimum, of which the workers are what is left out."""
    spec = obj.get("spec").needed_map()
    members = []
    for name, replica in spec.get(replicas).needed_map().entries():
        count = replica.needed_map().get("replicas").count(1)
        members.append((name in _RANKS, member(name.lower(), count, replica.get("template"))))
    ordered = [pod_set for ranked in (True, False) for is_ranked, pod_set in members if is_ranked == ranked]
    run = spec.get("runPolicy", "schedulingPolicy", "minAvailable")
    elastic = spec.get("elasticPolicy", "minReplicas")
    minimum = run if run.value is not None else elastic
    if minimum.value is None:
        return together(ordered)
    kept = _cut(ordered, minimum)
    if run.value is not None:
        return together(kept)
    max_pods = spec.get("elasticPolicy", "maxReplicas").count(sum(pod_set.count for pod_set in ordered))
    others = sum(pod_set.count for pod_set in kept if pod_set.pod_set != _WORKER)
    return together(
        [
            replace(pod_set, max_count=max_pods - others) if pod_set.pod_set == _WORKER else pod_set
            for pod_set in kept
        ]
    )


def _cut(members: list[PodSetTemplate], minimum: Field) -> list[PodSetTemplate]:
    left, total = minimum.count(0, minimum=1), sum(pod_set.count for pod_set in members)
    if left > total:
        raise minimum.error(f"asks for {left} pods together, the job makes {total}; use at most {total}")
    kept = []
    for pod_set in members:
        count = min(left, pod_set.count)
        left -= count
        kept.append(replace(pod_set, count=count))
    return kept


def ray_cluster(obj: Field, cluster: tuple[str, ...]) -> WorkloadLayout:
    """One head and the workers of each group that is not suspended: minReplicas, or else replicas, × hosts.

    A RayJob that runs on a cluster which is there already (`clusterSelector`) makes no pods of its own.
    """
    spec = obj.get("spec").needed_map().get(*cluster)
    if spec.value is None:
        return WorkloadLayout()
    members = [member("head", 1, spec.get("headGroupSpec").needed_map().get("template"))]
    for group in spec.get("workerGroupSpecs").items():
        name = group.needed_map().get("groupName").text("worker")
        min_pods, max_pods = (0, 0) if group.get("suspend").flag() else _ray_workers(group)
        members.append(replace(member(name, min_pods, group.get("template")), max_count=max_pods))
    return together(_unique(members))


def _ray_workers(group: Field) -> tuple[int, int]:
    """The fewest and the most pods of a group; the most is 0 where only one number is stated."""
    replicas = group.get("replicas").count(1)
    hosts = group.get("numOfHosts").count(1, minimum=1)
    min_replicas = group.get("minReplicas").count(0) or replicas
    stated = group.get("maxReplicas").count(0)
    max_replicas = max(replicas, stated if stated <= LARGEST_GANGS else 0)
    return min_replicas * hosts, max_replicas * hosts if max_replicas > min_replicas else 0


def grove(obj: Field) -> WorkloadLayout:
    """Grove plans its own gangs; its clique templates are seen so that pod policies can mend them."""
    members = []
    for clique in obj.get("spec").needed_map().get("template", "cliques").items():
        spec = clique.needed_map().get("spec")
        count = spec.get("replicas").count(1)
        members.append(
            PodSetTemplate(_name_of(clique), count, clique, clique, spec.get("podSpec").needed_map())
        )
    return WorkloadLayout(tuple(members))


def _name_of(item: Field) -> str:
    name = item.needed_map().get("name")
    if not name.text():
        raise name.error("is missing; each needs a name of its own")
    return name.text()


def _unique(members: list[PodSetTemplate]) -> list[PodSetTemplate]:
    seen: set[str] = set()
    for pod_set in members:
        if pod_set.pod_set in seen:
            raise pod_set.template.error(
                f"a second group is named {shown(pod_set.pod_set)}; names must differ"
            )
        seen.add(pod_set.pod_set)
    return members


def _at_most(count: int, field: Field) -> int:
    if count > LARGEST_GANGS:
        raise field.error(f"{count} replicas, each a gang; at most {LARGEST_GANGS} in one object are planned")
    return count
