"""What Bayplan leaves alone, whoever applied it: the cluster's own programs, and pods of DaemonSets. Pure.

`70-webhooks.yaml` says the same, so that the API server does not even ask.
"""

from __future__ import annotations

from planner.manifests.gpu_sharing import RESERVATION_SPACES

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
