"""Plays kubelets that end a deleted pod before it goes, as real ones do: a finalizer may keep it."""

from __future__ import annotations

from tests.e2e import kubelet
from tests.e2e.api import Json

KUEUE_FINALIZER = "kueue.x-k8s.io/managed"


class Kubelet(kubelet.Kubelet):
    """Kueue keeps the pods of a group that it preempts. While they seem to run they take the room of those
    that they were preempted for."""

    def _look(self, pod: Json) -> None:
        metadata, phase = pod["metadata"], pod["status"].get("phase")
        kept = "deletionTimestamp" in metadata and KUEUE_FINALIZER in metadata.get("finalizers", ())
        if kept and phase not in ("Succeeded", "Failed"):
            self.finish(pod, "Failed")
        super()._look(pod)
