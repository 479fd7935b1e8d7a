"""Reads `tests.yaml` files, runs their cases with a given runner, and sums up. Has no clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from planner.model.errors import InputError
from webhook.files.reader import objects
from webhook.policy.loading.document import parse
from webhook.policy.loading.errors import PolicyError, Problem
from webhook.policy.loading.files import case_files, load_paths, read
from webhook.policy.loading.load import TEST_FILES, Functions
from webhook.policy.model.policy import Policy, PolicySet
from webhook.policy.testing.cases import Case, CaseFile, CaseOutcome, differences, read_cases
from webhook.policy.testing.coverage import Key, expressions_of, watch

Runner = Callable[[Case, PolicySet], CaseOutcome]
"""Runs one case exactly as the webhook would."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case, and the differences between its expected and actual outcome: () if it passed."""

    case: Case
    differences: tuple[str, ...]
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether there are no differences."""
        return not self.differences


@dataclass(slots=True)
class Summary:
    """All results so far. `policies`: by name. `covered`: the names of the policies that some case tests;
    `reached`: the evaluated expressions.
    """

    results: list[CaseResult] = field(default_factory=list)
    policies: dict[str, Policy] = field(default_factory=dict)
    covered: set[str] = field(default_factory=set)
    reached: set[Key] = field(default_factory=set)

    @property
    def failed(self) -> list[CaseResult]:
        """The cases with differences."""
        return [result for result in self.results if not result.passed]

    @property
    def without_case(self) -> list[Policy]:
        """The policies without a case."""
        return [policy for name, policy in self.policies.items() if name not in self.covered]

    @property
    def expressions(self) -> list[Key]:
        """All expressions of the policies, as policy name and field path."""
        return [(e.policy, e.label) for policy in self.policies.values() for e in expressions_of(policy)]

    @property
    def unreached(self) -> list[Key]:
        """The expressions that were not evaluated in any case."""
        return [key for key in self.expressions if key not in self.reached]


@dataclass(frozen=True, slots=True)
class Suite:
    """The input of `bayplan test`: the policies under some paths; the case files, each with its policies."""

    policies: PolicySet
    files: tuple[tuple[CaseFile, PolicySet], ...]

    @classmethod
    def load(cls, paths: Sequence[str | Path], functions: Functions | None = None) -> Suite:
        """Reads everything. Raises PolicyError for invalid policies and cases."""
        problems: list[Problem] = []
        files = []
        for path in case_files(paths):
            try:
                files.append(_read_file(path))
            except PolicyError as error:
                problems.extend(error.problems)
        if problems:
            raise PolicyError(problems)
        folders = [Path(path).parent if Path(path).name in TEST_FILES else path for path in paths]
        policies = load_paths(folders, functions=functions)
        return cls(policies, tuple((file, _policies_of(file, policies, functions)) for file in files))

    def run(self, runner: Runner, clock: Callable[[], float]) -> Iterator[tuple[CaseResult, Summary]]:
        """Runs every case; each result comes with the summary so far."""
        summary = Summary(policies={policy.name: policy for policy in self.policies.policies})
        for file, own in self.files:
            policies = watch(own, summary.reached.add)
            for case in file.cases:
                began = clock()
                texts = _run_case(case, policies, runner)
                summary.covered |= set(case.about) or {policy.name for policy in policies.policies}
                summary.results.append(CaseResult(case, tuple(texts), clock() - began))
                yield summary.results[-1], summary


def _run_case(case: Case, policies: PolicySet, runner: Runner) -> list[str]:
    names = {policy.name for policy in policies.policies}
    if missing := [name for name in case.about if name not in names]:
        return [f"no policy {', '.join(missing)} runs here; known: {', '.join(sorted(names)) or 'none'}"]
    return differences(case.expect, runner(case, case.with_params(policies)))


def _policies_of(file: CaseFile, policies: PolicySet, functions: Functions | None) -> PolicySet:
    """Returns the policies of a case file: those it names, else those beside or below it."""
    folder = Path(file.file).parent
    if file.policies:
        return load_paths([folder / path for path in file.policies], functions=functions)
    return replace(
        policies,
        mutating=tuple(policy for policy in policies.mutating if _below(policy.file, folder)),
        validating=tuple(policy for policy in policies.validating if _below(policy.file, folder)),
    )


def _below(file: str, folder: Path) -> bool:
    return folder.resolve() in Path(file).resolve().parents


def _read_file(path: Path) -> CaseFile:
    ((name, text),) = read([path])
    documents = parse(name, text)

    def resolve(relative: str) -> list[Mapping[str, Any]]:
        try:
            return [document.value for document in objects([str(path.parent / relative)])]
        except InputError as error:
            raise ValueError(str(error)) from None

    return read_cases(documents, resolve)
