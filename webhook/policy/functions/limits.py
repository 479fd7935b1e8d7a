"""CEL functions over LimitRanges and ResourceQuotas: plain JSON in, short texts out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from planner.manifests.pods.pod import effective_request
from planner.model import quantity
from planner.model.errors import Where
from planner.model.quantity import show
from webhook.cel import Function

Json = Any


PREFIXES = ("requests.", "limits.")


def broken(pod: Json, ranges: Json) -> list[str]:
    """`limits.broken(pod, ranges)`: a sentence for each bound of a LimitRange that the pod or one of its
    containers violates.

    Requests and limits count as equal, as the policy `guaranteed-qos` makes them: of a container that has
    both, only the limit is compared, and of the pod only the request.
    """
    spec = pod.get("spec") or {}
    texts: list[str] = []
    for limit_range in ranges or ():
        bounded: list[tuple[str, Mapping[str, int]]] = (
            [("the pod", effective_request({**spec, "overhead": {}}, Where()))]
            if limit_range["type"] == "Pod"
            else []
        )
        if limit_range["type"] == "Container":
            bounded = list(_containers(spec))
        for who, amounts in bounded:
            texts += _outside(who, amounts, limit_range)
    return texts


def _containers(spec: Mapping[str, Json]) -> Iterator[tuple[str, Mapping[str, int]]]:
    for part in ("initContainers", "containers"):
        for container in spec.get(part) or ():
            resources = container.get("resources") or {}
            limits = quantity.amounts(resources.get("limits"), Where(), up=True)
            requests = quantity.amounts(resources.get("requests"), Where(), up=True)
            yield f"container {container.get('name', '')}", {**requests, **limits}


def _outside(who: str, amounts: Mapping[str, int], limit_range: Mapping[str, Json]) -> Iterator[str]:
    for name, maximum in limit_range["max"].items():
        if amounts.get(name, 0) > maximum:
            amount, bound = show(name, amounts[name]), show(name, maximum)
            yield f"{who} has {amount} {name}, and LimitRange {limit_range['name']} allows at most {bound}"
    for name, minimum in limit_range["min"].items():
        if name in amounts and amounts[name] < minimum:
            amount, bound = show(name, amounts[name]), show(name, minimum)
            yield f"{who} has {amount} {name}, and LimitRange {limit_range['name']} wants at least {bound}"


def exceeded(gang: Json, quotas: Json) -> list[str]:
    """`quota.exceeded(gang, quotas)`: a sentence for each resource of which all pods of the workload together
    request more than a ResourceQuota has left.

    The requests are compared with quotas of limits too: the policy `guaranteed-qos` makes both equal for GPU
    pods, unless no node has as much as the limits.
    """
    total: dict[str, int] = {}
    for pod_set in gang["podSets"]:
        for name, amount in pod_set["resources"].items():
            # `replicas` is the number of gangs, 0 for an object without gangs, whose PodSets count once.
            total[name] = total.get(name, 0) + amount * pod_set["count"] * max(1, gang["replicas"])
    sentences = (
        f"its pods ask for {show(name, total[name])} {name}, and ResourceQuota {quota['name']} has "
        f"{show(name, left)} of {show(name, quota['hard'][key])} left"
        for quota in quotas or ()
        for key, left in quota["left"].items()
        if total.get(name := _resource(key), 0) > left
    )
    return [*dict.fromkeys(sentences)]  # that of requests may be that of limits


def _resource(key: str) -> str:
    return next((key.removeprefix(prefix) for prefix in PREFIXES if key.startswith(prefix)), key)


LIMIT_FUNCTIONS: Mapping[str, Function] = {
    "limits.broken": Function(broken, 2, 2),
    "quota.exceeded": Function(exceeded, 2, 2),
}
"""Name in CEL → the function, the fewest and the most arguments."""
