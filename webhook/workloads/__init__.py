"""Reads an object of any kind as pod templates and gangs, by one table of kinds. Pure.

    workload = read(obj, namespace=request.namespace, request_uid=request.uid)
    for group in workload.gangs: ...              # planner.model.podgroup.PodGroup
    pod = pod_of(workload.templates[0], obj)      # a template as a v1 Pod
    obj = write_pod(obj, workload.templates[0], pod)

- `kinds`: the table of kinds; `layouts`: where each kind keeps its pods, and which start together
- `options`: Bayplan's own annotations; `implied_labels`: labels that a controller adds to its pods
- `shared_gangs`: gangs of several objects, such as the pods of a PodGroup
- `workload`: the result of reading an object; `reader`, `gangs`: read it
- `templates`: a template as a Pod and back; `read_templates`: caches templates that did not change
- `fields`: a value with its path
- `keys`: topology requests in every dialect; `key_table`: all known keys, and misspelt ones
- `controllers`: the controller that an object names; `queues`: the queues, and the scheduler that they imply
- `stored`: controller, reservations and times of any stored object
- `varying_values`: values in which otherwise equal objects differ
- `left_alone`: objects that Bayplan ignores; `unread_kinds`: pods that are not planned with their object
- `node_affinity`: adds terms to a pod's required or preferred node affinity

The *members* of a gang may be several objects (pods of a PodGroup, two Jobs); each has a *share* of the
gang's pods. A *part* is a named subgroup of a gang, such as `prefill`. A *seat* is the room that the plan
keeps for one pod of the gang, also if the pod does not exist yet. The *topology request* of an object or
template is what its topology keys state. A *shape* is what the planner reads of a pod: requests, selectors,
affinity and so on (`PodShape`).

Begin with `kinds`, then `reader.read`.
"""

from webhook.jsontools.path import Path
from webhook.workloads.gangs import asks_for_gpus
from webhook.workloads.keys.topology_keys import KEYS, Key
from webhook.workloads.kinds import KINDS, WorkloadKind
from webhook.workloads.reader import pod_templates, read, wants_plan
from webhook.workloads.shared_gangs.merge import joined
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
