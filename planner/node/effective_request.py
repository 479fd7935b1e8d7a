"""The request of a pod by the kubelet's rule, from those of its containers."""

from __future__ import annotations

from collections.abc import Iterable

from planner.model.pod import ContainerRequest


def effective(containers: Iterable[ContainerRequest]) -> dict[str, int]:
    """Returns the request of a pod by the kubelet's rule: per resource the larger of the sum over containers
    and sidecars, and the most that an init container needs with the sidecars that started before it.

    `containers`: init containers and sidecars in the order in which they start.
    """
    total: dict[str, int] = {}
    started: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in containers:
        for name, amount in container.requests.items():
            together = started.get(name, 0) + amount
            if container.initial:
                peak[name] = max(peak.get(name, 0), together)
                continue
            total[name] = total.get(name, 0) + amount
            if container.sidecar:
                started[name] = together
    return {name: max(total.get(name, 0), peak.get(name, 0)) for name in {**total, **peak}}
