"""Creates nodes, topologies and running pods in the API server from the files of the example clusters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.e2e.api import Api, ApiError, Json
from tests.e2e.controlplane import exists
from tests.e2e.processes import wait_until
from tests.e2e.replicas import RESERVATIONS

CLUSTERS = Path(__file__).parents[2] / "manifests" / "examples" / "clusters"
TOPOLOGIES = "/apis/kai.scheduler/v1alpha1/topologies"
NOT_READY = "node.kubernetes.io/not-ready"


def objects_of(clusters: Sequence[str]) -> list[Json]:
    """The objects in the files of these clusters."""
    texts = [(CLUSTERS / name).read_text() for name in clusters]
    return [item for text in texts for item in yaml.load(text, Loader=yaml.CSafeLoader)["items"]]


@dataclass(slots=True)
class Fleet:
    """The created objects, so that they can be deleted again. `pods` are those that ran before any test."""

    api: Api
    nodes: list[str] = field(default_factory=list)
    topologies: list[str] = field(default_factory=list)
    pods: list[tuple[str, str]] = field(default_factory=list)

    def make(self, objects: Iterable[Json]) -> None:
        """Creates ready nodes, topologies, and pods that run on the nodes."""
        manifests = list(objects)
        for item in manifests:
            if item["kind"] == "Node":
                self._node(item)
            elif item["kind"] == "Topology":
                self.api.create(TOPOLOGIES, item)
                self.topologies.append(item["metadata"]["name"])
        wait_until(self._ready, "the nodes' not-ready taints to go")
        for item in manifests:
            if item["kind"] == "Pod":
                namespace(self.api, item["metadata"]["namespace"])
                self.api.create(f"/api/v1/namespaces/{item['metadata']['namespace']}/pods", item)
                self.pods.append((item["metadata"]["namespace"], item["metadata"]["name"]))
        wait_until(lambda: set(self.pods) <= self._phase("Running"), "the fleet's own pods to run")

    def remove(self) -> None:
        """Deletes all created objects and all reservations."""
        for place, name in self.pods:
            self.api.delete(f"/api/v1/namespaces/{place}/pods/{name}", grace=0)
        for name in self.topologies:
            self.api.delete(f"{TOPOLOGIES}/{name}")
        for name in self.nodes:
            self.api.delete(f"/api/v1/nodes/{name}")
        if exists(self.api, RESERVATIONS):  # nodes of these names may come again before a leader has looked
            for item in self.api.items(RESERVATIONS):
                self.api.delete(f"{RESERVATIONS}/{item['metadata']['name']}")

    def _node(self, item: Json) -> None:
        status = {"capacity": item["status"]["allocatable"], **item["status"]}
        self.api.create("/api/v1/nodes", {**item, "status": status})
        self.nodes.append(item["metadata"]["name"])

    def _ready(self) -> bool:
        """Returns whether all nodes are ready: the node controller has removed the taint that every new node
        has.
        """
        nodes = self.api.items("/api/v1/nodes")
        return not any(t["key"] == NOT_READY for node in nodes for t in node["spec"].get("taints", ()))

    def _phase(self, phase: str) -> set[tuple[str, str]]:
        pods = self.api.items("/api/v1/pods", fieldSelector=f"status.phase={phase}")
        return {(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in pods}


def namespace(api: Api, name: str) -> None:
    """Creates the namespace if it does not exist and waits for its service account: without it no pod can be
    created.
    """
    try:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        api.create("/api/v1/namespaces", body)
    except ApiError as error:
        if error.status != 409:
            raise
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    wait_until(lambda: exists(api, account), f"the service account of {name}")
