"""Tables for people: coloured and fitted on a terminal, plain and uncut where the output goes elsewhere."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from webhook.report.printable import printable

_UNCUT = 100_000  # columns: a file or a pipe has no width, so nothing is folded


WIDTH = 80
"""Columns of text where no terminal tells: what logs, mails and pull requests show without folding."""


WIDEST = 120
"""Columns of text on a wide terminal: longer lines are hard to read."""


class PlainConsole(Console):
    """A console that shows texts as they are: what could steer the terminal becomes U+FFFD."""

    def render_str(self, text: str, **options: Any) -> Text:
        """The text, ready to be printed."""
        return super().render_str(printable(text), **options)


def console(out: TextIO | None = None) -> Console:
    """A console on `out` (standard output); colour only on a terminal, and never markup from data."""
    out = out or sys.stdout
    width = None if out.isatty() else _UNCUT
    return PlainConsole(file=out, width=width, highlight=False, markup=False, emoji=False, soft_wrap=True)


def width(console: Console) -> int:
    """The columns that text is folded to."""
    return min(console.width, WIDEST) if console.is_terminal else WIDTH


def folded(text: str, indent: str, width: int) -> str:
    """The text in lines of at most `width` columns; a longer word, which people copy, stays whole."""
    fold = textwrap.TextWrapper(
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(line for part in text.splitlines() for line in fold.wrap(part) or [""])


def table(columns: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> Table:
    """A table without lines; long cells fold, none is cut."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(printable(cell)) for cell in row))
    return table
