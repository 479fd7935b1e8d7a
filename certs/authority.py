"""A small certificate authority: a CA, the webhook's serving certificate, and when each is renewed. Pure.

The caller passes `now`, a datetime with a time zone; only keys and serial numbers come from the system's
random source. The CA is valid for 365 days, the leaf for 150. Certificates are checked every 12 hours and
renewed 15 days before they expire; the old and the new CA are both trusted while they are valid.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_VALIDITY = timedelta(days=365)
LEAF_VALIDITY = timedelta(days=150)
RENEW_AHEAD = timedelta(days=15)
CHECK_EVERY = timedelta(hours=12)
CLOCK_SKEW = timedelta(minutes=5)
"""The validity of a certificate begins this long before its creation, for clients whose clock is behind."""

_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_DNS_NAME = re.compile(rf"(?:\*\.)?{_LABEL}(?:\.{_LABEL})*")
_COMMON_NAME_LIMIT = 64  # RFC 5280, ub-common-name


class CertificateError(ValueError):
    """A certificate, key or name that cannot be used; the message names it and the reason."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def certificate_pem(self) -> bytes:
        """The certificate as PEM."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The private key as unencrypted PKCS #8 PEM. Store it only where nobody else can read it."""
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )


@dataclass(frozen=True, slots=True)
class CertificateNames:
    """The subject alternative names of a serving certificate; the first DNS name is its common name."""

    dns: tuple[str, ...]
    ips: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Material:
    """The certificates of a webhook: its CA, its leaf (serving certificate), and the certificate of every CA
    that clients should trust. `ca` and `leaf` are None if there is none yet.
    """

    ca: KeyPair | None = None
    leaf: KeyPair | None = None
    trusted: tuple[x509.Certificate, ...] = ()


def service_names(
    service: str, namespace: str, *, extra: Sequence[str] = (), loopback: bool = False
) -> CertificateNames:
    """Returns the DNS names of a Service in its cluster, and `extra` names or addresses.

    `loopback` adds localhost, 127.0.0.1 and ::1. Raises `CertificateError` for an invalid DNS name.
    """
    inside = f"{service}.{namespace}"
    hosts = [f"{inside}.svc", inside, f"{inside}.svc.cluster.local", *extra]
    if loopback:
        hosts += ["localhost", "127.0.0.1", "::1"]
    addresses = {name: address for name in hosts if (address := _address(name))}
    dns = tuple(dict.fromkeys(_dns_name(name) for name in hosts if name not in addresses))
    return CertificateNames(dns, tuple(dict.fromkeys(addresses.values())))


def new_authority(now: datetime) -> KeyPair:
    """Creates a self-signed CA that may sign only leaf certificates. Its name includes the time, so that
    successive CAs are distinguishable.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(f"bayplan CA {now:%Y-%m-%d %H:%M:%S}")
    builder = _builder(name, name, key, now, now + CA_VALIDITY)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_key_usage(signs_certificates=True), critical=True)
    builder = builder.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False
    )
    return KeyPair(builder.sign(key, hashes.SHA256()), key)


def issue(ca: KeyPair, names: CertificateNames, now: datetime) -> KeyPair:
    """Issues a serving certificate for `names`. It ends no later than the CA."""
    key = ec.generate_private_key(ec.SECP256R1())
    end = min(now + LEAF_VALIDITY, ca.certificate.not_valid_after_utc)
    builder = _builder(_name(names.dns[0]), ca.certificate.subject, key, now, end)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    ca_id = ca.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    builder = builder.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(ca_id), critical=False
    )
    alternatives: list[x509.GeneralName] = [x509.DNSName(name) for name in names.dns]
    alternatives += [x509.IPAddress(ipaddress.ip_address(ip)) for ip in names.ips]
    builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return KeyPair(builder.sign(ca.key, hashes.SHA256()), key)


def names_of(certificate: x509.Certificate) -> CertificateNames:
    """Returns the subject alternative names of a certificate."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return CertificateNames(())
    addresses = tuple(str(ip) for ip in names.get_values_for_type(x509.IPAddress))
    return CertificateNames(tuple(names.get_values_for_type(x509.DNSName)), addresses)


