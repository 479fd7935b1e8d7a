"""Writes JUnit XML, which CI systems show: a document with suites, which have cases. It follows Jenkins'
schema, which most readers accept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow; a reader refuses the whole document if it contains one."""


@dataclass(frozen=True, slots=True)
class JunitCase:
    """One test case. `message`, `type` and `detail` describe a case that did not pass; `output` is the text
    of one that passed.

    Callers write the source location into `detail` or `output`, because the schema has no attribute for it.
    """

    name: str
    classname: str
    outcome: Literal["passed", "failure", "error", "skipped"] = "passed"
    message: str = ""
    type: str = ""
    detail: str = ""
    output: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class JunitSuite:
    """A named list of cases. `timestamp`: when they ran, in UTC without a zone, as the schema requires."""

    name: str
    cases: Sequence[JunitCase]
    timestamp: str = ""


def to_junit(name: str, suites: Sequence[JunitSuite]) -> str:
    """Returns the XML document, with a final line feed."""
    cases = [case for suite in suites for case in suite.cases]
    root = ElementTree.Element("testsuites", {"name": name, **_counts(cases)})
    for suite in suites:
        _add_suite(root, suite)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _add_suite(root: ElementTree.Element, suite: JunitSuite) -> None:
    skipped = str(sum(case.outcome == "skipped" for case in suite.cases))
    attributes = {"name": suite.name, **_counts(suite.cases), "skipped": skipped}
    element = _add(root, "testsuite", attributes | _nonempty(timestamp=suite.timestamp))
    for case in suite.cases:
        _add_case(element, case)


def _add_case(suite: ElementTree.Element, case: JunitCase) -> None:
    attributes = {"name": case.name, "classname": case.classname, "time": _seconds(case.seconds)}
    element = _add(suite, "testcase", attributes)
    if case.outcome != "passed":
        problem = {"message": case.message, **_nonempty(type=case.type)}
        _add(element, case.outcome, problem, case.detail)
    elif case.output:
        _add(element, "system-out", {}, case.output)


def _add(
    parent: ElementTree.Element, tag: str, attributes: dict[str, str], text: str = ""
) -> ElementTree.Element:
    cleaned = {key: _FORBIDDEN.sub("\ufffd", value) for key, value in attributes.items()}
    element = ElementTree.SubElement(parent, tag, cleaned)
    element.text = _FORBIDDEN.sub("\ufffd", text) or None
    return element


def _nonempty(**attributes: str) -> dict[str, str]:
    """Returns the attributes whose value is not empty."""
    return {key: value for key, value in attributes.items() if value}


def _counts(cases: Sequence[JunitCase]) -> dict[str, str]:
    """Returns the attributes with counts that a suite and the document both have."""
    return {
        "tests": str(len(cases)),
        "failures": str(sum(case.outcome == "failure" for case in cases)),
        "errors": str(sum(case.outcome == "error" for case in cases)),
        "time": _seconds(sum(case.seconds for case in cases)),
    }


def _seconds(seconds: float) -> str:
    """Returns seconds with three decimals, as the schema allows; "0" if nothing was measured."""
    return f"{seconds:.3f}" if seconds else "0"
