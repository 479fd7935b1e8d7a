"""Lists the fields that policies change, with their values, and compares two such lists. Pure.

Values are kept as JSON. Secret values (`secrets`) are left out, because the journal stores the lists.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from planner.model.names import dotted
from planner.model.words import listed, shortened
from webhook.journal.secrets import LEFT_OUT, without_secrets
from webhook.jsontools.patch import tokens
from webhook.jsontools.path import Path, find

FieldChanges = Mapping[str, str]
"""The new value of each changed field as JSON, by dotted path; "" for a removed field."""
FIELDS = 6
"""Maximum number of changed fields that a message names."""
LONGEST_VALUE = 1000
"""Maximum length of a value in characters. Of a longer one, the beginning and a digest are kept, which
suffices to compare values.
"""
SHOWN = 80
"""Maximum length of a value in a message, in characters."""

SECRET = "(left out)"
"""Stands in place of the JSON of a value that may be secret."""

Json = Mapping[str, Any]


def field_changes(patches: Iterable[Json], kind: str) -> dict[str, str]:
    """Returns the new values that JSON Patch operations set, as JSON by dotted path, down to single values.

    `kind`: the kind of the object, which determines which values may be secret. A removed field has the
    value "".
    """
    changed: dict[str, str] = {}
    for operation in patches:
        path = tuple(int(step) if step.isdecimal() else step for step in tokens(operation["path"]))
        if operation["op"] == "remove":
            changed[dotted(path)] = ""
        else:
            value = operation.get("value")
            for leaf, kept in _leaves(path, _without_secrets(path, value, kind)):
                # A policy may itself set a field to the text `LEFT_OUT`; that is no secret.
                secret = kept == LEFT_OUT != find(value, leaf[len(path) :])
                changed[dotted(leaf)] = SECRET if secret else _text(kept)
    return changed


def changes_differ(was: FieldChanges, now: FieldChanges) -> tuple[str, tuple[str, ...]]:
    """Returns the differences between two sets of changes as text ("" for none), and the fields that
    differ.
    """
    added = [field for field in now if field not in was]
    left_out = [field for field in was if field not in now]
    other = [field for field in now if field in was and was[field] != now[field]]
    parts = (
        ("also", [_done(field, now[field]) for field in added]),
        ("no longer", [_done(field, was[field]) for field in left_out]),
        ("now", [f"{_done(field, now[field])} (was {_shown(was[field])})" for field in other]),
    )
    words = "; ".join(f"{verb} {listed(rows, FIELDS)}" for verb, rows in parts if rows)
    return words, (*added, *left_out, *other)


def _done(field: str, value: str) -> str:
    return f"sets {field} to {_shown(value)}" if value else f"removes {field}"


def _shown(value: str) -> str:
    return shortened(value, SHOWN) if value else "removed"


def _without_secrets(path: Path, value: Any, kind: str) -> Any:
    """Returns what `without_secrets` keeps of the value if it is at this path of an object of this kind;
    `LEFT_OUT` if it keeps nothing.
    """
    whole = value
    for step in reversed(path):
        whole = [whole] if isinstance(step, int) else {step: whole}
    kept = without_secrets({"kind": kind, **whole} if isinstance(whole, dict) else whole)
    for step in path:
        key = 0 if isinstance(step, int) else step
        if isinstance(kept, str) or (isinstance(kept, dict) and key not in kept):
            return LEFT_OUT  # this value or one of its parents was removed
        kept = kept[key]
    return kept


def _leaves(path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    """Yields the single values in a value, with their paths; a list of scalars counts as one value."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves((*path, str(key)), inner)
    elif isinstance(value, list) and any(isinstance(item, (Mapping, list)) for item in value):
        for index, inner in enumerate(value):
            yield from _leaves((*path, index), inner)
    else:
        yield path, value


def _text(value: Any) -> str:
    encoded = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    text = encoded.decode()
    if len(text) <= LONGEST_VALUE:
        return text
    return f"{text[:LONGEST_VALUE]}… (sha256 {hashlib.sha256(encoded).hexdigest()[:16]})"
