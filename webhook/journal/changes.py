"""What policies change, field by field with the values, and how two such changes differ. Pure.

Values are kept as JSON texts, without what may be secret (`secrets`): the journal holds them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from planner.model.words import listed, shortened
from webhook.journal.secrets import LEFT_OUT, without_secrets
from webhook.jsontools.patch import tokens
from webhook.jsontools.path import Path, dotted, find

FieldChanges = Mapping[str, str]
"""By dotted field the value that it gets, as JSON; "" where it is removed."""
FIELDS = 6
"""Fields that are named of those that a policy changes."""
LONGEST_VALUE = 1000
"""Characters of a value that are kept; of a longer one its beginning, and a digest to compare."""
SHOWN = 80
"""Characters of a value in a message."""

SECRET = "(left out)"
"""What stands for a value that may be secret, in place of JSON."""

Json = Mapping[str, Any]


def field_changes(patches: Iterable[Json], kind: str) -> dict[str, str]:
    """The fields that a patch of an object of this kind changes, down to single values, in their order."""
    changed: dict[str, str] = {}
    for operation in patches:
        path = tuple(int(step) if step.isdigit() else step for step in tokens(operation["path"]))
        if operation["op"] == "remove":
            changed[dotted(path)] = ""
        else:
            value = operation.get("value")
            for leaf, kept in _leaves(path, _without_secrets(path, value, kind)):
                secret = kept == LEFT_OUT != find(value, leaf[len(path) :])
                changed[dotted(leaf)] = SECRET if secret else _text(kept)
    return changed


def changes_differ(was: FieldChanges, now: FieldChanges) -> tuple[str, tuple[str, ...]]:
    """In words what is changed otherwise, and the fields of which that is so; "" where nothing is."""
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
    """The value as it would be kept if it stood at its place in the whole object."""
    whole = value
    for step in reversed(path):
        whole = [whole] if isinstance(step, int) else {step: whole}
    kept = without_secrets({"kind": kind, **whole} if isinstance(whole, dict) else whole)
    for step in path:
        key = 0 if isinstance(step, int) else step
        if isinstance(kept, str) or (isinstance(kept, dict) and key not in kept):
            return LEFT_OUT  # what is left out here, or further up
        kept = kept[key]
    return kept


def _leaves(path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    """Single values with their paths; a list of plain values is one."""
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
