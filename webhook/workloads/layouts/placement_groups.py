"""The layouts of JobSet and LeaderWorkerSet, whose child Jobs and replicas are placement groups."""

from __future__ import annotations

from dataclasses import replace

from planner.manifests.pods.pod_affinity import JOB_KEY
from planner.model.effort.deadline import poll
from planner.model.podgroup import CountField
from webhook.workloads.fields import Field
from webhook.workloads.keys.annotation_keys import EXCLUSIVE_JOBSET, EXCLUSIVE_LWS, SUBGROUP_SIZE
from webhook.workloads.layouts.exclusive_placement import GROUP_KEY, PlacementGroup
from webhook.workloads.layouts.kubernetes import pod_set_of_job
from webhook.workloads.layouts.layout import (
    PodSetTemplate,
    WorkloadLayout,
    at_most,
    name_of,
    one_gang,
    pod_set_template,
    unique,
)

BY_NODES = "alpha.jobset.sigs.k8s.io/node-selector"
"""JobSet's annotation: jobs with exclusive placement go to nodes that are labelled for them."""
EXCLUSIVE_SUBGROUP = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"
"""LeaderWorkerSet's annotation: the level of which each subgroup of a replica gets a domain of its own."""


def job_set(obj: Field) -> WorkloadLayout:
    """Returns the layout of a JobSet: all replicated jobs are one gang, also if they start in order
    (`startupPolicy: InOrder`, `dependsOn`).

    With `exclusive-topology` on the JobSet, on one of its replicated jobs (`ExclusiveKey` in JobSet's
    jobset_types.go) or on its pods, each child Job is a gang of its own; those that have the annotation get a
    domain each.
    Unless they start in order, these gangs are `joint`: KAI starts no child Job before all have room
    (`minSubGroup` is the number of replicas: KAI-Scheduler d5bc503a,
    pkg/podgrouper/podgrouper/plugins/jobset/jobset_grouper.go).
    """
    in_order = obj.get("spec", "startupPolicy", "startupPolicyOrder").text() == "InOrder"
    exclusive = False
    templates, children = [], []
    for replicated in obj.get("spec").needed_map().get("replicatedJobs").items():
        name = name_of(replicated)
        copies = replicated.count_of("replicas", 1)
        in_order = in_order or bool(replicated.get("dependsOn").items())
        job_template = replicated.get("template").needed_map()
        job_metadata = job_template.get("metadata")
        child = pod_set_of_job(name, job_template.get("spec"), job_metadata)
        annotated = (job_metadata, child.metadata, obj.get("metadata"))
        level = next(filter(None, (of.get("annotations", EXCLUSIVE_JOBSET).text() for of in annotated)), "")
        exclusive = exclusive or (bool(level) and child.count > 0)
        # Under this strategy an administrator has labelled nodes for each job, and JobSet adds no affinity.
        by_nodes = any(of.has("annotations") and of.get("annotations").has(BY_NODES) for of in annotated)
        first = PlacementGroup(JOB_KEY, f"-{name}-0", "" if by_nodes else level)
        child = replace(child, placement_group=first)
        jobs = CountField((*replicated.path, "replicas"), max(1, child.count))
        templates.append(
            child if copies == 1 else replace(child, count=copies * child.count, count_field=jobs)
        )
        if child.count:
            children.append((copies, child))
    unique(templates)
    if not exclusive:
        return one_gang(templates)
    at_most(sum(copies for copies, _ in children), obj.get("spec", "replicatedJobs"))
    gangs = tuple(
        (_of_placement_group(child, f"-{child.pod_set}-{index}"),)
        for copies, child in children
        for index in range(copies)
    )
    return WorkloadLayout(tuple(templates), gangs, indexed=True, joint=not in_order)


def _of_placement_group(template: PodSetTemplate, suffix: str) -> PodSetTemplate:
    """Returns the PodSet with pods of the group whose name has this suffix."""
    poll("reading")  # there may be thousands of replicas
    group = template.placement_group
    return replace(template, placement_group=group and replace(group, suffix=suffix))


def leader_worker_set(obj: Field) -> WorkloadLayout:
    """Returns a LeaderWorkerSet's layout: each replica is a gang of one leader and `size` − 1 workers.

    Without a leader template, the leader has the workers' template.
    """
    spec = obj.get("spec").needed_map()
    count = at_most(spec.count_of("replicas", 1), spec.get("replicas"))
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
    level = obj.get("metadata", "annotations", EXCLUSIVE_LWS).text()
    first = PlacementGroup(GROUP_KEY, "-0", level)
    leader, worker = (replace(template, placement_group=first) for template in (leader, worker))
    gang: tuple[PodSetTemplate, ...] = (leader, worker) if worker.count else (leader,)
    gangs = tuple(
        tuple(_of_placement_group(template, f"-{index}") for template in gang) for index in range(count)
    )
    exclusive = obj.get("metadata", "annotations", EXCLUSIVE_SUBGROUP)
    wants = "is not planned: LeaderWorkerSet's webhook gives each subgroup a domain of its own"
    works = "a LeaderWorkerSet for each subgroup, with leaderworkerset.sigs.k8s.io/exclusive-topology"
    note = f"{exclusive.where.field} {wants}, and the plan may pin several to one. What would work: {works}"
    warnings = (note,) if exclusive.text() else ()
    return WorkloadLayout((leader, worker), gangs, indexed=True, warnings=warnings)


def _subgroups(size: Field) -> tuple[Field, ...]:
    """Returns the annotation that LeaderWorkerSet gives its pods for subgroups of this size; () for none."""
    if size.value is None:
        return ()
    annotations = {SUBGROUP_SIZE: str(size.count(1, minimum=1))}
    return (Field({"annotations": annotations}, size.path, size.root),)
