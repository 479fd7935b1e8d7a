"""Reads an object strictly: each field is requested by name, and a field that nobody requested is a problem.

A format is defined only by the fields that are requested; the JSON schemas for editors are generated from
these requests (`python -m tests.docs.generate_policy_schemas`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from webhook.jsontools.path import Path
from webhook.policy.loading.document import PolicyDocument
from webhook.policy.loading.errors import Problem

MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}:\d{2}(\.\d{1,6})?(Z|[+-]\d{2}:\d{2}))?")
"""A date, or a time with its zone."""


Required = bool | str
"""Whether a field is required; as a string, the text that the problem adds to "NAME is required"."""


@dataclass(slots=True)
class Fields:
    """One map of a document. Each method that reads a field returns its value; a value of the wrong type is
    recorded in `problems`. `read`: the names of the fields that were requested.
    """

    document: PolicyDocument
    path: Path
    value: Mapping[str, Any]
    problems: list[Problem]
    read: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, document: PolicyDocument, problems: list[Problem]) -> Fields:
        """Returns the outermost map of a document."""
        return cls(document, (), document.value, problems)

    def wrong(self, message: str, *path: str | int) -> None:
        """Records a problem with this map or something in it."""
        self.problems.append(self.document.problem((*self.path, *path), message))

    def text(self, name: str, *, required: Required = False) -> str:
        """Returns a string; "" if it is missing (a problem if it is required)."""
        value: str = self._take(name, (str,), "text") or ""
        if required and not value:
            self._missing(name, required, *([name] if name in self.value else []))
        return value

    def choice(self, name: str, options: Sequence[str], default: str) -> str:
        """Returns one of `options`, or the default if the field is missing or invalid."""
        value = self.text(name)
        if value and value not in options:
            self.wrong(f"must be one of {', '.join(options)}", name)
            return default
        return value or default

    def variant(self, name: str, fields: Mapping[str, str]) -> tuple[str, Fields | None]:
        """Returns the word in a field, and the map that this word requires: `patchType: JSONPatch` requires
        the map `jsonPatch`. "" for a missing or invalid word, None for a missing map.

        `fields`: for each valid word, the field that contains the map. The other maps must be missing.
        """
        word = self.choice(name, tuple(fields), "")
        if not word:
            self._missing(name, f": {' or '.join(fields)}")
            return "", None
        body = self.child(fields[word], required=f" with {name} {word}")
        for other in fields.values():
            if other != fields[word] and self.child(other) is not None:
                self.wrong(f"stands beside {name} {word}, which takes {fields[word]}", other)
        return word, body

    def flag(self, name: str) -> bool | None:
        """Returns a boolean, None if it is missing."""
        value: bool | None = self._take(name, (bool,), "true or false")
        return value

    def texts(self, name: str, options: Sequence[str] = (), *, required: Required = False) -> tuple[str, ...]:
        """Returns a list of strings, each of which must be one of `options` if these are given; () if it is
        missing.
        """
        items = self._take(name, (list,), "a list") or []
        for index, item in enumerate(items):
            if not isinstance(item, str):
                self.wrong("must be text", name, index)
            elif options and item not in options:
                self.wrong(f"must be one of {', '.join(options)}", name, index)
        if required and not items:
            self._missing(name, required)
        return tuple(item for item in items if isinstance(item, str))

    def text_or_texts(self, name: str) -> tuple[str, ...]:
        """Returns a list of strings, or one string as a list."""
        if isinstance(self.value.get(name), list):
            return self.texts(name)
        text = self.text(name)
        return (text,) if text else ()

    def labels(self, name: str) -> dict[str, str]:
        """Returns a map of strings to strings; {} if it is missing."""
        items = self._take(name, (dict,), "a map") or {}
        for key, item in items.items():
            if not isinstance(item, str):
                self.wrong("must be text (in quotes, if it looks like a number)", name, key)
        return {key: item for key, item in items.items() if isinstance(item, str)}

    def child(self, name: str, *, required: Required = False) -> Fields | None:
        """Returns the map in a field, None if it is missing."""
        value = self._take(name, (dict,), "a map")
        if value is None:
            if required and self.value.get(name) is None:
                self._missing(name, required)
            return None
        return Fields(self.document, (*self.path, name), value, self.problems)

    def children(self, name: str, *, max_items: int = 0, required: Required = False) -> list[Fields]:
        """Returns the maps in a list, in order; any other element is a problem."""
        items = self._take(name, (list,), "a list") or []
        if max_items and len(items) > max_items:
            self.wrong(f"at most {max_items} are allowed", name)
        if required and not self.value.get(name):
            self._missing(name, required)
        result = []
        for index, item in enumerate(items):
            if isinstance(item, dict):
                result.append(Fields(self.document, (*self.path, name, index), item, self.problems))
            else:
                self.wrong("must be a map", name, index)
        return result

    def free_map(self, name: str, words: str) -> Mapping[str, Any] | None:
        """Returns a map without checking its content, None if it is missing. `words`: the type, for
        messages.
        """
        value: Mapping[str, Any] | None = self._take(name, (dict,), words)
        return value

    def free_list(self, name: str, words: str) -> list[Any] | None:
        """Returns a list without checking its content, None if it is missing."""
        value: list[Any] | None = self._take(name, (list,), words)
        return value

    def manifest(self, name: str) -> Mapping[str, Any] | str | None:
        """Returns an object, or the path of a file with it; None if it is missing."""
        value: Mapping[str, Any] | str | None = self._take(
            name, (dict, str), "a manifest, or the path of one"
        )
        return value

    def manifests(self, name: str) -> list[Mapping[str, Any] | str] | None:
        """Returns objects, and paths of files with them: a list of both, or one of either; None if
        missing.
        """
        words = "objects, or paths of files"
        value = self._take(name, (list, dict, str), words)
        if value is None:
            return None
        items = value if isinstance(value, list) else [value]
        if not all(isinstance(item, (dict, str)) for item in items):
            self.wrong(f"must be {words}", name)
        return [item for item in items if isinstance(item, (dict, str))]

    def moment(self, name: str, *, whole_day: bool, required: Required = False) -> float | None:
        """Returns a time in seconds since the epoch: a date (the end of the day with `whole_day`, else its
        beginning, in UTC), or a time with a zone in RFC 3339. None if it is missing or invalid.
        """
        text = self.text(name, required=required)
        if not text:
            return None
        try:
            written = datetime.fromisoformat(text) if MOMENT.fullmatch(text) else None
        except ValueError:
            written = None
        if written is None:
            self.wrong(f"{text!r} is no date or time; use 2026-12-31 or 2026-12-31T18:00:00Z", name)
            return None
        if written.tzinfo is None:
            # A day of seconds is added to the number: no date comes after 9999-12-31.
            return written.replace(tzinfo=UTC).timestamp() + timedelta(days=whole_day).total_seconds()
        return written.timestamp()

    def any_of(self, *names: str, hint: str = ": at least one") -> None:
        """Records a problem if all of several fields are empty."""
        if not any(self.value.get(name) for name in names):
            self._missing(" or ".join(names), hint)

    def exactly_one(self, *names: str) -> None:
        """Records a problem unless exactly one of several fields is present."""
        if sum(self.value.get(name) not in (None, "") for name in names) != 1:
            self.wrong(f"needs {' or '.join(names)}, and not both")

    def ignore(self, *names: str) -> None:
        """Accepts fields that are not read (status, fields of metadata that the API server sets)."""
        self.read.update(names)

    def done(self) -> None:
        """Records a problem for every field that no reader requested."""
        for name in self.value:
            if name not in self.read:
                near = ", ".join(sorted(self.read)[:12])
                self.wrong(f"unknown field; known here: {near}", name)

    def _missing(self, name: str, required: Required, *path: str) -> None:
        self.wrong(f"{name} is required{required if isinstance(required, str) else ''}", *path)

    def _take(self, name: str, kinds: tuple[type, ...], words: str) -> Any:
        self.read.add(name)
        value = self.value.get(name)
        if value is None:
            return None
        if not isinstance(value, kinds):
            self.wrong(f"must be {words}", name)
            return None
        return value
