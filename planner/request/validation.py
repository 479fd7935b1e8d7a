"""Checks for contradictions that do not depend on the cluster, and `Refusal`, which all stages raise."""

from __future__ import annotations

from planner.model.podgroup import CountField, PodGroup, PodSet
from planner.model.quantity import LARGEST
from planner.model.resources import GPU_RESOURCES, MIG_PREFIX
from planner.node.gpu_sharing import share_in

MOST_PODS = 100_000
"""Maximum number of pods in a gang; a larger number counts as a typing error. Kubernetes is tested with
150,000 pods in a cluster.
"""


class Refusal(Exception):  # noqa: N818 - an answer, not a fault
    """The request can never be satisfied as stated. `reason`: the CamelCase token of the answer; `message`:
    its text.
    """

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        self.message = message
        super().__init__(message)


def check(group: PodGroup) -> None:
    """Raises `Refusal` for a request that is contradictory whatever the topology."""
    if not group.pod_sets or group.size == 0:
        raise Refusal("NoPods", f"{group.name} asks for no pods; nothing is to be placed.")
    names = [pod_set.name for pod_set in group.pod_sets]
    for name in names:
        if names.count(name) > 1:
            raise Refusal("DuplicatePodSet", f"Two pod sets are named {name!r}; give each its own name.")
    for pod_set in group.pod_sets:
        _check_set(pod_set)
    if group.size > MOST_PODS:
        largest = max(group.pod_sets, key=lambda pod_set: pod_set.count)
        bound = f"{MOST_PODS} are the most{_in_field(largest.count_field)}"
        raise Refusal("TooManyPods", f"{group.size} pods in one gang; {bound}.")


def _in_field(field: CountField) -> str:
    """Returns the name of the field with a number of pods in brackets, "" if there is no single one."""
    return f" ({field.name})" if field.path else ""


def _check_set(pod_set: PodSet) -> None:
    if pod_set.count < 0:
        raise Refusal("NegativeCount", f"{pod_set.name} has {pod_set.count} pods; use 0 or more.")
    if 0 < pod_set.max_count < pod_set.count:
        raise Refusal(
            "MinimumAboveMaximum",
            f"{pod_set.title or pod_set.name} needs {pod_set.count} pods at least and may have "
            f"{pod_set.max_count} at most; use a minimum of {pod_set.max_count} or less"
            f"{_in_field(pod_set.count_field)}.",
        )
    share = share_in(pod_set.shape.requests)
    whole = [name for name in pod_set.shape.requests if name in GPU_RESOURCES or name.startswith(MIG_PREFIX)]
    if share and whole:
        raise Refusal(
            "PartAndWholeGpu",
            f"{pod_set.name} asks for {share.words()} (annotation {share.name.partition('/')[0]}) and for "
            f"{whole[0]}; KAI gives a pod one of the two. Would work: without the annotation, or without "
            f"the limit of {whole[0]}.",
        )
    for resource, amount in pod_set.shape.requests.items():
        if not 0 <= amount <= LARGEST:
            message = f"{pod_set.name} asks for {amount} of {resource}; use 0 to {LARGEST}."
            raise Refusal("AbsurdQuantity", message)
