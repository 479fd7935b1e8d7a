"""A value in a manifest with its path, so that every error can name its field."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from planner.manifests.fields import integer, mapping, sequence, text, type_in_words
from planner.model.errors import InputError, Where
from planner.model.names import dotted
from planner.model.words import shortened
from webhook.jsontools.path import Path

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")


_NOWHERE = Where()


LARGEST_COUNT = 2**31 - 1
"""The largest count: workload APIs use int32, and the API server refuses more."""


# Not frozen: a frozen record takes three times as long to create, and reading an object creates hundreds of
# these.
@dataclass(slots=True, unsafe_hash=True)
class Field:
    """A cursor into a manifest; never modified. Missing and null are the same: `value` is None."""

    value: object
    path: Path = ()
    root: Where = _NOWHERE

    @property
    def where(self) -> Where:
        """The file, object and field, for an error."""
        return self.root.at_path(dotted(self.path))

    def error(self, message: str) -> InputError:
        """Returns an error that names this field."""
        return InputError(message, self.where)

    def get(self, *keys: str) -> Field:
        """Returns the field at `keys` below this one. Raises `InputError` if a value on the path is not a
        mapping.
        """
        value = self.value
        if type(value) is dict and len(keys) == 1:  # most calls
            return Field(value.get(keys[0]), self.path + keys, self.root)
        for depth, key in enumerate(keys):
            if type(value) is dict:
                value = value.get(key)
            elif value is not None:  # no `Field` for each step, for speed
                value = Field(value, (*self.path, *keys[:depth]), self.root).map().get(key)
        return Field(value, self.path + keys, self.root)

    def map(self) -> Mapping[str, object]:
        """Returns the mapping, {} if missing. Raises `InputError` for anything else."""
        if self.value is None:
            return {}
        # `where` is built only for an error: each object has hundreds of valid fields.
        value = self.value  # almost always a `dict`, which is checked in a fifth of the time
        return value if type(value) is dict or isinstance(value, Mapping) else mapping(value, self.where)

    def lacks(self, names: frozenset[str]) -> bool:
        """Returns whether the value is missing, or is a mapping without any of these keys.

        Most objects have few of the keys that are looked for; this costs a tenth of looking for each.
        """
        return self.value is None or (type(self.value) is dict and names.isdisjoint(self.value))

    def has(self, key: str) -> bool:
        """Returns whether there may be a field at `key`: False only if it is missing or null.

        A caller that reads fields which are usually missing calls it before `get`, because it costs a fifth
        of `get`.
        """
        value = self.value
        return value.get(key) is not None if type(value) is dict else value is not None

    def needed_map(self) -> Field:
        """Returns this field, which must be a mapping. Raises `InputError` if it is missing or anything
        else.
        """
        if self.value is None:
            raise self.error("is missing")
        self.map()
        return self

    def entries(self) -> list[tuple[str, Field]]:
        """Returns the mapping's entries in order. Raises `InputError` if a key is not a string."""
        fields = []
        for key, value in self.map().items():
            if not isinstance(key, str):
                raise self.error(f"has a key that is no text ({type_in_words(key)})")
            fields.append((key, Field(value, (*self.path, key), self.root)))
        return fields

    def items(self) -> list[Field]:
        """Returns the list's items, [] if missing. Raises `InputError` if it is not a list."""
        if self.value is None:
            return []
        items = sequence(self.value, self.where)
        return [Field(value, (*self.path, index), self.root) for index, value in enumerate(items)]

    def count(self, default: int, *, minimum: int = 0) -> int:
        """Returns the whole number, `default` if missing. Raises `InputError` for anything else, and for a
        number below `minimum` or above int32."""
        if self.value is None:
            return default
        # As in `map`, `where` is built only for an error. `bool` is a subclass of `int`, but its type
        # differs.
        value = self.value if type(self.value) is int else integer(self.value, self.where)
        return self._bounded(value, minimum)

    def count_of(self, key: str, default: int) -> int:
        """Returns `get(key).count(default)`; for a valid number it creates no `Field`, which saves time."""
        value = self.value.get(key) if type(self.value) is dict else None
        if type(value) is int and 0 <= value <= LARGEST_COUNT:
            return value
        return self.get(key).count(default)

    def count_in_text(self) -> int | None:
        """Returns the number, 1 or more, in an annotation; None if missing. Raises `InputError` otherwise."""
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
        """Returns the string, `default` if missing. Raises `InputError` for anything else."""
        if self.value is None:
            return default
        return self.value if isinstance(self.value, str) else text(self.value, self.where)

    def name(self) -> str:
        """Returns the object name, "" if missing. Raises `InputError` for an invalid name.

        Admission runs before the API server's own check of names, and a gang is known by its name: a name
        with a slash could be taken for another gang's.
        """
        name = self.text()
        if name and not _NAME.fullmatch(name):
            raise self.error(f"{shown(name)} is no name; use letters, digits, - and ., at most 253 of them")
        return name

    def flag(self) -> bool:
        """Returns the boolean, False if missing. Raises `InputError` for anything else."""
        if self.value is None:
            return False
        if not isinstance(self.value, bool):
            raise self.error(f"expected true or false, found {type_in_words(self.value)}")
        return self.value

    def choice(self, valid: tuple[str, ...]) -> str:
        """Returns one of `valid`, or "" if missing. Raises `InputError` with the valid values."""
        word = self.text()
        if word and word not in valid:
            raise self.error(f"{shown(word)} is not one of {', '.join(valid)}")
        return word


def shown(value: str) -> str:
    """Returns a value in quotes for a message, shortened if it is long."""
    return f'"{shortened(value, 60)}"'
