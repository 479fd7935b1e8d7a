"""Certificates in a Secret of a real API server: replicas that race, rotation over years, and faults."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature

from certs.authority import CertificateError, read_bundle, service_names
from tests.e2e.configured import CONFIGURATIONS
from tests.e2e.stage import Cluster
from webhook.kube.api.client import Api, ApiError, Json
from webhook.kube.api.kubeconfig import connect
from webhook.kube.certificates import SecretCertificates

NAMES = service_names("bayplan", "default")
NAME = "rotation-test"
SECRETS = "/api/v1/namespaces/default/secrets"
KINDS = {
    "mutatingwebhookconfigurations": "MutatingWebhookConfiguration",
    "validatingwebhookconfigurations": "ValidatingWebhookConfiguration",
}
BEGIN = datetime(2030, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Shared:
    """The certificate managers of several replicas on one Secret, with a common clock."""

    api: Api
    now: datetime = BEGIN
    settle_seconds: float = 0.0
    replicas: list[SecretCertificates] = field(default_factory=list)

    def add(self, count: int = 1) -> list[SecretCertificates]:
        """Adds this many replicas."""
        new = [
            SecretCertificates(
                self.api, "default", NAME, NAMES, [NAME], lambda: self.now, self.settle_seconds
            )
            for _ in range(count)
        ]
        self.replicas += new
        return new

    async def look(self) -> bool:
        """Runs all replicas once, concurrently; returns whether one of them changed something."""
        return any(await asyncio.gather(*(replica.look() for replica in self.replicas)))

    async def settle(self) -> None:
        """Runs the replicas until none changes anything."""
        async with asyncio.timeout(20):
            while await self.look():
                pass

    async def bundles(self) -> list[bytes]:
        """The CA bundle of each webhook in each configuration."""
        stored = [await self.api.get(f"{CONFIGURATIONS}/{kind}/{NAME}") for kind in KINDS]
        webhooks = [webhook for configuration in stored for webhook in configuration["webhooks"]]
        return [base64.b64decode(webhook["clientConfig"].get("caBundle", "")) for webhook in webhooks]

    async def all_trusted(self) -> bool:
        """Returns whether every CA bundle trusts the certificate of every replica."""
        trusted = [read_bundle(bundle) for bundle in await self.bundles()]
        return all(
            any(_issued(replica.serving, ca) for ca in bundle)
            for bundle in trusted
            for replica in self.replicas
        )

    async def stored(self) -> Json:
        """The Secret's data."""
        return dict((await self.api.get(f"{SECRETS}/{NAME}"))["data"])


def _issued(leaf: x509.Certificate, ca: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(ca)
    except (ValueError, InvalidSignature):
        return False
    return True


@asynccontextmanager
async def shared(
    cluster: Cluster, *, configured: bool = True, settle_seconds: float = 0.0
) -> AsyncIterator[Shared]:
    """No Secret, and two webhook configurations without a CA that match nothing."""
    api = await connect(str(cluster.kubectl.kubeconfig))
    try:
        if configured:
            await configure(api)
        yield Shared(api, settle_seconds=settle_seconds)
    finally:
        await api.delete(f"{SECRETS}/{NAME}")
        for kind in KINDS:
            await api.delete(f"{CONFIGURATIONS}/{kind}/{NAME}")
        await api.close()


async def configure(api: Api) -> None:
    """Creates both configurations, each with two webhooks, for a kind that does not exist."""
    rule = {"apiGroups": ["none.example.com"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    webhooks = [
        {
            "name": f"{name}.example.com",
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        for name in ("one", "two")
    ]
    for path, kind in KINDS.items():
        body = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "webhooks": webhooks}
        await api.create(f"{CONFIGURATIONS}/{path}", {**body, "metadata": {"name": NAME}})


async def test_replicas_that_start_together_agree_on_one_ca(cluster: Cluster) -> None:
    """Of five that find no Secret one makes it; all serve its certificate, every entry trusts its one CA."""
    async with shared(cluster) as now:
        replicas = now.add(5)
        await now.settle()
        assert len({replica.serving for replica in replicas}) == 1
        assert {len(read_bundle(bundle)) for bundle in await now.bundles()} == {1}
        assert await now.all_trusted()
        assert [replica.waiting() for replica in replicas] == [""] * 5


async def test_in_two_years_what_is_served_is_trusted_at_every_moment(cluster: Cluster) -> None:
    """Three replicas look every ten days; CAs and certificates come and go."""
    async with shared(cluster) as now:
        now.add(3)
        await now.settle()
        seen = set()
        while now.now < BEGIN + timedelta(days=730):
            now.now += timedelta(days=10)
            first, *others = now.replicas
            for replica in (first, *others, first, *others[::-1]):
                await replica.look()
                assert await now.all_trusted()
                assert replica.serving.not_valid_after_utc > now.now
            seen.add(replica.serving)
        assert len(seen) >= 5
        assert {len(read_bundle(bundle)) for bundle in await now.bundles()} <= {1, 2}


async def test_racing_replicas_never_put_back_an_older_bundle(cluster: Cluster) -> None:
    """Four look at once, again and again, while the time jumps to where the CA is due: always trusted."""
    async with shared(cluster) as now:
        now.add(4)
        await now.settle()
        for _ in range(6):
            now.now += timedelta(days=351)  # inside the last 15 days of the CA
            for _ in range(6):
                await now.look()
                assert await now.all_trusted()
            await now.settle()
            bundle = base64.b64decode((await now.stored())["ca-bundle.crt"])
            assert set(await now.bundles()) == {bundle}


async def test_a_new_ca_rests_in_the_configurations_before_it_signs(cluster: Cluster) -> None:
    """However often one looks, the former certificate stays until the rest is over."""
    async with shared(cluster, settle_seconds=1.0) as now:
        (replica,) = now.add()
        await now.settle()
        former = replica.serving
        now.now += timedelta(days=140)  # the certificate is due, the CA not: it has to rest after a start too
        await now.settle()
        assert replica.serving == former
        await asyncio.sleep(1.1)
        await now.settle()
        assert replica.serving != former


async def test_without_the_configurations_a_replica_is_not_ready_and_says_which(cluster: Cluster) -> None:
    """They may be applied later: then it is ready without a restart."""
    async with shared(cluster, configured=False) as now:
        (replica,) = now.add()
        await replica.look()  # makes the Secret
        with pytest.raises(ApiError, match=f"mutatingwebhookconfigurations/{NAME} is not there"):
            await replica.look()
        assert replica.waiting() != ""
        await configure(now.api)
        await now.settle()
        assert replica.waiting() == ""


async def test_a_spoilt_secret_is_named_and_what_was_good_goes_on(cluster: Cluster) -> None:
    """The message names Secret and key, not what is in it; emptied, the Secret is filled anew."""
    async with shared(cluster) as now:
        (replica,) = now.add()
        await now.settle()
        former = replica.serving
        spoilt = base64.b64encode(b"a private thing").decode()
        await now.api.merge(f"{SECRETS}/{NAME}", {"data": {"ca.key": spoilt}})
        with pytest.raises(CertificateError) as caught:
            await replica.look()
        assert f"default/{NAME}: ca.crt, ca.key: the key is no" in str(caught.value)
        assert "private thing" not in str(caught.value)
        assert replica.serving == former
        await now.api.merge(f"{SECRETS}/{NAME}", {"data": None})
        await now.settle()
        assert replica.serving != former
        assert await now.all_trusted()
