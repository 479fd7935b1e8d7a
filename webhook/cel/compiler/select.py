"""Field selection, indexing and presence: closures over plain dicts, lists and optionals."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from webhook.cel.values.errors import CelError
from webhook.cel.values.values import ABSENT, Optional, UInt, to_key, type_name

Run = Callable[[list[Any]], Any]


_MISSING: Final = object()


def selector(operand: Run, names: list[tuple[str, int]]) -> Run:
    """Returns the closure of `operand.a.b.c`.

    The fast path only looks keys up; if a lookup fails, `select` is applied step by step, for optionals,
    escaped names and errors.
    """
    fields = tuple(name for name, _ in names)
    places = tuple(pos for _, pos in names)

    def slow(value: Any) -> Any:
        for name, pos in zip(fields, places, strict=True):
            value = select(value, name, pos)
        return value

    if len(fields) == 1:
        return _one_field(operand, fields[0], slow)
    if len(fields) == 2:
        return _two(operand, *fields, slow)

    def many(f: list[Any]) -> Any:
        root = value = operand(f)
        try:
            for name in fields:
                value = value[name]
        except (KeyError, TypeError, IndexError):
            return slow(root)
        return value

    return many


def _one_field(operand: Run, name: str, slow: Callable[[Any], Any]) -> Run:
    def read(f: list[Any]) -> Any:
        root = operand(f)
        try:
            return root[name]
        except (KeyError, TypeError, IndexError):
            return slow(root)

    return read


def _two(operand: Run, first: str, second: str, slow: Callable[[Any], Any]) -> Run:
    def two(f: list[Any]) -> Any:
        root = operand(f)
        try:
            return root[first][second]
        except (KeyError, TypeError, IndexError):
            return slow(root)

    return two


def select(value: Any, name: str, pos: int) -> Any:
    """Returns a field of a map, or of the map in an optional (as an optional). Raises CelError if missing."""
    if isinstance(value, Mapping):
        field = _get(value, name)
        if field is _MISSING:
            raise CelError("evaluation", f"no such key: {name}", pos)
        return field
    if isinstance(value, Optional):
        return optional_select(value, name, pos)
    raise CelError("evaluation", f"{type_name(value)} has no field {name}", pos)


def _get(value: Mapping[Any, Any], name: str) -> Any:
    try:
        return value[name]
    except KeyError:
        return value.get(unescape(name), _MISSING) if "__" in name else _MISSING


_ESCAPES: Final = {"underscores": "__", "dot": ".", "dash": "-", "slash": "/"}


_ESCAPED: Final = re.compile(r"__(underscores|dot|dash|slash)__")


_KEYWORD: Final = re.compile(
    r"__(true|false|null|in|as|break|const|continue|else|for|function|if|import|let|loop|package"
    r"|namespace|return)__"
)


def unescape(name: str) -> str:
    """Returns the property name for Kubernetes' escaped form: `foo__dash__bar` is `foo-bar`."""
    word = _KEYWORD.fullmatch(name)
    return word[1] if word else _ESCAPED.sub(lambda m: _ESCAPES[m[1]], name)


def optional_select(value: Any, name: str, pos: int) -> Optional:
    """Returns `value.?name`: absent if the map has no such key, or if the value is a scalar, which has no
    fields. Raises CelError for a list (cel-go, interpreter/attributes.go).
    """
    if isinstance(value, Optional):
        if not value.present:
            return ABSENT
        value = value.value
    if isinstance(value, Optional):
        return optional_select(value, name, pos)
    if isinstance(value, (list, tuple)):
        raise CelError("evaluation", f"list has no field {name}", pos)
    if type(value) is not dict and not isinstance(value, Mapping):
        return ABSENT
    field = _get(value, name)
    return ABSENT if field is _MISSING else Optional(field)


def has(value: Any, name: str, pos: int) -> bool:
    """Returns `has(value.name)`. As in Kubernetes, it is false for a scalar and for null, for example for
    `has(oldObject.spec)` on CREATE. Raises CelError for a list.
    """
    if type(value) is dict:
        return name in value or ("__" in name and unescape(name) in value)
    if isinstance(value, Optional):
        return value.present and has(value.value, name, pos)
    if isinstance(value, Mapping):
        return name in value
    if isinstance(value, (list, tuple)):
        raise CelError("evaluation", f"list has no field {name}", pos)
    return False


def index(value: Any, key: Any, pos: int) -> Any:
    """Returns `value[key]`. Raises CelError if there is no such element."""
    if isinstance(value, Optional):
        return optional_index(value, key, pos)
    element = _element(value, key, pos)
    if element is not _MISSING:
        return element
    if isinstance(value, Mapping):
        shown = f": {key}" if type(key) in (str, int, UInt) and len(str(key)) <= 80 else ""
        raise CelError("evaluation", f"no such key{shown}", pos)
    raise CelError("evaluation", f"index {key} out of range of a list of {len(value)}", pos)


def optional_index(value: Any, key: Any, pos: int) -> Optional:
    """Returns `value[?key]`: absent if there is no such element, or if the value is a scalar."""
    if isinstance(value, Optional):
        if not value.present:
            return ABSENT
        return optional_index(value.value, key, pos)
    if isinstance(value, Mapping) and not isinstance(key, (str, int, float)):
        return ABSENT
    if not isinstance(value, (Mapping, list, tuple)):
        return ABSENT
    element = _element(value, key, pos)
    return ABSENT if element is _MISSING else Optional(element)


def _element(value: Any, key: Any, pos: int) -> Any:
    if isinstance(value, Mapping):
        if not isinstance(key, (str, int, float)):
            raise CelError("evaluation", f"a {type_name(key)} is no map key", pos)
        try:
            return value[to_key(key)]
        except KeyError:
            return _MISSING
    if isinstance(value, (list, tuple)):
        if type(key) is float and key.is_integer():
            key = int(key)
        if isinstance(key, bool) or not isinstance(key, int):
            raise CelError("evaluation", f"a list's index must be an int, not {type_name(key)}", pos)
        return value[key] if 0 <= key < len(value) else _MISSING
    raise CelError("evaluation", f"a {type_name(value)} has no elements", pos)


def indexer(operand: Run, key: Run, pos: int, optional: bool) -> Run:
    """Returns the closure of `operand[key]` or `operand[?key]`; a string key of a dict is the fast path."""
    if optional:

        def look(f: list[Any]) -> Any:
            value = operand(f)
            if type(value) is Optional:
                if not value.present:
                    return ABSENT  # without a look at the key, whose evaluation may fail
                value = value.value
            where = key(f)
            if type(value) is dict and type(where) is str:
                return Optional(value[where]) if where in value else ABSENT
            return optional_index(value, where, pos)

        return look

    def run(f: list[Any]) -> Any:
        value = operand(f)
        where = key(f)
        if type(value) is dict and type(where) is str:
            try:
                return value[where]
            except KeyError:
                pass
        return index(value, where, pos)

    return run
