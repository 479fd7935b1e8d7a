"""What the generators of references share: tables, and the part of a page that is generated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with its rows, each a line."""
    lines = [_line(columns), f"|{'---|' * len(columns)}", *map(_line, rows)]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(' '.join(cell.replace('|', '&#124;').split()) for cell in cells)} |"


def code(texts: Iterable[str]) -> str:
    """Each as code, with commas."""
    return ", ".join(f"`{text}`" for text in texts)


def fenced(text: str) -> str:
    """A block that is no command to run."""
    return f"```text\n{text.strip(chr(10))}\n```\n"


def below(page: Path, mark: str, generated: str) -> str:
    """The page with what is generated in place of all below the mark."""
    head, separator, _ = page.read_text().partition(mark)
    assert separator, f"{page}: {mark} is not there"
    return f"{head}{mark}\n{generated}"
