"""The parameters of Bayplan's policies: texts by key, for the whole cluster and for single namespaces. Pure.

They are the `data` of ConfigMaps with one name. A key `namespace.NAME.KEY` replaces KEY for the namespace
NAME; a namespace's name has no dots, so every key is unambiguous.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import re2

Json = Mapping[str, Any]


PARAMETERS = "bayplan-parameters"
"""The name of Bayplan's own ConfigMap. Policies get its content only from Bayplan's configuration, never from
another object of this name.
"""


MOST_QUOTED = 80
"""Maximum characters of a value in a message; a value may be as long as a ConfigMap, 1 MiB."""


UNKNOWN = "there is no such parameter"


_SCOPED = re.compile(r"namespace\.([^.]*)\.(.+)")


_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Texts:
    """The values of parameters: `everywhere` by key, and `scoped` by namespace and key."""

    everywhere: Mapping[str, str]
    scoped: Mapping[str, Mapping[str, str]]

    def of(self, namespace: str) -> Mapping[str, str]:
        """Returns the values for a namespace, by key."""
        own = self.scoped.get(namespace)
        return {**self.everywhere, **own} if own else self.everywhere


def texts(entries: Iterable[tuple[str, str]]) -> Texts:
    """Returns parameters given as (key, value); the last value of a repeated key counts."""
    everywhere: dict[str, str] = {}
    scoped: dict[str, dict[str, str]] = {}
    for key, value in entries:
        namespace, name = scope(key)
        (scoped.setdefault(namespace, {}) if namespace else everywhere)[name] = value
    return Texts(everywhere, scoped)


def scope(key: str) -> tuple[str, str]:
    """Returns the namespace to which a key applies ("" for all) and the key without it."""
    scoped = _SCOPED.fullmatch(key) if key.startswith("namespace.") else None
    return (scoped[1], scoped[2]) if scoped else ("", key)


def scope_fault(key: str) -> str:
    """Returns why a key cannot apply to any namespace, "" if it applies to one or all."""
    if not key.startswith("namespace.") or _NAMESPACE.fullmatch(scope(key)[0]):
        return ""
    return "names no namespace; the form is namespace.NAME.KEY"


def is_parameters(obj: Json) -> bool:
    """Returns whether an object is a ConfigMap named `bayplan-parameters`, in any namespace."""
    metadata = obj.get("metadata")
    has_name = isinstance(metadata, Mapping) and metadata.get("name") == PARAMETERS
    return has_name and obj.get("apiVersion") == "v1" and obj.get("kind") == "ConfigMap"


def data_of(obj: Json) -> dict[str, str]:
    """Returns the data of a ConfigMap by key; values that YAML reads as numbers or booleans become text."""
    data = obj.get("data")
    return {str(key): text_of(value) for key, value in data.items()} if isinstance(data, Mapping) else {}


def text_of(value: Any) -> str:
    """Returns the text that a value of a YAML file would be in a ConfigMap."""
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


def quoted(text: str) -> str:
    """Returns a value for a message, shortened if it is long."""
    return repr(text) if len(text) <= MOST_QUOTED else f"{text[:MOST_QUOTED]!r}…"


@dataclass(frozen=True, slots=True)
class ParameterRules:
    """The rules of a JSON schema for a ConfigMap's data. `by_key`: the subschema of each known key. `closed`:
    other keys are invalid.

    Only the parts of JSON Schema that a ConfigMap needs are read: `properties.data.properties` with `enum` or
    `pattern`, and `additionalProperties: false`.
    """

    by_key: Mapping[str, Any] = field(default_factory=dict)
    closed: bool = False

    def fault(self, key: str, value: str, *, hint: bool = True) -> str:
        """Returns the problem of a parameter, "" for none. `hint`: name a similar key for an unknown one."""
        if wrong := scope_fault(key):
            return wrong
        _, name = scope(key)
        rule = self.by_key.get(name)
        if rule is None:
            return UNKNOWN + (self._hint(name) if hint else "") if self.closed else ""
        return _wrong(value, rule) if isinstance(rule, Mapping) else ""

    def _hint(self, key: str) -> str:
        near = difflib.get_close_matches(key, list(self.by_key), 1)
        return f"; is {near[0]} meant?" if near else f"; known: {', '.join(sorted(self.by_key))}"


NO_RULES = ParameterRules()


def rules_of(schema: Any) -> ParameterRules:
    """Returns the rules in a JSON schema; none if it does not have the expected form."""
    data = _map_at(schema, "properties", "data")
    return ParameterRules(_map_at(data, "properties"), data.get("additionalProperties") is False)


def name_in(schema: Any) -> str | None:
    """Returns the object name that a JSON schema requires; None for any."""
    name = _map_at(schema, "properties", "metadata", "properties", "name").get("const")
    return name if isinstance(name, str) else None


def _wrong(text: str, rule: Json) -> str:
    """Returns why a value is invalid, "" if it is valid."""
    valid = rule.get("enum")
    if isinstance(valid, list) and text not in map(str, valid):
        return f"{quoted(text)} is not valid; use {' or '.join(map(str, valid))}"
    pattern = rule.get("pattern")
    if isinstance(pattern, str) and not _reads_as(pattern, text):
        default = str(rule.get("default", ""))
        return f"{quoted(text)} is not valid; the default is {default!r}, the form {pattern}"
    return ""


def _reads_as(pattern: str, text: str) -> bool:
    try:
        return re2.search(pattern, text) is not None
    except re2.error:
        return True  # an invalid pattern excludes nothing


def _map_at(value: Any, *path: str) -> Json:
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}
