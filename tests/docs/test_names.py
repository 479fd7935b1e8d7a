"""Names of variables, fields and functions say their role; `make lint` checks it."""

from __future__ import annotations

import ast
import runpy
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TREES = ("planner", "webhook", "certs")
CHECK = ROOT / ".ci" / "check-names"
MAIN = runpy.run_path(str(CHECK))["main"]


def check(*paths: Path) -> subprocess.CompletedProcess[str]:
    """The check as `make lint` runs it."""
    command = [sys.executable, str(CHECK), *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "line",
    [
        "found = 1",
        "def one(): ...",
        "def read(at): ...",
        "class Limit:\n    most: int",
        "pods = [one for one in ()]",
        "self.there = 1",
        "_made = 1",
        "def nearest(name, known): ...",
        "class Node:\n    named: bool",
        "def search(now: bool): ...",
        "class Problem:\n    now: bool = True",
    ],
)
def test_a_name_that_is_a_pronoun_or_a_participle_fails(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wherever it is given, with its file and line."""
    file = tmp_path / "module.py"
    file.write_text(line + "\n")
    assert MAIN([str(file)]) == 1
    output = capsys.readouterr().out
    assert "module.py:" in output
    assert "says nothing of its role" in output


def test_the_command_fails_as_well(tmp_path: Path) -> None:
    """`make lint` goes by its status."""
    (tmp_path / "module.py").write_text("found = 1\n")
    result = check(tmp_path)
    assert (result.returncode, result.stderr) == (1, "")
    assert result.stdout == f"{tmp_path / 'module.py'}:1: found says nothing of its role\n"


@pytest.mark.parametrize(
    "line", ["def __eq__(self, other): ...", "found_by = 1", "row.at(1)", "def decide(now: float): ..."]
)
def test_other_names_pass(line: str, tmp_path: Path) -> None:
    """The second of two, longer names, names that others gave, and a moment."""
    (tmp_path / "module.py").write_text(line + "\n")
    assert MAIN([str(tmp_path)]) == 0


def test_no_class_name_means_two_things() -> None:
    """Whoever reads `Placement` anywhere knows which; a module's private classes are its own affair."""
    places = defaultdict(list)
    for path in (path for tree in TREES for path in (ROOT / tree).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(ROOT)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_the_code_has_no_such_name() -> None:
    """In the product and in its tests."""
    result = check(*(ROOT / tree for tree in (*TREES, "tests")))
    assert (result.returncode, result.stdout) == (0, "")
