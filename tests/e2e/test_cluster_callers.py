"""The webhook serves only the API server, which shows a client certificate; all other callers are refused."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from tests.e2e.controlplane import WEBHOOK_CALLER, named_cluster
from tests.e2e.hook import Hook
from tests.e2e.pki import Pair
from tests.e2e.processes import free_port
from tests.e2e.stage import Cluster
from tests.manifests.examples import EXAMPLES
from tests.webhook.calls import example, review

pytestmark = pytest.mark.skipif(
    bool(named_cluster()),
    reason="needs the CA key of the API server, which BAYPLAN_E2E_KUBECONFIG does not give: "
    "runs in `make e2e` and in CI, whose control plane is their own",
)
JOB = "job-two-nodes-one-rack"


@pytest.fixture(scope="module")
def hook(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hook]:
    """A webhook that requires the API server's certificate, with the health probes on a separate port."""
    probes = free_port()
    hook = Hook(
        cluster.api,
        tmp_path_factory.mktemp("callers"),
        EXAMPLES / "clusters" / "superpod-32.yaml",
        options=[
            *("--client-ca", str(_pki(cluster) / "ca.crt")),
            *("--client-names", WEBHOOK_CALLER),
            *("--probe-port", str(probes)),
        ],
        probe=f"http://127.0.0.1:{probes}/readyz",
    )
    hook.start()
    try:
        hook.configure()
        yield hook
        hook.unconfigure()
    finally:
        hook.stop()


def test_the_api_server_is_obeyed(cluster: Cluster, hook: Hook) -> None:
    """A Job that is applied is planned and gets its place."""
    applied = cluster.kubectl("apply", "-f", str(EXAMPLES / f"{JOB}.yaml"))
    assert applied.status == 0, applied.err
    assert [held.state for held in hook.reservations()] == ["claimed"]
    cluster.kubectl("delete", "-f", str(EXAMPLES / f"{JOB}.yaml"), "--wait=false")


def test_who_shows_no_certificate_gets_no_connection(hook: Hook) -> None:
    """A forged creation from the network holds nothing."""
    before = hook.reservations()
    with pytest.raises((ssl.SSLError, urllib.error.URLError, ConnectionError)):
        _forge(hook, None)
    assert hook.reservations() == before


def test_another_certificate_of_the_same_authority_may_not_call(cluster: Cluster, hook: Hook) -> None:
    """The cluster's CA signs users and kubelets too; their name is told them, and nothing is held."""
    before = hook.reservations()
    admin = Pair(_pki(cluster) / "admin.crt", _pki(cluster) / "admin.key")
    with pytest.raises(urllib.error.HTTPError) as refused:
        _forge(hook, admin)
    assert refused.value.code == 403
    assert "the client certificate (admin" in refused.value.read().decode()
    assert hook.reservations() == before


def _pki(cluster: Cluster) -> Path:
    """The folder of the certificates that the control plane's CA signed."""
    return Path(cluster.kubectl.kubeconfig).parent


def _forge(hook: Hook, pair: Pair | None) -> None:
    """Posts a review that no API server sent. Raises the resulting error."""
    context = ssl.create_default_context(cafile=str(hook.certs / "ca-bundle.crt"))
    if pair is not None:
        context.load_cert_chain(pair.cert, pair.key)
    body = orjson.dumps(review(example(JOB)))
    url = f"https://127.0.0.1:{hook.port}/mutate"
    call = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method="POST")
    with urllib.request.urlopen(call, timeout=10, context=context) as answer:
        raise AssertionError(answer.read().decode())
