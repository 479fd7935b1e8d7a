"""The one error of the CEL engine, and where in a policy file it lies.

A message names functions, fields, keys and types, never a value of the object under review: an object may
hold secrets, and a message ends in a reply, a log line and a report.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

MAX_MESSAGE: Final = 300  # characters; names in an expression may be as long as its author likes


Kind = Literal["syntax", "undeclared", "type", "evaluation", "budget"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an expression's text begins: file, 1-based line and column, and a label for people.

    `column` is that of the expression's first character; on the expression's later lines `indent` columns are
    added, as for a YAML block scalar whose lines all begin at the same column.
    """

    file: str = ""
    line: int = 1
    column: int = 1
    label: str = ""
    indent: int = 0


class CelError(Exception):
    """Anything that is wrong with an expression, when it is compiled or when it is evaluated.

    `kind` is "syntax", "undeclared", "type" (all three found at compile time; a type conflict that shows
    only at run time is "evaluation"), "evaluation" or "budget". `message` is short. `line` and `column` are
    1-based and count in the origin's file where the origin is known, else in the expression.
    """

    __slots__ = ("kind", "message", "offset", "origin", "text")

    def __init__(
        self, kind: Kind, message: str, offset: int = 0, text: str = "", origin: Origin | None = None
    ) -> None:
        short = message if len(message) <= MAX_MESSAGE else message[:MAX_MESSAGE] + "…"
        super().__init__(short)
        self.kind: Kind = kind
        self.message = short
        self.offset = offset
        self.text = text
        self.origin = origin

    def locate(self, text: str, origin: Origin | None) -> CelError:
        """This error with the expression's text and origin, unless it has its own already."""
        if not self.text:
            self.text, self.origin = text, origin
        return self

    @property
    def _inner(self) -> tuple[int, int]:
        """Zero-based line and column within the expression."""
        before = self.text[: self.offset]
        return before.count("\n"), self.offset - (before.rfind("\n") + 1)

    @property
    def line(self) -> int:
        """The 1-based line, in the origin's file."""
        return self._inner[0] + (self.origin.line if self.origin else 1)

    @property
    def column(self) -> int:
        """The 1-based column, in the origin's file."""
        row, column = self._inner
        if self.origin is None:
            return column + 1
        return column + (self.origin.column if row == 0 else self.origin.indent + 1)

    def render(self) -> str:
        """`file:line:column: message`, the label, the source line, and a caret under the place."""
        row, column = self._inner
        place = f"{self.line}:{self.column}"
        if self.origin and self.origin.file:
            place = f"{self.origin.file}:{place}"
        label = f" ({self.origin.label})" if self.origin and self.origin.label else ""
        lines = self.text.split("\n")
        source = lines[row].rstrip("\r") if row < len(lines) else ""
        start = max(0, column - 60)
        shown = source[start : start + 100].replace("\t", " ")
        return f"{place}: {self.message}{label}\n  {shown}\n  {' ' * (column - start)}^"

    def __str__(self) -> str:
        return self.message


class FunctionError(Exception):
    """Raised by a function's implementation; the call site turns it into a CelError with its place."""
