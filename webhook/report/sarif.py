"""Writes a report as SARIF 2.1.0, with file and line of each finding.

Only failures, errors and warnings become results in the file, because readers such as GitHub code scanning
create an alert for every result, even for a pass. The list of rules has all rules that ran.
"""

from __future__ import annotations

import hashlib
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePath
from typing import Any, TextIO
from urllib.parse import quote

from webhook.report.documents import indented
from webhook.report.model import Report, Result

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVEL = {"fail": "error", "error": "error", "warn": "warning"}
_SCORE = {"critical": "9.5", "high": "8.0", "medium": "5.5", "low": "3.0", "info": "1.0"}
"""The `security-severity` of each severity: a score in the middle of the range that GitHub gives this
name.
"""


def write(report: Report, out: TextIO) -> None:
    """Writes the report as one indented JSON object."""
    out.write(indented(document(report)))


def document(report: Report) -> dict[str, Any]:
    """Returns the SARIF log, with one run."""
    rules = list(dict.fromkeys(result.title for result in report.results))
    driver: dict[str, Any] = {"name": "bayplan", "rules": [_rule(title, report) for title in rules]}
    if version := _version():
        driver["semanticVersion"] = version
    run: dict[str, Any] = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(r, rules.index(r.title)) for r in report.results if r.result in _LEVEL],
    }
    if report.revision:
        run["properties"] = {"policyRevision": report.revision}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(title: str, report: Report) -> dict[str, Any]:
    first = next(result for result in report.results if result.title == title)
    text = f"What the planner says of a gang: {first.rule}" if first.source == "plan" else f"Policy {title}"
    rule: dict[str, Any] = {
        "id": title,
        "shortDescription": {"text": text},
        "properties": {"tags": [first.source]},
    }
    if first.severity:
        rule["properties"]["security-severity"] = _SCORE[first.severity]
    return rule


def _result(result: Result, index: int) -> dict[str, Any]:
    logical = {"fullyQualifiedName": result.object + (f".{result.field}" if result.field else "")}
    location: dict[str, Any] = {"logicalLocations": [logical]}
    if result.file:
        location["physicalLocation"] = {
            "artifactLocation": {"uri": _uri(result.file)},
            "region": {"startLine": max(result.line, 1)},
        }
    return {
        "ruleId": result.title,
        "ruleIndex": index,
        "kind": "fail",
        "level": _LEVEL[result.result],
        "message": {"text": result.message or result.title},
        "locations": [location],
        "partialFingerprints": {"bayplan/v1": _fingerprint(result)},
        "properties": {"object": result.object, "result": result.result, **result.properties},
    }


def _uri(file: str) -> str:
    """Returns the path as a URI reference (RFC 3986): a file URI if the path is absolute, otherwise a
    relative reference.
    """
    path = PurePath(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def _fingerprint(result: Result) -> str:
    """Returns a hash of object, rule and field, which stays the same if the line or the numbers in the
    message change.
    """
    identity = "\0".join((result.object, result.title, result.field))
    return hashlib.sha256(identity.encode()).hexdigest()[:32]


def _version() -> str:
    try:
        return version("bayplan")
    except PackageNotFoundError:
        return ""
