"""A real control plane on loopback: etcd, kube-apiserver, kube-controller-manager and kube-scheduler.

Only the nodes' kubelets are missing; `tests.e2e.kubelet` simulates them. Certificates, RBAC, admission,
garbage collection, the Job controller and the scheduler are real and have their default settings.
"""

from __future__ import annotations

import os
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Self

import yaml

from tests.e2e.api import Api, ApiError
from tests.e2e.binaries import Programs
from tests.e2e.pki import Authority
from tests.e2e.processes import Process, free_port, start, wait_until

START_SECONDS = 300.0
"""How long a program may take to start: on a quiet machine seconds, beside other work minutes."""
SERVICE_RANGE = "10.0.0.0/24"
WEBHOOK_CALLER = "kube-apiserver-webhooks"
"""The name in the client certificate that webhooks see."""
NATIVE_GANGS = {"1.36": "v1alpha2", "1.37": "v1beta1"}
"""By minor of Kubernetes the version of scheduling.k8s.io in which it serves PodGroups; 1.35 had none."""
NODE_GRACE = "24h"
"""How long a node counts as ready without a heartbeat: nobody sends any, so for the whole run."""


class ControlPlane:
    """The four programs, stopped in reverse order of their start. `kubeconfig` belongs to an
    administrator.
    """

    def __init__(
        self, programs: Programs, folder: Path, node_grace: str = NODE_GRACE, audited: str = ""
    ) -> None:
        """Starts nothing. `folder` holds data, certificates and logs; the requests of the user `audited` are
        written to `audit.log` there.
        """
        self.programs = programs
        self.folder = folder
        self.node_grace = node_grace
        self.audited = audited
        self.authority = Authority(folder / "pki")
        self.etcd_port, self.port = free_port(), free_port()
        self.server = f"https://127.0.0.1:{self.port}"
        self.kubeconfig = self.authority.kubeconfig(self.server, "admin", "system:masters")
        self.api = Api(self.kubeconfig)
        self._keys = self.authority.signing_key()
        self._serving = self.authority.issue("kube-apiserver")
        self._running: list[Process] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Starts the programs and waits until pods can be created and are scheduled. Raises `RuntimeError`
        with a log if a program ends.
        """
        try:
            self.start_etcd()
            self.start_apiserver()
            self._controllers()
            self._scheduler()
            self._account()
        except BaseException:
            self.stop()
            raise

    def revive(self) -> None:
        """Restarts those of the four programs that have ended."""
        programs = {
            "etcd": self.start_etcd,
            "kube-apiserver": self.start_apiserver,
            "kube-controller-manager": self._controllers,
            "kube-scheduler": self._scheduler,
        }
        alive = {process.name for process in self._running if process.popen.poll() is None}
        for name, begin in programs.items():
            if name not in alive:
                begin()

    def stop(self) -> None:
        """Stops the started programs, the last one first."""
        while self._running:
            self._running.pop().stop()

    def running(self, name: str) -> Process:
        """One of the four programs, running."""
        return next(process for process in self._running if process.name == name)

    def start_etcd(self) -> Process:
        """Starts etcd. After a restart it has its former data."""
        client, peer = f"http://127.0.0.1:{self.etcd_port}", f"http://127.0.0.1:{free_port()}"
        process = self._start(
            "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",  # a test's store need not outlive the machine
            "--log-level=warn",
        )
        process.wait_until(lambda: _healthy(f"{client}/health"), START_SECONDS)
        return process

    def start_apiserver(self) -> Process:
        """Starts the API server. After a restart it has its former address."""
        process = self._start(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",  # nobody looks for the API server behind a Service here
            f"--secure-port={self.port}",
            f"--service-cluster-ip-range={SERVICE_RANGE}",
            f"--tls-cert-file={self._serving.cert}",
            f"--tls-private-key-file={self._serving.key}",
            f"--client-ca-file={self.authority.ca}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._keys}",
            f"--service-account-signing-key-file={self._keys}",
            "--authorization-mode=Node,RBAC",
            *self._pod_groups(),
            f"--admission-control-config-file={self._admission()}",
            *self._audit(),
        )
        process.wait_until(self._ready, START_SECONDS)
        return process

    def _pod_groups(self) -> list[str]:
        """The flags that enable the PodGroups of Kubernetes itself, if this version has them."""
        version = NATIVE_GANGS.get(self.programs.minor)
        if version is None:
            return []
        return [
            f"--runtime-config=scheduling.k8s.io/{version}=true",
            "--feature-gates=GenericWorkload=true,TopologyAwareWorkloadScheduling=true",
        ]

    def _admission(self) -> Path:
        """Writes the admission configuration: the API server shows a client certificate to webhooks, as
        docs/callers.md describes.
        """
        pair = self.authority.issue(WEBHOOK_CALLER)
        user = {"client-certificate": str(pair.cert), "client-key": str(pair.key)}
        kubeconfig = self.folder / "webhooks.kubeconfig"
        kubeconfig.write_text(
            yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "users": [{"name": "*", "user": user}]})
        )
        version = "apiserver.config.k8s.io/v1"
        webhooks = {
            "apiVersion": version,
            "kind": "WebhookAdmissionConfiguration",
            "kubeConfigFile": str(kubeconfig),
        }
        plugins = [
            {"name": f"{phase}AdmissionWebhook", "configuration": webhooks}
            for phase in ("Mutating", "Validating")
        ]
        path = self.folder / "admission.yaml"
        path.write_text(
            yaml.safe_dump({"apiVersion": version, "kind": "AdmissionConfiguration", "plugins": plugins})
        )
        return path

    def _audit(self) -> list[str]:
        if not self.audited:
            return []
        policy = self.folder / "audit-policy.yaml"
        rules = [{"level": "Metadata", "users": [self.audited]}, {"level": "None"}]
        head = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"]}
        policy.write_text(yaml.safe_dump({**head, "rules": rules}))
        return [
            f"--audit-policy-file={policy}",
            f"--audit-log-path={self.folder / 'audit.log'}",
        ]

    def _controllers(self) -> None:
        user = "system:kube-controller-manager"
        process = self._start(
            "kube-controller-manager",
            f"--kubeconfig={self.authority.kubeconfig(self.server, user)}",
            f"--service-account-private-key-file={self._keys}",
            f"--root-ca-file={self.authority.ca}",
            "--use-service-account-credentials",
            "--leader-elect=false",
            f"--node-monitor-grace-period={self.node_grace}",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
            "--bind-address=127.0.0.1",
            f"--secure-port={(port := free_port())}",
        )
        process.wait_until(lambda: _healthy(f"https://127.0.0.1:{port}/healthz"), START_SECONDS)

    def _scheduler(self) -> None:
        kubeconfig = self.authority.kubeconfig(self.server, "system:kube-scheduler")
        config = self.folder / "scheduler.yaml"
        connection = {"kubeconfig": str(kubeconfig), "qps": 200, "burst": 400}
        config.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "kubescheduler.config.k8s.io/v1",
                    "kind": "KubeSchedulerConfiguration",
                    "clientConnection": connection,
                    "leaderElection": {"leaderElect": False},
                }
            )
        )
        port = free_port()
        process = self._start(
            "kube-scheduler", f"--config={config}", "--bind-address=127.0.0.1", f"--secure-port={port}"
        )
        process.wait_until(lambda: _healthy(f"https://127.0.0.1:{port}/healthz"), START_SECONDS)

    def _account(self) -> None:
        """Waits for the default service account, which the controller manager creates. No pod can be created
        before.
        """
        path = "/api/v1/namespaces/default/serviceaccounts/default"
        wait_until(lambda: exists(self.api, path), "the default service account", START_SECONDS)

    def _start(self, name: str, *arguments: str) -> Process:
        process = start(name, [self.programs[name], *arguments], self.folder)
        self._running = [earlier for earlier in self._running if earlier.popen.poll() is None]
        self._running.append(process)
        return process

    def _ready(self) -> bool:
        try:
            return bool(self.api.get("/readyz")["text"] == "ok")
        except (ApiError, OSError):
            return False


class ExistingCluster:
    """The cluster that `BAYPLAN_E2E_KUBECONFIG` names. Its API server must reach the webhook on this
    machine.
    """

    def __init__(self, kubeconfig: Path) -> None:
        """Keeps the path of the kubeconfig."""
        self.kubeconfig = kubeconfig
        self.api = Api(kubeconfig)

    def start(self) -> None:
        """Checks that the cluster responds. Raises `ApiError` or `OSError` otherwise."""
        self.api.get("/readyz")

    def stop(self) -> None:
        """Does nothing: the cluster is not ours to stop."""


def named_cluster() -> Path | None:
    """The kubeconfig of an existing cluster to test on, or None."""
    path = os.environ.get("BAYPLAN_E2E_KUBECONFIG")
    return Path(path) if path else None


def exists(api: Api, path: str) -> bool:
    """Returns whether an object exists. Raises `ApiError` for any error except "not found"."""
    try:
        api.get(path)
    except ApiError as error:
        if error.status != 404:
            raise
        return False
    return True


def _healthy(url: str) -> bool:
    """Returns whether a health endpoint responds. Its certificate, which the program makes itself, is not
    verified.
    """
    unverified = ssl.create_default_context()
    unverified.check_hostname = False
    unverified.verify_mode = ssl.CERT_NONE
    try:
        with urllib.request.urlopen(
            url, timeout=2, context=unverified if url.startswith("https") else None
        ) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
