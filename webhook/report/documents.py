"""Prints values as JSON or YAML, for commands and reports."""

from __future__ import annotations

from collections.abc import Iterable

import orjson
import yaml


def indented(value: object) -> str:
    """Returns the value as JSON with an indent of two spaces.

    Raises `orjson.JSONEncodeError` for types that JSON does not have.
    """
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n"


def as_list(items: Iterable[object]) -> dict[str, object]:
    """Returns a v1 List of the objects, as kubectl prints it."""
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


def as_yaml(value: object) -> str:
    """Returns the value as a YAML document: keys in their order, lines of about 110 characters, and
    characters beyond ASCII not escaped.

    Raises `yaml.representer.RepresenterError` for types that JSON does not have.
    """
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=110)


def document(output: str, value: object) -> str:
    """Returns the value as JSON if `output` is `json`, else as YAML."""
    return indented(value) if output == "json" else as_yaml(value)
