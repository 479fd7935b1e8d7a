"""`bayplan serve` with certificates of the cluster: what does not go together is said in one line."""

from __future__ import annotations

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
