"""Which pods of a gang have been unbound for longer than usual. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from webhook.kube.state.gangs import Unbound

BINDING_SECONDS = 60.0
"""Minimum age in seconds of an unbound pod that is reported: binding may take several scheduling cycles."""


def left_unbound(pods: Iterable[Unbound], now: float) -> tuple[Unbound, ...]:
    """Returns the pods, at least `BINDING_SECONDS` old, that their scheduler has seen and not bound.
    `now`: seconds since the epoch.

    A scheduler has seen a pod that has a verdict, or a PodGroup of KAI: KAI writes no verdict while a gang
    has fewer pods than its minimum. Pods with Bayplan's gate are left out.
    """
    looked_at = (pod for pod in pods if (pod.verdict or pod.pod_group) and not pod.gated)
    return tuple(pod for pod in looked_at if now - pod.created >= BINDING_SECONDS)


def held_at_a_gate(pods: Iterable[Unbound], now: float) -> tuple[Unbound, ...]:
    """Returns the pods, at least `BINDING_SECONDS` old, that have a scheduling gate of another controller.
    `now`: seconds since the epoch.
    """
    return tuple(pod for pod in pods if pod.held_back and now - pod.created >= BINDING_SECONDS)
