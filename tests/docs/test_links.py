"""Every link of a page leads to a file, and to a heading that the site gives this name."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "manifests").rglob("*.md")})
LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]*))?\)")
FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)


def prose(page: Path) -> str:
    """The page without its blocks: a pattern in code may look like a link, and a comment like a heading."""
    return FENCED.sub("", page.read_text())


@cache
def anchors(page: Path) -> frozenset[str]:
    """The names of a page's headings, as Python-Markdown's table of contents makes them, and Git servers."""
    names: set[str] = set()
    for heading in HEADING.findall(prose(page)):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
        words = re.sub(r"[^\w\s-]", "", plain).strip().lower()
        names.add(re.sub(r"[-\s]+", "-", words))
    return frozenset(names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    """As `make docs` checks it strictly; this needs no tool, so every run of the tests has it."""
    lost = []
    for path, anchor in LINK.findall(re.sub(r"`[^`\n]*`", "", prose(page))):
        if "://" in path or path.startswith("mailto:"):
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            lost.append(path)
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            lost.append(f"{path}#{anchor}")
    assert lost == []


@pytest.mark.parametrize(
    ("heading", "name"), [("What `x` tells: a, b", "what-x-tells-a-b"), ("KAI & Kueue", "kai-kueue")]
)
def test_a_heading_has_the_name_that_the_site_gives_it(heading: str, name: str, tmp_path: Path) -> None:
    """Lower case, blanks as hyphens, no other signs."""
    page = tmp_path / "page.md"
    page.write_text(f"# {heading}\n")
    assert anchors(page) == {name}
