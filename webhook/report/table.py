"""A report as a table for a terminal, the worst first; plain and uncut where the output is no terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO

from rich.text import Text

from webhook.report import terminal
from webhook.report.model import WORST_FIRST, Outcome, Report, Result

_COLOUR = {"pass": "green", "fail": "red", "warn": "yellow", "error": "bold red", "skip": "dim"}


def write(report: Report, out: TextIO) -> None:
    """Write the table and, below it, the summary by policy and in words."""
    console = terminal.console(out)
    if report.results:
        columns = ("result", "object", "policy", "where", "message")
        console.print(terminal.table(columns, [_row(result) for result in report.worst_first]))
        console.print()
        heads = ("policy", *WORST_FIRST)
        console.print(terminal.table(heads, [_counts(*row) for row in report.by_policy.items()]))
        console.print()
    revision = f" (policies {report.revision})" if report.revision else ""
    console.print(f"{report.headline()}{revision}")


def _row(result: Result) -> tuple[Text | str, ...]:
    where = " ".join(part for part in (result.place, result.field) if part)
    return Text(result.result, _COLOUR[result.result]), result.object, result.title, where, result.message


def _counts(policy: str, counts: Mapping[Outcome, int]) -> tuple[Text | str, ...]:
    """A policy's row: its numbers in their colours, a dot for none."""
    cells = (
        Text(str(counts[verdict]), _COLOUR[verdict]) if counts[verdict] else Text("·", "dim")
        for verdict in WORST_FIRST
    )
    return policy, *cells
