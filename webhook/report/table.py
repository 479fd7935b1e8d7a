"""A report as a table for a terminal, the worst first; plain and uncut where the output is no terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO

from rich.text import Text

from webhook.report import terminal
from webhook.report.model import FATES, WORST_FIRST, Outcome, Report, Result

_COLOUR = {"pass": "green", "fail": "red", "warn": "yellow", "error": "bold red", "skip": "dim"}


def write(report: Report, out: TextIO) -> None:
    """Write the summary by namespace and by policy, then the results, and last the summary in words."""
    console = terminal.console(out)
    if report.fates:
        console.print(report.fate_of_all())
        console.print()
        spaces: list[tuple[Text | str, ...]] = [
            (name, *map(_count, row.values())) for name, row in report.by_namespace.items()
        ]
        console.print(terminal.table(("namespace", *FATES), spaces))
        console.print()
    if report.results:
        heads = ("policy", "changes", *WORST_FIRST)
        rows = ((policy, report.changes.get(policy, 0), row) for policy, row in report.by_policy.items())
        console.print(terminal.table(heads, [_counts(*row) for row in rows]))
        console.print()
        columns = ("result", "object", "policy", "where", "message")
        console.print(terminal.table(columns, [_row(result) for result in report.worst_first]))
        console.print()
    revision = f" (policies {report.revision})" if report.revision else ""
    console.print(f"{report.headline()}{revision}")


def _row(result: Result) -> tuple[Text | str, ...]:
    where = " ".join(part for part in (result.place, result.field) if part)
    return Text(result.result, _COLOUR[result.result]), result.object, result.title, where, result.message


def _counts(policy: str, changes: int, counts: Mapping[Outcome, int]) -> tuple[Text | str, ...]:
    """A policy's row: how many objects it would change, and its outcomes in their colours."""
    return policy, _count(changes), *(_count(counts[verdict], _COLOUR[verdict]) for verdict in WORST_FIRST)


def _count(count: int, colour: str = "") -> Text:
    """A number, a dot for none."""
    return Text(str(count), colour) if count else Text("·", "dim")
