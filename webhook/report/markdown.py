"""A report as GitHub-flavoured Markdown: a comment on a pull request, what needs a person above the fold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TextIO

from webhook.report.model import WORST_FIRST, Outcome, Report, Result

MARKER = "<!-- bayplan report -->"
"""The first line, by which a pipeline finds its former comment and writes over it."""
_SIGN: dict[Outcome, str] = {"fail": "❌", "error": "❗", "warn": "⚠️", "pass": "✅", "skip": "⏭️"}
_OPEN = ("fail", "error", "warn")
_SPECIAL = re.compile(r"([\\`*_\[\]|~#<>@])")


def write(report: Report, out: TextIO) -> None:
    """Write the comment."""
    open_ones = [result for result in report.worst_first if result.result in _OPEN]
    rest = [result for result in report.results if result.result not in _OPEN]
    lines = [MARKER, f"### Bayplan: {report.headline()}", ""]
    if open_ones:
        lines += [*_table(open_ones), ""]
    if report.results:
        lines += ["<details>", "<summary>By policy</summary>", "", *_by_policy(report), "", "</details>", ""]
    if rest:
        lines += ["<details>", f"<summary>{len(rest)} without a finding</summary>", ""]
        lines += [*_table(rest), "", "</details>", ""]
    if report.revision:
        lines += [f"Policies: `{report.revision.replace('`', '')}`", ""]
    out.write("\n".join(lines))


def _table(results: Sequence[Result]) -> list[str]:
    rows = ["| | object | policy | where | message |", "|---|---|---|---|---|"]
    for result in results:
        where = " ".join(part for part in (result.place, result.field) if part)
        cells = (
            f"{_SIGN[result.result]} {result.result}",
            *(_escape(cell) for cell in (result.object, result.title, where, result.message)),
        )
        rows.append("| " + " | ".join(cells) + " |")
    return rows


def _by_policy(report: Report) -> list[str]:
    heads = "".join(f" {_SIGN[one]} {one} |" for one in WORST_FIRST)
    rows = [f"| policy |{heads}", "|---|" + "--:|" * len(WORST_FIRST)]
    for policy, counts in report.by_policy.items():
        rows.append(f"| {_escape(policy)} |" + "".join(f" {counts[one] or ''} |" for one in WORST_FIRST))
    return rows


def _escape(text: str) -> str:
    """The text as it is read, in one line: no markup, no HTML, no cell's end, nobody notified."""
    return _SPECIAL.sub(lambda match: f"&#{ord(match[1])};", " ".join(text.split()))
