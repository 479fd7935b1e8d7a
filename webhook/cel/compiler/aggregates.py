"""Closures that create lists and maps, with their optional entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from webhook.cel.values.errors import CelError
from webhook.cel.values.values import Optional, to_key, type_name

Run = Callable[[list[Any]], Any]


def optional_at(value: Any, pos: int) -> Optional:
    """Returns the value of an entry marked `?`, which must be an optional. Raises CelError if it is not."""
    if isinstance(value, Optional):
        return value
    raise CelError("evaluation", f"'?' needs an optional, not {type_name(value)}", pos)


def plain_list(items: list[Run]) -> Run:
    """Returns the closure of `[a, b]`."""
    return lambda f: [item(f) for item in items]


def optional_list(items: list[Run], options: list[bool], places: list[int]) -> Run:
    """Returns the closure of `[a, ?b]`. An absent optional item is left out."""

    def run(f: list[Any]) -> list[Any]:
        out = []
        for item, optional, pos in zip(items, options, places, strict=True):
            value = item(f)
            if optional:
                value = optional_at(value, pos)
                if not value.present:
                    continue
                value = value.value
            out.append(value)
        return out

    return run


def make_map(parts: list[tuple[Run, Run, bool, int]]) -> Run:
    """Returns the closure of `{k: v, ?k: v}`. Keys are strings, ints, uints or bools; none may be repeated.

    `parts`: for each entry its key, its value, whether it is optional, and its offset in the text.
    """

    def run(f: list[Any]) -> dict[Any, Any]:
        out: dict[Any, Any] = {}
        for key_of, value_of, optional, pos in parts:
            key = key_of(f)
            value = value_of(f)
            if type(key) is not str:
                if not isinstance(key, int):
                    raise CelError("evaluation", f"a {type_name(key)} is no map key", pos)
                key = to_key(key)
            if optional:
                value = optional_at(value, pos)
                if not value.present:
                    continue
                value = value.value
            if key in out:
                raise CelError("evaluation", "a map's key is repeated", pos)
            out[key] = value
        return out

    return run
