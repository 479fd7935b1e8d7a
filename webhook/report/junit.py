"""A report as JUnit XML: an object is a test suite, a rule is a test case.

Held to Jenkins' schema, the one that most readers accept. JUnit knows no warning: that is a passed case whose
output says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from itertools import groupby
from typing import TextIO
from xml.etree import ElementTree

from webhook.report.model import Report, Result

_ELEMENT = {"fail": "failure", "error": "error"}


def write(report: Report, out: TextIO) -> None:
    """Write the report as an XML document."""
    root = ElementTree.Element("testsuites", {"name": "bayplan", **_counts(report.results)})
    for name, results in groupby(report.results, key=lambda result: result.object):
        _suite(root, name, list(results), report)
    ElementTree.indent(root)
    out.write('<?xml version="1.0" encoding="UTF-8"?>\n')
    out.write(ElementTree.tostring(root, encoding="unicode") + "\n")


def _suite(root: ElementTree.Element, name: str, results: Sequence[Result], report: Report) -> None:
    skipped = str(sum(result.result == "skip" for result in results))
    attributes = {"name": name, **_counts(results), "skipped": skipped}
    if report.generated is not None:
        attributes["timestamp"] = f"{report.generated.astimezone(UTC):%Y-%m-%dT%H:%M:%S}"
    suite = ElementTree.SubElement(root, "testsuite", attributes)
    for result in results:
        _case(suite, result)


def _case(suite: ElementTree.Element, result: Result) -> None:
    attributes = {"name": result.title, "classname": result.object, "time": "0"}
    case = ElementTree.SubElement(suite, "testcase", attributes)
    if result.result in _ELEMENT:
        problem = {"message": result.message, "type": result.rule or result.policy}
        ElementTree.SubElement(case, _ELEMENT[result.result], problem).text = _detail(result)
    elif result.result == "skip":
        ElementTree.SubElement(case, "skipped", {"message": result.message})
    elif result.result == "warn":
        ElementTree.SubElement(case, "system-out").text = f"warning: {_detail(result)}"
    elif result.source == "plan":
        ElementTree.SubElement(case, "system-out").text = result.message


def _counts(results: Sequence[Result]) -> dict[str, str]:
    """The counts that a suite and the whole have in common."""
    return {
        "tests": str(len(results)),
        "failures": str(sum(result.result == "fail" for result in results)),
        "errors": str(sum(result.result == "error" for result in results)),
        "time": "0",
    }


def _detail(result: Result) -> str:
    place = "\n".join(part for part in (result.place, result.field) if part)
    return f"{result.message}\n{place}" if place else result.message
