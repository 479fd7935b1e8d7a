"""The documentation site shows every page: what is not in its navigation, nobody finds."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def pages(entries: Any) -> Iterator[str]:
    """The pages of a part of the navigation."""
    for entry in entries:
        for target in entry.values():
            if isinstance(target, str):
                yield target
            else:
                yield from pages(target)


def test_each_page_stands_once_in_the_navigation() -> None:
    """Those of the root and of docs/, the decisions aside, which one page lists; and each entry is a page."""
    project = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
    shown = Counter(pages(project["nav"]))
    decisions = ROOT / "docs" / "decisions"
    every = {*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "manifests").rglob("*.md")}
    wanted = {
        str(path.relative_to(ROOT))
        for path in every
        if decisions not in path.parents or path.name == "README.md"
    }
    assert shown == Counter(wanted)
