"""Writes a report as GitHub-flavoured Markdown, for a comment on a pull request. Findings come first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TextIO

from planner.model.words import counted
from webhook.report.figures.rows import FigureTable, figure_tables
from webhook.report.model import FATES, WORST_FIRST, ObjectResults, Outcome, Report, Result

MARKER = "<!-- bayplan report -->"
"""The first line of the comment. A pipeline finds its earlier comment by this line, to replace it."""
LARGEST = 65_000
"""The maximum length of the comment in characters; GitHub's limit is 65,536."""
_FRAME = 500
"""Characters that are reserved for headings, and for the lines that count omitted rows."""
NAMESPACES = 100
"""The maximum number of namespaces in the table: ten thousand characters at most, to leave room for
findings.
"""
_SIGN: dict[Outcome, str] = {"fail": "❌", "error": "❗", "warn": "⚠️", "pass": "✅", "skip": "⏭️"}
_OPEN = ("fail", "error", "warn")
FINDINGS = ("", "object", "policy", "where", "message")
CHANGES = ("object", "would be placed", "would be changed by")
_SPECIAL = re.compile(r"([\\`*_\[\]|~#<>@])")


def write(report: Report, out: TextIO) -> None:
    """Writes the comment: the findings by object, the worst first, and then the changes in collapsed
    sections.

    Rows that would exceed `LARGEST` are omitted, and counted at the end of their table.
    """
    objects = report.by_object
    not_refused = [entry for entry in objects if entry.worst not in ("error", "fail")]
    changed = [entry for entry in not_refused if entry.places or entry.changed_by]
    rest = [result for result in report.results if result.result not in _OPEN] if report.every else []
    lines = [MARKER, f"### Bayplan: {report.headline()}", "", *_fates(report)]
    if report.judged:
        lines += [f"Judged {report.judged}.", ""]
    summary: list[str] = []
    if report.results:
        summary = ["<details>", "<summary>By policy</summary>", "", *_by_policy(report), "", "</details>", ""]
    # 2,000 characters are enough for the tables of figures.
    room = LARGEST - _size((*lines, *summary)) - _FRAME - 2_000 * bool(report.courses)
    findings = [row for entry in objects for row in _rows(entry)]
    if findings:
        rows = _table(FINDINGS, findings, room)
        room -= _size(rows)
        lines += [*rows, ""]
    lines += summary
    if changed:
        rows = _folded(
            f"{counted(len(changed), 'object')} placed or changed", CHANGES, map(_change, changed), room
        )
        room -= _size(rows)
        lines += rows
    if rest:
        lines += _folded(f"{len(rest)} without a finding", FINDINGS, map(_row, rest), room)
    for table in figure_tables(report.courses, "course") if report.courses else ():
        lines += [*_figures(table), ""]
    if report.revision:
        lines += [f"Policies: `{report.revision.replace('`', '')}`", ""]
    out.write("\n".join(lines))


def _folded(words: str, heads: Sequence[str], rows: Iterable[str], room: int) -> list[str]:
    """Returns the lines of a collapsed section: the summary `words`, and a table within `room` characters."""
    lines = ["<details>", f"<summary>{words}</summary>", "", "", "</details>", ""]
    lines[3:3] = _table(heads, list(rows), room - _size(lines))
    return lines


def _table(heads: Sequence[str], rows: Sequence[str], room: int) -> list[str]:
    """Returns the lines of a table with the rows that fit into `room` characters, and a line that counts the
    omitted ones.
    """
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    room -= _size(lines)
    for index, row in enumerate(rows):
        room -= len(row) + 1
        if room < 0:
            return [*lines, "", f"{len(rows) - index} more: `bayplan report -o table` shows all."]
        lines.append(row)
    return lines


def _size(lines: Iterable[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def _rows(entry: ObjectResults) -> Iterator[str]:
    """Yields a row for each finding of an object. Only the first row has the object's name."""
    for index, result in enumerate(entry.findings):
        yield _row(result if not index else replace(result, object=""))


def _row(result: Result) -> str:
    where = " ".join(part for part in (result.place, result.field) if part)
    return _cells(
        f"{_SIGN[result.result]} {result.result}",
        *map(_escape, (result.object, result.title, where, result.message)),
    )


def _change(entry: ObjectResults) -> str:
    """Returns a row with an object's name, its planned place, and the policies that would change it."""
    places = " ".join(entry.place_words)
    return _cells(*map(_escape, (entry.name, places, ", ".join(entry.changed_by))))


def _cells(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _fates(report: Report) -> list[str]:
    """Returns the lines of the table that counts the fates of objects by namespace, of `NAMESPACES` at
    most.
    """
    if not report.fates:
        return []
    spaces = report.by_namespace
    rows = [_numbers(name, row.values()) for name, row in list(spaces.items())[:NAMESPACES]]
    left = [f"{len(spaces) - NAMESPACES} more namespaces."] if len(spaces) > NAMESPACES else []
    heads = [f"| namespace |{''.join(f' {fate} |' for fate in FATES)}", "|---|" + "--:|" * len(FATES)]
    return [f"{report.fate_of_all().capitalize()}.", "", *heads, *rows, "", *left, ""]


def _by_policy(report: Report) -> list[str]:
    heads = "".join(f" {_SIGN[verdict]} {verdict} |" for verdict in WORST_FIRST)
    rows = [f"| policy | changes |{heads}", "|---|--:|" + "--:|" * len(WORST_FIRST)]
    (spoken, quiet), changes = report.policies_told, report.changes
    for policy, counts in spoken.items():
        numbers = (changes.get(policy, 0), *(counts[verdict] for verdict in WORST_FIRST))
        rows.append(_numbers(policy, numbers))
    quiet_words = f"{counted(quiet, 'policy has', 'policies have')} no finding and no change."
    return [*rows, *(["", quiet_words] if quiet else [])]


def _figures(table: FigureTable) -> list[str]:
    heads = ["|" + "".join(f" {head} |" for head in table.heads), "|---|" + "--:|" * (len(table.heads) - 1)]
    rows = ["|" + "".join(f" {_escape(cell)} |" for cell in row) for row in table.rows]
    return [f"{table.caption}:", "", *heads, *rows]


def _numbers(name: str, numbers: Iterable[int]) -> str:
    """Returns a row with a name and counts; zeros become empty cells."""
    return f"| {_escape(name)} |" + "".join(f" {number or ''} |" for number in numbers)


def _escape(text: str) -> str:
    """Returns the text escaped for a table cell: without markup, HTML, line breaks, cell separators and
    @mentions.
    """
    return _SPECIAL.sub(lambda match: f"&#{ord(match[1])};", " ".join(text.split()))
