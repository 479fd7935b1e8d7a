"""Replicas as the manifests install them: the pod's service account, the Secret's certificates, one address.

Of 70-webhooks.yaml only the place to call is changed, to a URL on loopback; the CA comes from the replicas.
"""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from tests.e2e.api import Api, ApiError, Json
from tests.e2e.binaries import ROOT
from tests.e2e.configured import configure
from tests.e2e.conftest import policy_set
from tests.e2e.fleet import Fleet
from tests.e2e.hook import BAYPLAN
from tests.e2e.processes import Process, free_port, start, wait_until
from tests.e2e.replicas import Balancer, nodes
from tests.e2e.stage import Cluster

SYSTEM = "bayplan-system"
INSTALLED = (
    "10-namespace.yaml",
    "20-crds.yaml",
    "30-rbac.yaml",
    "31-least-power.yaml",
    "35-certificates.yaml",
    "36-history.yaml",
    "38-parameters.yaml",
)
SECRET = f"/api/v1/namespaces/{SYSTEM}/secrets/bayplan-tls"
DRAIN = 3.0
"""Seconds that a replica serves on when it is told to stop, with `LAG` of them until callers leave it."""
LAG = 1.0


@dataclass(frozen=True, slots=True)
class Replica:
    """A running `bayplan serve` and its port."""

    process: Process
    port: int

    def readiness(self) -> tuple[int, Json]:
        """Status and detail of /readyz; 0 where nobody answers. Whose certificate it is does not matter."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = HTTPSConnection("127.0.0.1", self.port, timeout=2, context=context)
        try:
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        except (OSError, HTTPException):
            return 0, {}
        finally:
            connection.close()

    def certificate(self) -> str:
        """What it serves, as PEM."""
        return ssl.get_server_certificate(("127.0.0.1", self.port), timeout=5)


@dataclass(slots=True)
class Rollout:
    """Any number of replicas, which come and go, behind one address that the API server calls."""

    cluster: Cluster
    folder: Path
    policies: Sequence[str]
    options: Sequence[str] = ()
    """Added to each replica's command line."""
    observed: bool = False
    """As the manifests ship: namespaces without a label are not enforced."""
    replicas: list[Replica] = field(default_factory=list)
    configured: list[str] = field(default_factory=list)
    balancer: Balancer = field(default_factory=lambda: Balancer((), strict=True))

    @property
    def api(self) -> Api:
        """The API server, as its administrator."""
        return self.cluster.api

    def install(self) -> None:
        """Namespace, kinds, rights, the empty Secret, and the webhook configurations without any CA."""
        for name in INSTALLED:
            self.apply(name)
        self.cluster.kubectl.wait_for_kinds()
        self.configure()

    def apply(self, name: str) -> None:
        """One of the manifests."""
        output = self.cluster.kubectl("apply", "-f", str(ROOT / "manifests" / name))
        assert output.status == 0, output.err

    def configure(self) -> None:
        """The webhook configurations, without any CA."""
        configure(self.api, self.configured, self.balancer.port, observed=self.observed)

    def uninstall(self) -> None:
        """Everything, replicas first; the webhooks before what they would refuse."""
        for replica in self.replicas:
            replica.process.stop()
        for path in self.configured:
            self.api.delete(path)
        self.balancer.close()
        for name in reversed(INSTALLED):
            file = str(ROOT / "manifests" / name)
            self.cluster.kubectl("delete", "-f", file, "--ignore-not-found", "--timeout=60s")

    def add(self) -> Replica:
        """A new replica, called from when it is ready."""
        replica = self.start()
        replica.process.wait_until(lambda: replica.readiness()[0] == 200, 90)
        self.balancer.ports.append(replica.port)
        return replica

    def start(self) -> Replica:
        """A new replica, which may still have something to wait for."""
        port = free_port()
        names = ["--certificate-secret", "bayplan-tls", "--certificate-names", "127.0.0.1", "localhost"]
        command = [BAYPLAN, "serve", "--port", str(port), "--in-cluster", "--account", str(self._account())]
        command += ["--namespace", SYSTEM, *names, "--drain", str(DRAIN), *self.options, "-p", *self.policies]
        replica = Replica(start(f"replica-{port}", command, self.folder, self._environment()), port)
        self.replicas.append(replica)
        return replica

    def retire(self, replica: Replica) -> None:
        """SIGTERM as the kubelet sends it, while callers learn a little later to leave it alone."""
        replica.process.popen.terminate()
        time.sleep(LAG)
        self.balancer.ports.remove(replica.port)
        assert replica.process.popen.wait(30) == 0, replica.process.tail()
        self.replicas.remove(replica)

    def output(self) -> str:
        """All that the replicas printed."""
        return "\n".join(path.read_text() for path in sorted(self.folder.glob("replica-*.log")))

    def bundle(self) -> bytes:
        """The CA certificates that the API server trusts now, which are the same everywhere."""
        (bundle,) = self.bundles()
        return bundle

    def bundles(self) -> set[bytes]:
        """The same by webhook: they differ while one configuration is written after the other."""
        webhooks = [webhook for path in self.configured for webhook in self.api.get(path)["webhooks"]]
        return {base64.b64decode(webhook["clientConfig"].get("caBundle", "")) for webhook in webhooks}

    def stored(self, key: str) -> bytes:
        """A value of the Secret."""
        return base64.b64decode(self.api.get(SECRET).get("data", {}).get(key, ""))

    def _account(self) -> Path:
        """A pod's mounted service account: its token, and the API server's CA."""
        token = self.cluster.kubectl("create", "token", "bayplan", "-n", SYSTEM, "--duration=2h")
        assert token.status == 0, token.err
        folder = self.folder / "serviceaccount"
        folder.mkdir(exist_ok=True)
        (folder / "token").write_text(token.out.strip())
        (folder / "ca.crt").write_bytes(Path(self._target()["certificate-authority"]).read_bytes())
        return folder

    def _environment(self) -> dict[str, str]:
        """What a pod is told of the API server's Service."""
        address = urlsplit(self._target()["server"])
        return {
            "KUBERNETES_SERVICE_HOST": str(address.hostname),
            "KUBERNETES_SERVICE_PORT": str(address.port),
        }

    def _target(self) -> dict[str, str]:
        config = yaml.safe_load(self.cluster.kubectl.kubeconfig.read_text())
        return dict(config["clusters"][0]["cluster"])


