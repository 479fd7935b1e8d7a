"""The layouts of Kubernetes' own kinds: Pod, Deployment, ReplicaSet, StatefulSet, Job and CronJob."""

from __future__ import annotations

from dataclasses import replace

from webhook.workloads.fields import Field
from webhook.workloads.keys.annotation_keys import POLICIES
from webhook.workloads.layouts.layout import (
    PodSetTemplate,
    WorkloadLayout,
    one_by_one,
    one_gang,
    pod_set_template,
)

BATCH_MIN_MEMBER = "kai.scheduler/batch-min-member"
"""KAI's annotation: how many pods of a Job start together. The policy of the same name writes it, too."""


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


def job(obj: Field) -> WorkloadLayout:
    """Returns the layout of a Job: `parallelism` pods at a time, never more than `completions`.

    They start together if the Job is Indexed or KAI's annotation says so; else they are `loose`.
    """
    main = pod_set_of_job("main", obj.get("spec"))
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
    main = pod_set_of_job("main", spec, metadata)
    own = metadata.get("annotations", BATCH_MIN_MEMBER).count_in_text()
    return replace(one_gang([main]), loose=_is_loose(spec, main, own))


def _is_loose(spec: Field, main: PodSetTemplate, min_member: int | None) -> bool:
    indexed = spec.get("completionMode").text() == "Indexed"
    return main.count > 1 and not indexed and (min_member is None or min_member < 2)


def pod_set_of_job(name: str, spec: Field, *annotated: Field) -> PodSetTemplate:
    parallelism = spec.needed_map().count_of("parallelism", 1)
    completions = spec.count_of("completions", parallelism)
    stated, count = (*spec.path, "parallelism"), min(parallelism, completions)
    return pod_set_template(name, count, spec.get("template"), *annotated, stated=stated)
