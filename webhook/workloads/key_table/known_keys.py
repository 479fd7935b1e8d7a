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
from planner.manifests.pods.pod_affinity import JOB_KEY, JOBSET_PRIORITY
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
    EXCLUSIVE_JOBSET,
    EXCLUSIVE_LWS,
    GANG_OF,
    PLACEMENT,
    POD_SET,
    POLICIES,
    QUEUED_GATE,
    RESERVATION,
    RESTARTABLE,
    SKIP,
    SUBGROUP_SIZE,
)
from webhook.workloads.keys.topology_keys import (
    KEYS,
    OBJECT_AND_TEMPLATE,
    OLD_SCOPE,
    PREFERRED_LEVEL,
    REQUIRED_LEVEL,
    SCOPES,
    Key,
    Meaning,
)
from webhook.workloads.layouts.exclusive_placement import GROUP_KEY
from webhook.workloads.layouts.kubernetes import BATCH_MIN_MEMBER
from webhook.workloads.layouts.placement_groups import BY_NODES, EXCLUSIVE_SUBGROUP
from webhook.workloads.left_alone import KUEUE_ADMISSION_GATE, KUEUE_TOPOLOGY_GATE, MULTIKUEUE
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
from webhook.workloads.queues import KUEUE_QUEUE
from webhook.workloads.shared_gangs.pod_groups import GROUP_ANNOTATIONS, KUEUE_GROUP, KUEUE_TOTAL, SUBGROUPS

Form = Literal["annotation", "label", "taint", "scheduling gate", "managedBy"]
Use = Literal["read", "written", "read and written"]
"""What Bayplan or its policies do with a key."""
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
    "required": "the level of which one domain must hold the whole gang: a label key, or its short name",
    "preferred": "the level of which one domain should hold the whole gang",
    "unconstrained": "any nodes; Kueue counts the pods in its topology",
    "slice": "the level of which one domain must hold each slice (segment) of the gang",
    "slice-preferred": "the level that should hold each slice; not followed, with a warning",
    "slice-size": "the number of pods in a slice",
    "together": "PodSets with the same value share one domain",
    "gpu-count": "the number of GPUs that the gang needs (nod-ai)",
    "preferred-domain": "the domain to try first (nod-ai)",
    "bandwidth": "the minimum bandwidth between nodes, such as 200Gb (nod-ai)",
    "latency": "prefer the fewest hops between leaves (nod-ai)",
    "strategy": "how the gang's nodes are spread over leaves (nod-ai)",
    "part": "a share of a GPU (KAI's GPU sharing)",
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
    place = "workloads" if "template" not in key.places else places
    use: Use = "read and written" if key.name in _WRITTEN_BY_POLICIES else "read"
    alone = "the node label of which one domain must hold the whole job or replica, and no other"
    says = alone if key.name in (EXCLUSIVE_JOBSET, EXCLUSIVE_LWS) else _MEANINGS[key.meaning]
    return KnownKey(key.name, "annotation", place, use, says, key.values)


_EITHER = "workloads or pod templates"
_PODS, _NODES, _TOPOLOGIES = "pods", "nodes", "Topology objects"


