"""From an object of any kind to its pod templates and its gangs, by one table of kinds. Pure.

    workload = read(obj, namespace=request.namespace, request_uid=request.uid)
    for group in workload.gangs: ...              # planner.model.podgroup.PodGroup
    pod = pod_of(workload.templates[0], obj)      # a template as a v1 Pod
    obj = write_pod(obj, workload.templates[0], pod)

- `kinds`: the table of kinds; `layouts`: where each family of kinds keeps its pods
- `options`: Bayplan's own annotations; `implied_labels`: labels that a controller adds to its pods
- `pod_groups`: pods of a wider gang; `subgroups`: their parts
- `workload`: what is read of an object; `reader`, `gangs`: all of it put together
- `templates`: a template as a Pod and back; `read_templates`: templates read once
- `fields`: a value with the path that leads to it
- `keys`: topology requests in every dialect; the table of every key that is read or written, and what is
  nearly one
- `stored`: controller, reservations and times of any stored object
- `left_alone`: whose objects are not looked at; `unread_kinds`: pods in objects of kinds that are not read
- `node_affinity`: terms added to what a pod requires or prefers
- `merge`: pods of one gang in the same files

Begin with `kinds`, then `reader.read`.
"""

from webhook.jsontools.path import Path
from webhook.workloads.gangs import asks_for_gpus
from webhook.workloads.keys.topology_keys import KEYS, Key
from webhook.workloads.kinds import KINDS, WorkloadKind
from webhook.workloads.merge import joined
from webhook.workloads.reader import pod_templates, read, wants_plan
from webhook.workloads.templates import pod_of, write_pod
from webhook.workloads.workload import Template, Workload

__all__ = [
    "KEYS",
    "KINDS",
    "Key",
    "Path",
    "Template",
    "Workload",
    "WorkloadKind",
    "asks_for_gpus",
    "joined",
    "pod_of",
    "pod_templates",
    "read",
    "wants_plan",
    "write_pod",
]
