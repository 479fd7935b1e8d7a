"""Writes the section of an object: findings, place and racks, and its diff in a collapsed part."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from webhook.report.html.fabric import racks
from webhook.report.model import ObjectResults, Result
from webhook.report.printable import printable
from webhook.report.views import ObjectView

_NO_VIEW = ObjectView()


def section(entry: ObjectResults, view: ObjectView | None, name: str, classes: str) -> str:
    """Returns the section of an object. `name`: its HTML id. `classes`: CSS classes for the filters."""
    view = view or _NO_VIEW
    open_results = (*entry.findings, *entry.places)
    quiet = [result for result in entry.results if result not in open_results]
    gangs = {result.properties["gang"] for result in entry.places if "gang" in result.properties}
    gangs |= {r.properties["gang"] for r in entry.findings if "gang" in r.properties}
    changed = ", ".join(f"<code>{escape(policy)}</code>" for policy in entry.changed_by)
    return (
        f'<section class="card object worst-{entry.worst} {classes}" id="{name}">\n'
        f"<h2>{escape(entry.name)}</h2>\n"
        f"{_findings(open_results)}{racks(view.rows, gangs)}"
        + (f'<p class="changed">Would be changed by {changed}.</p>\n' if changed else "")
        + _diff(view.diff)
        + _folded(quiet)
        + "</section>\n"
    )


def _folded(quiet: Sequence[Result]) -> str:
    if not quiet:
        return ""
    return f"<details><summary>{len(quiet)} without a finding</summary>\n{_findings(quiet)}</details>\n"


def _findings(results: Sequence[Result]) -> str:
    return f'<ul class="findings">\n{"".join(map(_finding, results))}</ul>\n' if results else ""


def _finding(result: Result) -> str:
    parts = (result.title, result.place, result.field)
    where = " ".join(f"<code>{escape(part)}</code>" for part in parts if part)
    message = f"<p>{escape(result.message)}</p>" if result.message else ""
    return (
        f'<li><span class="mark {result.result}">{result.result}</span><div>'
        f'{message}<p class="where">{where}</p>'
        "</div></li>\n"
    )


def _diff(lines: Sequence[str]) -> str:
    """Returns the unified diff. The signs + and - make it readable without colours."""
    if not lines:
        return ""
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    shown = "".join(map(_line, lines))
    return (
        f"<details><summary>Before and after: {added} lines more, {removed} less</summary>\n"
        f'<div class="diff" role="group" aria-label="Before and after" tabindex="0">{shown}</div>'
        "</details>\n"
    )


def _line(line: str) -> str:
    kind = {"+": "plus", "-": "minus", "@": "gap"}.get(line[:1], "")
    text = "⋯" if kind == "gap" else escape(printable(line.rstrip("\n")))
    return f'<span class="{kind}">{text}</span>' if kind else f"<span>{text}</span>"
