"""Parameters held to the JSON schema beside them: unknown keys, and values that are none of the valid ones.

Of JSON Schema what a ConfigMap needs is read: `properties.data.properties` with `enum` or `pattern`, and
`additionalProperties: false`. Values count as the text that they would be in a ConfigMap. Pure.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

import re2

from webhook.policy.loading.document import PolicyDocument
from webhook.policy.loading.errors import Problem

Json = Mapping[str, Any]


def faults(document: PolicyDocument, schema: Any) -> Iterator[Problem]:
    """What is wrong with the parameters of a document; nothing where the schema is for another object."""
    rules = _at(schema, "properties", "data", "properties")
    name = _at(schema, "properties", "metadata", "properties", "name").get("const")
    if name not in (None, _at(document.value, "metadata").get("name")):
        return
    closed = _at(schema, "properties", "data").get("additionalProperties") is False
    for key, value in _at(document.value, "data").items():
        rule = rules.get(key)
        if rule is None and closed:
            near = difflib.get_close_matches(str(key), list(rules), 1)
            hint = f"; is {near[0]} meant?" if near else f"; known: {', '.join(sorted(rules))}"
            yield document.problem(("data", key), f"no policy has such a parameter{hint}")
        elif isinstance(rule, Mapping) and (wrong := _wrong(_text(value), rule)):
            yield document.problem(("data", key), wrong)


def _wrong(text: str, rule: Json) -> str:
    """Why a value is none, "" where it is one."""
    valid = rule.get("enum")
    if isinstance(valid, list) and text not in map(str, valid):
        return f"{text!r} is not valid; use {' or '.join(map(str, valid))}"
    pattern = rule.get("pattern")
    if isinstance(pattern, str) and not _reads_as(pattern, text):
        return f"{text!r} is not valid; the default is {str(rule.get('default', ''))!r}, the form {pattern}"
    return ""


def _reads_as(pattern: str, text: str) -> bool:
    try:
        return re2.search(pattern, text) is not None
    except re2.error:
        return True  # a pattern that is none rules nothing out


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


def _at(value: Any, *path: str) -> Json:
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}
