"""What commands and reports print for programs: a value as JSON or as YAML."""

from __future__ import annotations

from collections.abc import Iterable

import orjson
import yaml


def indented(value: object) -> str:
    """The value as JSON, two blanks a level. Raises `orjson.JSONEncodeError` for what is no JSON."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n"


def as_list(items: Iterable[object]) -> dict[str, object]:
    """Several objects as one, as kubectl prints them."""
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


def as_yaml(value: object) -> str:
    """The value as one YAML document, keys in their order, lines of about 110 characters, nothing escaped.

    Raises `yaml.representer.RepresenterError` for what is no JSON.
    """
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=110)


def document(output: str, value: object) -> str:
    """The value as `output` says: `json`, or else YAML."""
    return indented(value) if output == "json" else as_yaml(value)
