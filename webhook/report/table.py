"""A report for a terminal, object by object with the worst first; plain where the output is no terminal.

Lines fit the terminal, or 80 columns where there is none: a CI log folds longer ones at any character. A
message is always whole. What only passes is counted; `Report.every` shows it too.
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
"""Under the outcome of a finding, which is at most five letters between blanks."""


def write(report: Report, out: TextIO) -> None:
    """Write the summary by namespace, the objects with their findings, the policies, and the summary in
    words."""
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
    """The object, each finding with its place and its message, where it would be and who would change it;
    with `every` all that is said of it."""
    console.print(Text(entry.name, f"bold {_COLOUR[entry.worst]}"))
    for result in entry.results if every else entry.findings:
        console.print(Text("  ") + Text(f"{result.result:<5}", _COLOUR[result.result]), end=" ")
        for line in _lines_of(result, width):
            console.print(line)
    if every:
        return
    for result in entry.places:
        console.print(terminal.folded(f"would be placed: {result.message}", "  ", width))
    if entry.changed_by:
        console.print(terminal.folded(f"would be changed by {', '.join(entry.changed_by)}", "  ", width))


def _lines_of(result: Result, width: int) -> Iterator[str]:
    """Policy and rule, the file where it fits beside them, the field, and the message."""
    place = f"  {result.place}" if result.place else ""
    beside = len(INDENT + result.title + place) <= width
    yield result.title + (place if beside else "")
    if place and not beside:
        yield f"{INDENT}{result.place}"
    if result.field:
        yield f"{INDENT}{result.field}"
    if result.message:
        yield terminal.folded(result.message, INDENT, width)


def _policies(console: Console, report: Report) -> None:
    """A row for each policy with a finding or a change; those that only pass are counted."""
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
    """A policy's row: how many objects it would change, and its outcomes in their colours."""
    return policy, _count(changes), *(_count(counts[verdict], _COLOUR[verdict]) for verdict in WORST_FIRST)


def _count(count: int, colour: str = "") -> Text:
    """A number, a dot for none."""
    return Text(str(count), colour) if count else Text("·", "dim")
