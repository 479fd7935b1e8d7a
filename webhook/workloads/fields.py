"""A value in a manifest with the path that leads to it, so that every complaint can name its field."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from planner.manifests.fields import integer, kind_of, mapping, sequence, text
from planner.model.errors import InputError, Where
from planner.model.words import shortened
from webhook.jsontools.path import Path, dotted

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")


_NOWHERE = Where()


LARGEST_COUNT = 2**31 - 1
"""Counts are int32 in every workload API; the API server refuses more."""


# Not frozen, which would make the record that reading makes most of three times as dear.
@dataclass(slots=True, unsafe_hash=True)
class Field:
    """A cursor into a manifest, never changed. Missing and null are the same: `value` is None."""

    value: object
    path: Path = ()
    root: Where = _NOWHERE

    @property
    def where(self) -> Where:
        """File, object and field, for an error."""
        return self.root.at_path(dotted(self.path))

    def error(self, message: str) -> InputError:
        """An error that names this field."""
        return InputError(message, self.where)

    def get(self, *keys: str) -> Field:
        """The field at `keys` below this one. Raises `InputError` where one on the way is no mapping."""
        value, path = self.value, self.path
        for key in keys:
            if type(value) is dict:
                value = value.get(key)
            elif value is not None:  # no field for each step between: reading asks for hundreds
                value = Field(value, path, self.root).map().get(key)
            path = (*path, key)
        return Field(value, path, self.root)

    def map(self) -> Mapping[str, object]:
        """The mapping that stands here, {} for none. Raises `InputError` for anything else."""
        if self.value is None:
            return {}
        # `where` is put into words for an error only: each object has hundreds of fields that are right.
        value = self.value  # a `dict` nearly always, which is told in a fifth of the time
        return value if type(value) is dict or isinstance(value, Mapping) else mapping(value, self.where)

    def lacks(self, names: frozenset[str]) -> bool:
        """Whether nothing stands here, or a mapping that has none of these keys. Most objects have few of the
        keys that are looked for, and this costs a tenth of looking for each."""
        return self.value is None or (type(self.value) is dict and names.isdisjoint(self.value))

    def needed_map(self) -> Field:
        """This field, of which a mapping must stand there. Raises `InputError` where it is missing or not."""
        if self.value is None:
            raise self.error("is missing")
        self.map()
        return self

    def entries(self) -> list[tuple[str, Field]]:
        """The mapping's entries in their order. Raises `InputError` where a key is no text."""
        fields = []
        for key, value in self.map().items():
            if not isinstance(key, str):
                raise self.error(f"has a key that is no text ({kind_of(key)})")
            fields.append((key, Field(value, (*self.path, key), self.root)))
        return fields

    def items(self) -> list[Field]:
        """The list's items, [] for none. Raises `InputError` where it is no list."""
        if self.value is None:
            return []
        items = sequence(self.value, self.where)
        return [Field(value, (*self.path, index), self.root) for index, value in enumerate(items)]

    def count(self, default: int, *, minimum: int = 0) -> int:
        """The whole number that stands here. Raises `InputError` for text, fractions and int32 overflow."""
        if self.value is None:
            return default
        # As in `map`, `where` is for an error only. A truth value is an int, but of another type.
        value = self.value if type(self.value) is int else integer(self.value, self.where)
        return self._bounded(value, minimum)

    def count_in_text(self) -> int | None:
        """The number, 1 or more, in an annotation's text; None for no text. Raises `InputError` otherwise."""
        number = self.text()
        if not number:
            return None
        if not (number.isascii() and number.isdecimal() and len(number) <= 12):
            raise self.error(f"expected a whole number such as 4, found {shown(number)}")
        return self._bounded(int(number), 1)

    def _bounded(self, value: int, minimum: int) -> int:
        if not minimum <= value <= LARGEST_COUNT:
            raise self.error(f"{shown(str(value))} is out of range; use {minimum} to {LARGEST_COUNT}")
        return value

    def text(self, default: str = "") -> str:
        """The text that stands here. Raises `InputError` for anything else."""
        if self.value is None:
            return default
        return self.value if isinstance(self.value, str) else text(self.value, self.where)

    def name(self) -> str:
        """The object name that stands here, "" for none. Raises `InputError` for one that could not be.

        Admission comes before the API server's own check of names, and a gang is known by its name: one with
        a slash could pass for another's.
        """
        name = self.text()
        if name and not _NAME.fullmatch(name):
            raise self.error(f"{shown(name)} is no name; use letters, digits, - and ., at most 253 of them")
        return name

    def flag(self) -> bool:
        """The truth value that stands here, False for none. Raises `InputError` for anything else."""
        if self.value is None:
            return False
        if not isinstance(self.value, bool):
            raise self.error(f"expected true or false, found {kind_of(self.value)}")
        return self.value

    def choice(self, valid: tuple[str, ...]) -> str:
        """One of `valid`, or "" where nothing stands here. Raises `InputError` naming the valid values."""
        word = self.text()
        if word and word not in valid:
            raise self.error(f"{shown(word)} is not one of {', '.join(valid)}")
        return word


def shown(value: str) -> str:
    """A value quoted for a message, cut where it is long."""
    return f'"{shortened(value, 60)}"'
