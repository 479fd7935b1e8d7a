"""A policy of Kubernetes' own that names a field which its kind does not have: told, and used anyway."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.webhook.calls import Serve
from tests.webhook.policy.helpers import OURS, UPSTREAM, Json, check, pod, validating
from webhook.cli.main import main


def policy(folder: Path, **fields: Json | str) -> str:
    """A file with a policy that reads such a field."""
    file = folder / "policy.yaml"
    words = {"api": UPSTREAM, "failurePolicy": "Ignore", **fields}
    file.write_text(yaml.safe_dump(validating(check("object.spec.schedulrName == 'x'"), **words)))
    return str(file)


def test_check_warns_and_all_is_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 0, as `kubectl apply` takes it; with file, line and the right field."""
    assert main(["policies", "check", policy(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert "Warning: " in shown.err
    assert "policy.yaml:" in shown.err
    assert "no field 'schedulrName'; did you mean 'schedulerName'?" in shown.err
    assert "all well" in shown.out


def test_check_refuses_the_same_in_a_policy_of_ours(tmp_path: Path) -> None:
    """Status 2."""
    assert main(["policies", "check", policy(tmp_path, api=OURS)]) == 2


@pytest.mark.parametrize(("failure_policy", "status"), [("Ignore", 0), ("Fail", 1)])
def test_an_object_is_refused_or_not_by_the_failure_policy(
    failure_policy: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The expression fails when it is run."""
    manifest = tmp_path / "pod.yaml"
    manifest.write_text(yaml.safe_dump(pod()))
    file = policy(tmp_path, failurePolicy=failure_policy)
    assert main(["mutate", "-f", str(manifest), "-p", file]) == status
    assert "no such key: schedulrName" in capsys.readouterr().err


async def test_readyz_shows_the_warning(serve: Serve, tmp_path: Path) -> None:
    """And stays ready, without a problem."""
    async with serve("two-zones", policies=policy(tmp_path)) as asked:
        answer = await asked.client.get("/readyz")
        readiness = await answer.json()
    assert answer.status == 200
    assert readiness["problems"] == []
    assert "no field 'schedulrName'" in readiness["warnings"][0]