_OWN = (
    KnownKey(GANG, "annotation", _EITHER, "read", "the gang's name; pods with the same name start together"),
    KnownKey(GANG_SIZE, "annotation", _EITHER, "read", "the number of pods in the gang"),
    KnownKey(
        GANG_RESOURCES, "annotation", "workloads, pod templates or PodGroups", "read",
        "the requests of the gang's pods that do not exist yet, such as `nvidia.com/gpu=4,cpu=8`, or those "
        "of each part with its number of pods: `4 prefill: nvidia.com/gpu=8,cpu=32; router: cpu=2`",
    ),
    KnownKey(GANG_MIN, "annotation", _EITHER, "read", "the minimum number of pods that start together"),
    KnownKey(RESERVE, "annotation", _EITHER, "read", "what the gang reserves", RESERVE_MODES),
    KnownKey(
        ON_UNAVAILABLE, "annotation", _EITHER, "read",
        "what happens to a gang that does not fit now", ON_UNAVAILABLE_MODES,
    ),
    KnownKey(
        BALANCED, "annotation", _EITHER, "read",
        "slices are spread evenly over the domains above their level", _TRUTH,
    ),
    KnownKey(SKIP, "annotation", _EITHER, "read", "the object is neither planned nor changed", _TRUTH),
    KnownKey(
        RESTARTABLE, "label", _EITHER, "read",
        "whether `bayplan defrag` may move the pods, which restarts them", _TRUTH,
    ),
    KnownKey(
        DEFRAGMENTATION, "annotation", _NODES, "read and written",
        "`bayplan defrag --apply` has cordoned the node; `--resume` continues, `--undo` uncordons", ("JSON",),
    ),
    KnownKey(
        MODE, "label", "namespaces", "read",
        "whether Bayplan acts in the namespace, or only reports what it would do",
        NAMESPACE_MODES,
    ),
    KnownKey(
        NUMA_ALIGNMENT, "annotation", "pod templates", "read and written",
        "the plan ignores NUMA zones; written by `numa-alignment`", ("warn",),
    ),
    *(
        KnownKey(f"bayplan.dev/gpu-{name}", "annotation", _EITHER, "read", f"{says} (`gfd-affinity`)")
        for name, says in (
            ("product", "the allowed GPU products, separated by commas"),
            ("family", "the GPUs' architecture, such as hopper"),
            ("memory", "the minimum memory of each GPU, such as 80G"),
            ("count", "the minimum number of GPUs of a node"),
            ("interconnect", "nodes with NVSwitch only: nvswitch"),
        )
    ),
    KnownKey(
        RESERVATION, "annotation", "workloads, templates and pods", "read and written",
        "the gang's reservation",
    ),
    KnownKey(PLACEMENT, "annotation", "workloads and templates", "written", "a summary of the plan, as JSON"),
    KnownKey(
        POLICIES, "annotation", "workloads", "written",
        "the policies that changed the object, and their revision",
    ),
    KnownKey(
        APPLIED, "annotation", "workloads", "read and written",
        "digests of the pod templates that Bayplan changed",
    ),
    KnownKey(
        POD_SET, "annotation", "pod templates", "read and written",
        "the PodSet that the template's pods belong to",
    ),
    KnownKey(
        GANG_OF, "annotation", "pod templates", "read and written",
        "the gang that the template's pods belong to",
    ),
    KnownKey("bayplan.dev/revision", "annotation", "Reports", "written", "the policies' revision"),
    KnownKey(
        "bayplan.dev/templates", "annotation", "policies", "read",
        "a Kubernetes admission policy also runs on pod templates", _TRUTH,
    ),
    KnownKey(
        "bayplan.dev/description", "annotation", "policies", "read",
        "one line that describes the policy",
    ),
    KnownKey(
        NCCL_TEST, "label", _PODS, "written",
        "worker pods of the job that `bayplan verify --job` prints",
    ),
    KnownKey(
        RESERVABLE_KEY, "annotation", _TOPOLOGIES, "read",
        "the highest level whose domains a gang may reserve as a whole",
    ),
    KnownKey(
        SELECTOR_KEY, "annotation", _TOPOLOGIES, "read and written",
        "a selector for the topology's nodes",
    ),
    KnownKey(OVERSUBSCRIPTION_KEY, "annotation", _TOPOLOGIES, "read", "the oversubscription of each level"),
    KnownKey(
        ADAPTER_KEY, "annotation", _TOPOLOGIES, "read",
        "the speed of each node's network adapter, in Gb/s",
    ),
    KnownKey(POLICY_LABEL, "label", _NODES, "read", "the kubelet's Topology Manager policy"),
    KnownKey(SCOPE_LABEL, "label", _NODES, "read", "the Topology Manager's scope"),
    KnownKey(GPUS_LABEL, "label", _NODES, "read", "the number of GPUs of each NUMA node"),
    KnownKey(
        RESERVED_TAINT, "taint", _NODES, "read and written",
        "a gang has reserved the whole domain of the node",
    ),
    KnownKey(KUEUE_ADMISSION_GATE, "scheduling gate", _PODS, "read", "Kueue has not admitted the pods"),
    KnownKey(KUEUE_TOPOLOGY_GATE, "scheduling gate", _PODS, "read", "Kueue places the pods: not planned"),
    KnownKey(MULTIKUEUE, "managedBy", "workloads", "read", "Kueue runs it in another cluster: not planned"),
    KnownKey(QUEUED_GATE, "scheduling gate", _PODS, "read and written", "the gang waits for a place"),
)  # fmt: skip


