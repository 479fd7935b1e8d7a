"""A report as one HTML page: nothing loaded from elsewhere, no script, readable by a screen reader.

The outcome is always a word too, so nobody depends on a colour; the colours keep a contrast of 4.5 to 1 on
both backgrounds (WCAG 2.1 AA).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby
from typing import TextIO

from webhook.report.model import FATES, OUTCOMES, WORST_FIRST, Report, Result

_STYLE = """
:root { color-scheme: light dark; --fg: #1b1f24; --bg: #ffffff; --line: #d0d7de; --pass: #116329;
  --fail: #a40e26; --warn: #7d4e00; --error: #a40e26; --skip: #57606a; }
@media (prefers-color-scheme: dark) { :root { --fg: #e6edf3; --bg: #0d1117; --line: #30363d;
  --pass: #56d364; --fail: #ff7b72; --warn: #e3b341; --error: #ff7b72; --skip: #9ea7b3; } }
body { font: 1rem/1.5 system-ui, sans-serif; color: var(--fg); background: var(--bg); margin: 2rem auto;
  max-width: 75rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
caption { text-align: left; font-weight: 600; padding: .5rem 0; }
th, td { text-align: left; vertical-align: top; padding: .35rem .75rem .35rem 0;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
ul.summary { display: flex; flex-wrap: wrap; gap: .25rem 1.5rem; list-style: none; padding: 0; }
section { overflow-x: auto; margin-top: 1.5rem; }
code { font-family: ui-monospace, monospace; font-size: .9em; }
""" + "".join(f".{outcome} {{ color: var(--{outcome}); font-weight: 600; }}\n" for outcome in OUTCOMES)
_NOTHING_FROM_ELSEWHERE = "default-src 'none'; style-src 'unsafe-inline'"


def write(report: Report, out: TextIO) -> None:
    """Write the page."""
    out.write(
        "<!DOCTYPE html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_NOTHING_FROM_ELSEWHERE}">\n'
        f"<title>Bayplan: {escape(report.headline())}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n<h1>Bayplan report</h1>\n"
        f"{_summary(report)}{_by_namespace(report)}{_by_policy(report)}"
    )
    for name, results in groupby(report.results, key=lambda result: result.object):
        out.write(_section(name, list(results)))
    out.write(f"</main>\n{_footer(report)}</body>\n</html>\n")


def _summary(report: Report) -> str:
    items = "".join(
        f'<li><span class="{outcome}">{count}</span> {outcome}</li>'
        for outcome, count in report.summary.items()
    )
    return f'<ul class="summary" aria-label="Summary">{items}</ul>\n'


def _by_namespace(report: Report) -> str:
    if not report.fates:
        return ""
    rows = ((name, list(row.values())) for name, row in report.by_namespace.items())
    return f"<p>{escape(report.fate_of_all())}</p>\n" + _counted("Namespace", FATES, rows)


def _by_policy(report: Report) -> str:
    if not report.results:
        return ""
    rows = (
        (policy, [report.changes.get(policy, 0), *(counts[outcome] for outcome in WORST_FIRST)])
        for policy, counts in report.by_policy.items()
    )
    return _counted("Policy", ("changes", *WORST_FIRST), rows)


def _counted(subject: str, columns: Sequence[str], rows: Iterable[tuple[str, Sequence[int]]]) -> str:
    """A table of counts, a row for each policy or namespace."""
    heads = "".join(f'<th scope="col">{head}</th>' for head in (subject, *columns))
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(f"<td>{count}</td>" for count in counts)}</tr>\n'
        for name, counts in rows
    )
    return (
        f"<section>\n<table>\n<caption><h2>By {subject.lower()}</h2></caption>\n"
        f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n</section>\n"
    )


def _section(name: str, results: Sequence[Result]) -> str:
    heads = "".join(f'<th scope="col">{head}</th>' for head in ("Result", "Policy", "Where", "Message"))
    rows = "".join(_row(result) for result in results)
    return (
        f"<section>\n<table>\n<caption><h2>{escape(name)}</h2></caption>\n"
        f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</section>\n"
    )


def _row(result: Result) -> str:
    where = "<br>".join(f"<code>{escape(part)}</code>" for part in (result.place, result.field) if part)
    return (
        f'<tr><td class="{result.result}">{result.result}</td>'
        f'<th scope="row">{escape(result.title)}</th><td>{where}</td><td>{escape(result.message)}</td></tr>\n'
    )


def _footer(report: Report) -> str:
    parts = []
    if report.revision:
        parts.append(f"Policies <code>{escape(report.revision)}</code>")
    if report.generated is not None:
        moment = escape(report.generated.isoformat(timespec="seconds"))
        parts.append(f'<time datetime="{moment}">{moment}</time>')
    return f"<footer><p>{' · '.join(parts)}</p></footer>\n" if parts else ""
