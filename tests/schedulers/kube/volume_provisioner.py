"""Plays the provisioner of `random_volumes.PROVISIONER`: makes a volume for each claim that kube-scheduler
has given a node.
"""

from __future__ import annotations

import logging
import threading
from types import TracebackType
from typing import Self

from tests.e2e.api import Api, ApiError, Json
from tests.schedulers.kube.random_nodes import HOST, ZONE
from tests.schedulers.kube.random_volumes import in_values, volume

CLAIMS = "/api/v1/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
log = logging.getLogger(__name__)


class VolumeProvisioner:
    """Looks at the claims several times a second in its own thread while the `with` block runs."""

    def __init__(self, api: Api, pause: float = 0.2) -> None:
        """`pause` is the time between two looks, in seconds."""
        self._api, self._pause = api, pause
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="provisioner", daemon=True)

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

    def _run(self) -> None:
        while not self._stop.wait(self._pause):
            try:
                for claim in self._api.items(CLAIMS):
                    self._look(claim)
            except (ApiError, OSError) as error:  # a volume that is there already, a claim that went
                log.debug("provisioner: %s", error)

    def _look(self, claim: Json) -> None:
        metadata, spec = claim["metadata"], claim["spec"]
        node = (metadata.get("annotations") or {}).get(SELECTED_NODE)
        waits = node and not spec.get("volumeName") and "deletionTimestamp" not in metadata
        if not waits or not spec["storageClassName"].startswith("disk"):
            return
        labels = self._api.get(f"/api/v1/nodes/{node}")["metadata"]["labels"]
        term = in_values(ZONE, labels[ZONE]) if ZONE in labels else in_values(HOST, labels[HOST])
        reference = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            **{key: metadata[key] for key in ("namespace", "name", "uid")},
        }
        storage = spec["storageClassName"]
        provisioned = volume(f"pvc-{metadata['uid']}", [term], claimRef=reference, storageClassName=storage)
        self._api.create(VOLUMES, provisioned)
