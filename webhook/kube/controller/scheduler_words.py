"""Why nothing binds the pods of a gang that holds a place, in the words of their own scheduler.

Kubernetes' scheduler says it in the pod's condition PodScheduled. KAI says "Unable to schedule pod" there,
and why in the conditions of its PodGroup (KAI-Scheduler d5bc503a, pkg/scheduler/cache/status_updater).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from webhook.kube.api.client import Api, ApiError, Json
from webhook.kube.state.gangs import Unbound

TOLD_SECONDS = 60.0
"""How old a pod is before it is told that nothing binds it: a scheduler is given some rounds."""


SILENT = "their scheduler has grouped them and says nothing of them"


POD_GROUPS = "/apis/scheduling.run.ai/v2alpha2/namespaces/{}/podgroups"


def left_unbound(pods: Iterable[Unbound], now: float) -> tuple[Unbound, ...]:
    """The pods that their scheduler has looked at, and left, for a while. Pure; `now` in seconds.

    KAI says nothing of a gang that has fewer pods than it starts with; that it saw one shows its PodGroup.
    """
    looked_at = (pod for pod in pods if (pod.verdict or pod.pod_group) and not pod.gated)
    return tuple(pod for pod in looked_at if now - pod.created >= TOLD_SECONDS)


async def scheduler_words(api: Api, pods: Sequence[Unbound]) -> str:
    """What is said of most of these pods, and of the first's PodGroup, in one line."""
    counted = Counter(pod.verdict for pod in pods)
    commonest = min(counted, key=lambda text: (-counted[text], text)) or SILENT
    reasons = [text for text in await _of_pod_group(api, pods[0]) if text.rstrip(".") not in commonest]
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
