"""The set-up of a test: an API server with nodes and pods, and a webhook that the API server calls."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from tests.e2e.api import Api, Json
from tests.e2e.fleet import Fleet
from tests.e2e.hook import Hook
from tests.e2e.kubectl import Kubectl, Output
from tests.e2e.kubelet import Kubelet
from tests.e2e.processes import wait_until

PICTURE = "nodes,pods,topologies.kai.scheduler,podgroups.scheduling.run.ai"
NAMESPACES = ("research", "inference")
"""Where the examples and the pods of the example clusters lie."""

WORKLOADS = (
    "/apis/batch/v1/namespaces/{}/jobs",
    "/apis/apps/v1/namespaces/{}/deployments",
    "/apis/apps/v1/namespaces/{}/replicasets",
    "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets",
    "/apis/leaderworkerset.x-k8s.io/v1/namespaces/{}/leaderworkersets",
    "/apis/kubeflow.org/v1/namespaces/{}/pytorchjobs",
    "/apis/kubeflow.org/v2beta1/namespaces/{}/mpijobs",
    "/apis/ray.io/v1/namespaces/{}/rayjobs",
    "/apis/scheduling.run.ai/v2alpha2/namespaces/{}/podgroups",
    "/api/v1/namespaces/{}/pods",
)


@cache
def parameter(clusters: tuple[str, ...], policies: str) -> tuple[tuple[str, ...], str]:
    """The parameter of the fixture `site`. It is always the same object, because pytest keeps a fixture for
    identical parameters.
    """
    return clusters, policies


@dataclass(frozen=True, slots=True)
class Cluster:
    """An API server with its kubectl and the simulated kubelets."""

    api: Api
    kubectl: Kubectl
    kubelet: Kubelet


@dataclass(slots=True)
class Site:
    """A cluster with nodes and pods, and the webhook that it calls."""

    cluster: Cluster
    fleet: Fleet
    hook: Hook

    def apply(self, path: Path, *arguments: str) -> Output:
        """`kubectl apply -f PATH`."""
        return self.cluster.kubectl("apply", "-f", str(path), *arguments)

    def look(self) -> None:
        """Writes the output of `kubectl get -o yaml` to the file that the webhook reads the cluster from."""
        output = self.cluster.kubectl("get", PICTURE, "--all-namespaces", "-o", "yaml")
        assert output.status == 0, output.err
        part = self.hook.picture.with_suffix(".part")
        part.write_text(output.out)
        part.replace(self.hook.picture)

    def apply_groups(self, manifest: Path) -> None:
        """Applies the PodGroups of a manifest and updates the webhook's file before the pods are created."""
        groups = [
            body for body in yaml.safe_load_all(manifest.read_text()) if body and body["kind"] == "PodGroup"
        ]
        for body in groups:
            self.cluster.kubectl("apply", "-f", "-", text=yaml.safe_dump(body))
        if groups:
            self.look()

    def clear(self) -> None:
        """Deletes all objects that a test applied, and all reservations."""
        for place in NAMESPACES:
            for path in WORKLOADS:
                for item in self.cluster.api.items(path.format(place)):
                    name = item["metadata"]["name"]
                    if (place, name) not in self.fleet.pods:
                        self.cluster.api.delete(f"{path.format(place)}/{name}")
        wait_until(lambda: not self.pods(), "the tests' pods to go", 60)
        self.hook.clear()

    def pods(self, **query: str) -> list[Json]:
        """The pods of the namespaces, without those that ran before any test."""
        listed = [
            pod
            for place in NAMESPACES
            for pod in self.cluster.api.items(f"/api/v1/namespaces/{place}/pods", **query)
        ]
        return [
            pod
            for pod in listed
            if (pod["metadata"]["namespace"], pod["metadata"]["name"]) not in self.fleet.pods
        ]
