"""Names of variables, fields and functions say their role; `make lint` checks it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def check(*paths: Path) -> subprocess.CompletedProcess[str]:
    """The check as `make lint` runs it."""
    command = [sys.executable, str(ROOT / ".ci" / "check-names"), *map(str, paths)]
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
    ],
)
def test_a_name_that_is_a_pronoun_or_a_participle_fails(line: str, tmp_path: Path) -> None:
    """Wherever it is given, with its file and line."""
    file = tmp_path / "module.py"
    file.write_text(line + "\n")
    result = check(file)
    assert result.returncode == 1
    assert "module.py:" in result.stdout
    assert "says nothing of its role" in result.stdout


@pytest.mark.parametrize("line", ["def __eq__(self, other): ...", "found_by = 1", "row.at(1)"])
def test_other_names_pass(line: str, tmp_path: Path) -> None:
    """The second of two, longer names, and names that others gave."""
    (tmp_path / "module.py").write_text(line + "\n")
    assert check(tmp_path).returncode == 0


def test_the_code_has_no_such_name() -> None:
    """In the three trees."""
    assert check(*(ROOT / tree for tree in ("planner", "webhook", "certs"))).stdout == ""
