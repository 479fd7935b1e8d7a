"""Plays the provisioner of `random_volumes.PROVISIONER`: makes a volume for each claim that kube-scheduler
has given a node.
"""

from __future__ import annotations

from tests.e2e.api import Api, Json
from tests.e2e.polling import Polling
from tests.schedulers.kube.random_nodes import HOST, ZONE
from tests.schedulers.kube.random_volumes import in_values, volume

CLAIMS = "/api/v1/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


class VolumeProvisioner(Polling):
    """Looks at the claims several times a second in its own thread while the `with` block runs."""

    def __init__(self, api: Api, pause: float = 0.2) -> None:
        """`pause` is the time between two looks, in seconds."""
        super().__init__(api, "provisioner", pause)

    def look(self) -> None:
        """Makes the volumes of all claims that wait for one."""
        for claim in self._api.items(CLAIMS):
            self._look(claim)

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
