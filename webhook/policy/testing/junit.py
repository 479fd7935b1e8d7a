"""Results as JUnit XML, which every CI system shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from xml.etree import ElementTree

from webhook.policy.testing.runner import CaseResult

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold."""


def to_junit(results: Sequence[CaseResult]) -> str:
    """One testsuite for each `tests.yaml`."""
    root = ElementTree.Element("testsuites", {"name": "bayplan test", **_counts(results)})
    for file, group in groupby(results, key=lambda result: result.case.file):
        rows = list(group)
        suite = ElementTree.SubElement(root, "testsuite", {"name": _clean(file), **_counts(rows)})
        for row in rows:
            case = ElementTree.SubElement(
                suite,
                "testcase",
                name=_clean(row.case.name),
                classname=_clean(file),
                file=_clean(file),
                line=str(row.case.line),
                time=f"{row.seconds:.4f}",
            )
            if not row.passed:
                text = _clean("\n".join(row.differences))
                failed = ElementTree.SubElement(case, "failure", message=text.partition("\n")[0])
                failed.text = text
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written.decode() + "\n"


def _counts(results: Sequence[CaseResult]) -> dict[str, str]:
    return {
        "tests": str(len(results)),
        "failures": str(sum(not result.passed for result in results)),
        "time": f"{sum(result.seconds for result in results):.4f}",
    }


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
