"""The CA and the serving certificate in a Secret that all replicas share, and the CA in the webhook
configurations.

Every replica checks every `EVERY` seconds, and renews and publishes what is due; resource versions resolve
races between replicas.

Invariants:
1. A CA signs a serving certificate only after it has been in every webhook configuration for
   `SETTLE_SECONDS`; the former CA stays beside it until it expires. The API server therefore trusts any
   replica's certificate at any moment.
2. A bundle is never replaced by an older one: the configurations are read before the Secret, and a patch
   names the resource version that was read. If somebody published a newer bundle in between, the API server
   rejects the patch as a conflict.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import ssl
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509

from certs.authority import (
    CertificateError,
    CertificateNames,
    KeyPair,
    Material,
    bundle_pem,
    issue,
    new_authority,
    read_bundle,
    read_pair,
    renewed,
)
from certs.reload import ReloadingContext
from certs.rotation import CA_BUNDLE, CA_CERT, CA_KEY, TLS_CERT, TLS_KEY
from webhook.kube.api.client import Api, ApiError, Json

EVERY = 5.0
"""Seconds between two checks; a check reads the Secret and each configuration."""


AGAIN = 0.2
"""Seconds until the next check after one that changed something."""


SETTLE_SECONDS = 20.0
"""Seconds for which a bundle must have been in every configuration before its newest CA signs a serving
certificate: API servers learn of a changed configuration from a watch, normally within a second.
"""


_KINDS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


_CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"


log = logging.getLogger("bayplan")


class SecretCertificates:
    """Serves the certificate of the Secret NAMESPACE/NAME by `context`, and maintains the Secret and the
    webhook configurations.

    `configurations` are names; for each name there is a mutating and a validating configuration. Until the
    Secret has been read, `context` serves a temporary certificate that no caller trusts, so that probes are
    answered. `client_ca`: a file; callers must present a certificate that this CA signed. Raises `OSError` if
    the file cannot be used.
    """

    def __init__(
        self,
        api: Api,
        namespace: str,
        name: str,
        names: CertificateNames,
        configurations: Sequence[str],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        settle_seconds: float = SETTLE_SECONDS,
        client_ca: Path | None = None,
    ) -> None:
        self._api = api
        self._namespace, self._name = namespace, name
        self._names = names
        self._paths = [
            f"{_CONFIGURATIONS}/{kind}/{configuration}" for configuration in configurations for kind in _KINDS
        ]
        self._clock = clock
        self._settle_seconds = settle_seconds
        self._serving = _Serving(issue(new_authority(clock()), names, clock()), client_ca)
        self._published = ""
        self._published_at = 0.0
        """`_published`: the bundle in every configuration, "" if they differ; `_published_at`: since when,
        in monotonic seconds.
        """
        self._ready = False
        self.problem = ""
        """The current problem, "" if there is none; the last valid certificate stays in use."""

    @property
    def context(self) -> ssl.SSLContext:
        """The server's TLS context; a new certificate is used from the next handshake on."""
        return self._serving.context

    @property
    def serving(self) -> x509.Certificate:
        """The certificate that is served at present."""
        return self._serving.pair.certificate

    def ends(self) -> float:
        """Returns the end of the validity of the served certificate, in seconds since the epoch."""
        return self.serving.not_valid_after_utc.timestamp()

    def waiting(self) -> str:
        """Returns why no trusted certificate is served yet; "" once callers trust the served one."""
        return "" if self._ready else self.problem or f"{self._where}: not read yet"

    async def watch(self) -> None:
        """Checks until cancelled; an error is logged, kept in `problem`, and does not end the checks."""
        try:
            while True:
                changed = False
                try:
                    changed = await self.look()
                    self._trouble("")
                except (ApiError, CertificateError, OSError) as error:
                    self._trouble(str(error))
                except Exception as error:  # of an odd answer, for example the JSON of a proxy
                    self._trouble(repr(error))
                await asyncio.sleep(AGAIN if changed else EVERY)
        finally:
            self._serving.close()

    async def look(self) -> bool:
        """Makes one check and writes what is due; returns True if something changed, so that the next check
        should follow soon.

        Raises `ApiError` if the API server refuses a call, `CertificateError` if the Secret cannot be used.
        """
        configurations, failure = await self._configurations()
        version, stored = await self._read()
        changed = False
        if stored.trusted and failure is None:
            changed = await self._publish(configurations, stored)
        material, done = renewed(stored, self._names, self._clock(), distributed=self._distributed())
        if done:
            if await self._write(version, material):
                log.info("%s: %s", self._where, "; ".join(done))
            return True
        if material.leaf is not None:
            self._serving.take(material.leaf)
        if failure is not None:
            raise failure
        # A check that finds nothing to change has seen the CA in every configuration.
        self._ready = self._ready or not changed
        return changed

    async def _configurations(self) -> tuple[list[Json], ApiError | None]:
        """Returns the configurations, or none and the error.

        After an error the Secret is still read, but the bundle does not count as published, so no new CA
        signs.
        """
        try:
            return [await self._get(path) for path in self._paths], None
        except ApiError as error:
            self._published = ""
            return [], error

    async def _get(self, path: str) -> Json:
        try:
            return await self._api.get(path)
        except ApiError as error:
            if error.status == 404:
                _, _, resource = path.partition(f"{_CONFIGURATIONS}/")
                message = f"{resource} is not there to take the CA; apply manifests/70-webhooks.yaml"
                raise ApiError(404, error.reason, message) from None
            raise

    async def _publish(self, configurations: Sequence[Json], stored: Material) -> bool:
        """Writes the trusted CAs into every configuration; returns True if one of them had another bundle."""
        bundle = base64.b64encode(bundle_pem(stored.trusted)).decode()
        changed = False
        for path, configuration in zip(self._paths, configurations, strict=True):
            others = [
                webhook["name"]
                for webhook in configuration.get("webhooks") or []
                if webhook["clientConfig"].get("caBundle") != bundle
            ]
            if others:
                await self._patch(path, configuration, [_trusting(name, bundle) for name in others])
                changed = True
        if changed:
            self._published = ""
        elif self._published != bundle:
            self._published, self._published_at = bundle, time.monotonic()
        return changed

    async def _patch(self, path: str, configuration: Json, webhooks: Sequence[Json]) -> None:
        version = {"resourceVersion": configuration["metadata"]["resourceVersion"]}
        try:
            await self._api.merge_lists(path, {"metadata": version, "webhooks": webhooks})
        except ApiError as error:
            if error.status != 409:  # somebody else changed the configuration: the next check decides
                raise
        else:
            log.info("%s: the CA was put into it", path.removeprefix(f"{_CONFIGURATIONS}/"))

    def _distributed(self) -> bool:
        return bool(self._published) and time.monotonic() - self._published_at >= self._settle_seconds

    async def _read(self) -> tuple[str, Material]:
        """Returns the Secret's resource version ("" if there is none) and its content."""
        try:
            secret = await self._api.get(self._path)
        except ApiError as error:
            if error.status == 404:
                return "", Material()
            raise
        try:
            return str(secret["metadata"]["resourceVersion"]), material_from(secret.get("data") or {})
        except CertificateError as error:
            raise CertificateError(
                f"{self._where}: {error}; delete its data to have them made anew"
            ) from None

    async def _write(self, version: str, material: Material) -> bool:
        """Returns True if this replica wrote the Secret; False if another one was first."""
        data = data_of(material)
        try:
            if version:
                await self._api.merge(self._path, {"metadata": {"resourceVersion": version}, "data": data})
            else:
                await self._api.create(self._folder, self._secret(data))
        except ApiError as error:
            if error.status != 409:
                raise
            return False
        return True

    def _secret(self, data: dict[str, str]) -> Json:
        labels = {"app.kubernetes.io/name": "bayplan"}
        metadata = {"name": self._name, "namespace": self._namespace, "labels": labels}
        # Not of type kubernetes.io/tls, which forbids empty values.
        kind = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque"}
        return {**kind, "metadata": metadata, "data": data}

    def _trouble(self, problem: str) -> None:
        if problem and problem != self.problem:
            log.warning("certificates: %s", problem)
        self.problem = f"certificates: {problem}" if problem else ""

    @property
    def _folder(self) -> str:
        return f"/api/v1/namespaces/{self._namespace}/secrets"

    @property
    def _path(self) -> str:
        return f"{self._folder}/{self._name}"

    @property
    def _where(self) -> str:
        return f"secret {self._namespace}/{self._name}"


