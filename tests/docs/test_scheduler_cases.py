"""The tests that docs/decisions/0148 names for each case of living beside KAI and Kueue are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "decisions" / "0148-real-kai-and-kueue.md"
ROWS = re.findall(r"^\| (\d+)\. [^|]*\| (.+) \|$", PAGE.read_text(), re.MULTILINE)
POLICY_CASE = re.compile(r"`(policies/[\w-]+/tests\.yaml)`: ([^;`]+?)(?:;|, `|$)")


def test_every_case_has_a_row() -> None:
    """All seventeen, in order."""
    assert [int(number) for number, _ in ROWS] == list(range(1, 18))


@pytest.mark.parametrize(("number", "tests"), ROWS, ids=[number for number, _ in ROWS])
def test_the_tests_of_a_case_are_there(number: str, tests: str) -> None:
    """By file and name; those of policies by the name of the case."""
    functions = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", tests)
    cases = POLICY_CASE.findall(tests)
    assert functions or cases, number
    for path, name in functions:
        assert f"def {name}(" in (ROOT / path).read_text(), f"{path}::{name}"
    for path, name in cases:
        names = {case["name"] for case in yaml.safe_load((ROOT / path).read_text())["cases"]}
        assert name in names, f"{path}: {name}"
