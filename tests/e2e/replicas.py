"""Several `bayplan serve --kubeconfig` behind one address, as behind a Service, and nodes for them."""

from __future__ import annotations

import json
import signal
import socket
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.api import Api, Json
from tests.e2e.configured import configure, unconfigure, wait_for_calls
from tests.e2e.controlplane import START_SECONDS
from tests.e2e.hook import BAYPLAN, make_certificates
from tests.e2e.processes import Process, free_port, start

RACK = "example.com/rack"
GPU = "nvidia.com/gpu"
RESERVATIONS = "/apis/bayplan.dev/v1alpha1/reservations"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"


class Balancer:
    """Sends each connection to the next port. `ports` may change while it runs, and `cut` closes connections.
    A port that refuses is skipped; with `strict` the connection is lost instead, as behind a Service.
    """

    def __init__(self, ports: Sequence[int], *, strict: bool = False) -> None:
        """Starts to listen; call `close` after use."""
        self.ports = list(ports)
        self._strict = strict
        self._turn = 0
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, name="balancer", daemon=True).start()

    def close(self) -> None:
        """Stops listening and closes every connection."""
        self._listener.close()

    def cut(self) -> int:
        """Closes all connections, watches included, and returns their number."""
        cut = list(self._open)
        for end in cut:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        return len(cut) // 2

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        ports = list(self.ports)
        for _ in ports[:1] if self._strict else ports:
            self._turn += 1
            with suppress(OSError):
                server = socket.create_connection(("127.0.0.1", ports[self._turn % len(ports)]), 2)
                server.settimeout(None)
                for connection in (
                    client,
                    server,
                ):  # else each call waits for the other side's delayed acknowledgement
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._open |= {client, server}
                threading.Thread(target=_pump, args=(server, client), daemon=True).start()
                _pump(client, server)
                self._open -= {client, server}
                return
        client.close()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for end in (source, sink):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@dataclass(frozen=True, slots=True)
class Release:
    """The content of an image of Bayplan: the program, and the policies that it serves."""

    program: str = BAYPLAN
    policies: Sequence[str] = ()


@dataclass(slots=True)
class Replicas:
    """Several replicas that watch one cluster. `options` are added to each command line."""

    api: Api
    kubeconfig: Path
    folder: Path
    count: int = 1
    policies: Sequence[str] = ()
    options: Sequence[str] = ()
    namespace: str = "default"
    former: Release | None = None
    """What the first of them runs, where that is another release than this checkout."""
    processes: list[Process] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)
    balancer: Balancer | None = None
    configured: list[str] = field(default_factory=list)

    @property
    def certs(self) -> Path:
        """The folder of the replicas' certificates."""
        return self.folder / "certs"

    def start(self) -> None:
        """Starts all replicas and waits until they are ready."""
        make_certificates(self.certs)
        self.ports = [free_port() for _ in range(self.count)]
        self.processes = [self._start(number) for number in range(self.count)]
        for process, port in zip(self.processes, self.ports, strict=True):
            process.wait_until(lambda port=port: self.is_ready(port), START_SECONDS)
        self.balancer = Balancer(self.ports)

    def restart(self, number: int) -> None:
        """Restarts a killed replica at its former port."""
        self.processes[number] = self._start(number)

    def kill(self, number: int) -> None:
        """Sends SIGKILL: the replica finishes nothing."""
        self.processes[number].popen.send_signal(signal.SIGKILL)
        self.processes[number].popen.wait()

    def stop(self) -> None:
        """Stops all replicas."""
        for process in self.processes:
            process.popen.send_signal(signal.SIGTERM)
        for process in self.processes:
            process.stop()
        if self.balancer is not None:
            self.balancer.close()

    def configure(self, port: int = 0) -> None:
        """Makes the API server call the replicas through the balancer, or the one at `port` directly."""
        assert self.balancer is not None, "they run"
        configure(self.api, self.configured, port or self.balancer.port, self.certs)
        wait_for_calls(self.api, self.lines)

    def unconfigure(self) -> None:
        """Deletes the configurations; the API server calls no webhook afterwards."""
        unconfigure(self.api, self.configured, self.lines)

    def lines(self) -> list[dict[str, Any]]:
        """The JSON log lines of all replicas."""
        return [line for lines in self.lines_by_replica() for line in lines]

    def lines_by_replica(self) -> list[list[dict[str, Any]]]:
        """The JSON log lines of each replica."""
        texts = [process.log.read_text().splitlines() for process in self.processes]
        return [[json.loads(line) for line in text if line.startswith("{")] for text in texts]

    def output(self) -> str:
        """The output of all replicas."""
        return "\n".join(process.log.read_text() for process in self.processes)

    def is_ready(self, port: int) -> bool:
        """Returns whether /readyz of the replica reports ready."""
        return self.readiness(port)[0] == 200

    def readiness(self, port: int) -> tuple[int, str]:
        """Status and text of /readyz; status 0 if nothing responds."""
        return self._asked(port, "readyz")

    def metrics(self, port: int) -> str:
        """The text of /metrics."""
        return self._asked(port, "metrics")[1]

    def _asked(self, port: int, path: str) -> tuple[int, str]:
        context = ssl.create_default_context(cafile=str(self.certs / "ca-bundle.crt"))
        try:
            with urllib.request.urlopen(
                f"https://127.0.0.1:{port}/{path}", timeout=2, context=context
            ) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except (urllib.error.URLError, OSError):
            return 0, ""

    def command(self, number: int) -> list[str]:
        """The command line of the replica with this number."""
        release = self.former if self.former and number == 0 else Release(policies=self.policies)
        command = [
            release.program,
            "serve",
            "--port",
            str(self.ports[number]),
            "--kubeconfig",
            str(self.kubeconfig),
        ]
        command += ["--tls-cert", str(self.certs / "tls.crt"), "--tls-key", str(self.certs / "tls.key")]
        command += ["--namespace", self.namespace, *self.options]
        return [*command, "-p", *release.policies] if release.policies else command

    def _start(self, number: int) -> Process:
        return start(f"bayplan-{number}", self.command(number), self.folder)


