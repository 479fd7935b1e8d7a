"""A report as GitHub-flavoured Markdown: a comment on a pull request, what needs a person above the fold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TextIO

from planner.model.words import counted
from webhook.report.figures.rows import FigureTable, figure_tables
from webhook.report.model import FATES, WORST_FIRST, ObjectResults, Outcome, Report, Result

MARKER = "<!-- bayplan report -->"
"""The first line, by which a pipeline finds its former comment and writes over it."""
LARGEST = 65_000
"""Characters of a comment; GitHub takes 65,536."""
_FRAME = 500
"""What is kept for headings and for the lines that count what is left out."""
NAMESPACES = 100
"""Namespaces told of one by one: ten thousand characters at most, so that the findings keep their room."""
_SIGN: dict[Outcome, str] = {"fail": "❌", "error": "❗", "warn": "⚠️", "pass": "✅", "skip": "⏭️"}
_OPEN = ("fail", "error", "warn")
FINDINGS = ("", "object", "policy", "where", "message")
CHANGES = ("object", "would be placed", "would be changed by")
_SPECIAL = re.compile(r"([\\`*_\[\]|~#<>@])")


def write(report: Report, out: TextIO) -> None:
    """Write the comment: what is found, object by object, the worst first; folded, what would change. What a
    comment has no room for is counted at the end of its table."""
    objects = report.by_object
    let_in = [entry for entry in objects if entry.worst not in ("error", "fail")]
    changed = [entry for entry in let_in if entry.places or entry.changed_by]
    rest = [result for result in report.results if result.result not in _OPEN] if report.every else []
    lines = [MARKER, f"### Bayplan: {report.headline()}", "", *_fates(report)]
    if report.judged:
        lines += [f"Judged {report.judged}.", ""]
    summary: list[str] = []
    if report.results:
        summary = ["<details>", "<summary>By policy</summary>", "", *_by_policy(report), "", "</details>", ""]
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
    """A table under its words, which a click opens."""
    lines = ["<details>", f"<summary>{words}</summary>", "", "", "</details>", ""]
    lines[3:3] = _table(heads, list(rows), room - _size(lines))
    return lines


def _table(heads: Sequence[str], rows: Sequence[str], room: int) -> list[str]:
    """The rows that fit into so many characters, and how many did not."""
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    room -= _size(lines)
    for place, row in enumerate(rows):
        room -= len(row) + 1
        if room < 0:
            return [*lines, "", f"{len(rows) - place} more: `bayplan report -o table` shows all."]
        lines.append(row)
    return lines


def _size(lines: Iterable[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def _rows(entry: ObjectResults) -> Iterator[str]:
    """The findings of an object, under its name, which the first of them has."""
    for place, result in enumerate(entry.findings):
        yield _row(result if not place else replace(result, object=""))


def _row(result: Result) -> str:
    where = " ".join(part for part in (result.place, result.field) if part)
    return _cells(
        f"{_SIGN[result.result]} {result.result}",
        *map(_escape, (result.object, result.title, where, result.message)),
    )


def _change(entry: ObjectResults) -> str:
    """Where the plan puts an object, and which policies change it."""
    places = " ".join(result.message for result in entry.places)
    return _cells(*map(_escape, (entry.name, places, ", ".join(entry.changed_by))))


def _cells(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _fates(report: Report) -> list[str]:
    """What becomes of the objects, in each namespace: as many of these as a comment has room for."""
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
    """A row of counts, empty for none."""
    return f"| {_escape(name)} |" + "".join(f" {number or ''} |" for number in numbers)


def _escape(text: str) -> str:
    """The text as it is read, in one line: no markup, no HTML, no cell's end, nobody notified."""
    return _SPECIAL.sub(lambda match: f"&#{ord(match[1])};", " ".join(text.split()))
