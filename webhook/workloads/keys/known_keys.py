"""The table of every annotation, label, taint and gate that Bayplan or its policies read or write.

docs/reference/keys.md is generated from it (`python -m tests.docs.generate_keys`), and a similar key in an
object gets a warning with the right one (`misspelt_keys`). The meanings of topology keys are defined in
`topology_keys`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from planner.cluster.infrastructure import TOLERATING
from planner.manifests.growth import CAPACITY, MOST_NODES, NODE_POOL_LABEL
from planner.manifests.nccl_job import LABEL as NCCL_TEST
from planner.manifests.pods.bound_pod import KUEUE_WORKLOAD
from planner.manifests.pods.gpu_sharing import GROUP_LABEL
from planner.manifests.pods.pod import KUEUE_MANAGED
from planner.manifests.topologies.objects import (
    ADAPTER_KEY,
    OVERSUBSCRIPTION_KEY,
    RESERVABLE_KEY,
    SELECTOR_KEY,
)
from planner.manifests.volumes import BOUND, DEFAULT_CLASS, OLD_CLASS, SELECTED_NODE
from planner.model.labels import RESERVED_TAINT
from planner.model.resources import (
    CLIQUE_LABEL,
    COUNT_LABEL,
    FAMILY_LABEL,
    INTERCONNECT_LABEL,
    MEMORY_LABEL,
    MIG_CONFIG_LABEL,
    MIG_STATE_LABEL,
    MIG_STRATEGY_LABEL,
    NVLINK_VERSION_LABEL,
    NVSWITCH_LABEL,
    PRODUCT_LABEL,
    SHARING_LABEL,
)
from planner.node.nvlink import NVLINK_SIZE
from planner.node.topology_manager import GPUS_LABEL, POLICY_LABEL, SCOPE_LABEL
from planner.request.levels import NVLINK_DOMAIN
from webhook.workloads.gangs import NUMA_ALIGNMENT
from webhook.workloads.keys.annotation_keys import (
    APPLIED,
    DEFRAGMENTATION,
    GANG_OF,
    PLACEMENT,
    POD_SET,
    POLICIES,
    QUEUED_GATE,
    RESERVATION,
    RESTARTABLE,
    SKIP,
)
from webhook.workloads.keys.topology_keys import (
    KEYS,
    OBJECT,
    OBJECT_AND_TEMPLATE,
    OLD_SCOPE,
    PREFERRED_LEVEL,
    REQUIRED_LEVEL,
    SCOPES,
    Key,
    Meaning,
)
from webhook.workloads.layouts import BATCH_MIN_MEMBER
from webhook.workloads.left_alone import KUEUE_ADMISSION_GATE, KUEUE_TOPOLOGY_GATE
from webhook.workloads.options import (
    BALANCED,
    GANG,
    GANG_MIN,
    GANG_RESOURCES,
    GANG_SIZE,
    MODE,
    NAMESPACE_MODES,
    ON_UNAVAILABLE,
    ON_UNAVAILABLE_MODES,
    RESERVE,
    RESERVE_MODES,
)
from webhook.workloads.pod_groups import GROUP_ANNOTATIONS, KUEUE_GROUP, KUEUE_TOTAL, SUBGROUPS
from webhook.workloads.reader import KUEUE_QUEUE

Form = Literal["annotation", "label", "taint", "scheduling gate"]
Use = Literal["read", "written", "read and written"]


_TRUTH = ("true", "false")


_LABEL_OR_ANNOTATION: tuple[Form, ...] = ("label", "annotation")


@dataclass(frozen=True, slots=True)
class KnownKey:
    """A key. `place`: the objects that carry it. `says`: its meaning, for the reference. `values`: the valid
    values; () for any.
    """

    name: str
    form: Form
    place: str
    use: Use
    says: str
    values: tuple[str, ...] = ()


_MEANINGS: Mapping[Meaning, str] = {
    "topology": "the topology by name",
    "required": "the level that must hold the gang whole: a label key, or its short name",
    "preferred": "the level that should hold it",
    "unconstrained": "any place, counted by Kueue against its topology",
    "slice": "the level that must hold each slice (segment) of the gang",
    "slice-preferred": "the level that should hold each slice; it is told that this is not followed",
    "slice-size": "how many pods make a slice",
    "together": "pod sets with the same name share one domain",
    "gpu-count": "how many GPUs the gang needs, by nod-ai's rules",
    "preferred-domain": "the domain to try first, by nod-ai's rules",
    "bandwidth": "the bandwidth that the gang needs, such as 200Gb, by nod-ai's rules",
    "latency": "one leaf is better than several, by nod-ai's rules",
    "strategy": "over how many leaves nodes are spread, by nod-ai's rules",
    "part": "a part of a GPU, by KAI's GPU sharing",
}


_WRITTEN_BY_POLICIES = frozenset(
    (
        REQUIRED_LEVEL,
        PREFERRED_LEVEL,
        "kai.scheduler/topology",
        "kai.scheduler/topology-required-placement",
        "kai.scheduler/topology-preferred-placement",
        "kai.scheduler/segment-size",
        "kai.scheduler/segment-topology-required-placement",
        "kueue.x-k8s.io/podset-required-topology",
        "kueue.x-k8s.io/podset-preferred-topology",
        "kueue.x-k8s.io/podset-slice-required-topology",
        "kueue.x-k8s.io/podset-slice-size",
        "kueue.x-k8s.io/podset-group-name",
    )
)
"""Topology keys that the policies `kai-topology`, `kueue-topology`, `runai-defaults` or `native-gang` write
too.
"""


def _topology(key: Key) -> KnownKey:
    places = "workloads and pod templates" if key.places == OBJECT_AND_TEMPLATE else "pod templates"
    place = "workloads" if key.places == OBJECT else places
    use: Use = "read and written" if key.name in _WRITTEN_BY_POLICIES else "read"
    return KnownKey(key.name, "annotation", place, use, _MEANINGS[key.meaning], key.values)


_EITHER = "workloads or pod templates"
_PODS, _NODES, _TOPOLOGIES = "pods", "nodes", "Topology objects"


_OWN = (
    KnownKey(GANG, "annotation", _EITHER, "read", "the gang's name: pods that carry it start together"),
    KnownKey(GANG_SIZE, "annotation", _EITHER, "read", "how many pods the gang has"),
    KnownKey(
        GANG_RESOURCES, "annotation", "workloads, pod templates or PodGroups", "read",
        "what each pod of the gang asks for that is not known yet, such as `nvidia.com/gpu=4,cpu=8`, or "
        "those of each part with their number: `4 prefill: nvidia.com/gpu=8,cpu=32; router: cpu=2`",
    ),
    KnownKey(GANG_MIN, "annotation", _EITHER, "read", "how many of them must start together at least"),
    KnownKey(RESERVE, "annotation", _EITHER, "read", "what the gang holds", RESERVE_MODES),
    KnownKey(
        ON_UNAVAILABLE, "annotation", _EITHER, "read",
        "what becomes of a gang without a place now", ON_UNAVAILABLE_MODES,
    ),
    KnownKey(BALANCED, "annotation", _EITHER, "read", "slices lie evenly over higher domains", _TRUTH),
    KnownKey(SKIP, "annotation", _EITHER, "read", "no plan and no mutation", _TRUTH),
    KnownKey(
        RESTARTABLE, "label", _EITHER, "read",
        "whether `bayplan defrag` may move the pods, which restarts them", _TRUTH,
    ),
    KnownKey(
        DEFRAGMENTATION, "annotation", _NODES, "read and written",
        "`bayplan defrag --apply` has cordoned it; `--resume` goes on, `--undo` uncordons it", ("JSON",),
    ),
    KnownKey(
        MODE, "label", "namespaces", "read", "whether Bayplan acts there, or only tells what it would do",
        NAMESPACE_MODES,
    ),
    KnownKey(
        NUMA_ALIGNMENT, "annotation", "pod templates", "read and written",
        "NUMA zones are left aside in the plan; written by `numa-alignment`", ("warn",),
    ),
    *(
        KnownKey(f"bayplan.dev/gpu-{name}", "annotation", _EITHER, "read", f"{says} (`gfd-affinity`)")
        for name, says in (
            ("product", "GPU products to choose from, with commas"),
            ("family", "the GPUs' architecture, such as hopper"),
            ("memory", "the least memory of each GPU, such as 80G"),
            ("count", "the least number of GPUs of a node"),
            ("interconnect", "nodes with NVSwitch only: nvswitch"),
        )
    ),
    KnownKey(
        RESERVATION, "annotation", "workloads, templates and pods", "read and written",
        "the gang's reservation",
    ),
    KnownKey(PLACEMENT, "annotation", "workloads and templates", "written", "the plan in short, as JSON"),
    KnownKey(POLICIES, "annotation", "workloads", "written", "the policies that ran, and their revision"),
    KnownKey(APPLIED, "annotation", "workloads", "read and written", "digests of the templates"),
    KnownKey(POD_SET, "annotation", "pod templates", "read and written", "which PodSet its pods are"),
    KnownKey(GANG_OF, "annotation", "pod templates", "read and written", "the gang of a set's pods"),
    KnownKey("bayplan.dev/revision", "annotation", "Reports", "written", "the policies' revision"),
    KnownKey(
        "bayplan.dev/templates", "annotation", "policies", "read",
        "a policy of Kubernetes' runs on pod templates too", _TRUTH,
    ),
    KnownKey("bayplan.dev/description", "annotation", "policies", "read", "what the policy does, in a line"),
    KnownKey(NCCL_TEST, "label", _PODS, "written", "workers of the job that `bayplan verify --job` prints"),
    KnownKey(RESERVABLE_KEY, "annotation", _TOPOLOGIES, "read", "the highest level that is held whole"),
    KnownKey(SELECTOR_KEY, "annotation", _TOPOLOGIES, "read and written", "the nodes that belong to it"),
    KnownKey(OVERSUBSCRIPTION_KEY, "annotation", _TOPOLOGIES, "read", "how far each level is oversubscribed"),
    KnownKey(ADAPTER_KEY, "annotation", _TOPOLOGIES, "read", "Gb/s of each node's adapter"),
    KnownKey(POLICY_LABEL, "label", _NODES, "read", "the kubelet's Topology Manager policy"),
    KnownKey(SCOPE_LABEL, "label", _NODES, "read", "the Topology Manager's scope"),
    KnownKey(GPUS_LABEL, "label", _NODES, "read", "GPUs in each NUMA node"),
    KnownKey(RESERVED_TAINT, "taint", _NODES, "read and written", "a gang holds the node's domain whole"),
    KnownKey(KUEUE_ADMISSION_GATE, "scheduling gate", _PODS, "read", "Kueue has not admitted the pods"),
    KnownKey(KUEUE_TOPOLOGY_GATE, "scheduling gate", _PODS, "read", "Kueue places the pods: not planned"),
    KnownKey(QUEUED_GATE, "scheduling gate", _PODS, "read and written", "the gang waits for a place"),
)  # fmt: skip


_OTHERS = (
    KnownKey(BATCH_MIN_MEMBER, "annotation", "workloads", "read and written", "how many pods start together"),
    KnownKey("kai.scheduler/queue", "label", "workloads and pods", "read and written", "KAI's queue"),
    KnownKey(
        "kai.scheduler/preemptibility", "label", "workloads and pods", "read",
        "whether KAI may preempt the pods, and so `bayplan defrag` move them",
    ),
    KnownKey(
        "kai.scheduler/node-pool", "label", "nodes, workloads and pods", "read",
        "the node pool of KAI and Run:ai",
    ),
    KnownKey("runai/queue", "label", "workloads and namespaces", "read", "Run:ai's queue: its workloads"),
    KnownKey(KUEUE_QUEUE, "label", "workloads", "read and written", "Kueue's local queue"),
    KnownKey(
        KUEUE_WORKLOAD, "annotation", _PODS, "read",
        "Kueue's Workload: the pod takes a place that Kueue has assigned to that",
    ),
    KnownKey(
        KUEUE_MANAGED, "label", _PODS, "read",
        "Kueue gates the pod, and writes the flavor's node labels and tolerations onto it",
    ),
    KnownKey(KUEUE_GROUP, "label", _PODS, "read", "the gang's name"),
    KnownKey(KUEUE_TOTAL, "annotation", _PODS, "read", "how many pods the gang has"),
    *(KnownKey(name, "annotation", _PODS, "read", "the PodGroup of a pod") for name in GROUP_ANNOTATIONS),
    KnownKey(
        "kai.scheduler/skip-podgrouper", "annotation", _PODS, "written",
        "KAI makes no PodGroup of its own for these pods", ("true",),
    ),
    KnownKey("scheduling.x-k8s.io/pod-group", "label", _PODS, "read", "the PodGroup (`native-gang`)"),
    *(
        KnownKey(name, form, _PODS, "read", "the part of its gang that a pod plays: prefill, decode, worker")
        for name in SUBGROUPS for form in _LABEL_OR_ANNOTATION
    ),
    KnownKey("app.kubernetes.io/component", "label", _EITHER, "read", "the same, where no other key says it"),
    KnownKey(OLD_SCOPE, "annotation", _PODS, "read", "Run:ai's scope, or a policy of KAI", tuple(SCOPES)),
    KnownKey(GROUP_LABEL, "label", _PODS, "read", "the GPU that pods share, by KAI's name"),
    KnownKey("jobset.sigs.k8s.io/jobset-name", "label", _PODS, "read", "the JobSet of a pod"),
    KnownKey("jobset.sigs.k8s.io/replicatedjob-name", "label", _PODS, "read", "its job in the JobSet"),
    KnownKey("jobset.sigs.k8s.io/job-global-index", "label", _PODS, "read", "its job's number there"),
    KnownKey("leaderworkerset.sigs.k8s.io/name", "label", _PODS, "read", "the LeaderWorkerSet of a pod"),
    KnownKey("leaderworkerset.sigs.k8s.io/group-index", "label", _PODS, "read", "its replica there"),
    KnownKey("training.kubeflow.org/job-name", "label", _PODS, "read", "the training job of a pod"),
    KnownKey(PRODUCT_LABEL, "label", _NODES, "read", "the GPUs' product"),
    KnownKey(FAMILY_LABEL, "label", _NODES, "read", "their architecture"),
    KnownKey(MEMORY_LABEL, "label", _NODES, "read", "their memory in MiB"),
    KnownKey(COUNT_LABEL, "label", _NODES, "read", "how many GPUs there are"),
    KnownKey(SHARING_LABEL, "label", _NODES, "read", "whether they are shared, and how"),
    KnownKey(CLIQUE_LABEL, "label", _NODES, "read", "the NVLink clique: cluster UUID and clique"),
    KnownKey(MIG_STRATEGY_LABEL, "label", _NODES, "read", "single or mixed"),
    KnownKey(MIG_CONFIG_LABEL, "label", _NODES, "read", "the split that the MIG manager makes"),
    KnownKey(MIG_STATE_LABEL, "label", _NODES, "read", "whether that split is under way"),
    KnownKey(NVSWITCH_LABEL, "label", _NODES, "read", "whether GPUs are joined by NVSwitch"),
    KnownKey(NVLINK_DOMAIN, "label", _NODES, "read", "the NVLink domain"),
    KnownKey(NVLINK_SIZE, "label", _NODES, "read", "GPUs of one NVLink domain inside the host"),
    KnownKey(INTERCONNECT_LABEL, "label", _NODES, "read", "how GPUs of the host are joined"),
    KnownKey(NVLINK_VERSION_LABEL, "label", _NODES, "read", "the generation of the host's NVLink"),
    *(
        KnownKey(label, "label", _NODES, "read", "a provider that adds tolerations for extended resources")
        for label in TOLERATING
    ),
    KnownKey(NODE_POOL_LABEL, "label", _NODES, "read", "Karpenter's NodePool, which may grow"),
    KnownKey(MOST_NODES, "annotation", "MachineDeployments", "read", "how many nodes it may have"),
    *(
        KnownKey(key, "annotation", "MachineDeployments", "read", f"{resource} of one more node")
        for resource, key in CAPACITY.items()
    ),
    KnownKey(BOUND, "annotation", "PersistentVolumeClaims", "read", "the claim is bound for good"),
    KnownKey(SELECTED_NODE, "annotation", "PersistentVolumeClaims", "read", "where its volume is being made"),
    KnownKey(DEFAULT_CLASS, "annotation", "StorageClasses", "read", "the class of claims that name none"),
    KnownKey(
        OLD_CLASS, "annotation", "PersistentVolumeClaims, PersistentVolumes", "read", "their class, formerly"
    ),
    KnownKey(
        "networking.gke.io/interfaces", "annotation", "pod templates", "written",
        "networks of GKE's RDMA adapters (`rdma-fabric`)",
    ),
    KnownKey(
        "networking.gke.io/default-interface", "annotation", "pod templates", "written",
        "the interface of all other traffic (`rdma-fabric`)",
    ),
    KnownKey(
        "k8s.v1.cni.cncf.io/networks", "annotation", "pod templates", "read and written",
        "network attachments of SR-IOV functions (`rdma-fabric`)",
    ),
)  # fmt: skip


KNOWN_KEYS: tuple[KnownKey, ...] = (*_OWN, *map(_topology, KEYS), *_OTHERS)
"""All keys; a key that may be a label or an annotation has a row for each."""
