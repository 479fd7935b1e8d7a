"""A report as GitHub-flavoured Markdown: a comment on a pull request, what needs a person above the fold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TextIO

from webhook.report.model import FATES, WORST_FIRST, Outcome, Report, Result

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
_SPECIAL = re.compile(r"([\\`*_\[\]|~#<>@])")


def write(report: Report, out: TextIO) -> None:
    """Write the comment; what a comment has no room for is counted at the end of its table."""
    open_ones = [result for result in report.worst_first if result.result in _OPEN]
    rest = [result for result in report.results if result.result not in _OPEN]
    lines = [MARKER, f"### Bayplan: {report.headline()}", "", *_fates(report)]
    if report.judged:
        lines += [f"Judged {report.judged}.", ""]
    summary: list[str] = []
    if report.results:
        summary = ["<details>", "<summary>By policy</summary>", "", *_by_policy(report), "", "</details>", ""]
    room = LARGEST - sum(len(line) + 1 for line in (*lines, *summary)) - _FRAME
    if open_ones:
        rows = _table(open_ones, room)
        room -= sum(len(row) + 1 for row in rows)
        lines += [*rows, ""]
    lines += summary
    if rest:
        lines += ["<details>", f"<summary>{len(rest)} without a finding</summary>", ""]
        lines += [*_table(rest, room), "", "</details>", ""]
    if report.revision:
        lines += [f"Policies: `{report.revision.replace('`', '')}`", ""]
    out.write("\n".join(lines))


def _table(results: Sequence[Result], room: int) -> list[str]:
    """The rows that fit into so many characters, and how many did not."""
    rows = ["| | object | policy | where | message |", "|---|---|---|---|---|"]
    room -= sum(len(row) + 1 for row in rows)
    for place, result in enumerate(results):
        row = _row(result)
        room -= len(row) + 1
        if room < 0:
            return [*rows, "", f"{len(results) - place} more: `bayplan report -o table` shows all."]
        rows.append(row)
    return rows


def _row(result: Result) -> str:
    where = " ".join(part for part in (result.place, result.field) if part)
    cells = (
        f"{_SIGN[result.result]} {result.result}",
        *(_escape(cell) for cell in (result.object, result.title, where, result.message)),
    )
    return "| " + " | ".join(cells) + " |"


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
    for policy, counts in report.by_policy.items():
        numbers = (report.changes.get(policy, 0), *(counts[verdict] for verdict in WORST_FIRST))
        rows.append(_numbers(policy, numbers))
    return rows


def _numbers(name: str, numbers: Iterable[int]) -> str:
    """A row of counts, empty for none."""
    return f"| {_escape(name)} |" + "".join(f" {number or ''} |" for number in numbers)


def _escape(text: str) -> str:
    """The text as it is read, in one line: no markup, no HTML, no cell's end, nobody notified."""
    return _SPECIAL.sub(lambda match: f"&#{ord(match[1])};", " ".join(text.split()))
