"""A report as one HTML page: nothing loaded from elsewhere, no script, readable by a screen reader.

The outcome is always a word too, so nobody depends on a colour; the colours keep a contrast of 4.5 to 1 on
both backgrounds (WCAG 2.1 AA).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TextIO

from webhook.report.model import FATES, OUTCOMES, WORST_FIRST, ObjectResults, Report, Result

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
h2 { font-size: 1.1rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
.object { border-top: 1px solid var(--line); padding-top: 1rem; }
.verdict { font-size: 1.25rem; }
ul.findings { list-style: none; padding: 0; margin: .5rem 0; }
.findings p { margin: 0; overflow-wrap: anywhere; }
.findings li { margin-bottom: .75rem; }
fieldset { display: flex; flex-wrap: wrap; gap: .25rem 1.5rem; border: 1px solid var(--line);
  margin: 1rem 0; }
td { font-variant-numeric: tabular-nums; }
code { font-family: ui-monospace, monospace; font-size: .9em; }
""" + "".join(f".{outcome} {{ color: var(--{outcome}); font-weight: 600; }}\n" for outcome in OUTCOMES)
_STYLE += "".join(
    f"main:has(#shown-{outcome}:checked) .object:not(.worst-{outcome}) {{ display: none; }}\n"
    for outcome in OUTCOMES
)
_NOTHING_FROM_ELSEWHERE = "default-src 'none'; style-src 'unsafe-inline'"


def write(report: Report, out: TextIO) -> None:
    """Write the page: the verdict, what becomes of the objects, each object with the worst first, and the
    policies."""
    out.write(
        "<!DOCTYPE html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_NOTHING_FROM_ELSEWHERE}">\n'
        f"<title>Bayplan: {escape(report.headline())}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n<h1>Bayplan report</h1>\n"
        f"{_verdict(report)}{_summary(report)}{_by_namespace(report)}{_choice(report)}"
    )
    for entry in report.by_object:
        out.write(_section(entry))
    out.write(f"{_by_policy(report)}</main>\n{_footer(report)}</body>\n</html>\n")


def _verdict(report: Report) -> str:
    """One sentence that a person who reads no more has to know."""
    if not report.results:
        return ""
    worst = report.by_object[0].worst
    words = {"error": "could not be judged", "fail": "would be refused", "warn": "have a warning"}
    if worst not in words:
        return '<p class="verdict pass">Nothing would be refused, and there is no warning.</p>\n'
    count = sum(entry.worst == worst for entry in report.by_object)
    sentence = f"{count} of {len(report.by_object)} objects and files {words[worst]}."
    return f'<p class="verdict {worst}">{sentence}</p>\n'


def _choice(report: Report) -> str:
    """Which objects are shown, by their worst outcome: CSS hides the others, for a page without a script."""
    present = {entry.worst for entry in report.by_object}
    if len(present) < 2:
        return ""
    shown = [("all", "all objects"), *((verdict, verdict) for verdict in WORST_FIRST if verdict in present)]
    inputs = "".join(
        f'<label><input type="radio" name="shown" id="shown-{name}"{" checked" * (name == "all")}> {text}'
        "</label>\n"
        for name, text in shown
    )
    return f"<fieldset>\n<legend>Show</legend>\n{inputs}</fieldset>\n"


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


def _section(entry: ObjectResults) -> str:
    """An object: its findings and its place open, what only passes folded away."""
    open_results = (*entry.findings, *entry.places)
    quiet = [result for result in entry.results if result not in open_results]
    changed = "".join(f"<li><code>{escape(policy)}</code></li>" for policy in entry.changed_by)
    return (
        f'<section class="object worst-{entry.worst}">\n<h2>{escape(entry.name)}</h2>\n'
        f"{_findings(open_results)}"
        + (f'<p>Would be changed by:</p>\n<ul class="summary">{changed}</ul>\n' if changed else "")
        + (
            f"<details><summary>{len(quiet)} without a finding</summary>\n{_findings(quiet)}</details>\n"
            if quiet
            else ""
        )
        + "</section>\n"
    )


def _findings(results: Sequence[Result]) -> str:
    return f'<ul class="findings">\n{"".join(map(_finding, results))}</ul>\n' if results else ""


def _finding(result: Result) -> str:
    where = " ".join(f"<code>{escape(part)}</code>" for part in (result.place, result.field) if part)
    message = f"<p>{escape(result.message)}</p>" if result.message else ""
    return (
        f'<li><p><strong class="{result.result}">{result.result}</strong> <code>{escape(result.title)}</code>'
        f"</p>{f'<p>{where}</p>' if where else ''}{message}</li>\n"
    )


def _footer(report: Report) -> str:
    parts = []
    if report.revision:
        parts.append(f"Policies <code>{escape(report.revision)}</code>")
    if report.generated is not None:
        moment = escape(report.generated.isoformat(timespec="seconds"))
        parts.append(f'<time datetime="{moment}">{moment}</time>')
    return f"<footer><p>{' · '.join(parts)}</p></footer>\n" if parts else ""
