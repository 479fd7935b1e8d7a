"""What each scheduling system reads, and what it does by itself: one row of `FACTS` each.

Only one system queues a workload: if another system queues it, Bayplan adds no gate to what that system could
start. If another system assigns the nodes, Bayplan does not pin the pods to other ones. Each key is listed
with the source file that reads it, at the version in the row, so that tests can check the keys that policies
write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.model.pod import DEFAULT_SCHEDULER
from planner.model.schedulers import KAI, KUEUE, RUNAI


@dataclass(frozen=True, slots=True)
class SchedulerFacts:
    """One scheduling system.

    `name`: its usual schedulerName; `kueue` for Kueue, which has none. `version`: the version whose source or
    documents were read; `tried`: whether it was also run beside Bayplan. `reads`: by label or annotation key,
    the file that reads it and the object that carries it. `queues`: it decides when a workload starts.
    `preempts`: it evicts other pods for a workload. `places`: it assigns nodes before a scheduler binds the
    pods. `leaves`: what Bayplan leaves to the system, as text."""

    name: str
    version: str
    tried: bool
    reads: Mapping[str, str] = field(default_factory=dict)
    queues: bool = False
    preempts: bool = False
    places: bool = False
    leaves: str = ""


_GROUPER = "pkg/podgrouper/podgrouper/plugins"


_TOP_OWNER = f"{_GROUPER}/defaultgrouper/default_grouper.go: the pods' top owner"


_WORKERS = f"{_GROUPER}: kubeflow/pytorch/pytorch_grouper.go, leaderworkerset/lws_grouper.go: worker template"


_KAI_READS = {
    "kai.scheduler/topology": _TOP_OWNER,
    "kai.scheduler/topology-required-placement": _TOP_OWNER,
    "kai.scheduler/topology-preferred-placement": _TOP_OWNER,
    "kai.scheduler/segment-size": _WORKERS,
    "kai.scheduler/segment-topology-required-placement": _WORKERS,
    "kai.scheduler/segment-topology-preferred-placement": _WORKERS,
    "kai.scheduler/batch-min-member": (
        f"{_GROUPER}/job/job_grouper.go, jobset/jobset_grouper.go: a Job, a JobSet and its job templates"
    ),
    "kai.scheduler/queue": f"{_TOP_OWNER}, else the pod (label)",
    "project": f"{_TOP_OWNER}, else the pod (label)",
    "kai.scheduler/node-pool": "pkg/podgrouper/pod_controller.go: the pod (label)",
    "priorityClassName": f"{_TOP_OWNER}, else the pod (label)",
    "kai.scheduler/preemptibility": f"{_TOP_OWNER} (label); without it, classes below 100 may be evicted",
    "kai.scheduler/preemption-delay": _TOP_OWNER,
    "kai.scheduler/staleness-grace-period": _TOP_OWNER,
    "kai.scheduler/task-priority": "pkg/scheduler/constants/labels/labels.go: the pod (label)",
    "kai.scheduler/subgroup-name": "pkg/podgrouper/pod_controller.go: the pod (label)",
    "kai.scheduler/skip-podgrouper": "pkg/podgrouper/pod_controller.go: the pod or any owner",
    "pod-group-name": "pkg/podgrouper/pod_controller.go: a pod without owner, or with skip-podgrouper",
    "gpu-fraction": "pkg/common/constants/constants.go: the pod",
    "gpu-memory": "pkg/common/constants/constants.go: the pod",
    "gpu-fraction-num-devices": "pkg/common/constants/constants.go: the pod",
    "gpu-fraction-container-name": "pkg/common/constants/constants.go: the pod",
    "mps": "pkg/common/constants/constants.go: the pod",
}


_TAS = "apis/kueue/v1beta2/topology_types.go: the pod template"


_KUEUE_PODS = "pkg/controller/jobs/pod/constants/constants.go: the pod"


_KUEUE_READS = {
    "kueue.x-k8s.io/queue-name": "pkg/controller/constants/constants.go: the object, or a pod (label)",
    "kueue.x-k8s.io/priority-class": "pkg/controller/constants/constants.go: the object (label)",
    "kueue.x-k8s.io/prebuilt-workload-name": "pkg/controller/constants/constants.go: the object (label)",
    "kueue.x-k8s.io/elastic-job": "apis/kueue/v1beta2/constants.go: the object",
    "kueue.x-k8s.io/job-min-parallelism": "pkg/controller/jobs/job/job_controller.go: a Job",
    "kueue.x-k8s.io/job-completions-equal-parallelism": "pkg/controller/jobs/job/job_controller.go: a Job",
    "kueue.x-k8s.io/podset-required-topology": _TAS,
    "kueue.x-k8s.io/podset-preferred-topology": _TAS,
    "kueue.x-k8s.io/podset-unconstrained-topology": _TAS,
    "kueue.x-k8s.io/podset-slice-required-topology": _TAS,
    "kueue.x-k8s.io/podset-slice-size": _TAS,
    "kueue.x-k8s.io/podset-slice-required-topology-constraints": _TAS,
    "kueue.x-k8s.io/podset-group-name": (
        f"{_TAS}; two pod sets, one of a single pod (pkg/controller/jobframework/tas_validation.go)"
    ),
    "kueue.x-k8s.io/pod-group-name": f"{_KUEUE_PODS} (label)",
    "kueue.x-k8s.io/pod-group-total-count": _KUEUE_PODS,
    "kueue.x-k8s.io/pod-group-fast-admission": _KUEUE_PODS,
    "kueue.x-k8s.io/pod-group-serving": _KUEUE_PODS,
    "kueue.x-k8s.io/retriable-in-group": _KUEUE_PODS,
}


FACTS = (
    SchedulerFacts(
        KAI,
        "KAI-Scheduler d5bc503a (August 2026)",
        tried=True,
        reads=_KAI_READS,
        queues=True,
        preempts=True,
        leaves="its PodGroups, reservation and scaling pods; the gate of gangs for which it evicts others",
    ),
    SchedulerFacts(
        RUNAI,
        "documents of Run:ai, on KAI-Scheduler d5bc503a",
        tried=False,
        reads={**_KAI_READS, "runai/queue": "Run:ai's documents: the object (label)"},
        queues=True,
        preempts=True,
        leaves="as KAI; the preferred level of workloads that state none is the one that it takes",
    ),
    SchedulerFacts(
        KUEUE,
        "Kueue v0.19.2 (August 2026)",
        tried=True,
        reads=_KUEUE_READS,
        queues=True,
        preempts=True,
        places=True,
        leaves="what is suspended, or waits at the gate kueue.x-k8s.io/admission, holds nothing; "
        "where a flavor has a topology, or a pod the gate kueue.x-k8s.io/topology, it assigns the nodes",
    ),
    SchedulerFacts(
        DEFAULT_SCHEDULER,
        "Kubernetes 1.36.3",
        tried=True,
        preempts=True,
        leaves="binding: a required node affinity and a scheduling gate are all that it is told",
    ),
)


FACTS_OF: Mapping[str, SchedulerFacts] = {row.name: row for row in FACTS}
"""The rows of `FACTS` by name."""
