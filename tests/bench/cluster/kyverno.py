"""The real Kyverno on the control plane of the bench: its admission controller, built from a checkout.

Nothing of Kyverno is committed. It runs beside the API server, as Bayplan's replicas do, with the objects and
the flags of its own manifest (config/install-latest-testing.yaml). Its other controllers, which take no part
in admission, do not run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from tests.bench.cluster.engines import CONFIGURATIONS, Engine
from tests.bench.cluster.policies import policies
from tests.e2e.api import Api, ApiError, Json
from tests.e2e.kubectl import Kubectl
from tests.e2e.processes import Process, free_port, start, wait_until
from tests.schedulers.programs import Source

HOME = "kyverno"
MANIFEST = "config/install-latest-testing.yaml"
CONTROLLER = "kyverno-admission-controller"
POLICIES = "/apis/policies.kyverno.io/v1"
KINDS = {"MutatingAdmissionPolicy": "MutatingPolicy", "ValidatingAdmissionPolicy": "ValidatingPolicy"}
"""Kyverno's kinds, whose specs are supersets of those of Kubernetes."""

ENVIRONMENT = {
    "KYVERNO_NAMESPACE": HOME,
    "KYVERNO_POD_NAME": f"{CONTROLLER}-0",
    "KYVERNO_SERVICEACCOUNT_NAME": CONTROLLER,
    "KYVERNO_ROLE_NAME": "kyverno:admission-controller",
    "KYVERNO_DEPLOYMENT": CONTROLLER,
    "KYVERNO_SVC": "kyverno-svc",
    "INIT_CONFIG": "kyverno",
    "METRICS_CONFIG": "kyverno-metrics",
}


@contextmanager
def in_kyverno(source: Source, api: Api, kubectl: Kubectl, folder: Path) -> Iterator[Engine]:
    """Kyverno evaluates the policies as its own kinds. `source`: a checkout; `folder` takes its log."""
    folder.mkdir()
    install(source, kubectl)
    port = free_port()
    flags = [
        f"--kubeconfig={kubectl.kubeconfig}",
        f"--serverIP=127.0.0.1:{port}",
        "--webhookServerHost=127.0.0.1",
        f"--webhookServerPort={port}",
        f"--caSecretName=kyverno-svc.{HOME}.svc.kyverno-tls-ca",
        f"--tlsSecretName=kyverno-svc.{HOME}.svc.kyverno-tls-pair",
        f"--backgroundServiceAccountName=system:serviceaccount:{HOME}:kyverno-background-controller",
        f"--reportsServiceAccountName=system:serviceaccount:{HOME}:kyverno-reports-controller",
        "--metricsHost=127.0.0.1",
        f"--metricsPort={free_port()}",
        f"--controllerRuntimeMetricsAddress=127.0.0.1:{free_port()}",
        "--maxAdmissionReports=1000",
        "--maxAPICallResponseLength=2000000",
        "--omitEvents=PolicyApplied,PolicySkipped",
    ]
    process = start("kyverno", [str(source.program("kyverno")), *flags], folder, ENVIRONMENT)
    try:
        for body in policies():
            wait_until(lambda body=body: _stored(api, process, body), "Kyverno to take a policy", 180)
        yield Engine(f"Kyverno {source.version}", [process])
    finally:
        process.stop()
        for kind in ("mutating", "validating"):
            path = f"{CONFIGURATIONS}/{kind}webhookconfigurations"
            for name in [body["metadata"]["name"] for body in api.items(path)]:
                if name.startswith("kyverno-"):
                    api.delete(f"{path}/{name}")


def install(source: Source, kubectl: Kubectl) -> None:
    """Creates Kyverno's kinds, configuration and permissions, and the Deployment that it looks for."""
    text = (source.home / MANIFEST).read_text()
    documents = [body for body in yaml.safe_load_all(text) if body and _is_needed(body)]
    for kinds in (True, False):
        some = [body for body in documents if (body["kind"] == "CustomResourceDefinition") is kinds]
        output = kubectl("apply", "--server-side", "-f", "-", text=yaml.safe_dump_all(some))
        assert output.status == 0, output.err
        kubectl.wait_for_kinds()


def _is_needed(body: Json) -> bool:
    return body["kind"] not in ("Deployment", "CronJob", "Job") or body["metadata"]["name"] == CONTROLLER


def _stored(api: Api, process: Process, body: Json) -> bool:
    """Stores a policy as one of Kyverno's kind; False as long as Kyverno's own check of policies does not
    answer yet.
    """
    assert process.popen.poll() is None, process.tail(2000)
    kind = KINDS[body["kind"]]
    head = {"apiVersion": "policies.kyverno.io/v1", "kind": kind, "metadata": body["metadata"]}
    try:
        api.create(f"{POLICIES}/{kind.lower().removesuffix('y')}ies", {**head, "spec": body["spec"]})
    except ApiError as error:
        if "failed calling webhook" in str(error):
            return False
        raise
    return True
