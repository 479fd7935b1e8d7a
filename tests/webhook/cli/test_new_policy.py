"""`bayplan policies new` and `schema`: what they write passes at once, and an editor can check it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from webhook.cli.decisions.new_policy import KINDS
from webhook.cli.main import main


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_policy_loads_and_passes_its_cases(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And no expression of it is without a case."""
    assert main(["policies", "new", "team-label", "--in", str(tmp_path), "--kind", kind]) == 0
    folder = str(tmp_path / "team-label")
    assert main(["policies", "check", folder]) == 0
    assert main(["test", "--coverage", "--strict", folder]) == 0
    shown = capsys.readouterr()
    assert "not reached" not in shown.out
    assert "Warning" not in shown.err


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_that_each_file_names_is_there_and_takes_it(kind: str, tmp_path: Path) -> None:
    """The line that YAML language servers read, from the file's own folder."""
    main(["policies", "new", "team-label", "--in", str(tmp_path), "--kind", kind])
    for file in (tmp_path / "team-label").iterdir():
        first = file.read_text().splitlines()[0]
        schema_file = file.parent / first.removeprefix("# yaml-language-server: $schema=")
        schema = jsonschema.Draft7Validator(json.loads(schema_file.read_text()))
        for document in yaml.safe_load_all(file.read_text()):
            assert list(schema.iter_errors(document)) == []


@pytest.mark.parametrize(
    ("name", "message"), [("Team", "is no name"), ("../x", "is no name"), ("a", "already")]
)
def test_a_name_that_is_none_or_taken_is_refused(
    name: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 2, and nothing is written."""
    (tmp_path / "a").mkdir()
    assert main(["policies", "new", name, "--in", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_schema_of_another_version_is_kept_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the command that prints this version's."""
    (tmp_path / "policy.schema.json").write_text("{}")
    main(["policies", "new", "team-label", "--in", str(tmp_path)])
    assert "bayplan policies schema policy prints this one's" in capsys.readouterr().err
    assert (tmp_path / "policy.schema.json").read_text() == "{}"
    main(["policies", "schema", "policy"])
    assert json.loads(capsys.readouterr().out)["definitions"]


def test_a_file_without_policies_fails_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Most likely another one was meant; the ConfigMap of parameters alone is worth a check."""
    file = tmp_path / "pod.yaml"
    file.write_text("{apiVersion: v1, kind: Pod, metadata: {name: a}}")
    assert main(["policies", "check", str(file)]) == 2
    assert "pod.yaml: no policy in here (1 file read)" in capsys.readouterr().err
    file.write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: bayplan-parameters}, data: {}}")
    assert main(["policies", "check", str(file)]) == 0
    assert "0 policies, 0 bindings, 1 parameter object: all well" in capsys.readouterr().out
