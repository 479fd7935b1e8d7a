"""The error of the CEL engine, with its position in a policy file.

A message names functions, fields, keys and types, never a value of the reviewed object: the object may
contain secrets, and messages appear in replies, logs and reports.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

MAX_MESSAGE: Final = 300  # characters; names in an expression may be as long as its author likes


Kind = Literal["syntax", "undeclared", "type", "evaluation", "budget"]


@dataclass(frozen=True, slots=True)
class Origin:
    """The position of an expression in a file: 1-based line and column of its first character.

    `label`: the field of the expression, for messages. `indent`: the number of columns before each later
    line, as in a YAML block scalar.
    """

    file: str = ""
    line: int = 1
    column: int = 1
    label: str = ""
    indent: int = 0


class CelError(Exception):
    """An error in an expression, found when it is compiled or evaluated.

    `kind` is "syntax", "undeclared" or "type" for errors of compilation, "evaluation" (including a type
    conflict that is found only then) or "budget" for errors of evaluation. `line` and `column` are 1-based,
    in the origin's file if the origin is known, else in the expression.
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
        """Sets the expression's text and origin, unless the error has them already, and returns the error."""
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
        """Returns "file:line:column: message (label)", then the source line, then a caret below the
        position.
        """
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
    """An error in the implementation of a function; the caller converts it to a CelError with a position."""
