"""Writes a report as JSON: summaries, revision, and all results with all fields."""

from __future__ import annotations

from typing import Any, TextIO

from webhook.report.documents import indented
from webhook.report.model import TOGETHER, Report, Result


def write(report: Report, out: TextIO) -> None:
    """Writes the report as one indented JSON object."""
    document: dict[str, Any] = {"summary": report.summary, "revision": report.revision}
    document["objects"], document["namespaces"] = report.objects, report.by_namespace
    document["policies"], document["changes"] = report.by_policy, report.changes
    if report.judged:
        document["judged"] = "together" if report.judged == TOGETHER else "each"
    if report.generated is not None:
        document["generated"] = report.generated
    if report.courses:
        document["figures"] = {row.name: row.to_json() for row in report.courses}
    document["results"] = [_result(result) for result in report.results]
    out.write(indented(document))


def _result(result: Result) -> dict[str, Any]:
    return {
        "object": result.object,
        "apiVersion": result.api_version,
        "file": result.file,
        "line": result.line or None,
        "field": result.field,
        "source": result.source,
        "policy": result.policy,
        "rule": result.rule,
        "result": result.result,
        "severity": result.severity,
        "message": result.message,
        "properties": dict(result.properties),
    }