class Load:
    """Calls one after the other, so many a second at most, from `with` to its end, each noted if it fails."""

    def __init__(self, call: Callable[[], object], rate: float = 8.0) -> None:
        """Nothing is called yet."""
        self._call = call
        self._pause = 1 / rate
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self.calls = 0
        self.failures: list[str] = []

    def __enter__(self) -> Load:
        """Begins."""
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        """Ends with the call that is under way."""
        self._stop.set()
        self._thread.join()

    def wait_for_calls(self, count: int) -> None:
        """Wait for so many further calls, however long each takes on a busy machine."""
        enough = self.calls + count
        wait_until(lambda: self.calls >= enough, f"{count} more calls", 120)

    def _run(self) -> None:
        while not self._stop.wait(self._pause):
            self.calls += 1
            try:
                self._call()
            except (ApiError, OSError, HTTPException, AssertionError) as error:
                self.failures.append(f"{time.strftime('%X')} {type(error).__name__}: {error}")


def trusted_call(rollout: Rollout) -> None:
    """New connections by callers that trust what one of the configurations said just before."""
    for bundle in sorted(rollout.bundles()):
        _trusting(rollout, bundle)


def _trusting(rollout: Rollout, bundle: bytes) -> None:
    context = ssl.create_default_context(cadata=bundle.decode())
    with (
        socket.create_connection(("127.0.0.1", rollout.balancer.port), 5) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
    ):
        secured.sendall(b"GET /healthz HTTP/1.1\r\nHost: bayplan\r\nConnection: close\r\n\r\n")
        answer = secured.recv(4096)
    assert answer.startswith(b"HTTP/1.1 200"), answer[:200]


def wait_for_certificate(rollout: Rollout, former: bytes, seconds: float = 90.0) -> None:
    """Until the Secret holds another serving certificate than that, and every replica serves it."""
    wait_until(lambda: rollout.stored("tls.crt") != former, "a new certificate", seconds)
    new = rollout.stored("tls.crt").decode().strip()
    for replica in rollout.replicas:
        wait_until(lambda replica=replica: replica.certificate().strip() == new, "every replica to serve it")


@contextmanager
def rollout_of(cluster: Cluster, folder: Path, racks: int, hosts: int) -> Iterator[Rollout]:
    """An installation over racks of so many hosts, without a replica yet. Gone afterwards."""
    fleet = Fleet(cluster.api)
    rollout = Rollout(cluster, folder, policy_set("default-scheduler", folder))
    try:
        fleet.make(nodes(racks, hosts))
        rollout.install()
        yield rollout
    finally:
        rollout.uninstall()
        fleet.remove()
