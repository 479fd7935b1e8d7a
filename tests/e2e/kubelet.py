"""Simulates the kubelets of all nodes: a bound pod runs, and a deleted pod goes away. Nothing else is
simulated.
"""

from __future__ import annotations

import logging
import threading
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal, Self

from tests.e2e.api import Api, ApiError, Json

STRATEGIC = "application/strategic-merge-patch+json"
Outcome = Literal["Succeeded", "Failed"]
log = logging.getLogger(__name__)


class Kubelet:
    """Looks at the pods several times a second in its own thread while the `with` block runs."""

    def __init__(self, api: Api, pause: float = 0.2) -> None:
        """`pause` is the time between two looks, in seconds."""
        self._api = api
        self._pause = pause
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kubelet", daemon=True)

    def __enter__(self) -> Self:
        """Starts."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops."""
        self._stop.set()
        self._thread.join()

    def finish(self, pod: Json, outcome: Outcome = "Succeeded") -> None:
        """Ends the containers of a pod."""
        self._status(pod, {"phase": outcome, "conditions": [{"type": "Ready", "status": "False"}]})

    def _run(self) -> None:
        while not self._stop.wait(self._pause):
            try:
                for pod in self._api.items("/api/v1/pods", fieldSelector="spec.nodeName!="):
                    self._look(pod)
            except (
                ApiError,
                OSError,
            ) as error:  # a stopped API server, a pod that went meanwhile: look again
                log.debug("kubelet: %s", error)

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
