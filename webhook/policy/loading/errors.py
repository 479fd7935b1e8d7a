"""What is wrong with policy files: every problem found, each with its place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from planner.model.errors import ReportedError


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing wrong. `line` and `column` are 1-based, 0 where they are not known.

    `source` is the line of the expression with a caret under the place, "" for what is no expression.
    """

    file: str
    line: int
    column: int
    object: str
    field: str
    message: str
    source: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        head = ": ".join(part for part in (place, self.object, self.field, self.message) if part)
        return f"{head}\n{self.source}" if self.source else head


class PolicyError(ReportedError, ValueError):
    """Policies that cannot be used; `str(error)` has a line for each problem, and its source below it."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        super().__init__("\n".join(map(str, self.problems)))
