"""`bayplan unpack`: the files that ship, into a folder of the user's."""

from __future__ import annotations

from pathlib import Path

import pytest

from webhook.cli.main import main


def test_the_examples_in_what_is_unpacked_are_planned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the paths that the pages name, from the folder."""
    assert main(["unpack", str(tmp_path)]) == 0
    monkeypatch.chdir(tmp_path)
    examples = Path("manifests", "examples")
    cluster = examples / "clusters" / "superpod-32.yaml"
    assert main(["plan", "-c", str(cluster), "-f", str(examples / "job-two-nodes-one-rack.yaml")]) == 0
    assert main(["test", "policies/scheduler-name"]) == 0
    assert "admitted" in capsys.readouterr().out


def test_what_is_there_already_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 2, and nothing is written beside it."""
    kept = tmp_path / "overlays" / "mine.yaml"
    kept.parent.mkdir()
    kept.write_text("mine")
    assert main(["unpack", str(tmp_path)]) == 2
    assert "is there already, and nothing was written" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["overlays"]
    assert kept.read_text() == "mine"
