"""`bayplan certs` as a user calls it: what is printed, and with which exit status."""

import base64
import ssl

import pytest
from cryptography import x509

from certs.authority import names_of
from webhook.cli.main import main

INIT = ["certs", "init", "--service", "bayplan", "--namespace", "gpu-system"]


@pytest.fixture
def folder(tmp_path):
    """A folder with certificates."""
    main([*INIT, "--dir", str(tmp_path / "certs"), "--loopback"])
    return tmp_path / "certs"


def test_init_makes_what_a_server_needs(folder):
    """The pair loads into a TLS context, under the Service's name."""
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(folder / "tls.crt", folder / "tls.key")
    leaf = x509.load_pem_x509_certificate((folder / "tls.crt").read_bytes())
    assert "bayplan.gpu-system.svc" in names_of(leaf).dns


def test_init_again_changes_nothing(folder, capsys):
    """A deployment may run it at every start."""
    before = (folder / "tls.crt").read_bytes()
    capsys.readouterr()
    assert main([*INIT, "--dir", str(folder), "--loopback"]) == 0
    assert "nothing was due" in capsys.readouterr().out
    assert (folder / "tls.crt").read_bytes() == before


def test_further_names_are_added(folder):
    """`--dns` adds names and addresses to the certificate."""
    assert main([*INIT, "--dir", str(folder), "--dns", "hook.example.org", "10.0.0.7"]) == 0
    leaf = x509.load_pem_x509_certificate((folder / "tls.crt").read_bytes())
    assert "hook.example.org" in names_of(leaf).dns
    assert "10.0.0.7" in names_of(leaf).ips


def test_renew_keeps_the_names_and_does_what_is_due(folder, capsys):
    """Nothing is due on the first day."""
    capsys.readouterr()
    assert main(["certs", "renew", "--dir", str(folder)]) == 0
    assert "nothing was due" in capsys.readouterr().out


def test_show_tells_names_and_ends_and_no_key(folder, capsys):
    """Both certificates are shown, with the days that are left."""
    capsys.readouterr()
    assert main(["certs", "show", "--dir", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert "bayplan.gpu-system.svc.cluster.local, localhost, 127.0.0.1, ::1" in shown
    assert "149" in shown
    assert "364" in shown
    assert "PRIVATE" not in shown


def test_the_bundle_is_what_a_webhook_configuration_takes(folder, capsys):
    """As PEM, or as base64 of it on one line."""
    capsys.readouterr()
    assert main(["certs", "bundle", "--dir", str(folder)]) == 0
    pem = capsys.readouterr().out
    assert x509.load_pem_x509_certificate(pem.encode())
    assert main(["certs", "bundle", "--dir", str(folder), "--base64"]) == 0
    assert base64.b64decode(capsys.readouterr().out).decode() == pem


@pytest.mark.parametrize("verb", ["renew", "show", "bundle"])
def test_an_empty_folder_is_status_1_with_advice(tmp_path, capsys, verb):
    """What is not there is told, with the command that makes it."""
    assert main(["certs", verb, "--dir", str(tmp_path)]) == 1
    assert "`bayplan certs init` makes it" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["renew", "show"])
def test_a_damaged_file_is_bad_input(folder, capsys, verb):
    """The file is named, and there is no traceback."""
    (folder / "tls.crt").write_text("damaged")
    assert main(["certs", verb, "--dir", str(folder)]) == 2
    assert "tls.crt" in capsys.readouterr().err


def test_a_name_that_is_none_is_bad_input(tmp_path, capsys):
    """A Service name with a blank never becomes a certificate."""
    assert main(["certs", "init", "--dir", str(tmp_path / "c"), "--service", "a b", "--namespace", "n"]) == 2
    assert "'a b.n.svc' is no DNS name" in capsys.readouterr().err
    assert not (tmp_path / "c").exists()


def test_a_folder_that_cannot_be_made_is_bad_input(tmp_path, capsys):
    """A file in the place of the folder is named."""
    (tmp_path / "file").write_text("")
    assert main([*INIT, "--dir", str(tmp_path / "file")]) == 2
    assert "file: cannot be read or written" in capsys.readouterr().err
