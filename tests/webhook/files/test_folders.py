"""Folders: which of their files are read, by every command alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from webhook.cli.cluster_files.watched import stamps
from webhook.cli.main import main
from webhook.files import reader
from webhook.policy.loading.files import case_files, find


@pytest.fixture(name="mount")
def configmap_mount(tmp_path: Path) -> Path:
    """A mounted ConfigMap with a file and a folder, and a hidden file and folder beside them."""
    for file in ("policy.yaml", "sub/tests.yaml", "sub/pod.yaml"):
        path = tmp_path / "..2026_01" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("kind: Pod")
    (tmp_path / "..data").symlink_to("..2026_01")
    for name in ("policy.yaml", "sub"):
        (tmp_path / name).symlink_to(f"..data/{name}")
    (tmp_path / ".git").mkdir()
    for hidden in (".git/tests.yaml", ".git/pod.yaml", ".pre-commit-config.yaml"):
        (tmp_path / hidden).write_text("kind: Pod")
    return tmp_path


def test_hidden_files_and_folders_are_read_by_no_command(mount: Path) -> None:
    """Clusters, manifests, policies and cases: each file of the mount is read once."""
    shown = {str(mount / name) for name in ("policy.yaml", "sub/tests.yaml", "sub/pod.yaml")}
    assert {document.file for document in reader.documents([str(mount)])} == shown
    assert {name for name, _, _ in stamps([str(mount)])} == shown
    assert {str(path) for path in find([mount])} == shown - {str(mount / "sub/tests.yaml")}
    assert case_files([mount]) == [mount / "sub/tests.yaml"]
    assert len(reader.documents([str(mount / ".git")])) == 2  # a hidden folder that is named is read


def test_cases_in_a_hidden_folder_are_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Their policies are not read either, and the cases would fail for lack of them."""
    assert main(["policies", "new", "limit", "--in", str(tmp_path)]) == 0
    hidden = tmp_path / ".cache" / "tests.yaml"
    hidden.parent.mkdir()
    hidden.write_text("cases: [{name: x, policies: [gone], object: none.yaml}]")
    assert main(["test", str(tmp_path)]) == 0, capsys.readouterr().err
