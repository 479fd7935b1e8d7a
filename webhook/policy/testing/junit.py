"""Writes results of policy tests as JUnit XML: a `tests.yaml` is a suite."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from webhook.files import junit
from webhook.files.junit import JunitCase, JunitSuite
from webhook.policy.testing.runner import CaseResult


def to_junit(results: Sequence[CaseResult]) -> str:
    """Returns the XML document of the results, in their order."""
    suites = [
        JunitSuite(file, [_case(result) for result in group])
        for file, group in groupby(results, key=lambda result: result.case.file)
    ]
    return junit.to_junit("bayplan test", suites)


def _case(result: CaseResult) -> JunitCase:
    place = f"{result.case.file}:{result.case.line}"
    detail = "" if result.passed else "\n".join((*result.differences, place))
    return JunitCase(
        result.case.name,
        result.case.file,
        "passed" if result.passed else "failure",
        message=detail.partition("\n")[0],
        detail=detail,
        seconds=result.seconds,
        output=place,
    )
