"""A real TLS server on loopback: who connects after a change gets the new certificate, nobody is cut off."""

import asyncio
import ssl
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.verification import PolicyBuilder, Store

from certs.authority import KeyPair, bundle_pem, issue, new_authority, read_bundle, service_names
from certs.reload import ReloadingContext
from certs.rotation import Rotation

NAMES = service_names("bayplan", "gpu-system", loopback=True)
NOW = datetime.now(UTC)
CA = new_authority(NOW)


def client_pair(folder):
    """A certificate of the CA for a client: the paths of its two files."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kube-apiserver")])
    certificate = (
        x509.CertificateBuilder(
            CA.certificate.subject, name, key.public_key(), 7, NOW, NOW + timedelta(days=1)
        )
        .add_extension(x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(CA.key, hashes.SHA256())
    )
    pair = KeyPair(certificate, key)
    (folder / "client.crt").write_bytes(pair.certificate_pem)
    (folder / "client.key").write_bytes(pair.key_pem)
    return folder / "client.crt", folder / "client.key"


class Server:
    """An echo server whose certificate the test changes."""

    def __init__(self, folder, client_ca=None):
        self.certificate, self.key = folder / "tls.crt", folder / "tls.key"
        self.reports = []
        self.reported = asyncio.Event()
        self.serve(issue(CA, NAMES, NOW))
        self.reloading = ReloadingContext(
            self.certificate, self.key, client_ca=client_ca, report=self._report
        )

    def _report(self, message):
        self.reports.append(message)
        self.reported.set()

    def serve(self, pair):
        """The files are replaced, as all do who write them: older kernels tell no two writes apart."""
        self.pair = pair
        for path, pem in ((self.certificate, pair.certificate_pem), (self.key, pair.key_pem)):
            fresh = path.with_suffix(".new")
            fresh.write_bytes(pem)
            fresh.replace(path)

    @asynccontextmanager
    async def running(self):
        server = await asyncio.start_server(self._echo, "127.0.0.1", 0, ssl=self.reloading.context)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()

    async def _echo(self, reader, writer):
        while line := await reader.readline():
            writer.write(line)
        writer.close()

    @staticmethod
    def trusting():
        """What a client brings that knows the CA."""
        return ssl.create_default_context(cadata=bundle_pem([CA.certificate]).decode())

    async def lets_in(self, context):
        """True where a line sent with that context comes back."""
        try:
            reader, writer, _ = await self.connect(context=context)
            writer.write(b"let me in\n")
            return await reader.readline() == b"let me in\n"
        except (ssl.SSLError, ConnectionError):
            return False

    async def connect(self, name="localhost", context=None):
        """Shake hands; the streams and the certificate that was served."""
        context = context or self.trusting()
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=context, server_hostname=name
        )
        served = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return reader, writer, x509.load_der_x509_certificate(served)


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "bayplan.gpu-system.svc"])
async def test_new_handshakes_get_the_new_certificate(tmp_path, name):
    """After a change on disk the next handshake, with or without a server name, sees the new leaf."""
    async with Server(tmp_path).running() as server:
        _, writer, first = await server.connect(name)
        writer.close()
        server.serve(issue(CA, NAMES, NOW))
        assert server.reloading.reload_if_changed()
        _, writer, second = await server.connect(name)
        writer.close()
    assert first != second
    assert second == server.pair.certificate


async def test_open_connections_go_on(tmp_path):
    """A connection from before the change is neither cut nor shaken."""
    async with Server(tmp_path).running() as server:
        reader, writer, _ = await server.connect()
        server.serve(issue(CA, NAMES, NOW))
        server.reloading.reload_if_changed()
        writer.write(b"still here\n")
        assert await reader.readline() == b"still here\n"
        writer.close()


async def test_the_watch_takes_up_a_change_by_itself(tmp_path):
    """Nobody has to ask: the watcher sees the files change."""
    async with Server(tmp_path).running() as server:
        watch = asyncio.create_task(server.reloading.watch(0.01))
        server.serve(issue(CA, NAMES, NOW))
        await asyncio.wait_for(server.reported.wait(), 60)
        watch.cancel()
        _, writer, served = await server.connect()
        writer.close()
    assert served == server.pair.certificate


async def test_a_rotation_is_served_without_a_gap(tmp_path):
    """From the first day to the third year, a client with the bundle of the check before is served."""
    day = NOW - timedelta(days=3 * 365)
    folder = tmp_path / "certs"
    Rotation(folder, NAMES).check(day)
    reloading = ReloadingContext(folder / "tls.crt", folder / "tls.key")
    served = set()
    while day < NOW:
        bundle = read_bundle((folder / "ca-bundle.crt").read_bytes())
        day += timedelta(days=9)
        changed = Rotation(folder, NAMES).check(day)
        assert reloading.reload_if_changed() is bool(changed)
        leaf = read_bundle((folder / "tls.crt").read_bytes())[0]
        verifier = PolicyBuilder().store(Store(bundle)).time(day)
        verifier.build_server_verifier(x509.DNSName("localhost")).verify(leaf, [])
        served.add(leaf)
    assert len(served) > 3 * 365 / 150


@pytest.mark.parametrize("bad", [b"", b"nonsense", issue(CA, NAMES, NOW).key_pem])
async def test_a_bad_pair_leaves_the_old_one_and_is_reported_once(tmp_path, bad):
    """An empty, broken or mismatched key on disk is reported, and the former pair serves on."""
    async with Server(tmp_path).running() as server:
        server.key.write_bytes(bad)
        assert not server.reloading.reload_if_changed()
        assert not server.reloading.reload_if_changed()
        _, writer, served = await server.connect()
        writer.close()
    assert served == server.pair.certificate
    assert len(server.reports) == 1
    assert str(server.key) in server.reports[0]
    assert "not taken up" in server.reports[0]


async def test_a_pair_that_vanished_leaves_the_old_one(tmp_path):
    """An unmounted Secret is no reason to stop serving; when it is back it is taken up."""
    async with Server(tmp_path).running() as server:
        server.certificate.unlink()
        assert not server.reloading.reload_if_changed()
        server.serve(issue(CA, NAMES, NOW))
        assert server.reloading.reload_if_changed()


def test_old_tls_is_refused(tmp_path):
    """Nothing before TLS 1.2 is spoken."""
    assert Server(tmp_path).reloading.context.minimum_version == ssl.TLSVersion.TLSv1_2


async def test_suites_without_authentication_of_data_are_refused(tmp_path):
    """A TLS 1.2 client that offers only CBC suites gets no connection."""
    context = Server.trusting()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE-ECDSA-AES128-SHA256")
    async with Server(tmp_path).running() as server:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await server.connect(context=context)


async def test_a_client_ca_lets_in_only_its_clients(tmp_path):
    """With a client CA, a client without its certificate is turned away before and after a reload."""
    (tmp_path / "clients.crt").write_bytes(CA.certificate_pem)
    own = Server.trusting()
    own.load_cert_chain(*client_pair(tmp_path))
    async with Server(tmp_path, client_ca=tmp_path / "clients.crt").running() as server:
        for _ in range(2):
            assert not await server.lets_in(server.trusting())
            assert await server.lets_in(own)
            server.serve(issue(CA, NAMES, NOW))
            server.reloading.reload_if_changed()


def test_a_missing_first_pair_is_an_error(tmp_path):
    """A server never starts without a certificate."""
    with pytest.raises(FileNotFoundError):
        ReloadingContext(tmp_path / "tls.crt", tmp_path / "tls.key")