def material_from(data: Json) -> Material:
    """Reads a Secret's `data`; a pair is None if both its certificate and its key are missing.

    Raises `CertificateError`, which names a key of `data` that is missing, not base64, or invalid.
    """
    bundle = _decoded(data, CA_BUNDLE)
    return Material(
        ca=_pair(data, CA_CERT, CA_KEY),
        leaf=_pair(data, TLS_CERT, TLS_KEY),
        trusted=read_bundle(bundle) if bundle else (),
    )


def data_of(material: Material) -> dict[str, str]:
    """Returns a Secret's `data` in base64. Raises `ValueError` for material without a CA or serving
    certificate.
    """
    if material.ca is None or material.leaf is None:
        raise ValueError("only complete material is written")
    parts = {
        CA_CERT: material.ca.certificate_pem,
        CA_KEY: material.ca.key_pem,
        CA_BUNDLE: bundle_pem(material.trusted),
        TLS_CERT: material.leaf.certificate_pem,
        TLS_KEY: material.leaf.key_pem,
    }
    return {key: base64.b64encode(content).decode() for key, content in parts.items()}


def _pair(data: Json, certificate: str, key: str) -> KeyPair | None:
    halves = _decoded(data, certificate), _decoded(data, key)
    if halves == (b"", b""):
        return None
    if b"" in halves:
        raise CertificateError(f"of {certificate} and {key} one is missing")
    try:
        return read_pair(*halves)
    except CertificateError as error:
        raise CertificateError(f"{certificate}, {key}: {error}") from None


