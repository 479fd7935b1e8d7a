"""Certificates and kubeconfigs of the control plane under test: one CA that signs servers and clients.

It does not use `certs.authority`, which makes serving certificates only: the control plane of a test should
not depend on the code under test.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Pair:
    """The files of a certificate and its key."""

    cert: Path
    key: Path


class Authority:
    """A CA for one test run, with all that it signed in one folder."""

    def __init__(self, folder: Path) -> None:
        """Creates the CA's key and certificate (`ca.crt`) in the folder."""
        self.folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _subject("e2e", ())
        certificate = (
            self._builder(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.ca = folder / "ca.crt"
        self.ca.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, user: str, *groups: str) -> Pair:
        """A certificate for clients and for servers on loopback; RBAC sees `user` and `groups`."""
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [x509.DNSName("localhost"), x509.DNSName("kubernetes.default.svc")]
        names += [x509.IPAddress(ipaddress.ip_address(ip)) for ip in ("127.0.0.1", "10.0.0.1")]
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        certificate = (
            self._builder(_subject(user, groups), key.public_key())
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        pair = Pair(self.folder / f"{user}.crt", self.folder / f"{user}.key")
        pair.cert.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        _write_key(pair.key, key)
        return pair

    def signing_key(self) -> Path:
        """A key for service account tokens."""
        path = self.folder / "service-accounts.key"
        _write_key(path, rsa.generate_private_key(public_exponent=65537, key_size=2048))
        return path

    def kubeconfig(self, server: str, user: str, *groups: str) -> Path:
        """A kubeconfig for a new client certificate."""
        pair = self.issue(user, *groups)
        credentials = {"client-certificate": str(pair.cert), "client-key": str(pair.key)}
        return write_kubeconfig(self.folder / f"{user}.kubeconfig", server, self.ca, credentials)

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - DAY)
            .not_valid_after(now + 7 * DAY)
        )


def write_kubeconfig(path: Path, server: str, ca: Path, credentials: dict[str, str]) -> Path:
    """A kubeconfig with one cluster, one user and one context."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "e2e", "cluster": {"server": server, "certificate-authority": str(ca)}}],
        "users": [{"name": "e2e", "user": credentials}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
        "current-context": "e2e",
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))
    return path


def _subject(user: str, groups: tuple[str, ...]) -> x509.Name:
    """The subject of a certificate. The API server reads the user from the common name and the groups from
    the organisations.
    """
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, user)])


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