def needs_renewal(certificate: x509.Certificate, now: datetime) -> bool:
    """Returns whether the certificate expires within `RENEW_AHEAD`, or is not valid yet."""
    return now >= certificate.not_valid_after_utc - RENEW_AHEAD or now < certificate.not_valid_before_utc


def renewed(
    material: Material, names: CertificateNames, now: datetime, *, distributed: bool = True
) -> tuple[Material, tuple[str, ...]]:
    """Returns the certificates to use at `now`, and the changes as texts, () if there are none.

    A renewed CA is trusted immediately, but signs a leaf only at the next check, 12 hours later, so that
    clients have the new CA bundle by then. `distributed`: whether clients have the bundle of `material`; if
    not, the leaf is not renewed. A leaf that cannot be served (missing, expired, for other names, or of an
    untrusted CA) is replaced immediately.
    """
    done = []
    ca, leaf = material.ca, material.leaf
    fresh = not distributed
    if ca is None or needs_renewal(ca.certificate, now):
        fresh = True
        done.append("made a CA" if ca is None else "renewed the CA")
        ca = new_authority(now)
    trusted = _live((ca.certificate, *material.trusted), now)
    if trusted != material.trusted and not done:
        done.append("brought the bundle up to date")
    flaw = _unusable_reason(leaf, names, trusted, now)
    if leaf is None or flaw or (needs_renewal(leaf.certificate, now) and not fresh):
        done.append(f"made a serving certificate ({flaw or 'the former one was due'})")
        leaf = issue(ca, names, now)
    return Material(ca, leaf, trusted), tuple(done)


def bundle_pem(certificates: Iterable[x509.Certificate]) -> bytes:
    """Returns the certificates concatenated as PEM: the value of a webhook configuration's `caBundle`."""
    return b"".join(certificate.public_bytes(serialization.Encoding.PEM) for certificate in certificates)


def read_pair(certificate_pem: bytes, key_pem: bytes) -> KeyPair:
    """Returns the first certificate in `certificate_pem`, with its key.

    Raises `CertificateError` if they are invalid or do not match.
    """
    certificate = read_bundle(certificate_pem)[0]
    try:
        key = serialization.load_pem_private_key(key_pem, password=None)
    except (ValueError, TypeError) as error:
        raise CertificateError("the key is no unencrypted PEM private key") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise CertificateError("the key is not an ECDSA key, as bayplan makes them")
    if key.public_key() != certificate.public_key():
        raise CertificateError("the key is not that of the certificate")
    return KeyPair(certificate, key)


def read_bundle(pem: bytes) -> tuple[x509.Certificate, ...]:
    """Returns the certificates in `pem`. Raises `CertificateError` if there is none, or an invalid one."""
    try:
        return tuple(x509.load_pem_x509_certificates(pem))
    except ValueError as error:
        raise CertificateError("there is no PEM certificate in it") from error


def _live(certificates: Iterable[x509.Certificate], now: datetime) -> tuple[x509.Certificate, ...]:
    return tuple(c for c in dict.fromkeys(certificates) if now < c.not_valid_after_utc)


def _unusable_reason(
    leaf: KeyPair | None, names: CertificateNames, trusted: Sequence[x509.Certificate], now: datetime
) -> str:
    """Returns why the leaf cannot be served, as text; "" if it can."""
    if leaf is None:
        return "there was none"
    former = names_of(leaf.certificate)
    if set(former.dns) != set(names.dns) or set(former.ips) != set(names.ips):
        return "the former one was for other names"
    if now >= leaf.certificate.not_valid_after_utc:
        return "the former one had ended"
    if not any(_issued(leaf.certificate, ca) for ca in trusted):
        return "the former one's CA is not trusted"
    return ""


def _issued(certificate: x509.Certificate, ca: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(ca)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name[:_COMMON_NAME_LIMIT])])


def _address(name: str) -> str:
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return ""


def _dns_name(name: str) -> str:
    if len(name) > 253 or not _DNS_NAME.fullmatch(name):
        raise CertificateError(f"{name!r} is no DNS name; use lower-case letters, digits, '-' and '.'")
    return name
