"""Prints tables and text: on a terminal with colours and within its width, otherwise plain and of any
width.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from webhook.report.printable import printable

_UNLIMITED = 100_000  # columns: a file or a pipe has no width, so nothing is folded


WIDTH = 80
"""The width of folded text without a terminal, in columns: logs, mails and pull requests show this many
without wrapping.
"""


WIDEST = 120
"""The maximum width of folded text on a terminal, in columns: longer lines are hard to read."""


class PlainConsole(Console):
    """A console that replaces control characters in texts by U+FFFD."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Returns the text without control characters."""
        return super().render_str(printable(text), **options)


def console(out: TextIO | None = None) -> Console:
    """Returns a console on `out` (default: standard output). It uses colours only on a terminal, and
    prints markup in data as it is.
    """
    out = out or sys.stdout
    width = None if out.isatty() else _UNLIMITED
    return PlainConsole(file=out, width=width, highlight=False, markup=False, emoji=False, soft_wrap=True)


def width(console: Console) -> int:
    """Returns the number of columns to which text is folded."""
    return min(console.width, WIDEST) if console.is_terminal else WIDTH


def folded(text: str, indent: str, width: int) -> str:
    """Returns the text folded into indented lines of at most `width` columns. Longer words are not broken,
    so that they can be copied.
    """
    fold = textwrap.TextWrapper(
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(line for part in text.splitlines() for line in fold.wrap(part) or [""])


def table(columns: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> Table:
    """Returns a table without borders. Long cells are folded, not truncated."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(printable(cell)) for cell in row))
    return table