_OTHERS = (
    KnownKey(
        EXCLUSIVE_SUBGROUP, "annotation", "LeaderWorkerSets", "read",
        "the level of which each subgroup gets a domain of its own; not planned, with a warning",
    ),
    KnownKey(
        SUBGROUP_SIZE, "annotation", _PODS, "read", "the pods of a segment, with KAI's segment level"
    ),
    KnownKey(
        BATCH_MIN_MEMBER, "annotation", "workloads", "read and written",
        "the number of pods that start together",
    ),
    KnownKey("kai.scheduler/queue", "label", "workloads and pods", "read and written", "KAI's queue"),
    KnownKey(
        "kai.scheduler/preemptibility", "label", "workloads and pods", "read",
        "whether KAI may preempt the pods; `bayplan defrag` may then move them",
    ),
    KnownKey(
        "kai.scheduler/node-pool", "label", "nodes, workloads and pods", "read",
        "the node pool of KAI and Run:ai",
    ),
    KnownKey(
        "runai/queue", "label", "workloads and namespaces", "read",
        "Run:ai's queue; marks Run:ai's workloads",
    ),
    KnownKey(KUEUE_QUEUE, "label", "workloads", "read and written", "Kueue's local queue"),
    KnownKey(
        KUEUE_WORKLOAD, "annotation", _PODS, "read",
        "Kueue's Workload; the pod uses a place that Kueue has assigned to it",
    ),
    KnownKey(
        KUEUE_MANAGED, "label", _PODS, "read",
        "Kueue gates the pod, and writes the flavor's node labels and tolerations onto it",
    ),
    KnownKey(KUEUE_GROUP, "label", _PODS, "read", "the gang's name"),
    KnownKey(KUEUE_TOTAL, "annotation", _PODS, "read", "the number of pods in the gang"),
    *(KnownKey(name, "annotation", _PODS, "read", "the PodGroup of a pod") for name in GROUP_ANNOTATIONS),
    KnownKey(
        "kai.scheduler/skip-podgrouper", "annotation", _PODS, "written",
        "KAI creates no PodGroup for these pods", ("true",),
    ),
    KnownKey("scheduling.x-k8s.io/pod-group", "label", _PODS, "read", "the PodGroup (`native-gang`)"),
    *(
        KnownKey(name, form, _PODS, "read", "the pod's part in its gang: prefill, decode, worker")
        for name in SUBGROUPS for form in _LABEL_OR_ANNOTATION
    ),
    KnownKey(
        "app.kubernetes.io/component", "label", _EITHER, "read",
        "the pod's part in its gang, if no other key states it",
    ),
    KnownKey(OLD_SCOPE, "annotation", _PODS, "read", "Run:ai's scope, or a policy of KAI", tuple(SCOPES)),
    KnownKey(GROUP_LABEL, "label", _PODS, "read", "the GPU that the pods share, by KAI's name for it"),
    KnownKey("jobset.sigs.k8s.io/jobset-name", "label", _PODS, "read", "the JobSet of a pod"),
    KnownKey("jobset.sigs.k8s.io/replicatedjob-name", "label", _PODS, "read", "the pod's replicated job"),
    KnownKey(
        "jobset.sigs.k8s.io/job-global-index", "label", _PODS, "read",
        "the index of the pod's Job in the JobSet",
    ),
    KnownKey(JOB_KEY, "label", _PODS, "read", "the Job of a pod, for exclusive placement"),
    KnownKey(BY_NODES, "annotation", "JobSets", "read", "exclusive placement by labelled nodes; not planned"),
    KnownKey(JOBSET_PRIORITY, "label", _PODS, "read", "exempts no pod from exclusive placement"),
    KnownKey("leaderworkerset.sigs.k8s.io/name", "label", _PODS, "read", "the LeaderWorkerSet of a pod"),
    KnownKey(
        "leaderworkerset.sigs.k8s.io/group-index", "label", _PODS, "read",
        "the index of the pod's group in the LeaderWorkerSet",
    ),
    KnownKey(
        GROUP_KEY, "label", _PODS, "read",
        "the group of a pod, in `matchLabelKeys` of affinity and spread, and for exclusive placement",
    ),
    KnownKey("training.kubeflow.org/job-name", "label", _PODS, "read", "the training job of a pod"),
    KnownKey(PRODUCT_LABEL, "label", _NODES, "read", "the GPUs' product"),
    KnownKey(FAMILY_LABEL, "label", _NODES, "read", "the GPUs' architecture"),
    KnownKey(MEMORY_LABEL, "label", _NODES, "read", "the memory of each GPU, in MiB"),
    KnownKey(COUNT_LABEL, "label", _NODES, "read", "the number of GPUs"),
    KnownKey(SHARING_LABEL, "label", _NODES, "read", "how the GPUs are shared, if they are"),
    KnownKey(CLIQUE_LABEL, "label", _NODES, "read", "the NVLink clique: cluster UUID and clique"),
    KnownKey(MIG_STRATEGY_LABEL, "label", _NODES, "read", "single or mixed"),
    KnownKey(MIG_CONFIG_LABEL, "label", _NODES, "read", "the MIG configuration that the MIG manager applies"),
    KnownKey(MIG_STATE_LABEL, "label", _NODES, "read", "the state of the MIG manager's change"),
    KnownKey(NVSWITCH_LABEL, "label", _NODES, "read", "whether NVSwitch connects the GPUs"),
    KnownKey(NVLINK_DOMAIN, "label", _NODES, "read", "the NVLink domain"),
    KnownKey(
        NVLINK_SIZE, "label", _NODES, "read",
        "the number of GPUs of each NVLink domain inside the host",
    ),
    KnownKey(INTERCONNECT_LABEL, "label", _NODES, "read", "what connects the GPUs of the host"),
    KnownKey(NVLINK_VERSION_LABEL, "label", _NODES, "read", "the generation of the host's NVLink"),
    *(
        KnownKey(label, "label", _NODES, "read", "a provider that adds tolerations for extended resources")
        for label in TOLERATING
    ),
    KnownKey(NODE_POOL_LABEL, "label", _NODES, "read", "Karpenter's NodePool, which can add nodes"),
    KnownKey(MOST_NODES, "annotation", "MachineDeployments", "read", "the maximum number of nodes"),
    *(
        KnownKey(key, "annotation", "MachineDeployments", "read", f"{resource} of a new node")
        for resource, key in CAPACITY.items()
    ),
    KnownKey(BOUND, "annotation", "PersistentVolumeClaims", "read", "the claim is bound"),
    KnownKey(
        SELECTED_NODE, "annotation", "PersistentVolumeClaims", "read",
        "the node for which the volume is provisioned",
    ),
    KnownKey(
        DEFAULT_CLASS, "annotation", "StorageClasses", "read",
        "the default class, for claims that name none",
    ),
    KnownKey(
        OLD_CLASS, "annotation", "PersistentVolumeClaims, PersistentVolumes", "read",
        "the class, in the annotation of old Kubernetes versions"
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
