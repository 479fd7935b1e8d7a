"""Kueue as it is: its manager with all of its webhooks, on a cluster."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.e2e.api import Api, Json
from tests.e2e.fleet import namespace
from tests.e2e.hook import make_certificates
from tests.e2e.kubectl import Kubectl
from tests.e2e.processes import Process, free_port, start, wait_until
from tests.schedulers.nodes import GPU, LEVELS, POOL, SHARED_POOL, TOPOLOGY
from tests.schedulers.programs import Source, call_at, shown_as_running

HOME = "kueue-system"
VERSION = "kueue.x-k8s.io/v1beta2"
PATH = f"/apis/{VERSION}"
FRAMEWORKS = (
    "batch/job",
    "jobset.x-k8s.io/jobset",
    "kubeflow.org/pytorchjob",
    "leaderworkerset.x-k8s.io/leaderworkerset",
    "deployment",
    "statefulset",
    "pod",
)
CLASSES = {"low": 10, "high": 1000}
METRICS_CERTS = Path("/etc/kueue/metrics/certs")
"""Where it reads a certificate for its metrics, even where it serves none; nothing changes that."""


@dataclass(slots=True)
class Kueue:
    """Its manager on one cluster. `source` is a checkout, `folder` takes certificates and logs."""

    source: Source
    api: Api
    kubectl: Kubectl
    folder: Path
    processes: list[Process] = field(default_factory=list)

    def install(self, node: str) -> None:
        """Its kinds; `node` shows that it runs."""
        self.source.define(self.kubectl, "config/components/crd/bases")
        namespace(self.api, HOME)
        for name, value in CLASSES.items():
            self.api.create(
                "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value}
            )
        shown_as_running(self.api, HOME, "registry.k8s.io/kueue/kueue:v0.19.2", node)

    def start(self) -> None:
        """The manager, until it is ready and its webhooks are called."""
        certs = self.folder / "certs"
        make_certificates(certs)
        METRICS_CERTS.parent.mkdir(parents=True, exist_ok=True)
        METRICS_CERTS.unlink(missing_ok=True)
        METRICS_CERTS.symlink_to(certs)
        port, health = free_port(), free_port()
        config = {
            "apiVersion": "config.kueue.x-k8s.io/v1beta2",
            "kind": "Configuration",
            "namespace": HOME,
            "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
            "metrics": {"bindAddress": "0"},
            "webhook": {"port": port, "certDir": str(certs)},
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {"enable": False},
            "clientConnection": {"qps": 300, "burst": 500},
            "featureGates": {"VisibilityOnDemand": False},
            "integrations": {"frameworks": list(FRAMEWORKS)},
        }
        path = self.folder / "kueue.yaml"
        path.write_text(yaml.safe_dump(config))
        environment = {"KUBECONFIG": str(self.kubectl.kubeconfig), "POD_NAMESPACE": HOME}
        program = str(self.source.program("kueue"))
        self.processes.append(start("kueue", [program, f"--config={path}"], self.folder, environment))
        bundle = base64.b64encode((certs / "ca-bundle.crt").read_bytes()).decode()
        manifests = self.source.home / "config" / "components" / "webhook" / "manifests.yaml"
        call_at(self.api, [_configured(body) for body in _documents(manifests)], port, bundle)
        wait_until(self._answers, "Kueue's webhooks to answer", 180)

    def stop(self) -> None:
        """It ends."""
        while self.processes:
            self.processes.pop().stop()
        METRICS_CERTS.unlink(missing_ok=True)

    def alive(self) -> bool:
        """Whether it has not ended."""
        return all(process.popen.poll() is None for process in self.processes)

    def queues(self, places: tuple[str, ...], quota: int) -> None:
        """In each namespace the queue `topology`, whose flavor has one, and `plain`, which counts quota;
        each has so many GPUs of a pool of nodes of its own."""
        levels = {"levels": [{"nodeLabel": level} for level in LEVELS]}
        self._create("topologies", "Topology", TOPOLOGY, levels)
        for name, pool in (("topology", POOL), ("plain", SHARED_POOL)):
            flavor: Json = {"nodeLabels": {"pool": pool}}
            if name == "topology":
                flavor["topologyName"] = TOPOLOGY
            self._create("resourceflavors", "ResourceFlavor", name, flavor)
            amounts = {"cpu": "4k", "memory": "40Ti", GPU: str(quota)}
            resources = [{"name": key, "nominalQuota": amount} for key, amount in amounts.items()]
            covered = {"coveredResources": list(amounts), "flavors": [{"name": name, "resources": resources}]}
            spec = {
                "namespaceSelector": {},
                "resourceGroups": [covered],
                "preemption": {"withinClusterQueue": "LowerPriority"},
            }
            self._create("clusterqueues", "ClusterQueue", name, spec)
            for place in places:
                self._create("localqueues", "LocalQueue", name, {"clusterQueue": name}, place)

    def _create(self, plural: str, kind: str, name: str, spec: Json, place: str = "") -> None:
        path = f"{PATH}/namespaces/{place}/{plural}" if place else f"{PATH}/{plural}"
        head = {"apiVersion": VERSION, "kind": kind, "metadata": {"name": name}}
        self.api.create(path, {**head, "spec": spec})

    def _answers(self) -> bool:
        assert self.alive(), self.processes[0].tail()
        body = {
            "metadata": {"name": "probe", "labels": {"kueue.x-k8s.io/queue-name": "none"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        try:
            self.api.create("/api/v1/namespaces/research/pods", body, dryRun="All")
        except Exception as error:
            return "denied" in str(error)
        return True


def _documents(path: Path) -> list[Json]:
    return [body for body in yaml.safe_load_all(path.read_text()) if body]


def _configured(body: Json) -> Json:
    """As config/components/webhook/kustomization.yaml patches it: workloads of its own namespace and the
    system's are left alone."""
    places = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", HOME]}
    own = ("clusterqueue", "cohort", "resourceflavor", "workload")
    for webhook in body["webhooks"]:
        if not any(webhook["name"][1:].startswith(name) for name in own):
            webhook["namespaceSelector"] = {"matchExpressions": [places]}
    body["metadata"]["name"] = f"kueue-{body['metadata']['name']}"
    return body
