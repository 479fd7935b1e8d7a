"""`bayplan serve` with certificates of the cluster: what does not go together is said in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from webhook.cli.main import main


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ((), "add --in-cluster or --kubeconfig"),
        (("--in-cluster", "--insecure"), "--certificate-secret is instead of"),
        (("--in-cluster", "--tls-cert", "a.crt", "--tls-key", "a.key"), "--certificate-secret is instead of"),
    ],
)
def test_a_secret_needs_a_cluster_and_no_files(
    options: tuple[str, ...], advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Usage, hence status 2, and what to do."""
    assert main(["serve", "--certificate-secret", "bayplan-tls", *options]) == 2
    assert advice in capsys.readouterr().err


def test_without_any_certificate_all_ways_to_one_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Files, a Secret, or none at all."""
    assert main(["serve"]) == 2
    stderr = capsys.readouterr().err
    assert all(option in stderr for option in ("--tls-cert", "--certificate-secret", "--insecure"))


def test_plain_http_and_a_certificate_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    """It served plain HTTP, and said nothing of the certificate."""
    assert main(["serve", "--insecure", "--tls-cert", "a.crt", "--tls-key", "a.key"]) == 2
    assert "--insecure is plain HTTP" in capsys.readouterr().err


def test_the_file_that_cannot_be_used_is_the_one_that_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing CA of callers is no fault of the serving certificate."""
    folder = str(tmp_path)
    assert main(["certs", "init", "--dir", folder, "--service", "bayplan", "--namespace", "x"]) == 0
    pair = ["--tls-cert", f"{folder}/tls.crt", "--tls-key", f"{folder}/tls.key"]
    assert main(["serve", *pair, "--client-ca", f"{folder}/nope.crt"]) == 2
    stderr = capsys.readouterr().err
    assert "nope.crt: no usable CA: No such file or directory" in stderr
    assert "tls.crt" not in stderr
    assert main(["serve", "--tls-cert", f"{folder}/nope.crt", *pair[2:], "--client-ca", pair[1]]) == 2
    assert "no usable pair" in capsys.readouterr().err
