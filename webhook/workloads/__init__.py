"""Workloads: from any object to its pod templates and its gangs, by one table of kinds.

    workload = read(obj, namespace=request.namespace, request_uid=request.uid)
    for group in workload.gangs: ...              # planner.podgroup.PodGroup
    pod = pod_of(workload.templates[0], obj)      # a template as a v1 Pod
    obj = write_pod(obj, workload.templates[0], pod)

Read in this order: `kinds` (the table), `layouts` (a small function for each family of kinds), `keys`
(topology requests in every dialect), `options` (our own annotations), `membership` (pods of a wider gang),
`gangs`, `read`, `pods`, `merge` (pods of one gang in the same files).
"""

from webhook.workloads.kinds import KINDS, WorkloadKind
from webhook.workloads.merge import joined
from webhook.workloads.reader import Template, Workload, pod_templates, read, wants_plan
from webhook.workloads.templates import pod_of, write_pod
from webhook.workloads.topology_keys import KEYS, Key

__all__ = [
    "KEYS",
    "KINDS",
    "Key",
    "Template",
    "Workload",
    "WorkloadKind",
    "joined",
    "pod_of",
    "pod_templates",
    "read",
    "wants_plan",
    "write_pod",
]
