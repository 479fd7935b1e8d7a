"""Writes the page: verdict, fates of objects, racks, each object, and counts.

The page has no scripts, because viewers of CI artifacts and mails do not run them. Instead, CSS rules hide
objects depending on the chosen options of `select` elements, the filters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from typing import TextIO

from planner.model.words import counted
from webhook.report.figures.rows import figure_tables
from webhook.report.html import fabric, objects
from webhook.report.model import FATES, MUTATION, TOGETHER, WORST_FIRST, ObjectResults, Outcome, Report

_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_VERDICTS: Mapping[Outcome, str] = {
    "error": "could not be judged",
    "fail": "would be refused",
    "warn": "have a warning",
}


def write(report: Report, out: TextIO) -> None:
    """Writes the report as an HTML page."""
    entries = _Entries(report.by_object)
    out.write(
        "<!DOCTYPE html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_SECURITY_POLICY}">\n'
        f"<title>Bayplan: {escape(report.headline())}</title>\n"
        f"<style>{_style()}{entries.rules()}</style>\n</head>\n"
        f"<body>\n<main>\n<h1>Bayplan report</h1>\n{_verdict(report)}{_fates(report)}{_by_namespace(report)}"
    )
    words = "With all that would be placed" if report.judged == TOGETHER else "As it is now"
    for drawn in report.maps:
        out.write(fabric.section(drawn, words, entries.of_gangs))
    out.write(entries.filters())
    for index, entry in enumerate(entries.shown):
        view = report.views.get(entry.key)
        out.write(objects.section(entry, view, f"object-{index}", entries.classes(entry)))
    out.write(
        f"{_quiet(entries.quiet)}{_by_policy(report)}{_figures(report)}</main>\n{_footer(report)}</body>\n</html>\n"
    )


@cache
def _style() -> str:
    return files(__package__).joinpath("style.css").read_text()


@dataclass(frozen=True, slots=True)
class _Filter:
    """A `select` element by which a reader filters the objects.

    `every`: the text of the option that shows all objects. `values`: by CSS class, the text of the option
    and the number of objects with this class.
    """

    name: str
    label: str
    every: str
    values: Mapping[str, tuple[str, int]]

    def rules(self) -> str:
        """Returns a CSS rule for each option: while it is chosen, objects without its class are hidden."""
        return "".join(
            f'main:has(option[value="{value}"]:checked) .object:not(.{value}) {{ display: none; }}\n'
            for value in self.values
        )

    def select(self) -> str:
        options = "".join(
            f'<option value="{value}">{escape(words)} ({count})</option>\n'
            for value, (words, count) in self.values.items()
        )
        return (
            f'<label>{self.label}<select name="{self.name}">\n<option value="">{self.every}</option>\n'
            f"{options}</select></label>\n"
        )


class _Entries:
    """The objects of the page.

    `shown`: objects with a section; `quiet`: objects without findings, places or changes, of which only
    the names are listed; `of_gangs`: by gang, the HTML id of its object's section.
    """

    def __init__(self, every: Sequence[ObjectResults]) -> None:
        self.shown = [e for e in every if e.findings or e.places or e.changed_by]
        self.quiet = [e for e in every if not (e.findings or e.places or e.changed_by)]
        self.of_gangs = {
            result.properties["gang"]: f"object-{index}"
            for index, entry in enumerate(self.shown)
            for result in entry.results
            if "gang" in result.properties
        }
        self._policies = _numbered("p", (policy for e in self.shown for policy in sorted(_policies(e))))
        self._namespaces = _numbered("n", (_namespace(e) for e in self.shown))
        self._filters = [f for f in self._of_all() if len(f.values) > 1]

    def _of_all(self) -> Iterable[_Filter]:
        worst = [verdict for verdict in WORST_FIRST if any(e.worst == verdict for e in self.shown)]
        verdicts = {f"worst-{v}": (v, sum(e.worst == v for e in self.shown)) for v in worst}
        yield _Filter("verdict", "Verdict", "all", verdicts)
        counts = {name: (policy, 0) for policy, name in self._policies.items()}
        spaces = {name: (namespace or "(no namespace)", 0) for namespace, name in self._namespaces.items()}
        for entry in self.shown:
            for policy in _policies(entry):
                _count(counts, self._policies[policy])
            _count(spaces, self._namespaces[_namespace(entry)])
        yield _Filter("policy", "Policy", "all", counts)
        yield _Filter("namespace", "Namespace", "all", spaces)

    def classes(self, entry: ObjectResults) -> str:
        """Returns the CSS classes of an object for the filters."""
        policies = (self._policies[policy] for policy in sorted(_policies(entry)))
        return " ".join((self._namespaces[_namespace(entry)], *policies))

    def rules(self) -> str:
        return "".join(f.rules() for f in self._filters)

    def filters(self) -> str:
        if not self._filters:
            return ""
        selects = "".join(f.select() for f in self._filters)
        return (
            f'<form class="filters" aria-label="Which objects are shown">\n{selects}'
            '<button type="reset">Show all</button>\n</form>\n'
        )


def _count(values: dict[str, tuple[str, int]], name: str) -> None:
    words, count = values[name]
    values[name] = (words, count + 1)


def _numbered(letter: str, texts: Iterable[str]) -> dict[str, str]:
    """Returns a CSS class for each text, because names of policies and namespaces are not valid
    class names.
    """
    return {text: f"{letter}{index}" for index, text in enumerate(sorted(set(texts)))}


def _policies(entry: ObjectResults) -> set[str]:
    return {r.policy for r in entry.results if r.result in _VERDICTS or r.rule == MUTATION}


def _namespace(entry: ObjectResults) -> str:
    return entry.name.split("/")[0] if entry.name.count("/") == 2 else ""


def _verdict(report: Report) -> str:
    """Returns a summary in one sentence, and how the objects were evaluated."""
    judged = f'<p class="quiet">Judged {escape(report.judged)}.</p>\n' if report.judged else ""
    if not report.results:
        return judged
    worst = report.by_object[0].worst
    if worst not in _VERDICTS:
        words = "Nothing would be refused, and there is no warning."
        return f'<p class="verdict pass">{words}</p>\n{judged}'
    count = sum(entry.worst == worst for entry in report.by_object)
    sentence = f"{count} of {len(report.by_object)} objects and files {_VERDICTS[worst]}."
    return f'<p class="verdict {worst}">{sentence}</p>\n{judged}'


def _fates(report: Report) -> str:
    if not report.fates:
        return ""
    tiles = "".join(
        f"<div><dt>{fate}</dt><dd>{count}</dd></div>" for fate, count in report.objects.items() if count
    )
    words = report.fate_of_all()
    return f'<p class="said">{escape(words)}</p>\n<dl class="fates">{tiles}</dl>\n'


def _by_namespace(report: Report) -> str:
    spaces = report.by_namespace
    if len(spaces) < 2:
        return ""
    rows = [(name, list(row.values())) for name, row in spaces.items()]
    return _counted("Namespace", FATES, list(report.objects.values()), rows)


def _by_policy(report: Report) -> str:
    if not report.results:
        return ""
    changes = report.changes
    spoken, quiet = report.policies_told
    if not spoken:
        return f'<p class="quiet">{counted(quiet, "policy has", "policies have")} no finding.</p>\n'
    totals = [sum(changes.values()), *(report.summary[outcome] for outcome in WORST_FIRST)]
    rows = [
        (name, [changes.get(name, 0), *(row[outcome] for outcome in WORST_FIRST)])
        for name, row in spoken.items()
    ]
    quiet_words = counted(quiet, "more policy has", "more policies have")
    note = f'<p class="quiet">{quiet_words} no finding.</p>\n' if quiet else ""
    return _counted("Policy", ("changes", *WORST_FIRST), totals, rows) + note


def _counted(
    subject: str, columns: Sequence[str], totals: Sequence[int], rows: Sequence[tuple[str, Sequence[int]]]
) -> str:
    """Returns a table of counts by policy or namespace (`subject`). Columns whose total is zero are
    omitted.
    """
    dot = "·"
    kept = [index for index, total in enumerate(totals) if total]
    heads = "".join(f'<th scope="col">{head}</th>' for head in (subject, *(columns[p] for p in kept)))
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        f"{''.join(f'<td>{counts[index] or dot}</td>' for index in kept)}</tr>\n"
        for name, counts in rows
    )
    return _table(f"By {subject.lower()}", heads, body)


def _figures(report: Report) -> str:
    """Returns the tables of compared courses, if any."""
    tables = figure_tables(report.courses, "course") if report.courses else ()
    return "".join(_table(table.caption, _cells("col", table.heads), _body(table.rows)) for table in tables)


def _body(rows: Sequence[Sequence[str]]) -> str:
    cells = (
        f"{_cells('row', row[:1])}{''.join(f'<td>{escape(cell)}</td>' for cell in row[1:])}" for row in rows
    )
    return "".join(f"<tr>{row}</tr>\n" for row in cells)


def _cells(scope: str, heads: Iterable[str]) -> str:
    return "".join(f'<th scope="{scope}">{escape(head)}</th>' for head in heads)


def _table(label: str, heads: str, body: str) -> str:
    return (
        f'<section class="card">\n<div class="scroll" role="region" aria-label="{label}" tabindex="0">\n'
        f"<table>\n<caption><h2>{label}</h2></caption>\n<thead><tr>{heads}</tr></thead>\n"
        f"<tbody>\n{body}</tbody>\n</table>\n</div>\n</section>\n"
    )


def _quiet(entries: Sequence[ObjectResults]) -> str:
    """Returns a section with the number of objects without finding or change, and their names in a collapsed
    part.
    """
    if not entries:
        return ""
    names = "".join(f"<li>{escape(entry.name)}</li>\n" for entry in entries)
    count = f"{counted(len(entries), 'object')} without a finding or a change"
    return (
        f'<section class="card">\n<h2>{count}</h2>\n<details><summary>Names</summary>\n'
        f"<ul>{names}</ul></details>\n</section>\n"
    )


def _footer(report: Report) -> str:
    parts = []
    if report.revision:
        parts.append(f"Policies <code>{escape(report.revision)}</code>")
    if report.generated is not None:
        moment = escape(report.generated.isoformat(timespec="seconds"))
        parts.append(f'<time datetime="{moment}">{moment}</time>')
    return f"<footer><p>{' · '.join(parts)}</p></footer>\n" if parts else ""
