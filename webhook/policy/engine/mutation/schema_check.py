"""Finds the schema of the kind that a policy matches, and checks mutated objects against it.

The fields of objects of a kind without a schema (a CRD) are not checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from planner.model.names import dotted
from webhook.cel.values import schema as schemas
from webhook.cel.values.schema import SchemaNode
from webhook.jsontools.path import Path
from webhook.policy.model.match import MatchResources
from webhook.wire.request import plural

_KINDS: dict[str, tuple[type, ...]] = {
    "object": (Mapping,),
    "map": (Mapping,),
    "list": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "quantity": (str, int, float),
    "int-or-string": (int, str),
}


def schema_of(match: MatchResources) -> SchemaNode | None:
    """Returns the schema of the CEL variable `object`; None unless all rules of the policy match one known
    kind.
    """
    expected = {
        (group, resource) for rule in match.rules for group in rule.api_groups for resource in rule.resources
    }
    if len(expected) != 1:
        return None
    ((group, resource),) = expected
    for api_version, kind in schemas.kinds():
        if api_version.rpartition("/")[0] == group and plural(kind) == resource:
            return schemas.lookup(api_version, kind)
    return None


class ShapeError(ValueError):
    """A mutation wrote a field or a value that the object's kind does not allow."""


def check_shape(before: Mapping[str, Any], after: Any) -> None:
    """Raises ShapeError for an unknown field, or a value of the wrong type.

    Only differences from `before` are checked: an object that was invalid in the request is not the policy's
    fault. A change of `apiVersion` or `kind` is an error too.
    """
    if not isinstance(after, Mapping):
        raise ShapeError("the result must be an object")
    for field in ("apiVersion", "kind"):
        if after.get(field) != before.get(field):
            raise ShapeError(f"{field} may not change")
    if not isinstance(after.get("metadata") or {}, Mapping):  # of every kind, also of those without a schema
        raise ShapeError("metadata must be an object")
    schema = schemas.lookup(str(before.get("apiVersion", "")), str(before.get("kind", "")))
    for problem in _misfits(schema, before, after, ()):
        raise ShapeError(problem)


def _misfits(node: SchemaNode | None, before: Any, after: Any, path: Path) -> Iterator[str]:
    """Yields a problem for each value below `path` that differs from `before` and does not fit the schema."""
    if node is None or node.kind == "any" or after is None or before is after:
        return
    if type(after) is str and node.kind == "string":
        return
    if not isinstance(after, _KINDS[node.kind]) or (isinstance(after, bool) and node.kind != "boolean"):
        if type(before) is not type(after) or before != after:
            yield f"{dotted(path)} must be {_article(node.kind)}"
    elif isinstance(after, Mapping):
        old = before if isinstance(before, Mapping) else {}
        for key, value in after.items():
            schema = node.items if node.kind == "map" else node.fields.get(key)
            if schema is not None:
                yield from _misfits(schema, old.get(key), value, (*path, key))
            elif key not in old:
                yield f"{dotted((*path, key))} is no field of this kind"
    elif isinstance(after, list):
        items = before if isinstance(before, list) else []
        for index, value in enumerate(after):
            if value not in items:
                former = items[index] if index < len(items) else None
                yield from _misfits(node.items, former, value, (*path, index))


def _article(kind: str) -> str:
    words = {"integer": "an integer", "object": "an object", "int-or-string": "an integer or a string"}
    return words.get(kind, f"a {kind}")
