"""Writes a report as JUnit XML: each object is a test suite, and each of its results a test case.

JUnit has no warnings, so a warning is a passed test case with the message as its output.
"""

from __future__ import annotations

from datetime import UTC
from itertools import groupby
from typing import TextIO

from webhook.files.junit import JunitCase, JunitSuite, to_junit
from webhook.report.model import Report, Result


def write(report: Report, out: TextIO) -> None:
    """Writes the report as an XML document."""
    generated = report.generated
    timestamp = "" if generated is None else f"{generated.astimezone(UTC):%Y-%m-%dT%H:%M:%S}"
    suites = [
        JunitSuite(name, [_case(result) for result in results], timestamp)
        for name, results in groupby(report.results, key=lambda result: result.object)
    ]
    out.write(to_junit("bayplan", suites))


def _case(result: Result) -> JunitCase:
    name, message, kind = result.title, result.message, result.rule or result.policy
    match result.result:
        case "fail":
            return JunitCase(name, result.object, "failure", message, kind, _detail(result))
        case "error":
            return JunitCase(name, result.object, "error", message, kind, _detail(result))
        case "skip":
            return JunitCase(name, result.object, "skipped", message)
        case "warn":
            return JunitCase(name, result.object, output=f"warning: {_detail(result)}")
        case _:
            return JunitCase(name, result.object, output=message if result.source == "plan" else "")


def _detail(result: Result) -> str:
    place = "\n".join(part for part in (result.place, result.field) if part)
    return f"{result.message}\n{place}" if place else result.message
