"""Reads why the scheduler does not bind the pods of a gang that holds a place, in the scheduler's own words.

kube-scheduler writes the reason into the pod's condition PodScheduled, which is read as `Unbound.verdict`
(see `gangs.py`): "NAME says: REASON", "" if the scheduler has not tried. KAI writes "Unable to schedule pod"
there, and the reason into the conditions of its PodGroup (KAI-Scheduler d5bc503a,
pkg/scheduler/cache/status_updater). Kueue gates pods until it has quota (`kueue.words`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Mapping, Sequence

from planner.model.natural_order import natural
from planner.model.words import counted, listed
from webhook.kube.api.client import Api, ApiError, Json
from webhook.kube.controller.actions.events import Recorder
from webhook.kube.controller.kueue.words import reasons_in
from webhook.kube.state.gangs import Unbound
from webhook.kube.state.gathering import Gang

ASKED_SECONDS = 60.0
"""Seconds between two lookups, at the API server, of why a gang's scheduler does not bind its pods."""


MOST_NAMED = 3
"""Maximum number of pods that a text names."""


SILENT = "their scheduler has grouped them and says nothing of them"
"""The text for pods without a verdict: KAI has created a PodGroup for them, and has written no reason."""


GATED = "they wait at a gate that others open"
"""The text for pods that are all held back: they have a scheduling gate that only another controller removes,
which is not Bayplan's own gate (`Unbound.gated`).
"""


POD_GROUPS = "/apis/scheduling.run.ai/v2alpha2/namespaces/{}/podgroups"
"""The API path of KAI's PodGroups in a namespace."""


class UnboundEvents:
    """Reports in events of gangs why their scheduler does not bind their pods. `clock`: returns seconds since
    the epoch.
    """

    def __init__(self, api: Api, recorder: Recorder, clock: Callable[[], float]) -> None:
        self._api = api
        self._recorder = recorder
        self._clock = clock
        self._asked: dict[str, float] = {}
        """By gang: when the reason was last looked up."""
        self._kueue_reasons: dict[str, tuple[float, Mapping[str, Sequence[str]]]] = {}
        """By namespace: when Kueue's reasons were read, and these. One list of its Workloads is for all gangs
        of the namespace, of which thousands may wait at Kueue's gate.
        """

    def forget_all_but(self, gangs: Container[str]) -> None:
        """Forgets other gangs than these, and reasons that are too old."""
        now = self._clock()
        self._asked = {name: since for name, since in self._asked.items() if name in gangs}
        self._kueue_reasons = {
            namespace: entry
            for namespace, entry in self._kueue_reasons.items()
            if now - entry[0] < ASKED_SECONDS
        }

    async def tell(self, gang: Gang, pods: Sequence[Unbound], outdated: Sequence[Unbound] = ()) -> None:
        """Reports why `pods` are on no node; looks the reason up every `ASKED_SECONDS` at most.

        `outdated`: as in `unbound_words`.
        """
        now = self._clock()
        if now - self._asked.get(gang.name, -ASKED_SECONDS) >= ASKED_SECONDS:
            self._asked[gang.name] = now
            owners = {gang.ref.uid, *(ref.uid for ref in gang.refs)}
            kueue = await self._kueue_reasons_in(gang.ref.namespace, now)
            why = await scheduler_words(self._api, pods, owners, kueue)
            await self._recorder.tell(gang.ref, "Unbound", unbound_words(pods, why, outdated), warning=True)

    async def _kueue_reasons_in(self, namespace: str, now: float) -> Mapping[str, Sequence[str]]:
        read, reasons = self._kueue_reasons.get(namespace, (-ASKED_SECONDS, {}))
        if now - read >= ASKED_SECONDS:
            reasons = await reasons_in(self._api, namespace)
            self._kueue_reasons[namespace] = now, reasons
        return reasons


def unbound_words(pods: Sequence[Unbound], why: str, outdated: Sequence[Unbound] = ()) -> str:
    """Returns how many pods are on no node, and why (`scheduler_words`). `outdated`: those that are pinned to
    a former place of their gang.
    """
    text = f"{counted(len(pods), 'pod is', 'pods are')} on no node yet; {why}"
    if not outdated:
        return text
    names = listed(sorted((pod.ref.name for pod in outdated), key=natural), MOST_NAMED)
    which, verb = ("it", "is") if len(outdated) == 1 else ("them", "are")
    again = f"delete {which}, and {'it' if which == 'it' else 'they'} {verb} created again"
    if not all(pod.owner for pod in outdated):  # no controller creates such a pod
        again = f"delete {which} and apply {which} again"
    return f"{text}. Pinned to a former place of the gang: {names}; {again} for the new one"


async def scheduler_words(
    api: Api,
    pods: Sequence[Unbound],
    owners: Collection[str] = (),
    kueue: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """Returns one line: the most frequent verdict of these pods, the reasons in the first pod's PodGroup
    (the pods of a gang share one) that the verdict does not contain, and what Kueue reports about the
    Workloads of these owners (UIDs), of the pods' owners, or of the pods.

    `pods`: at least one. `kueue`: the result of `reasons_in` for their namespace; None to read it.
    """
    verdicts = Counter(pod.verdict for pod in pods if pod.verdict)
    silence = GATED if all(pod.held_back for pod in pods) else SILENT
    commonest = min(verdicts, key=lambda text: (-verdicts[text], text), default=silence)
    reasons = [text for text in await _of_pod_group(api, pods[0]) if text.rstrip(".") not in commonest]
    if kueue is None:
        kueue = await reasons_in(api, pods[0].ref.namespace)
    everyone = {*owners, *(pod.owner for pod in pods), *(pod.ref.uid for pod in pods)} - {""}
    uids = sorted(everyone)  # a set has another order in each replica
    reasons += dict.fromkeys(f"Kueue says: {text}" for uid in uids for text in kueue.get(uid, ()))
    return f"{commonest}: {'; '.join(reasons)}" if reasons else commonest


async def _of_pod_group(api: Api, pod: Unbound) -> list[str]:
    if not pod.pod_group:
        return []
    path = POD_GROUPS.format(pod.ref.namespace)
    try:
        groups, _ = await api.list(path, fieldSelector=f"metadata.name={pod.pod_group}")
    except ApiError:  # KAI's PodGroups do not exist or may not be read: only the verdicts are reported
        return []
    return [text for group in groups for text in _reasons(group.get("status") or {})]


def _reasons(status: Json) -> list[str]:
    """Returns the reasons of the latest scheduling condition that has any, each once."""
    for condition in reversed(status.get("schedulingConditions") or []):
        messages = [str(reason.get("message") or "") for reason in condition.get("reasons") or []]
        if words := [text for text in (*messages, str(condition.get("message") or "")) if text]:
            return list(dict.fromkeys(" ".join(text.split()) for text in words))
    return []
