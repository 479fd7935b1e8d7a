"""Simulates the kubelets of all nodes: a bound pod runs, and a deleted pod goes away. Nothing else is
simulated.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

from tests.e2e.api import Api, Json
from tests.e2e.polling import Polling

STRATEGIC = "application/strategic-merge-patch+json"
Outcome = Literal["Succeeded", "Failed"]


class Kubelet(Polling):
    """Looks at the pods several times a second in its own thread while the `with` block runs."""

    def __init__(self, api: Api, pause: float = 0.2) -> None:
        """`pause` is the time between two looks, in seconds."""
        super().__init__(api, "kubelet", pause)

    def finish(self, pod: Json, outcome: Outcome = "Succeeded") -> None:
        """Ends the containers of a pod."""
        self._status(pod, {"phase": outcome, "conditions": [{"type": "Ready", "status": "False"}]})

    def look(self) -> None:
        """Starts the pods that have a node, and removes those that are being deleted."""
        for pod in self._api.items("/api/v1/pods", fieldSelector="spec.nodeName!="):
            self._look(pod)

    def _look(self, pod: Json) -> None:
        if "deletionTimestamp" in pod["metadata"]:
            self._api.delete(_path(pod), grace=0)
        elif pod["status"].get("phase", "Pending") == "Pending":
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            # Only as it was seen: a test may have ended it meanwhile, and what has ended never runs again.
            seen = {"resourceVersion": pod["metadata"]["resourceVersion"]}
            self._status(pod, {"phase": "Running", "startTime": now, "conditions": _ready(now)}, seen)

    def _status(self, pod: Json, status: dict[str, Any], metadata: Json | None = None) -> None:
        body = {"metadata": metadata or {}, "status": status}
        self._api.call("PATCH", f"{_path(pod)}/status", body, STRATEGIC)


def _ready(now: str) -> list[Json]:
    kinds = ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")
    return [{"type": kind, "status": "True", "lastTransitionTime": now} for kind in kinds]


def _path(pod: Json) -> str:
    metadata = pod["metadata"]
    return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
