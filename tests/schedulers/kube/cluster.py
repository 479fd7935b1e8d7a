"""The objects of a run in the control plane, and what kube-scheduler decides on the pods of a gang."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from tests.e2e.api import Api, ApiError, Json
from tests.e2e.kubectl import Kubectl
from tests.e2e.kubelet import STRATEGIC
from tests.e2e.processes import wait_until
from tests.schedulers.kube.gang import Gang
from tests.schedulers.kube.random_constraints import JOB_NAME
from tests.schedulers.kube.random_nodes import awaited_taints
from tests.schedulers.kube.random_pods import resized_status

JOBS = "/apis/batch/v1/namespaces/research/jobs"
PODS = "/api/v1/pods"
NODES = "/api/v1/nodes"
RESOURCES = "/apis/resource.k8s.io/v1"
GANG_PODS = "/api/v1/namespaces/research/pods"
FOLDERS = {
    "PersistentVolume": "/api/v1/persistentvolumes",
    "PersistentVolumeClaim": "/api/v1/namespaces/research/persistentvolumeclaims",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "RuntimeClass": "/apis/node.k8s.io/v1/runtimeclasses",
    "DeviceClass": f"{RESOURCES}/deviceclasses",
    "ResourceSlice": f"{RESOURCES}/resourceslices",
    "ResourceClaim": f"{RESOURCES}/namespaces/research/resourceclaims",
    "ResourceClaimTemplate": f"{RESOURCES}/namespaces/research/resourceclaimtemplates",
}
SEEN = (
    "nodes,pods,namespaces,pv,pvc,storageclasses,runtimeclasses,"
    "resourceclaims,resourceclaimtemplates,resourceslices,deviceclasses"
)
"""The kinds of which the plan knows all objects."""
QUIET_SECONDS, MOST_SECONDS = 2.5, 30.0
"""How long nothing may change until a gang's pods count as decided, and how long it may take in all."""


@dataclass(slots=True)
class Decided:
    """By pod of a gang its node, "" for one that waits; and why the first of those waits."""

    nodes: dict[str, str]
    why: str = ""

    def all(self, pods: int) -> bool:
        """Whether kube-scheduler started that many pods, and left none waiting."""
        return len(self.nodes) == pods and all(self.nodes.values())

    def uses(self, nodes: set[str]) -> bool:
        """Whether a pod was started on one of these nodes."""
        return not nodes.isdisjoint(self.nodes.values())


def nodes_not_ready(picture: Json) -> set[str]:
    """The nodes in a picture whose kubelet does not run pods: kube-scheduler binds pods there that tolerate
    the taint, and the plan never uses them.
    """
    return {
        item["metadata"]["name"]
        for item in picture["items"]
        if item["kind"] == "Node" and item["status"]["conditions"][0]["status"] != "True"
    }


