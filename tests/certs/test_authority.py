"""The CA and the leaf: what a strict verifier accepts, and when each is due again."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.x509 import DNSName, IPAddress
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from certs.authority import (
    CertificateError,
    Material,
    bundle_pem,
    issue,
    names_of,
    needs_renewal,
    new_authority,
    read_bundle,
    read_pair,
    renewed,
    service_names,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
NAMES = service_names("bayplan", "gpu-system", loopback=True)


def verify(leaf, authorities, name, moment=NOW):
    """Check the chain with the rules of the web PKI."""
    PolicyBuilder().store(Store(authorities)).time(moment).build_server_verifier(name).verify(leaf, [])


@pytest.mark.parametrize(
    "name",
    [
        DNSName("bayplan.gpu-system"),
        DNSName("bayplan.gpu-system.svc"),
        DNSName("bayplan.gpu-system.svc.cluster.local"),
        DNSName("localhost"),
        IPAddress(ip_address("127.0.0.1")),
        IPAddress(ip_address("::1")),
    ],
)
def test_the_leaf_is_good_for_each_name_of_the_service(name):
    """A strict verifier that trusts the CA accepts the leaf under each of its names."""
    ca = new_authority(NOW)
    verify(issue(ca, NAMES, NOW).certificate, [ca.certificate], name)


def test_the_leaf_is_not_good_for_another_service():
    """A name that is not among the alternatives is refused."""
    ca = new_authority(NOW)
    leaf = issue(ca, NAMES, NOW).certificate
    with pytest.raises(VerificationError):
        verify(leaf, [ca.certificate], DNSName("other.gpu-system.svc"))


def test_another_ca_does_not_vouch_for_the_leaf():
    """A leaf of one CA is refused where only another is trusted."""
    leaf = issue(new_authority(NOW), NAMES, NOW).certificate
    with pytest.raises(VerificationError):
        verify(leaf, [new_authority(NOW).certificate], DNSName("localhost"))


def test_the_loopback_names_are_left_out_unless_asked_for():
    """A certificate for the cluster carries no localhost."""
    assert service_names("bayplan", "gpu-system").dns == (
        "bayplan.gpu-system.svc",
        "bayplan.gpu-system",
        "bayplan.gpu-system.svc.cluster.local",
    )


def test_further_names_are_told_apart_from_addresses():
    """`--dns` takes names and addresses; each lands in its own kind of alternative."""
    names = service_names("bayplan", "gpu-system", extra=["hook.example.org", "10.0.0.7"])
    assert "hook.example.org" in names.dns
    assert names.ips == ("10.0.0.7",)
    assert set(names_of(issue(new_authority(NOW), names, NOW).certificate).ips) == {"10.0.0.7"}


@pytest.mark.parametrize("name", ["", "UPPER.case", "spa ce", "-dash", "dot..dot", "a" * 64, "x/y"])
def test_what_is_no_dns_name_is_refused_by_name(name):
    """A bad name is refused and quoted, and never reaches a certificate."""
    with pytest.raises(CertificateError, match="is no DNS name"):
        service_names("bayplan", "gpu-system", extra=[name])


def test_the_ca_signs_leaves_and_nothing_deeper():
    """The CA's constraints allow no CA below it, and its key signs certificates only."""
    extensions = new_authority(NOW).certificate.extensions
    assert extensions.get_extension_for_class(x509.BasicConstraints).value == x509.BasicConstraints(True, 0)
    usage = extensions.get_extension_for_class(x509.KeyUsage).value
    assert (usage.key_cert_sign, usage.digital_signature) == (True, False)


def test_the_leaf_serves_and_signs_nothing():
    """The leaf is for TLS servers only."""
    extensions = issue(new_authority(NOW), NAMES, NOW).certificate.extensions
    usage = extensions.get_extension_for_class(x509.KeyUsage).value
    assert (usage.key_cert_sign, usage.digital_signature) == (False, True)
    extended = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(extended) == [x509.ExtendedKeyUsageOID.SERVER_AUTH]


def test_a_ca_lasts_a_year_and_a_leaf_150_days():
    """The defaults are those of facts/admission.md."""
    ca = new_authority(NOW)
    assert ca.certificate.not_valid_after_utc == NOW + 365 * DAY
    assert issue(ca, NAMES, NOW).certificate.not_valid_after_utc == NOW + 150 * DAY


def test_a_leaf_never_outlives_its_ca():
    """A leaf that is made late in the CA's life ends with it."""
    ca = new_authority(NOW)
    leaf = issue(ca, NAMES, NOW + 300 * DAY)
    assert leaf.certificate.not_valid_after_utc == ca.certificate.not_valid_after_utc


