"""`bayplan test`: runs the test cases of policies (tests.yaml)."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from planner.cluster.hardware_update import with_hardware
from planner.manifests.schedulers.systems import scheduler_pods, watched
from planner.model.errors import InputError, Where
from planner.model.words import counted
from webhook.admission.decision import decide
from webhook.admission.environment import Environment
from webhook.cli.common import inputs
from webhook.cli.common.parsers import Subparsers, subcommand
from webhook.policy.engine.device_selectors import read_cluster
from webhook.policy.loading.errors import PolicyError, Problem
from webhook.policy.model.policy import PolicySet
from webhook.policy.testing.cases import Case, CaseOutcome
from webhook.policy.testing.junit import to_junit
from webhook.policy.testing.runner import CaseResult, Suite, Summary
from webhook.report import terminal
from webhook.report.printable import printable_name

EPILOG = """examples:
  bayplan test policies/                        every tests.yaml in the folder, with its policies
  bayplan test policies/ --coverage             also list expressions that no case evaluates
  bayplan test policies/ --junit report.xml     for CI

exit status: 0 all as expected; 1 a case failed, or with --strict a policy has no case; 2 bad input
"""


def add_parser(subparsers: Subparsers) -> None:
    """Adds `test`."""
    parser = subcommand(
        subparsers,
        "test",
        description="Run the cases in tests.yaml as the webhook would, and show differences.",
        epilog=EPILOG,
    )
    parser.add_argument(
        "paths",
        metavar="POLICIES",
        nargs="*",
        help="folders or tests.yaml files (default: the policies that ship with Bayplan)",
    )
    parser.add_argument("--coverage", action="store_true", help="list expressions that no case evaluates")
    parser.add_argument("--junit", metavar="FILE", help="write the results as JUnit XML")
    parser.add_argument("--strict", action="store_true", help="fail if a policy has no case")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs the cases and prints their results. Returns 1 if a case failed, or, with `--strict`, if a policy
    has no case. Raises `PolicyError` for invalid policies or cases, or if there is no case file.
    """
    paths = args.paths or [str(inputs.shipped("policies"))]
    suite = Suite.load(paths)
    if not suite.files:
        raise PolicyError([Problem(", ".join(paths), 0, 0, "", "", "no tests.yaml in here")])
    console = terminal.console()
    summary = Summary()
    for result, summary in suite.run(run_case, time.perf_counter):  # noqa: B007 (the last one is used)
        _show(console, result)
    _sum_up(console, summary, coverage=args.coverage)
    if args.junit:
        _write(args.junit, to_junit(summary.results))
    strict_failure = args.strict and bool(summary.without_case)
    return 1 if summary.failed or strict_failure else 0


def run_case(case: Case, policies: PolicySet) -> CaseOutcome:
    """Returns the outcome of a case, by the same decision as in the webhook. Raises `InputError` for a
    malformed cluster.
    """
    name = case.file
    snapshot = None
    if case.cluster is not None:
        snapshot = read_cluster((f"{name} (cluster of {case.name!r})", item) for item in case.cluster)
        if case.watched:
            seen = watched(snapshot.base.schedulers, scheduler_pods(snapshot.bound))
            snapshot = with_hardware(snapshot, replace(snapshot.base, schedulers=seen))
    environment = replace(Environment.of_objects(case.cluster or ()), now=case.now)
    decision = decide(case.request, policies, snapshot, "mutate", environment)
    response = decision.response
    return CaseOutcome(
        allowed=response.allowed,
        message=response.message,
        warnings=tuple(response.warnings),
        object=decision.object,
        patch=tuple(response.patch),
    )


def _show(console: Console, result: CaseResult) -> None:
    name, place = printable_name(result.case.name), f"{result.case.file}:{result.case.line}"
    console.print(Text("ok  ", "green") if result.passed else Text("FAIL", "red"), end=" ")
    console.print(name if result.passed else f"{place}: {name}")
    for text in result.differences:
        for line in text.splitlines():
            console.print(f"       {line}", style=_style(line))


def _style(line: str) -> str | None:
    """Returns the colour of a line of a diff; None for unchanged lines."""
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])


def _sum_up(console: Console, summary: Summary, *, coverage: bool) -> None:
    failed = len(summary.failed)
    console.print(
        f"{counted(len(summary.results), 'case')}, {failed} failed", style="red" if failed else "green"
    )
    for policy in summary.without_case:
        inputs.note(f"Warning: {policy.file}: {policy.kind}/{policy.name} has no case")
    if not coverage:
        return
    total, missed = len(summary.expressions), summary.unreached
    console.print(f"{total - len(missed)} of {total} expressions reached")
    for name, label in missed:
        console.print(f"  not reached: {name}: {label}")


def _write(file: str, text: str) -> None:
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", Where(file)) from None
