"""Writes a report as a `Report` of OpenReports (`openreports.io/v1alpha1`), which dashboards for that API
can read.

In that API, the values of `properties` are strings, `severity` has five values and is omitted if unknown,
and the field `message` is called description in the upstream Go code.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, TextIO

from webhook.report.documents import as_yaml
from webhook.report.model import Report, Result

API_VERSION = "openreports.io/v1alpha1"
LABELS = {"app.kubernetes.io/managed-by": "bayplan"}
_NOT_IN_A_NAME = re.compile(r"[^a-z0-9-]+")


def write(report: Report, out: TextIO) -> None:
    """Writes the report as one YAML document."""
    out.write(as_yaml(document(report)))


def document(report: Report) -> dict[str, Any]:
    """Returns the Report object. It has a namespace if all its objects are in the same one."""
    metadata: dict[str, Any] = {"name": _name(report.revision)}
    namespaces = {result.reference[0] for result in report.results}
    if len(namespaces) == 1 and (namespace := namespaces.pop()):
        metadata["namespace"] = namespace
    metadata["labels"] = LABELS
    if report.revision:
        metadata["annotations"] = {"bayplan.dev/revision": report.revision}
    return {
        "apiVersion": API_VERSION,
        "kind": "Report",
        "metadata": metadata,
        "source": "bayplan",
        "summary": dict(report.summary),
        "results": [result_entry(result, report.generated) for result in report.results],
    }


def result_entry(result: Result, generated: datetime | None) -> dict[str, Any]:
    """Returns the entry of a result in a Report. `generated`: the entry's timestamp, None to omit it."""
    entry: dict[str, Any] = {"source": f"bayplan/{result.source}", "policy": result.policy}
    entry |= {
        key: value
        for key, value in (
            ("rule", result.rule),
            ("category", "Placement" if result.source == "plan" else "Policy"),
            ("severity", result.severity),
            ("timestamp", _timestamp(generated)),
            ("result", result.result),
        )
        if value
    }
    entry["scored"] = result.result in ("pass", "fail", "error")
    entry["resources"] = [_resource(result)]
    if result.message:
        entry["message"] = result.message
    if properties := _properties(result):
        entry["properties"] = properties
    return entry


def _resource(result: Result) -> dict[str, str]:
    namespace, kind, name = result.reference
    fields = {"apiVersion": result.api_version, "kind": kind, "namespace": namespace, "name": name}
    return {key: value for key, value in fields.items() if value}


def _properties(result: Result) -> dict[str, str]:
    place = {"file": result.file, "line": str(result.line or ""), "field": result.field}
    properties = {**place, **{str(key): str(value) for key, value in result.properties.items()}}
    return {key: value for key, value in properties.items() if value}


def _timestamp(generated: datetime | None) -> dict[str, int] | None:
    if generated is None:
        return None
    return {"seconds": int(generated.timestamp()), "nanos": generated.microsecond * 1000}


def _name(revision: str) -> str:
    """Returns the name of the Report (a DNS label): `bayplan-` and the first characters of the revision."""
    digest = _NOT_IN_A_NAME.sub("-", revision.rpartition(":")[2].lower())[:12].strip("-")
    return f"bayplan-{digest}" if digest else "bayplan-report"
