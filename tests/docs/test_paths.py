"""Whoever follows a path that a page or a comment in a manifest names finds something there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md"))
COMMENTED = sorted((ROOT / "manifests").rglob("*.yaml"))
PATH = re.compile(r"(?<![\w/.@-])((?:planner|webhook|certs|tests)/[\w/.-]*\w/?)(?![\w/.*-]*[*<])")
PLACE = re.compile(r"`([A-Za-z_]\w*)` in `([\w/.]+\.py)`")


def label(page: Path) -> str:
    """A page by its path from the checkout's root."""
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [*PAGES, *COMMENTED], ids=label)
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    """From the checkout's root."""
    missing = [path for path in PATH.findall(page.read_text()) if not (ROOT / path).exists()]
    assert missing == []


def test_what_contributing_says_to_be_in_a_file_is_defined_there() -> None:
    """A function, a class, a method or a table: "`name` in `path`"."""
    places = PLACE.findall((ROOT / "CONTRIBUTING.md").read_text())
    assert len(places) >= 20
    for name, path in places:
        defined = rf"^\s*(?:(?:async )?def |class )?{name}\b(?=[(:]| =|\[)"
        assert re.search(defined, (ROOT / path).read_text(), re.MULTILINE), f"{name} in {path}"
