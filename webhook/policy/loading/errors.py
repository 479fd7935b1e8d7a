"""The problems of policy files: all that were found, each with its position."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from planner.model.errors import ReportedError, without_controls


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One problem. `line` and `column` are 1-based, 0 if unknown. `object`: Kind/name. `field`: field path.

    `source` is the line of the expression with a caret below the position, "" if it is not an expression.
    The text has question marks in place of control characters.
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
        text = f"{head}\n{self.source}" if self.source else head
        return without_controls(text, "\n\t")


class PolicyError(ReportedError, ValueError):
    """Invalid policies; `str(error)` has a line for each problem, with its source below."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        super().__init__("\n".join(map(str, self.problems)))
