"""Why nothing binds the pods of a gang that holds a place, in the words of their own scheduler.

Kubernetes' scheduler says it in the pod's condition PodScheduled. KAI says "Unable to schedule pod" there,
and why in the conditions of its PodGroup (KAI-Scheduler d5bc503a, pkg/scheduler/cache/status_updater). Kueue
keeps pods at a gate until it has quota (`kueue.words`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from webhook.kube.api.client import Api, ApiError, Json
from webhook.kube.controller.kueue.words import reasons_of
from webhook.kube.state.gangs import Unbound

BINDING_SECONDS = 60.0
"""How old a pod is before people are told that nothing binds it: a scheduler is given some rounds."""


SILENT = "their scheduler has grouped them and says nothing of them"


GATED = "they wait at a gate that others open"


POD_GROUPS = "/apis/scheduling.run.ai/v2alpha2/namespaces/{}/podgroups"


def left_unbound(pods: Iterable[Unbound], now: float) -> tuple[Unbound, ...]:
    """The pods that their scheduler has looked at, and left, for a while. Pure; `now` in seconds.

    KAI says nothing of a gang that has fewer pods than it starts with; its PodGroup shows that KAI saw it.
    """
    looked_at = (pod for pod in pods if (pod.verdict or pod.pod_group) and not pod.gated)
    return tuple(pod for pod in looked_at if now - pod.created >= BINDING_SECONDS)


def held_at_a_gate(pods: Iterable[Unbound], now: float) -> tuple[Unbound, ...]:
    """The pods that have waited for a while at a gate which others open. Pure; `now` in seconds."""
    return tuple(pod for pod in pods if pod.held_back and now - pod.created >= BINDING_SECONDS)


async def scheduler_words(api: Api, pods: Sequence[Unbound], owners: Collection[str] = ()) -> str:
    """One line: the commonest verdict of these pods, then the reasons of the first pod's PodGroup, then what
    Kueue says of the Workloads that the objects with these UIDs (`owners`) own, or the pods."""
    counted = Counter(pod.verdict for pod in pods if pod.verdict)
    silence = GATED if all(pod.held_back for pod in pods) else SILENT
    commonest = min(counted, key=lambda text: (-counted[text], text), default=silence)
    reasons = [text for text in await _of_pod_group(api, pods[0]) if text.rstrip(".") not in commonest]
    uids = {*owners, *(pod.ref.uid for pod in pods)}
    reasons += [f"Kueue says: {text}" for text in await reasons_of(api, pods[0].ref.namespace, uids)]
    return f"{commonest}: {'; '.join(reasons)}" if reasons else commonest


async def _of_pod_group(api: Api, pod: Unbound) -> list[str]:
    if not pod.pod_group:
        return []
    path = POD_GROUPS.format(pod.ref.namespace)
    try:
        groups, _ = await api.list(path, fieldSelector=f"metadata.name={pod.pod_group}")
    except ApiError:  # not KAI's, or not to be read: then the pod's own words stand alone
        return []
    return [text for group in groups for text in _reasons(group.get("status") or {})]


def _reasons(status: Json) -> list[str]:
    """The latest condition's reasons, each once."""
    for condition in reversed(status.get("schedulingConditions") or []):
        messages = [str(reason.get("message") or "") for reason in condition.get("reasons") or []]
        if words := [text for text in (*messages, str(condition.get("message") or "")) if text]:
            return list(dict.fromkeys(" ".join(text.split()) for text in words))
    return []
