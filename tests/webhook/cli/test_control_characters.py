"""Control characters in policy files reach no terminal, where they could hide or forge lines of a log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from webhook.cli.main import main

Run = Any


@pytest.fixture
def policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The folder of a policy with its cases."""
    main(("policies", "new", "team", "--in", str(tmp_path)))
    capsys.readouterr()
    return tmp_path / "team"


def test_of_cases(policy: Path, run: Run) -> None:
    """Names are on one line each."""
    cases = policy / "tests.yaml"
    cases.write_text(cases.read_text().replace("name: a pod", 'name: "\\e[2Ka\\nok   forged"\n  #'))
    status, out, _ = run("test", str(policy))
    assert status == 0
    assert "ok   \ufffd[2Ka\ufffdok   forged\n" in out
    assert "\x1b" not in out


def test_of_exceptions(policy: Path, run: Run) -> None:
    """The reason is free text."""
    (policy / "exception.yaml").write_text(
        "apiVersion: bayplan.dev/v1alpha1\nkind: PolicyException\nmetadata: {name: old}\n"
        'spec: {policies: [team], match: {namespaces: [a]}, until: 2099-01-01, reason: "\\e[2Kwhy"}\n'
    )
    status, out, _ = run("policies", "list", str(policy))
    assert status == 0
    assert "\ufffd[2Kwhy" in out
    assert "\x1b" not in out


def test_of_unknown_fields(policy: Path, run: Run) -> None:
    """An error names the field."""
    file = policy / "policy.yaml"
    file.write_text(file.read_text().replace("spec:", 'spec:\n  "\\e[2Kx": 1', 1))
    status, _, err = run("policies", "check", str(policy))
    assert status == 2
    assert "spec.?[2Kx: unknown field" in err
    assert "\x1b" not in err
