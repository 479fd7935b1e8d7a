"""The pages of docs/decisions have one shape: a reader finds the decision at the same place in each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"
DECISIONS = sorted(FOLDER.glob("[0-9]*.md"))


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_has_a_context_a_decision_and_consequences(page: Path) -> None:
    """In this order, below a title that begins with the number in the name of the file."""
    text = page.read_text()
    assert text.startswith(f"# {int(page.name[:4])}. ")
    sections = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert sections[:3] == ["Context", "Decision", "Consequences"]


def test_no_two_decisions_have_the_same_number() -> None:
    """Two branches may each have taken the next one."""
    numbers = [page.name[:4] for page in DECISIONS]
    assert len(numbers) > 80
    assert len(set(numbers)) == len(numbers)