def _decoded(data: Json, key: str) -> bytes:
    try:
        return base64.b64decode(data.get(key) or "", validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise CertificateError(f"{key} is no base64") from None


def _trusting(name: str, bundle: str) -> Json:
    return {"name": name, "clientConfig": {"caBundle": bundle}}


class _Serving:
    """A TLS context that serves the last pair that it was given, from temporary files: OpenSSL loads pairs
    only from files.
    """

    def __init__(self, pair: KeyPair, client_ca: Path | None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="bayplan-")  # only this user may enter it
        self._certificate, self._key = (Path(self._folder.name) / name for name in (TLS_CERT, TLS_KEY))
        self.pair = pair
        self._store(pair)
        self._reloading = ReloadingContext(
            self._certificate, self._key, client_ca=client_ca, report=self._report
        )
        self.context = self._reloading.context

    def take(self, pair: KeyPair) -> None:
        """Serves this pair from the next handshake on."""
        if pair.certificate != self.pair.certificate:
            self.pair = pair
            self._store(pair)
            self._reloading.reload_if_changed()
            log.info("serving a certificate that ends %s", f"{pair.certificate.not_valid_after_utc:%Y-%m-%d}")

    def close(self) -> None:
        """Removes the files."""
        self._folder.cleanup()

    def _store(self, pair: KeyPair) -> None:
        for path, content in ((self._certificate, pair.certificate_pem), (self._key, pair.key_pem)):
            # A new file makes the change visible even if time and size are the same.
            path.unlink(missing_ok=True)
            path.touch(mode=0o600)
            path.write_bytes(content)

    def _report(self, message: str) -> None:
        """Logs a failed reload. That would be a bug, because pairs are validated when they are read."""
        log.debug("%s", message)
