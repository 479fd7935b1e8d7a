"""Prints values as JSON or YAML, for commands and reports."""

from __future__ import annotations

import re
from collections.abc import Iterable

import orjson
import yaml

from webhook.files.yaml_documents import RESOLVERS


class _Dumper(yaml.SafeDumper):
    """Puts text in quotes that a reader would take for another value without them: a reader of YAML 1.1, by
    PyYAML's own patterns, or kubectl, which reads `08`, `1e3` and `y` as 8, 1000 and true. Writes no aliases:
    in a diff, their numbers would look like changes.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012 - as PyYAML declares it
        first: [*yaml.SafeDumper.yaml_implicit_resolvers.get(first, ()), *RESOLVERS.get(first, ())]
        for first in {*yaml.SafeDumper.yaml_implicit_resolvers, *RESOLVERS}
    }

    def ignore_aliases(self, data: object) -> bool:
        """Returns true: a value that occurs twice is written twice."""
        return True


_Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^[yYnN]$"), list("yYnN"))


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
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


def document(output: str, value: object) -> str:
    """Returns the value as JSON if `output` is `json`, else as YAML."""
    return indented(value) if output == "json" else as_yaml(value)
