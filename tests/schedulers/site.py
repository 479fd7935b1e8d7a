"""A real control plane with a real scheduler beside Bayplan, and what a scenario asks of it."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.api import Api, ApiError, Json
from tests.e2e.binaries import find
from tests.e2e.configured import configure, wait_for_calls
from tests.e2e.controlplane import ControlPlane
from tests.e2e.fleet import Fleet, namespace
from tests.e2e.hook import BAYPLAN
from tests.e2e.kube_ledgers import install
from tests.e2e.kubectl import Kubectl, Output
from tests.e2e.processes import wait_until
from tests.e2e.real_kinds import define
from tests.e2e.replicas import Replicas, reservations
from tests.schedulers.kai import Kai
from tests.schedulers.kubelet import KUEUE_FINALIZER, Kubelet
from tests.schedulers.kueue import PATH as KUEUE_PATH
from tests.schedulers.kueue import Kueue
from tests.schedulers.nodes import hosts, topology
from tests.schedulers.played import Operators
from tests.schedulers.programs import Source

NAMESPACES = ("research", "inference", "ml-training", "ml-inference", "runai-production")
WORKLOADS = {
    "Job": "/apis/batch/v1",
    "Deployment": "/apis/apps/v1",
    "StatefulSet": "/apis/apps/v1",
    "JobSet": "/apis/jobset.x-k8s.io/v1alpha2",
    "LeaderWorkerSet": "/apis/leaderworkerset.x-k8s.io/v1",
    "PyTorchJob": "/apis/kubeflow.org/v1",
    "Pod": "/api/v1",
}
KINDS = (
    "jobsets.jobset.x-k8s.io",
    "leaderworkersets.leaderworkerset.x-k8s.io",
    "pytorchjobs.kubeflow.org",
    "reports.openreports.io",
)
RACKS, HOSTS = 4, 4
BOUND_SECONDS = 120.0
"""Within which a gang that has room is expected to be bound, on a machine that is busy with other things."""
GONE_SECONDS = 120.0
KUEUE_GROUP = "kueue.x-k8s.io/pod-group-name"


@dataclass(slots=True)
class Site:
    """One cluster, its scheduler and one replica of Bayplan."""

    api: Api
    kubectl: Kubectl
    kubelet: Kubelet
    operators: Operators
    bayplan: Replicas
    scheduler: Kai | Kueue

    def apply(self, *bodies: Json) -> Output:
        """`kubectl apply` of them, one call."""
        return self.kubectl("apply", "-f", "-", text=yaml.safe_dump_all(bodies))

    def applied(self, *bodies: Json) -> list[str]:
        """The same, and the warnings. Raises `AssertionError` where something is refused."""
        output = self.apply(*bodies)
        assert output.status == 0, output.err
        return output.warnings

    def create(self, body: Json) -> Json:
        """The object, made. Raises `ApiError` where it is refused."""
        return self.api.create(folder(body), body)

    def remove(self, body: Json) -> None:
        """The object, and what was made of it, in the background."""
        self.api.delete(f"{folder(body)}/{body['metadata']['name']}")

    def pods(self, prefix: str = "", place: str = "research") -> list[Json]:
        """The pods of a namespace whose names begin so and that are not being deleted."""
        listed = self.api.items(f"/api/v1/namespaces/{place}/pods")
        return [
            pod
            for pod in listed
            if pod["metadata"]["name"].startswith(prefix) and "deletionTimestamp" not in pod["metadata"]
        ]

    def bound(
        self, prefix: str, count: int, place: str = "research", seconds: float = BOUND_SECONDS
    ) -> tuple[float, list[Json]]:
        """Wait until so many of these pods are bound and have not ended; after how long, and the pods."""
        begin = time.monotonic()

        def nodes() -> list[str]:
            return [pod["spec"].get("nodeName", "") for pod in alive(self.pods(prefix, place))]

        try:
            wait_until(lambda: sum(map(bool, nodes())) >= count, f"{count} pods {prefix}* bound", seconds)
        except TimeoutError as error:
            raise TimeoutError(f"{error}: {nodes()}; {self.reasons(prefix, place)}") from None
        return time.monotonic() - begin, self.pods(prefix, place)

    def reasons(self, prefix: str, place: str = "research") -> str:
        """What is said of a gang that is not bound: the newest events about its objects, its pods' gates."""
        entries = self.api.items(f"/api/v1/namespaces/{place}/events")
        about = [entry for entry in entries if prefix in entry["involvedObject"]["name"]]
        about.sort(key=lambda entry: str(entry.get("lastTimestamp") or entry.get("eventTime")))
        words = [f"{entry['reason']}: {entry['message'][:160]}" for entry in about[-6:]]
        gates = {
            gate["name"]
            for pod in self.pods(prefix, place)
            for gate in pod["spec"].get("schedulingGates") or ()
        }
        return "; ".join(dict.fromkeys([*words, f"gates {sorted(gates)}"]))

    def finish(self, pods: Iterable[Json]) -> None:
        """Their containers end well."""
        for pod in pods:
            self.kubelet.finish(pod)

    def held(self) -> dict[str, list[str]]:
        """By gang the nodes that are held for it."""
        return {
            gang: sorted({seat["node"] for seat in entry["spec"].get("assignments", ())})
            for gang, entry in reservations(self.api).items()
        }

    def clear(self) -> None:
        """Nothing of a scenario is left: no workload, no pod, no hold. Raises `TimeoutError`."""
        if isinstance(self.scheduler, Kueue):
            self._end_groups()
        for place in NAMESPACES:
            for kind, group in WORKLOADS.items():
                path = f"{group}/namespaces/{place}/{kind.lower()}s"
                for item in self.api.items(path):
                    self.api.delete(f"{path}/{item['metadata']['name']}")
            if isinstance(self.scheduler, Kai):
                path = f"/apis/scheduling.run.ai/v2alpha2/namespaces/{place}/podgroups"
                for item in self.api.items(path):
                    self.api.delete(f"{path}/{item['metadata']['name']}")
        wait_until(self._is_empty, "all pods to go", GONE_SECONDS)
        wait_until(lambda: not reservations(self.api), "all holds to go", GONE_SECONDS)

    def _end_groups(self) -> None:
        """Kueue keeps the pods of a group until it has ended or its Workload is deleted, however often they
        are deleted themselves: what runs ends. Of a group with pods that wait, or that have failed and wait
        for their replacement (as after a preemption), the Workload goes."""

        def groups() -> dict[tuple[str, str], list[Json]]:
            kept: dict[tuple[str, str], list[Json]] = {}
            for place in NAMESPACES:
                for pod in self.api.items(f"/api/v1/namespaces/{place}/pods", labelSelector=KUEUE_GROUP):
                    head = pod["metadata"]
                    if KUEUE_FINALIZER in head.get("finalizers", ()) and not head.get("ownerReferences"):
                        kept.setdefault((place, head["labels"][KUEUE_GROUP]), []).append(pod)
            return kept

        for (place, name), pods in groups().items():
            failed = any(pod["status"].get("phase") == "Failed" for pod in pods)
            if len(nodes_of(pods)) == len(pods) and not failed:
                self.finish(alive(pods))
            else:
                self.api.delete(f"{KUEUE_PATH}/namespaces/{place}/workloads/{name}")
        wait_until(
            lambda: not any(map(nodes_of, groups().values())), "Kueue to let go of bound pods", GONE_SECONDS
        )

    def _is_empty(self) -> bool:
        return not any(self.api.items(f"/api/v1/namespaces/{place}/pods") for place in NAMESPACES)

    def decisions(self) -> list[dict[str, Any]]:
        """What Bayplan has decided, by its log."""
        return [line for line in self.bayplan.lines() if line.get("event") == "decision"]

    def events(self, reason: str, place: str = "research") -> list[str]:
        """Messages of Bayplan's events of that reason, oldest first."""
        entries = self.api.items(f"/api/v1/namespaces/{place}/events")
        ours = [
            entry
            for entry in entries
            if entry["reason"] == reason and (entry.get("source") or {}).get("component") == "bayplan"
        ]
        ours.sort(key=lambda entry: str(entry.get("firstTimestamp")))
        return [entry["message"] for entry in ours]

    def run(self, *words: str) -> tuple[int, str]:
        """Exit status and output of a command of Bayplan on the cluster."""
        command = [BAYPLAN, *words, "--kubeconfig", str(self.kubectl.kubeconfig)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, done.stdout + done.stderr


def alive(pods: Iterable[Json]) -> list[Json]:
    """Those that have not ended."""
    return [pod for pod in pods if pod["status"].get("phase") not in ("Succeeded", "Failed")]


def nodes_of(pods: Iterable[Json]) -> list[str]:
    """The nodes that pods are bound to."""
    return sorted(pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName"))


def racks_of(pods: Iterable[Json]) -> set[str]:
    """The racks of these nodes."""
    return {node.partition("-")[0] for node in nodes_of(pods)}


def folder(body: Json) -> str:
    """The collection of an object in its namespace."""
    place, kind = body["metadata"]["namespace"], body["kind"]
    if kind == "PodGroup":
        return f"/apis/{body['apiVersion']}/namespaces/{place}/podgroups"
    return f"{WORKLOADS[kind]}/namespaces/{place}/{kind.lower()}s"


def refused(act: Callable[[], object]) -> str:
    """What the API server says where it refuses. Raises `AssertionError` where it does not."""
    try:
        act()
    except ApiError as error:
        return str(error)
    raise AssertionError("it was not refused")


def in_words(text: str, *expected: str) -> str:
    """The text in one line; every expected part stands in it. Raises `AssertionError`."""
    line = re.sub(r"\s+", " ", text).strip()
    for part in expected:
        assert part in line, f"{part!r} is not in {line!r}"
    return line


@contextmanager
def beside(
    system: str,
    source: Source,
    home: Path,
    *,
    observed: bool = False,
    options: Sequence[str] = (),
) -> Iterator[Site]:
    """A control plane, nodes, the scheduler (`kai` or `kueue`) and Bayplan, in its default mode where
    `observed` (audit), else enforcing. Gone afterwards."""
    home.mkdir(parents=True)
    programs = find()
    plane = ControlPlane(programs, home)
    plane.start()
    scheduler: Kai | Kueue | None = None
    bayplan: Replicas | None = None
    try:
        kubectl = Kubectl(programs["kubectl"], plane.kubeconfig)
        define(kubectl, *KINDS)
        install(kubectl)
        own = home / system
        own.mkdir()
        scheduler = (
            Kai(source, plane.api, kubectl, own)
            if system == "kai"
            else Kueue(source, plane.api, kubectl, own)
        )
        for name in NAMESPACES:
            namespace(plane.api, name)
        with Kubelet(plane.api) as kubelet, Operators(plane.api) as operators:
            manifests = hosts(RACKS, HOSTS, pools=system == "kueue")
            Fleet(plane.api).make(manifests)
            scheduler.install("r1-n1")
            scheduler.start()
            if isinstance(scheduler, Kueue):
                scheduler.queues(NAMESPACES, RACKS // 2 * HOSTS * 8)
            else:
                plane.api.create("/apis/kai.scheduler/v1alpha1/topologies", topology())
            mode = ("--mode", "audit") if observed else ()
            bayplan = Replicas(
                plane.api, plane.kubeconfig, home, 1, options=("--deadline", "25", *mode, *options)
            )
            bayplan.start()
            assert bayplan.balancer is not None, "it runs"
            configure(plane.api, bayplan.configured, bayplan.balancer.port, bayplan.certs, observed=observed)
            _give_time(plane.api)
            wait_for_calls(plane.api, bayplan.lines)
            site = Site(plane.api, kubectl, kubelet, operators, bayplan, scheduler)
            yield site
            bayplan.unconfigure()
    finally:
        if bayplan is not None:
            bayplan.stop()
        if scheduler is not None:
            scheduler.stop()
        plane.stop()


def _give_time(api: Api) -> None:
    """A loaded machine is no fault of what is looked at: each webhook of Bayplan has 30 s."""
    folder_of = "/apis/admissionregistration.k8s.io/v1"
    for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        for item in api.items(f"{folder_of}/{kind}"):
            if "bayplan" in item["metadata"]["name"]:
                webhooks = [{**entry, "timeoutSeconds": 30} for entry in item["webhooks"]]
                api.merge(f"{folder_of}/{kind}/{item['metadata']['name']}", {"webhooks": webhooks})
