"""KAI-Scheduler as it is: scheduler, podgrouper, binder, podgroup and queue controllers, admission."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.api import Api, Json
from tests.e2e.fleet import namespace
from tests.e2e.hook import make_certificates
from tests.e2e.kubectl import Kubectl
from tests.e2e.processes import Process, free_port, start, wait_until
from tests.schedulers.programs import Source, call_at, shown_as_running

HOME = "kai-scheduler"
CLASSES = {"train": 50, "build-preemptible": 75, "build": 100, "inference": 125}
"""The PriorityClasses of its chart."""
QUEUES = ("training", "inference", "production", "vision")
"""Queues beside the default one, as the recipes name them."""
GROUP_PORT = 9443
"""Where its PodGroup controller serves its webhook; no flag changes it."""


@dataclass(slots=True)
class Kai:
    """Its programs on one cluster. `source` is a checkout, `folder` takes certificates and logs."""

    source: Source
    api: Api
    kubectl: Kubectl
    folder: Path
    processes: list[Process] = field(default_factory=list)

    def install(self, node: str) -> None:
        """Its kinds, PriorityClasses and queues; `node` shows that it runs."""
        self.source.define(self.kubectl, "deployments/kai-scheduler/crds")
        for place in (HOME, "kai-resource-reservation", "kai-scale-adjust"):
            namespace(self.api, place)
        for name, value in CLASSES.items():
            body = {"metadata": {"name": name}, "value": value}
            self.api.create("/apis/scheduling.k8s.io/v1/priorityclasses", body)
        shown_as_running(self.api, HOME, "ghcr.io/kai-scheduler/kai-scheduler/scheduler:v0.17.0", node)

    def start(self) -> None:
        """All programs, until all are ready, and its webhooks are called."""
        make_certificates(self.folder / "certs")
        certs = self.folder / "k8s-webhook-server" / "serving-certs"
        certs.parent.mkdir(parents=True)
        certs.symlink_to(self.folder / "certs")
        port = free_port()
        health = {name: free_port() for name in ("binder", "podgrouper", "podgroupcontroller", "admission")}
        for name, probe in health.items():
            flags = ["--metrics-bind-address=0", f"--health-probe-bind-address=127.0.0.1:{probe}"]
            if name == "admission":
                flags.append(f"--webhook-addr={port}")
            self._start(name, *flags)
        self._start("queuecontroller", "--metrics-listen-address=0", "--enable-webhook=false")
        self._start(
            "scheduler",
            f"--listen-address=127.0.0.1:{free_port()}",
            f"--plugin-server-port={free_port()}",
            f"--namespace={HOME}",
            "--v=3",
        )
        bundle = base64.b64encode((self.folder / "certs" / "ca-bundle.crt").read_bytes()).decode()
        call_at(self.api, _pods(), port, bundle)
        call_at(self.api, _groups(), GROUP_PORT, bundle)
        wait_until(self._answers, "KAI's webhooks to answer", 120)
        _queue(self.api, "default-parent-queue", "")
        for name in ("default-queue", *QUEUES):
            _queue(self.api, name, "default-parent-queue")

    def stop(self) -> None:
        """All of them, the last first."""
        while self.processes:
            self.processes.pop().stop()

    def alive(self) -> bool:
        """Whether none of them has ended."""
        return all(process.popen.poll() is None for process in self.processes)

    def _start(self, name: str, *flags: str) -> None:
        environment = {"KUBECONFIG": str(self.kubectl.kubeconfig), "TMPDIR": str(self.folder)}
        program = str(self.source.program(name))
        self.processes.append(start(f"kai-{name}", [program, *flags], self.folder, environment))

    def _answers(self) -> bool:
        """A pod and a PodGroup pass in a dry run."""
        assert self.alive(), [process.tail(500) for process in self.processes if process.popen.poll()]
        pod = {
            "metadata": {"name": "probe", "annotations": {"bayplan.dev/skip": "true"}},
            "spec": {"schedulerName": HOME, "containers": [{"name": "c", "image": "i"}]},
        }
        group = {"metadata": {"name": "probe"}, "spec": {"minMember": 1, "queue": "default-queue"}}
        groups = "/apis/scheduling.run.ai/v2alpha2/namespaces/default/podgroups"
        head = {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup"}
        try:
            self.api.create("/api/v1/namespaces/default/pods", pod, dryRun="All")
            self.api.create(groups, {**head, **group}, dryRun="All")
        except Exception as error:
            return "denied" in str(error)
        return True


def _queue(api: Api, name: str, parent: str) -> None:
    """A queue without limits whose share is all that is free."""
    unlimited = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    spec: Json = {"resources": dict.fromkeys(("cpu", "gpu", "memory"), unlimited)}
    if parent:
        spec["parentQueue"] = parent
    body = {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }
    api.create("/apis/scheduling.run.ai/v2/queues", body)


def _webhook(name: str, path: str, rule: Json, **extras: object) -> Json:
    service = {"service": {"path": path}}
    head = {"name": name, "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail"}
    return {**head, "clientConfig": service, "rules": [rule], **extras}


def _pods() -> list[Json]:
    """As pkg/operator/operands/admission/resources.go makes them."""
    not_in = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", HOME]}
    own = {
        "namespaceSelector": {"matchExpressions": [not_in]},
        "matchConditions": [
            {"name": "scheduler-name-match", "expression": f"object.spec.schedulerName == '{HOME}'"}
        ],
    }
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "scope": "Namespaced"}
    topologies = {
        "apiGroups": ["kai.scheduler"],
        "apiVersions": ["v1alpha1"],
        "resources": ["topologies"],
        "operations": ["CREATE", "UPDATE"],
        "scope": "Cluster",
    }
    name = f"kai-admission.{HOME}.svc"
    mutating = _webhook(name, "/mutate--v1-pod", {**pods, "operations": ["CREATE"]}, **own)
    validating = _webhook(name, "/validate--v1-pod", {**pods, "operations": ["CREATE", "UPDATE"]}, **own)
    topology = _webhook(f"topology.{name}", "/validate-kai-scheduler-v1alpha1-topology", topologies)
    return [
        _configuration("Mutating", "kai-admission", {**mutating, "reinvocationPolicy": "IfNeeded"}),
        _configuration("Validating", "kai-admission", validating, topology),
    ]


def _groups() -> list[Json]:
    """As pkg/operator/operands/pod_group_controller/resources.go makes it."""
    rule = {
        "apiGroups": ["scheduling.run.ai"],
        "apiVersions": ["v2alpha2"],
        "resources": ["podgroups"],
        "operations": ["CREATE", "UPDATE"],
    }
    path = "/validate-scheduling-run-ai-v2alpha2-podgroup"
    webhook = _webhook("podgroup-validation.kai.scheduler", path, rule)
    return [_configuration("Validating", "kai-podgroup-validation-v2alpha2", webhook)]


def _configuration(phase: str, name: str, *webhooks: Json) -> Json:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{phase}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": list(webhooks),
    }
