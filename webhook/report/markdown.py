"""A report as GitHub-flavoured Markdown: a comment on a pull request, what needs a person above the fold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TextIO

from webhook.report.model import WORST_FIRST, Outcome, Report, Result

MARKER = "<!-- bayplan report -->"
"""The first line, by which a pipeline finds its former comment and writes over it."""
LARGEST = 65_000
"""Characters of a comment; GitHub takes 65,536."""
_FRAME = 500
"""What is kept for headings and for the lines that count what is left out."""
_SIGN: dict[Outcome, str] = {"fail": "❌", "error": "❗", "warn": "⚠️", "pass": "✅", "skip": "⏭️"}
_OPEN = ("fail", "error", "warn")
_SPECIAL = re.compile(r"([\\`*_\[\]|~#<>@])")


def write(report: Report, out: TextIO) -> None:
    """Write the comment; what a comment has no room for is counted at the end of its table."""
    open_ones = [result for result in report.worst_first if result.result in _OPEN]
    rest = [result for result in report.results if result.result not in _OPEN]
    lines = [MARKER, f"### Bayplan: {report.headline()}", ""]
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


def _by_policy(report: Report) -> list[str]:
    heads = "".join(f" {_SIGN[verdict]} {verdict} |" for verdict in WORST_FIRST)
    rows = [f"| policy |{heads}", "|---|" + "--:|" * len(WORST_FIRST)]
    for policy, counts in report.by_policy.items():
        rows.append(
            f"| {_escape(policy)} |" + "".join(f" {counts[verdict] or ''} |" for verdict in WORST_FIRST)
        )
    return rows


def _escape(text: str) -> str:
    """The text as it is read, in one line: no markup, no HTML, no cell's end, nobody notified."""
    return _SPECIAL.sub(lambda match: f"&#{ord(match[1])};", " ".join(text.split()))
