"""Objects that Bayplan ignores, whoever applied them. Pure.

They are the cluster's own programs and the pods of DaemonSets: `70-webhooks.yaml` contains these rules too,
so that the API server does not call the webhook for such objects. The webhook itself recognises the others:
placeholders (pods of pause containers, with which users make an autoscaler keep spare nodes), pods that Kueue
places, and objects that Kueue runs in another cluster.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from planner.manifests.fields import maps
from planner.manifests.pods.gpu_sharing import RESERVATION_SPACES
from planner.model.errors import Where
from webhook.workloads.fields import Field

NAMESPACES = (
    "kube-system",
    "kube-node-lease",
    "kube-public",
    "bayplan-system",
    *RESERVATION_SPACES,
    "kai-scale-adjust",
    "kai-scheduler",
    "runai",
    "runai-scale-adjust",
    "gpu-operator",
    "nvidia-gpu-operator",
    "network-operator",
    "nvidia-network-operator",
    "node-feature-discovery",
    "kueue-system",
    "jobset-system",
    "lws-system",
)
"""Namespaces of the cluster's own programs. KAI marks shared GPUs with pods that are already bound, and
requests nodes from the autoscaler with pods that are not meant to run; the GPU operator tests each node with
a pod.
"""


ON_EACH_NODE = "DaemonSet"
"""The kind of controller whose pods are each bound to a fixed node."""


def is_left_alone(namespace: str, controller: str) -> bool:
    """Returns whether an object in this namespace, whose controller is of this kind ("" for none), is
    ignored."""
    return namespace in NAMESPACES or controller == ON_EACH_NODE


_PAUSE = re.compile(r"(.*/)?pause(-[a-z0-9]+)?(:[^/]*)?(@.*)?")
"""`registry.k8s.io/pause:3.10`, `pause-amd64:3.2`, `…/eks/pause@sha256:…`."""


def is_placeholder(spec: Mapping[str, object], where: Where) -> bool:
    """Returns whether all containers of a pod with this spec are pause containers.

    Such a pod keeps room until a pod of higher priority comes. A plan, a queue or another scheduler would
    defeat its purpose. Raises `InputError` if `containers` is malformed.
    """
    images = [
        str(container.get("image") or "")
        for container in maps(spec.get("containers"), where.below("containers"))
    ]
    return bool(images) and all(map(_PAUSE.fullmatch, images))


KUEUE_ADMISSION_GATE = "kueue.x-k8s.io/admission"
"""Kueue's gate on pods whose workload is not admitted (Kueue ff69552e, pkg/controller/jobs/pod)."""


KUEUE_TOPOLOGY_GATE = "kueue.x-k8s.io/topology"
"""The gate that Kueue adds to templates when it admits a workload to a flavor with a topology (Kueue
ff69552e, pkg/podset/podset.go).
"""


MULTIKUEUE = "kueue.x-k8s.io/multikueue"
"""The `managedBy` of objects whose pods Kueue creates in another cluster (KEP-4368)."""


def is_run_elsewhere(spec: Field) -> bool:
    """Returns whether Kueue runs an object with this spec in another cluster: the object's own controller
    creates no pods for it here, and a plan would reserve a place that nobody uses. Raises `InputError` if
    the spec is malformed.
    """
    return MULTIKUEUE in (spec.get("managedBy").value, spec.get("runPolicy", "managedBy").value)


def is_placed_by_kueue(gates: Field) -> bool:
    """Returns whether Kueue's Topology-Aware Scheduling assigns the nodes of pods with these gates.

    Kueue writes the nodes onto each pod. Any other plan would contradict them, and its reservation would
    never be used. Raises `InputError` if the gates are malformed.
    """
    return any(gate.get("name").value == KUEUE_TOPOLOGY_GATE for gate in gates.items())
