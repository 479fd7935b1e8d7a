"""Writes a report as text, by object, the worst first; with colours if the output is a terminal.

Lines are as wide as the terminal, or 80 columns without one, because CI logs wrap longer lines at any
character. Messages are never truncated. Results that pass are only counted, unless `Report.every` is set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TextIO

from rich.console import Console
from rich.text import Text

from planner.model.words import counted
from webhook.report import terminal
from webhook.report.figures.table import print_figures
from webhook.report.model import FATES, WORST_FIRST, ObjectResults, Outcome, Report, Result
from webhook.report.not_read import assumptions

_COLOUR = {"pass": "green", "fail": "red", "warn": "yellow", "error": "bold red", "skip": "dim"}


INDENT = " " * 8
"""The indent of a result's further lines: two spaces, the outcome in five columns, and a space."""


def write(report: Report, out: TextIO) -> None:
    """Writes the fates by namespace, the objects with their findings, the policies, and a summary."""
    console = terminal.console(out)
    if report.fates:
        console.print(report.fate_of_all())
        console.print()
        spaces: list[tuple[Text | str, ...]] = [
            (name, *map(_count, row.values())) for name, row in report.by_namespace.items()
        ]
        console.print(terminal.table(("namespace", *FATES), spaces))
        console.print()
    width = terminal.width(console)
    for entry in report.by_object:
        if report.every or entry.findings or entry.changed_by:
            _print_object(console, entry, width, every=report.every)
            console.print()
    if report.results:
        _policies(console, report)
    if report.courses:
        print_figures(console, report.courses, "course")
        console.print()
    revision = f" (policies {report.revision})" if report.revision else ""
    if report.judged:
        console.print(f"judged {report.judged}")
    if words := assumptions(report):
        console.print(terminal.folded(words, "", width))
    console.print(f"{report.headline()}{revision}")


def _print_object(console: Console, entry: ObjectResults, width: int, *, every: bool) -> None:
    """Prints an object with its findings, its planned place, and the policies that would change it; with
    `every`, all results of the object instead.
    """
    console.print(Text(entry.name, f"bold {_COLOUR[entry.worst]}"))
    for result in entry.results if every else entry.findings:
        console.print(Text("  ") + Text(f"{result.result:<5}", _COLOUR[result.result]), end=" ")
        for line in _lines_of(result, width):
            console.print(line)
    if every:
        return
    for words in entry.place_words:
        console.print(terminal.folded(f"would be placed: {words}", "  ", width))
    if entry.changed_by:
        console.print(terminal.folded(f"would be changed by {', '.join(entry.changed_by)}", "  ", width))


def _lines_of(result: Result, width: int) -> Iterator[str]:
    """Yields the lines of a result: policy and rule, file and line (on the same line if they fit), field, and
    message.
    """
    place = f"  {result.place}" if result.place else ""
    fits_one_line = len(INDENT + result.title + place) <= width
    yield result.title + (place if fits_one_line else "")
    if place and not fits_one_line:
        yield f"{INDENT}{result.place}"
    if result.field:
        yield f"{INDENT}{result.field}"
    if result.message:
        yield terminal.folded(result.message, INDENT, width)


def _policies(console: Console, report: Report) -> None:
    """Prints a row for each policy with a finding or a change, and the number of the other policies."""
    (spoken, quiet), changes = report.policies_told, report.changes
    rows = [_counts(policy, changes.get(policy, 0), counts) for policy, counts in spoken.items()]
    if rows:
        console.print(terminal.table(("policy", "changes", *WORST_FIRST), rows))
    if quiet:
        further = "more " if rows else ""
        console.print(
            f"{counted(quiet, f'{further}policy has', f'{further}policies have')} no finding; --all shows "
            f"{'it' if quiet == 1 else 'them'}"
        )
    console.print()


def _counts(policy: str, changes: int, counts: Mapping[Outcome, int]) -> tuple[Text | str, ...]:
    """Returns a policy's row: the number of objects that it would change, and its outcomes in colour."""
    return policy, _count(changes), *(_count(counts[verdict], _COLOUR[verdict]) for verdict in WORST_FIRST)


def _count(count: int, colour: str = "") -> Text:
    """Returns a number as text; a dot for zero."""
    return Text(str(count), colour) if count else Text("·", "dim")
