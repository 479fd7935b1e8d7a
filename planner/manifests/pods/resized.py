"""What a bound pod uses on its node while its amounts change in place (Kubernetes 1.33 and later).

Source: `PodRequests` with `UseStatusResources` (k8s.io/component-helpers, resource/helpers.go).
Of each resource the largest counts: the request in the spec, what the kubelet has allocated, and what the
running containers have. If the kubelet says that the node can never give the request (`PodResizePending`
with the reason `Infeasible`), the spec does not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from planner.manifests.fields import mapping, maps
from planner.manifests.pods.pod import effective_request
from planner.model.errors import Where

_Stage = Literal["allocated", "running"]

_LISTS = (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses"))


def used_request(spec: Mapping[str, object], status: Mapping[str, object], where: Where) -> dict[str, int]:
    """Returns what the scheduler counts for a bound pod, as `effective_request` does for a new one. `where`:
    the pod. Raises `InputError`.
    """
    place = where.at_path("spec")
    infeasible = any(
        condition.get("type") == "PodResizePending" and condition.get("reason") == "Infeasible"
        for condition in maps(status.get("conditions"), where)
    )
    if not infeasible and not _is_resized(spec, status, where):
        return effective_request(spec, place)
    requests = {} if infeasible else effective_request(spec, place)
    stages: tuple[_Stage, _Stage] = ("allocated", "running")
    for stage in stages:
        for name, amount in effective_request(
            _at_stage(spec, status, stage, infeasible, where), place
        ).items():
            requests[name] = max(requests.get(name, 0), amount)
    return requests


def _is_resized(spec: Mapping[str, object], status: Mapping[str, object], where: Where) -> bool:
    """Reports whether the kubelet states other amounts than the spec for a container or for the pod.

    This runs for every pod of a cluster, and almost no pod is being resized.
    """
    if spec.get("resources") and _differs(_requests(spec, where), status, where):
        return True
    for containers, statuses in _LISTS:
        if entries := maps(status.get(statuses), where):
            asked = {c.get("name"): _requests(c, where) for c in maps(spec.get(containers), where)}
            for entry in entries:
                name = entry.get("name")
                if name in asked and _differs(asked[name], entry, where):
                    return True
    return False


def _differs(asked: object, status: Mapping[str, object], where: Where) -> bool:
    allocated, running = status.get("allocatedResources"), _requests(status, where)
    return (allocated is not None and allocated != asked) or (running is not None and running != asked)


def _requests(entry: Mapping[str, object], where: Where) -> object:
    """Returns the requests of a container, of a pod, or of the status of one of them; None if it has none."""
    return mapping(entry.get("resources"), where).get("requests")


def _at_stage(
    spec: Mapping[str, object], status: Mapping[str, object], stage: _Stage, infeasible: bool, where: Where
) -> dict[str, object]:
    """Returns the spec with the amounts that the kubelet states for this stage. `infeasible`: without the
    amounts of the spec, where it states none.
    """

    def stated(entry: Mapping[str, object], of: Mapping[str, object], *, alone: bool) -> dict[str, object]:
        amounts = _requests(of, where) if stage == "running" else None
        amounts = of.get("allocatedResources") if amounts is None else amounts
        if amounts is None:
            return {**entry, "resources": {}} if alone else dict(entry)
        return {**entry, "resources": {"requests": amounts}}

    result = stated(spec, status, alone=False) if spec.get("resources") else dict(spec)
    for containers, statuses in _LISTS:
        by_name = {entry.get("name"): entry for entry in maps(status.get(statuses), where)}
        result[containers] = [
            stated(container, by_name.get(container.get("name"), {}), alone=infeasible)
            for container in maps(spec.get(containers), where)
        ]
    return result