@pytest.mark.parametrize(("days", "due"), [(0, False), (134, False), (135, True), (150, True), (-1, True)])
def test_a_leaf_is_due_fifteen_days_ahead(days, due):
    """A leaf of 150 days is due from day 135 on, and under a clock that is before its beginning."""
    leaf = issue(new_authority(NOW), NAMES, NOW).certificate
    assert needs_renewal(leaf, NOW + days * DAY) is due


def test_a_pair_survives_its_pem():
    """What is written is what is read."""
    pair = issue(new_authority(NOW), NAMES, NOW)
    assert read_pair(pair.certificate_pem, pair.key_pem).certificate == pair.certificate


def test_a_key_of_another_certificate_is_refused():
    """Two halves that do not match are told apart before they serve."""
    ca = new_authority(NOW)
    pair, other = issue(ca, NAMES, NOW), issue(ca, NAMES, NOW)
    with pytest.raises(CertificateError, match="not that of the certificate"):
        read_pair(pair.certificate_pem, other.key_pem)


@pytest.mark.parametrize(
    "pem", [b"", b"nonsense", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"]
)
def test_what_is_no_certificate_is_refused(pem):
    """Garbage in the place of a certificate is an error in words."""
    with pytest.raises(CertificateError):
        read_bundle(pem)


def test_nothing_is_done_while_nothing_is_due():
    """A look at fresh material leaves it as it is."""
    first, _ = renewed(Material(), NAMES, NOW)
    assert renewed(first, NAMES, NOW + DAY) == (first, ())


def test_both_cas_are_trusted_while_they_overlap():
    """A client with the bundle verifies the leaf at every look for three years, under the CA of the time."""
    material, moment = Material(), NOW
    while moment < NOW + 3 * 365 * DAY:
        before = bundle_pem(material.trusted)
        material, _ = renewed(material, NAMES, moment)
        verify(material.leaf.certificate, list(material.trusted), DNSName("localhost"), moment)
        if before:
            bundle = list(read_bundle(before))
            verify(material.leaf.certificate, bundle, DNSName("localhost"), moment)
        moment += timedelta(hours=12)


def test_a_renewed_ca_signs_only_at_the_next_look():
    """Clients get the new bundle before the first certificate that needs it."""
    first, _ = renewed(Material(), NAMES, NOW)
    second, done = renewed(first, NAMES, NOW + 351 * DAY - 220 * DAY)
    assert done == ()
    late, _ = renewed(second, NAMES, NOW + 140 * DAY)
    late, _ = renewed(late, NAMES, NOW + 280 * DAY)
    at_ca_end, done = renewed(late, NAMES, NOW + 351 * DAY)
    assert done == ("renewed the CA",)
    assert at_ca_end.leaf == late.leaf
    after, _ = renewed(at_ca_end, NAMES, NOW + 352 * DAY)
    assert after.leaf != late.leaf


def test_other_names_make_a_new_leaf_at_once():
    """A Service that was renamed does not wait for the renewal."""
    first, _ = renewed(Material(), NAMES, NOW)
    second, done = renewed(first, service_names("other", "gpu-system"), NOW)
    assert done == ("made a serving certificate (the former one was for other names)",)
    assert second.ca == first.ca


def test_a_leaf_of_a_foreign_ca_is_made_anew():
    """A leaf that nobody trusts is not kept because it is still young."""
    first, _ = renewed(Material(), NAMES, NOW)
    foreign = issue(new_authority(NOW), NAMES, NOW)
    second, done = renewed(Material(first.ca, foreign, first.trusted), NAMES, NOW)
    assert "CA is not trusted" in done[0]
    verify(second.leaf.certificate, list(second.trusted), DNSName("localhost"))


def test_a_leaf_that_is_merely_due_waits_until_clients_know_the_ca():
    """Where they have not the bundle yet it is left; where it has ended there is nothing to wait for."""
    material, _ = renewed(Material(), NAMES, NOW)
    due, over = NOW + 140 * DAY, NOW + 150 * DAY
    assert renewed(material, NAMES, due, distributed=False) == (material, ())
    assert renewed(material, NAMES, due)[0].leaf != material.leaf
    assert renewed(material, NAMES, over, distributed=False)[0].leaf != material.leaf


def test_a_ca_is_renewed_whether_clients_know_the_former_or_not():
    """The new one is only trusted then; the leaf is the former one still."""
    material, _ = renewed(Material(), NAMES, NOW)
    due = NOW + 140 * DAY
    leaf = issue(material.ca, NAMES, due)
    aged = Material(material.ca, leaf, material.trusted)
    after, _ = renewed(aged, NAMES, NOW + 351 * DAY, distributed=False)
    assert after.ca != material.ca
    assert after.trusted == (after.ca.certificate, material.ca.certificate)
    assert renewed(after, NAMES, NOW + 352 * DAY, distributed=False)[0].ca == after.ca
