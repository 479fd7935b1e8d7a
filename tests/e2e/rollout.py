"""Replicas as the manifests install them: the pod's service account, the Secret's certificates, one address.

In 70-webhooks.yaml only the address is replaced, by a loopback URL; the replicas write the CA.
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
        """Status and detail of /readyz; status 0 if nothing responds. The certificate is not verified."""
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
        """The served certificate as PEM."""
        return ssl.get_server_certificate(("127.0.0.1", self.port), timeout=5)


@dataclass(slots=True)
class Rollout:
    """Any number of replicas, which start and stop, behind one address that the API server calls."""

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
        """A client of the API server with an administrator's rights."""
        return self.cluster.api

    def install(self) -> None:
        """Creates the namespace, kinds, RBAC rules, the empty Secret, and the webhook configurations without
        a CA.
        """
        for name in INSTALLED:
            self.apply(name)
        self.cluster.kubectl.wait_for_kinds()
        self.configure()

    def apply(self, name: str) -> None:
        """Applies one of the manifests."""
        output = self.cluster.kubectl("apply", "-f", str(ROOT / "manifests" / name))
        assert output.status == 0, output.err

    def configure(self) -> None:
        """Creates the webhook configurations without a CA."""
        configure(self.api, self.configured, self.balancer.port, observed=self.observed)

    def uninstall(self) -> None:
        """Removes everything, the replicas first. The webhooks go before objects whose deletion they would
        refuse.
        """
        for replica in self.replicas:
            replica.process.stop()
        for path in self.configured:
            self.api.delete(path)
        self.balancer.close()
        for name in reversed(INSTALLED):
            file = str(ROOT / "manifests" / name)
            self.cluster.kubectl("delete", "-f", file, "--ignore-not-found", "--timeout=60s")

    def add(self) -> Replica:
        """Adds a replica; it is called as soon as it is ready."""
        replica = self.start()
        replica.process.wait_until(lambda: replica.readiness()[0] == 200, 90)
        self.balancer.ports.append(replica.port)
        return replica

    def start(self) -> Replica:
        """Starts a replica, which may not be ready yet."""
        port = free_port()
        names = ["--certificate-secret", "bayplan-tls", "--certificate-names", "127.0.0.1", "localhost"]
        command = [BAYPLAN, "serve", "--port", str(port), "--in-cluster", "--account", str(self._account())]
        command += ["--namespace", SYSTEM, *names, "--drain", str(DRAIN), *self.options, "-p", *self.policies]
        replica = Replica(start(f"replica-{port}", command, self.folder, self._environment()), port)
        self.replicas.append(replica)
        return replica

    def retire(self, replica: Replica) -> None:
        """Sends SIGTERM as the kubelet does; clients stop using the replica a little later."""
        replica.process.popen.terminate()
        time.sleep(LAG)
        self.balancer.ports.remove(replica.port)
        assert replica.process.popen.wait(30) == 0, replica.process.tail()
        self.replicas.remove(replica)

    def output(self) -> str:
        """The output of all replicas."""
        return "\n".join(path.read_text() for path in sorted(self.folder.glob("replica-*.log")))

    def bundle(self) -> bytes:
        """The CA bundle that the API server trusts; fails if the configurations differ."""
        (bundle,) = self.bundles()
        return bundle

    def bundles(self) -> set[bytes]:
        """The CA bundle of each webhook: they differ while one configuration is written after the other."""
        webhooks = [webhook for path in self.configured for webhook in self.api.get(path)["webhooks"]]
        return {base64.b64decode(webhook["clientConfig"].get("caBundle", "")) for webhook in webhooks}

    def stored(self, key: str) -> bytes:
        """A value in the Secret."""
        return base64.b64decode(self.api.get(SECRET).get("data", {}).get(key, ""))

    def _account(self) -> Path:
        """Writes the mounted service account of a pod: its token, and the CA of the API server."""
        token = self.cluster.kubectl("create", "token", "bayplan", "-n", SYSTEM, "--duration=2h")
        assert token.status == 0, token.err
        folder = self.folder / "serviceaccount"
        folder.mkdir(exist_ok=True)
        (folder / "token").write_text(token.out.strip())
        (folder / "ca.crt").write_bytes(Path(self._target()["certificate-authority"]).read_bytes())
        return folder

    def _environment(self) -> dict[str, str]:
        """The environment variables of a pod for the API server's Service."""
        address = urlsplit(self._target()["server"])
        return {
            "KUBERNETES_SERVICE_HOST": str(address.hostname),
            "KUBERNETES_SERVICE_PORT": str(address.port),
        }

    def _target(self) -> dict[str, str]:
        config = yaml.safe_load(self.cluster.kubectl.kubeconfig.read_text())
        return dict(config["clusters"][0]["cluster"])


class Load:
    """Sends calls one after the other, at most this many a second, while the `with` block runs, and records
    each failure.
    """

    def __init__(self, call: Callable[[], object], rate: float = 8.0) -> None:
        """Starts no call yet."""
        self._call = call
        self._pause = 1 / rate
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self.calls = 0
        self.failures: list[str] = []

    def __enter__(self) -> Load:
        """Starts the calls."""
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        """Stops after the current call."""
        self._stop.set()
        self._thread.join()

    def wait_for_calls(self, count: int) -> None:
        """Waits for this many further calls, however long each takes on a busy machine."""
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
    """Opens new connections that trust only the CA in one of the configurations a moment ago."""
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
    """Waits until the Secret holds another serving certificate than this one and every replica serves it."""
    wait_until(lambda: rollout.stored("tls.crt") != former, "a new certificate", seconds)
    new = rollout.stored("tls.crt").decode().strip()
    for replica in rollout.replicas:
        wait_until(lambda replica=replica: replica.certificate().strip() == new, "every replica to serve it")


@contextmanager
def rollout_of(cluster: Cluster, folder: Path, racks: int, hosts: int) -> Iterator[Rollout]:
    """An installation on racks of this many nodes; no replica runs yet. It is removed afterwards."""
    fleet = Fleet(cluster.api)
    rollout = Rollout(cluster, folder, policy_set("default-scheduler", folder))
    try:
        fleet.make(nodes(racks, hosts))
        rollout.install()
        yield rollout
    finally:
        rollout.uninstall()
        fleet.remove()
