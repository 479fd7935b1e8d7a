"""The live page on a real control plane: it shows the commands' output, and to each viewer what they may
list.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from tests.e2e.binaries import ROOT
from tests.e2e.hook import BAYPLAN
from tests.e2e.processes import start
from tests.e2e.replicas import Replicas
from tests.e2e.rollout import SYSTEM
from tests.e2e.serving import HELD, WAITS, bayplan, holding_and_waiting
from tests.e2e.stage import Cluster

RIGHTS = ROOT / "manifests" / "components" / "ui" / "rbac.yaml"
READER = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: page-reader, namespace: research}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: page-guest, namespace: research}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: page-reader, namespace: research}
rules: [{apiGroups: [""], resources: [pods], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: page-reader, namespace: research}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: page-reader}
subjects: [{kind: ServiceAccount, name: page-reader, namespace: research}]
"""


@pytest.fixture(scope="module")
def serving(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """One rack of two nodes: one Job holds it, another waits for it."""
    with holding_and_waiting(cluster, tmp_path_factory.mktemp("page")) as replicas:
        yield replicas


class Stream:
    """The event stream of a page as its viewer reads it; `sections` holds the latest content of each
    section.
    """

    def __init__(self, address: str, token: str) -> None:
        """Opens the stream. Raises `AssertionError` if the page does not admit the viewer."""
        place = urlsplit(address)
        self._connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
        headers = {"Authorization": f"Bearer {token}"}
        self._connection.request("GET", "/api/events", headers=headers)
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200, self._answer.read()
        self.sections: dict[str, dict[str, Any]] = {}

    def read_until(self, *names: str, section: str) -> None:
        """Reads until the section contains objects with all these names."""
        while not set(names) <= {entry.get("name") for entry in self.sections.get(section, {}).values()}:
            self.read()

    def read(self) -> None:
        """Reads the next event."""
        while not (line := self._answer.readline()).startswith(b"data: "):
            assert line, "the stream ended"
        for section, entries in json.loads(line[6:]).items():
            kept = {**self.sections.get(section, {}), **entries}
            self.sections[section] = {key: entry for key, entry in kept.items() if entry is not None}

    def close(self) -> None:
        """Closes the stream."""
        self._connection.close()


@contextmanager
def page(folder: Path, *words: str, **environment: str) -> Iterator[str]:
    """A running `bayplan ui` and the address that it prints."""
    process = start("page", [BAYPLAN, "ui", "--port", "0", *words], folder, environment)
    try:
        process.wait_until(lambda: "http://" in process.log.read_text(), 120)
        yield next(line for line in process.log.read_text().splitlines() if line.startswith("http://"))
    finally:
        process.stop()


@pytest.mark.usefixtures("serving")
def test_the_page_tells_what_queue_and_why_print(cluster: Cluster, tmp_path: Path) -> None:
    """The same entries, and the decisions on both Jobs from the controller's Events."""
    kubeconfig = str(cluster.kubectl.kubeconfig)
    with page(tmp_path, "--kubeconfig", kubeconfig, "--installation", "default") as address:
        stream = Stream(address, address.partition("#key=")[2])
        stream.read_until(HELD, WAITS, section="gangs")
        stream.read_until(HELD, WAITS, section="decisions")
        gangs = stream.sections["gangs"]
        for name in (HELD, WAITS):
            (printed,) = json.loads(bayplan(cluster, "why", name, "-o", "json")[1])["items"]
            assert {key: gangs[name].get(key) for key in printed} == printed
        (first,) = json.loads(bayplan(cluster, "queue", "-o", "json")[1])["items"]
        assert (first["name"], gangs[WAITS]["position"]) == (WAITS, 1)
        assert f"reserved by {HELD}" in gangs[WAITS]["message"]
        assert stream.sections["health"]["controller"]["state"] == "ok"
        stream.close()


@pytest.fixture
def account(cluster: Cluster, tmp_path: Path) -> Iterator[Path]:
    """Token and CA of the page's service account, as Kubernetes mounts them, with the rights of the
    component.
    """
    for words, text in (
        (("apply", "-f", str(ROOT / "manifests" / "10-namespace.yaml")), ""),
        (("apply", "-f", str(RIGHTS)), ""),
        (("apply", "-f", "-"), READER),
    ):
        output = cluster.kubectl(*words, text=text)
        assert output.status == 0, output.err
    folder = tmp_path / "account"
    folder.mkdir()
    (folder / "ca.crt").write_bytes(Path(target(cluster)["certificate-authority"]).read_bytes())
    (folder / "token").write_text(token(cluster, SYSTEM, "bayplan-ui"))
    yield folder
    cluster.kubectl("delete", "-f", "-", "--ignore-not-found", text=READER)
    cluster.kubectl("delete", "-f", str(RIGHTS), "--ignore-not-found")


def target(cluster: Cluster) -> dict[str, str]:
    """Address and CA of the API server."""
    config = yaml.safe_load(cluster.kubectl.kubeconfig.read_text())
    return dict(config["clusters"][0]["cluster"])


def token(cluster: Cluster, namespace: str, name: str) -> str:
    """A token of a service account."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    return str(cluster.api.create(path, {"spec": {"expirationSeconds": 3600}})["status"]["token"])


@pytest.mark.usefixtures("serving")
def test_each_viewer_sees_what_they_may_list_and_the_component_reads_all_it_needs(
    cluster: Cluster, account: Path, tmp_path: Path
) -> None:
    """The page's account reads everything; a reader of `research` sees its gangs, a guest sees none."""
    server = urlsplit(target(cluster)["server"])
    environment = {
        "KUBERNETES_SERVICE_HOST": str(server.hostname),
        "KUBERNETES_SERVICE_PORT": str(server.port),
    }
    with page(tmp_path, "--in-cluster", "--account", str(account), **environment) as address:
        own = Stream(address, (account / "token").read_text())
        own.read_until(HELD, WAITS, section="gangs")
        assert own.sections["health"]["rights"] == {"place": 2, "state": "ok", "message": "all is read"}
        own.close()
        reader = Stream(address, token(cluster, "research", "page-reader"))
        reader.read_until(HELD, WAITS, section="gangs")
        assert "health" not in reader.sections
        assert all(rack["free"] is None for rack in reader.sections["racks"].values())
        reader.close()
        guest = Stream(address, token(cluster, "research", "page-guest"))
        guest.read()
        assert set(guest.sections) == {"page"}
        guest.close()
        with pytest.raises(AssertionError, match="does not take this token"):
            Stream(address, "no.such.token")
