"""Parameters are held to the JSON schema beside them when policies are loaded."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from webhook.cli.common.inputs import shipped
from webhook.cli.main import main
from webhook.policy.loading.errors import PolicyError
from webhook.policy.loading.files import load_paths


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The shipped parameters and the one policy that they are for."""
    ours = shipped("policies")
    for name in ("parameters.yaml", "parameters.schema.json"):
        shutil.copy(ours / name, tmp_path / name)
    shutil.copytree(ours / "node-affinity", tmp_path / "node-affinity")
    return tmp_path


def with_value(folder: Path, key: str, value: str) -> str:
    """Why the set does not load with another line for a key, "" where it does."""
    path = folder / "parameters.yaml"
    lines = [line for line in path.read_text().splitlines() if not line.startswith(f"  {key}:")]
    path.write_text("\n".join([*lines, f"  {key}: {value}", ""]))
    try:
        load_paths([folder])
    except PolicyError as error:
        return str(error)
    return ""


def test_the_shipped_parameters_load(folder: Path) -> None:
    """They fit their own schema."""
    assert load_paths([folder]).params


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (
            "node-affinity.weight",
            "lots",
            "data[node-affinity.weight]: 'lots' is not valid; the default is '100'",
        ),
        ("node-affinity.weight", "101", "'101' is not valid"),
        ("node-affinity.weigth", '"5"', "there is no such parameter; is node-affinity.weight meant?"),
        ("numa-alignment.action", "ask", "'ask' is not valid; use refuse or warn"),
        ("kai-topology.queue", "", "'' is not valid"),
    ],
)
def test_a_wrong_parameter_is_told_with_its_line(folder: Path, key: str, value: str, expected: str) -> None:
    """The set does not load, so a reload keeps the last good one."""
    message = with_value(folder, key, value)
    assert expected in message
    assert "parameters.yaml:" in message


@pytest.mark.parametrize(
    ("key", "value"),
    [("node-affinity.weight", "50"), ("node-affinity.enabled", "false"), ("rdma-fabric.network", '""')],
)
def test_a_value_that_nobody_quoted_counts_as_its_text(folder: Path, key: str, value: str) -> None:
    """50 and false are what "50" and "false" are."""
    assert with_value(folder, key, value) == ""


def test_another_object_in_the_file_is_not_held_to_the_schema(folder: Path) -> None:
    """The schema is for the ConfigMap of its name."""
    path = folder / "parameters.yaml"
    other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\ndata: {a: b}\n"
    path.write_text(f"{path.read_text()}---\n{other}")
    assert len(load_paths([folder]).params) == 2


@pytest.mark.parametrize("text", ["{", "[]", '{"properties": 3}', json.dumps({"properties": {"data": None}})])
def test_a_schema_that_is_none_rules_nothing_out_or_is_told(folder: Path, text: str) -> None:
    """Words, never a traceback."""
    (folder / "parameters.schema.json").write_text(text)
    message = with_value(folder, "node-affinity.weight", "lots")
    assert message == "" or "no JSON" in message


def test_policies_check_tells_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On the command line, with status 2."""
    with_value(folder, "node-affinity.weight", "lots")
    assert main(["policies", "check", str(folder)]) == 2
    assert "node-affinity.weight" in capsys.readouterr().err
