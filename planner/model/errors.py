"""Errors about invalid input, written for people: the file, the object, the field, and what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Where:
    """The location of a value: a file ("" for an API request), an object and a field path."""

    file: str = ""
    object: str = ""
    field: str = ""

    def at_path(self, field: str) -> Where:
        """Returns the location of `field` (a dotted path from the object's root) in the same object."""
        return Where(self.file, self.object, field)

    def below(self, field: str) -> Where:
        """Returns the location of a field below this one: a name, a dotted path, or an index like `[0]`."""
        joint = "." if self.field and not field.startswith("[") else ""
        return Where(self.file, self.object, self.field + joint + field)

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.object, self.field) if part)


class ReportedError(Exception):
    """An error that a command prints as `str(error)`, without a traceback, and exits with `exit_status`."""

    exit_status = 2


class InputError(ReportedError, ValueError):
    """Input that cannot be used. `str(error)` is one line that names file, object and field."""

    def __init__(self, message: str, where: Where | None = None) -> None:
        self.where = where or Where()
        self.message = message
        place = str(self.where)
        line = f"{place}: {message}" if place else message
        super().__init__(without_controls(line))


class InputErrors:
    """Collects the errors of several values, so that an author is told all of them at once.

    Wherever errors are collected, `raise_any` must follow before the values are used.
    """

    def __init__(self) -> None:
        self._errors: list[InputError] = []

    def read(self, reader: Callable[[], T], fallback: T) -> T:
        """Returns what `reader` returns; `fallback` if it raises an `InputError`, which is kept."""
        try:
            return reader()
        except InputError as error:
            self._errors.append(error)
            return fallback

    def raise_any(self) -> None:
        """Raises the errors as one `InputError` at the place of the first; nothing if there are none."""
        if not self._errors:
            return
        first, *others = self._errors
        further = (f"{error.where.field}: {error.message}" for error in others if str(error) != str(first))
        raise InputError("; ".join(dict.fromkeys((first.message, *further))), first.where)


def without_controls(text: str, kept: str = "") -> str:
    """Returns the text with question marks for all characters that are not printable, apart from those in
    `kept`: text of input files must not send control sequences to a terminal.
    """
    return "".join(sign if sign.isprintable() or sign in kept else "?" for sign in text)
