"""Reading an object strictly: each field is asked for by name, and what nobody asked for is a problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from webhook.jsontools.path import Path
from webhook.policy.loading.document import PolicyDocument
from webhook.policy.loading.errors import Problem


@dataclass(slots=True)
class Fields:
    """One map of a document. Readers return what stands there and note what is of the wrong type."""

    document: PolicyDocument
    path: Path
    value: Mapping[str, Any]
    problems: list[Problem]
    read: set[str] = field(default_factory=set)

    def wrong(self, message: str, *path: str | int) -> None:
        """Note a problem with this map or something in it."""
        self.problems.append(self.document.problem((*self.path, *path), message))

    def text(self, name: str, *, required: bool = False) -> str:
        """A string; "" where it is missing (a problem when it is required)."""
        value = self._take(name, str, "text")
        if required and not value:
            self.wrong(f"{name} is required", *([name] if name in self.value else []))
        return value or ""

    def choice(self, name: str, options: Sequence[str], default: str) -> str:
        """One of a few words."""
        value = self.text(name)
        if value and value not in options:
            self.wrong(f"must be one of {', '.join(options)}", name)
            return default
        return value or default

    def flag(self, name: str) -> bool | None:
        """A boolean, None where it is missing."""
        value: bool | None = self._take(name, bool, "true or false")
        return value

    def texts(self, name: str, options: Sequence[str] = ()) -> tuple[str, ...]:
        """A list of strings, each one of `options` where there are any."""
        items = self._take(name, list, "a list") or []
        for index, item in enumerate(items):
            if not isinstance(item, str):
                self.wrong("must be text", name, index)
            elif options and item not in options:
                self.wrong(f"must be one of {', '.join(options)}", name, index)
        return tuple(item for item in items if isinstance(item, str))

    def labels(self, name: str) -> dict[str, str]:
        """A map of strings to strings."""
        items = self._take(name, dict, "a map") or {}
        for key, item in items.items():
            if not isinstance(item, str):
                self.wrong("must be text (in quotes, if it looks like a number)", name, key)
        return {key: item for key, item in items.items() if isinstance(item, str)}

    def child(self, name: str) -> Fields | None:
        """A map inside, None where it is missing."""
        value = self._take(name, dict, "a map")
        return None if value is None else Fields(self.document, (*self.path, name), value, self.problems)

    def children(self, name: str, *, max_items: int = 0) -> list[Fields]:
        """The maps of a list."""
        items = self._take(name, list, "a list") or []
        if max_items and len(items) > max_items:
            self.wrong(f"at most {max_items} are allowed", name)
        result = []
        for index, item in enumerate(items):
            if isinstance(item, dict):
                result.append(Fields(self.document, (*self.path, name, index), item, self.problems))
            else:
                self.wrong("must be a map", name, index)
        return result

    def ignore(self, *names: str) -> None:
        """Fields that may stand there and mean nothing here (status, metadata's bookkeeping)."""
        self.read.update(names)

    def done(self) -> None:
        """Note every field that no reader asked for."""
        for name in self.value:
            if name not in self.read:
                near = ", ".join(sorted(self.read)[:12])
                self.wrong(f"unknown field; known here: {near}", name)

    def _take(self, name: str, kind: type, words: str) -> Any:
        self.read.add(name)
        value = self.value.get(name)
        if value is None:
            return None
        if not isinstance(value, kind):
            self.wrong(f"must be {words}", name)
            return None
        return value
