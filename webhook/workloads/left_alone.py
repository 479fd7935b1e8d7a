"""What Bayplan leaves alone, whoever applied it: the cluster's own programs, and pods of DaemonSets. Pure.

Of these `70-webhooks.yaml` says the same, so that the API server does not even ask. Placeholders are left
alone too: pods of pause containers, by which people keep spare nodes of an autoscaler warm. So are pods
that Kueue places.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from planner.manifests.fields import maps
from planner.manifests.pods.gpu_sharing import RESERVATION_SPACES
from planner.model.errors import Where

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
"""Namespaces of the cluster's own programs. KAI marks shared GPUs by pods that are bound already, and asks
the autoscaler for nodes by pods that are not meant to run; the GPU operator tests each node by a pod."""


ON_EACH_NODE = "DaemonSet"
"""The kind of controller whose pods are bound to one node each, whatever anybody plans."""


def is_left_alone(namespace: str, controller: str) -> bool:
    """Whether an object there, made by a controller of this kind ("" for none), is not for Bayplan."""
    return namespace in NAMESPACES or controller == ON_EACH_NODE


_PAUSE = re.compile(r"(.*/)?pause(-[a-z0-9]+)?(:[^/]*)?(@.*)?")
"""`registry.k8s.io/pause:3.10`, `pause-amd64:3.2`, `…/eks/pause@sha256:…`."""


def is_placeholder(spec: Mapping[str, object], where: Where) -> bool:
    """Whether a pod of this spec does nothing: all its containers are pause containers. Raises `InputError`.

    It holds room until a pod of a higher priority comes; a plan, a queue or a scheduler of ours would make it
    something else.
    """
    images = [
        str(container.get("image") or "")
        for container in maps(spec.get("containers"), where.below("containers"))
    ]
    return bool(images) and all(map(_PAUSE.fullmatch, images))


KUEUE_TOPOLOGY_GATE = "kueue.x-k8s.io/topology"
"""The gate that Kueue puts onto templates when it admits a workload to a flavor with a topology
(Kueue ff69552e, pkg/podset/podset.go)."""


def is_placed_by_kueue(spec: Mapping[str, object], where: Where) -> bool:
    """Whether Kueue's Topology-Aware Scheduling has assigned the pods their nodes, and writes them onto each.
    Raises `InputError`.

    Another place would contradict that for ever, and what the plan holds would be used by nobody.
    """
    gates = maps(spec.get("schedulingGates"), where.below("schedulingGates"))
    return any(gate.get("name") == KUEUE_TOPOLOGY_GATE for gate in gates)
