"""The table of report formats by the value of `-o`. A new format needs a module, and a row here."""

from __future__ import annotations

from typing import Protocol, TextIO

from webhook.report import html, json, junit, markdown, openreports, sarif, table
from webhook.report.model import Report


class Write(Protocol):
    """Writes a report to `out`."""

    def __call__(self, report: Report, out: TextIO) -> None: ...


FORMATS: dict[str, Write] = {
    "table": table.write,
    "json": json.write,
    "yaml": openreports.write,
    "junit": junit.write,
    "sarif": sarif.write,
    "markdown": markdown.write,
    "html": html.write,
}
