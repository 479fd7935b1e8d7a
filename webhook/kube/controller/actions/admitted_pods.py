"""Lets in the gated pods of a gang: with its place, without one, or for its scheduler to evict others."""

from __future__ import annotations

from collections.abc import Iterable

from planner.cluster.snapshot import Snapshot
from planner.model.reservation import Reservation
from planner.model.words import counted
from webhook.kube.api.client import Json
from webhook.kube.controller.actions.events import Recorder
from webhook.kube.controller.actions.gated_pods import is_placed_by_kueue, let_in
from webhook.kube.controller.actions.place_notes import opened, place_words
from webhook.kube.controller.actions.pod_patches import patch_pods
from webhook.kube.controller.evictions import LetInForEvictions
from webhook.kube.state.gangs import Unbound
from webhook.kube.state.gathering import Gang
from webhook.placement.taints import with_tolerations
from webhook.workloads.keys.annotation_keys import RESERVATION


async def let_in_pods(
    recorder: Recorder,
    snapshot: Snapshot,
    gang: Gang,
    reservation: Reservation | None,
    pods: Iterable[Unbound],
    *,
    pins: bool,
    tolerated: bool,
) -> None:
    """Patches the pods and writes an event. Raises `ApiError`.

    `reservation`, `pins`: as in `steps.LetIn`. `tolerated`: reserved domains are tainted, and the gang's own
    pods tolerate the taint that keeps other pods off.
    """

    def patch_of(pod: Unbound, stored: Json) -> Json:
        if not pins or is_placed_by_kueue(stored["spec"]):
            notes = {RESERVATION: reservation.id} if reservation is not None else {}
            return let_in(stored, (), (), notes)
        patch = opened(stored, snapshot, gang.group, reservation, pod.pod_set)
        if tolerated and reservation is not None and reservation.mode == "domain":
            patch["spec"]["tolerations"] = with_tolerations(stored["spec"].get("tolerations"), [reservation])
        return patch

    await patch_pods(recorder.api, [pod for pod in pods if pod.gated or not pins], patch_of)
    if not pins:
        return
    where = f" in {place_words(reservation)}" if reservation is not None else ""
    have = counted(gang.group.size, "pod has its", "pods have their")
    await recorder.tell(gang.ref, "Admitted", f"{have} place{where}")


async def let_in_for_evictions(recorder: Recorder, action: LetInForEvictions) -> None:
    """Patches the pods and writes an event. Raises `ApiError`."""
    await patch_pods(recorder.api, action.pods, lambda _, stored: _for_evictions(stored, action))
    pods = counted(len(action.pods), "pod is", "pods are")
    text = f"{pods} let in without a place, for the scheduler to evict gangs of lower priority"
    await recorder.tell(action.gang.ref, "Admitted", text)


def _for_evictions(stored: Json, action: LetInForEvictions) -> Json:
    patch = let_in(stored, (action.excluded,) if action.excluded else (), (), {})
    tolerations = with_tolerations(stored["spec"].get("tolerations"), action.tolerated)
    patch["spec"]["tolerations"] = tolerations or None
    return patch