def nodes(racks: int, hosts: int, gpus: int = 8) -> list[Json]:
    """Creates racks r1, r2, … of nodes r1-n1, r1-n2, …, and the topology with their level."""
    manifests: list[Json] = [
        {
            "apiVersion": "kai.scheduler/v1alpha1",
            "kind": "Topology",
            "metadata": {"name": "racks"},
            "spec": {"levels": [{"nodeLabel": RACK}, {"nodeLabel": "kubernetes.io/hostname"}]},
        }
    ]
    for rack in range(1, racks + 1):
        for host in range(1, hosts + 1):
            name = f"r{rack}-n{host}"
            offers = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: str(gpus)}
            manifests.append(
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "metadata": {
                        "name": name,
                        "labels": {RACK: f"r{rack}", "kubernetes.io/hostname": name},
                    },
                    "status": {
                        "allocatable": offers,
                        "conditions": [
                            {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "played"}
                        ],
                    },
                }
            )
    return manifests


def job(name: str, pods: int, *, required: str = RACK, gpus: int = 8, **spec: Any) -> Json:
    """A Job of this many pods of whole nodes that must stay in one rack."""
    annotations = {"kai.scheduler/topology": "racks"}
    if required:
        annotations["kai.scheduler/topology-required-placement"] = required
    limits = {"cpu": "4", "memory": "8Gi", GPU: str(gpus)}
    container = {"name": "train", "image": "busybox", "resources": {"limits": limits}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container], **spec}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "research", "annotations": annotations},
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "backoffLimit": 100,
            "completionMode": "Indexed",
            "template": template,
        },
    }


def small_pod(name: str, cpu: str = "1", memory: str = "1Gi") -> Json:
    """A single pod of one GPU that reserves what it uses."""
    limits = {"cpu": cpu, "memory": memory, GPU: "1"}
    container = {"name": "main", "image": "busybox", "resources": {"limits": limits}}
    annotations = {"bayplan.dev/reserve": "nodes"}
    return {
        "metadata": {"name": name, "namespace": "research", "annotations": annotations},
        "spec": {"containers": [container]},
    }


def reservations(api: Api) -> dict[str, Json]:
    """The reservations by gang, both held and claimed ones."""
    items = api.items(RESERVATIONS)
    return {item["spec"]["gang"]: item for item in items if (item.get("status") or {}).get("state")}


def events(api: Api, kind: str, name: str) -> list[tuple[str, str]]:
    """Reason and message of the events on a workload, oldest first."""
    uid = api.get(f"/apis/batch/v1/namespaces/research/{kind.lower()}s/{name}")["metadata"]["uid"]
    query = f"involvedObject.uid={uid}"
    entries = api.items("/api/v1/namespaces/research/events", fieldSelector=query)
    ours = [event for event in entries if event["source"].get("component") == "bayplan"]
    ours.sort(key=lambda event: (event["firstTimestamp"], event["metadata"]["name"]))
    return [(event["reason"], event["message"]) for event in ours]


def racks_of(pods: Iterable[Json]) -> set[str]:
    """The racks of the nodes that the pods are bound to."""
    return {pod["spec"]["nodeName"].partition("-")[0] for pod in pods if pod["spec"].get("nodeName")}