@dataclass(slots=True)
class Cluster:
    """A control plane with simulated kubelets."""

    api: Api
    kubectl: Kubectl

    def create(self, objects: Iterable[Json]) -> None:
        """Creates the objects, and waits until claims for volumes that name them are bound."""
        for item in objects:
            self.api.create(FOLDERS[item["kind"]], item)
            if item["kind"] == "PersistentVolumeClaim" and item["spec"]["storageClassName"] == "by-hand":
                path = f"{FOLDERS[item['kind']]}/{item['metadata']['name']}"
                wait_until(
                    lambda path=path: self.api.get(path)["status"].get("phase") == "Bound",
                    "a bound claim",
                    60,
                )

    def remove(self, objects: Iterable[Json], owner: str = "") -> None:
        """Deletes the objects, and the claims and volumes that were made for pods whose names begin with that
        of their `owner`; waits until they are gone.
        """
        for item in reversed(list(objects)):
            self.api.delete(f"{FOLDERS[item['kind']]}/{item['metadata']['name']}")
        for kind in ("PersistentVolumeClaim", "PersistentVolume", "ResourceClaim") if owner else ():
            folder = FOLDERS[kind]
            until = time.monotonic() + 60
            while left := [item for item in self.api.items(folder) if _name_of(item).startswith(owner)]:
                assert time.monotonic() < until, f"{kind} {left[0]['metadata']['name']} does not go"
                for item in left:
                    self.api.delete(f"{folder}/{item['metadata']['name']}")
                time.sleep(0.1)

    def picture(self) -> Json:
        """All objects that the plan reads, as kubectl prints them."""
        output = self.kubectl("get", SEEN, "--all-namespaces", "-o", "json")
        assert output.status == 0, output.err
        return dict(json.loads(output.out))

    @contextmanager
    def with_nodes(self, nodes: Sequence[Json], pods: Sequence[tuple[Json, str]]) -> Iterator[None]:
        """Creates the nodes, and the pods in their states, and at the end deletes all nodes and pods."""
        for node in nodes:
            self.api.create(NODES, node)
        expected = {node["metadata"]["name"]: awaited_taints(node) for node in nodes}
        wait_until(lambda: self._conditions() == expected, "the taints of the nodes' conditions", 60)
        try:
            self._run(pods)
            yield
        finally:
            self._clear()

    def _conditions(self) -> dict[str, set[str]]:
        return {
            node["metadata"]["name"]: {
                taint["key"]
                for taint in node["spec"].get("taints", ())
                if taint["key"].startswith("node.kubernetes.io/")
                and not taint["key"].endswith("unschedulable")
            }
            for node in self.api.items(NODES)
        }

    def _run(self, pods: Sequence[tuple[Json, str]]) -> None:
        states: dict[str, str] = {}
        for pod, state in pods:
            path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"
            with suppress(ApiError):  # a pod that the API server refuses is none
                self.api.create(path, pod)
                states[f"{path}/{pod['metadata']['name']}"] = state
        running = "status.phase=Running"
        wait_until(
            lambda: len(self.api.items(PODS, fieldSelector=running)) == len(states), "running pods", 60
        )
        for path, state in states.items():
            if state == "terminating":
                self.api.delete(path, grace=30)
            elif state == "done":
                self.api.call("PATCH", f"{path}/status", {"status": {"phase": "Succeeded"}}, STRATEGIC)
            elif state != "running":
                status = resized_status(self.api.get(path), infeasible=state == "infeasible")
                self.api.call("PATCH", f"{path}/status", {"status": status}, STRATEGIC)

    def _clear(self) -> None:
        for pod in self.api.items(PODS):
            path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
            with suppress(ApiError):
                self.api.merge(path, {"metadata": {"finalizers": None}})
            self.api.delete(path, grace=0)
        for node in self.api.items(NODES):
            self.api.delete(f"{NODES}/{node['metadata']['name']}")
        wait_until(lambda: not self.api.items(PODS) and not self.api.items(NODES), "all to go", 60)

    def refuses(self, gang: Gang) -> str:
        """Why the API server would not store the gang's Jobs or their pods; "" if it would."""
        try:
            for job in gang.jobs:
                self.api.create(JOBS, job, dryRun="All")
            for pod in gang.pods():
                self.api.create(GANG_PODS, pod, dryRun="All")
        except ApiError as error:
            return str(error)
        return ""

    def decide(self, jobs: Sequence[Json]) -> Decided:
        """Creates the Jobs, and says what kube-scheduler decides on all their pods."""
        for job in jobs:
            self.api.create(JOBS, job)
        names = [job["metadata"]["name"] for job in jobs]
        return self._settled(names, sum(job["spec"]["parallelism"] for job in jobs))

    def decide_one_by_one(self, gang: Gang, pods: Sequence[Json]) -> Decided:
        """Creates these pods of a gang, each when kube-scheduler has started the one before it."""
        decided = Decided({})
        for number, pod in enumerate(pods, 1):
            self.api.create(GANG_PODS, pod)
            decided = self._settled(gang.job_names, number)
            if not decided.all(number):
                break
        return decided

    def end(self, gang: Gang) -> None:
        """Deletes the gang's Jobs and pods, and what they need."""
        for name in gang.job_names:
            self.api.delete(f"{JOBS}/{name}")
        for pod in self._pods(gang.job_names):
            self.api.delete(f"{GANG_PODS}/{pod['metadata']['name']}", grace=0)
        wait_until(lambda: not self._pods(gang.job_names), "the gang's pods to go", 60)
        self.remove(gang.needed, f"{gang.name}-")

    def _pods(self, jobs: Iterable[str]) -> list[Json]:
        return self.api.items(GANG_PODS, labelSelector=f"{JOB_NAME} in ({','.join(jobs)})")

    def _settled(self, jobs: Sequence[str], wanted: int) -> Decided:
        begin = changed = time.monotonic()
        before: object = None
        while True:
            pods = self._pods(jobs)
            nodes = {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in pods}
            waiting = [pod for pod in pods if not pod["spec"].get("nodeName")]
            reasons = [_why(pod) for pod in waiting]
            decided = Decided(nodes, next(filter(None, reasons), ""))
            if decided.all(wanted):
                return decided
            now, state = time.monotonic(), (nodes, reasons)
            if state != before:
                before, changed = state, now
            settled = len(pods) == wanted and all(reasons) and now - changed > QUIET_SECONDS
            if settled or now - begin > MOST_SECONDS:
                return decided
            time.sleep(0.05)


def _why(pod: Json) -> str:
    """Why kube-scheduler has no node for the pod; "" while it has not tried."""
    conditions = {condition["type"]: condition for condition in pod["status"].get("conditions", ())}
    scheduled = conditions.get("PodScheduled", {})
    return str(scheduled.get("message", "")) if scheduled.get("reason") == "Unschedulable" else ""


def _name_of(item: Json) -> str:
    """The name of a claim, or of the claim that a volume is for."""
    reference = item["spec"].get("claimRef") or item["metadata"]
    return str(reference["name"])
