"""The two types that mutations create, `Object{}` and `JSONPatch{}`, checked against the object's schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from webhook.cel.compiler.aggregates import optional_at
from webhook.cel.compiler.code import Code
from webhook.cel.compiler.declarations import Declarations
from webhook.cel.syntax.ast import Binary, Literal, Struct
from webhook.cel.syntax.ast import ExprNode as AstNode
from webhook.cel.syntax.hints import nearest
from webhook.cel.values import types
from webhook.cel.values.errors import CelError
from webhook.cel.values.schema import ANY, SchemaNode
from webhook.cel.values.types import Type
from webhook.cel.values.values import JSONPatch, ObjectValue, type_name

Field = tuple[str, int, Code, bool]


_PATCH_FIELDS: Final = {"op": "op", "path": "path", "from": "source", "value": "value"}


_PATCH_OPS: Final = frozenset({"add", "remove", "replace", "move", "copy", "test"})


def struct(node: Struct, fields: list[Field], declared: Declarations) -> Code:
    """Returns the code of `Object.path{…}` or `JSONPatch{…}`. Raises CelError for any other type."""
    if declared.mutations and node.name == "JSONPatch":
        return _json_patch(node, fields, declared.object_schema)
    if declared.mutations and node.name.split(".")[0] == "Object":
        return _object_code(node, fields, declared.object_schema)
    hint = "" if declared.mutations else "; Object{} and JSONPatch{} belong to mutations"
    raise CelError("undeclared", f"unknown type {node.name!r}{hint}", node.pos)


def _json_patch(node: Struct, fields: list[Field], schema: SchemaNode | None) -> Code:
    for (name, pos, code, _), (_, _, value, _) in zip(fields, node.fields, strict=True):
        if name in ("path", "from") and schema is not None:
            _check_pointer(known_prefix(value, code), schema, value.pos)
        if name not in _PATCH_FIELDS:
            raise CelError("type", f"JSONPatch has no field {name!r}; it has op, path, from and value", pos)
        if name != "value" and code.type.name not in ("dyn", "string", "optional_type"):
            raise CelError("type", f"JSONPatch's {name} must be a string, not {code.type.name}", pos)
        if name == "op" and isinstance(code.constant, str) and code.constant not in _PATCH_OPS:
            raise CelError("type", f"JSONPatch's op must be one of {', '.join(sorted(_PATCH_OPS))}", pos)
    assign = _assigner(fields)

    def run(f: list[Any]) -> JSONPatch:
        fields: dict[str, Any] = {}
        for name, pos, value in assign(f):
            if name != "value" and type(value) is not str:
                raise CelError(
                    "evaluation", f"JSONPatch's {name} must be a string, not {type_name(value)}", pos
                )
            fields[_PATCH_FIELDS[name]] = value
        return JSONPatch(**fields, has_value="value" in fields)

    return Code(run, Type("JSONPatch"))


def _object_code(node: Struct, fields: list[Field], schema: SchemaNode | None) -> Code:
    place = _place(schema, node.name.split(".")[1:]) if schema else ANY
    if place is None:
        raise CelError("type", f"unknown type {node.name}: no such field path", node.pos)
    for name, pos, code, optional in fields:
        _check_field(node.name, name, pos, code, optional, place)
    assign = _assigner(fields)
    type_of = node.name
    prefix = f"{type_of}."

    def run(f: list[Any]) -> ObjectValue:
        out = ObjectValue(type_of)
        for name, pos, value in assign(f):
            _check_value(value, prefix + name, pos)
            out[name] = value
        return out

    return Code(run, Type(type_of))


def _place(schema: SchemaNode, steps: list[str]) -> SchemaNode | None:
    """Returns the schema of a type path such as `spec.template`; a list counts as its element.

    ANY if the schema ends before the path does; None if the path has an unknown field.
    """
    node: SchemaNode | None = schema
    for step in steps:
        if node is None or node.kind == "any":
            break
        node = node.items if node.kind == "map" else node.fields.get(step)
        while node is not None and node.kind == "list":
            node = node.items
    return node


def _check_field(owner: str, name: str, pos: int, code: Code, optional: bool, place: SchemaNode) -> None:
    if place.kind != "object":
        return
    child = place.fields.get(name)
    if child is None:
        raise CelError("type", f"{owner} has no field {name!r}{nearest(name, place.fields)}", pos)
    value_type = code.type.element if optional else code.type
    _check_type(child, value_type, f"{owner}.{name}", pos)


def _check_type(child: SchemaNode, value_type: Type, path: str, pos: int) -> None:
    expected = _expected_types(child, path)
    if (
        value_type.name not in ("dyn", "null_type", "optional_type")
        and expected
        and value_type.name not in expected
    ):
        raise CelError("type", f"{path} must be {' or '.join(expected)}, not {value_type.name}", pos)
    if child.kind == "list" and child.items is not None and value_type.elem is not None:
        _check_type(child.items, value_type.elem, path, pos)


def _expected_types(child: SchemaNode, path: str) -> tuple[str, ...]:
    if child.kind == "object":
        return (path,)
    if child.kind == "map":
        return ("map", path)
    if child.kind == "list":
        return ("list",)
    name = types.of_schema(child).name
    return () if name == "dyn" else (name,)


def known_prefix(node: AstNode, code: Code) -> tuple[str, bool]:
    """Returns the constant prefix of a string expression, and whether it is the whole string."""
    if isinstance(code.constant, str):
        return code.constant, True
    while isinstance(node, Binary) and node.op == "+":
        node = node.left
    return (node.value, False) if isinstance(node, Literal) and isinstance(node.value, str) else ("", False)


def _check_pointer(constant: tuple[str, bool], schema: SchemaNode, pos: int) -> None:
    """Raises CelError if a JSON Pointer leads through a field that does not exist.

    `constant`: the result of `known_prefix`. If it is only a prefix, its last step may be incomplete, and is
    not checked.
    """
    text, whole = constant
    if not text:
        return
    if not text.startswith("/"):
        raise CelError("type", "a JSON pointer begins with '/'", pos)
    steps = text.split("/")[1:]
    node: SchemaNode | None = schema
    for step in steps if whole else steps[:-1]:
        name = step.replace("~1", "/").replace("~0", "~")
        if node is None or node.kind == "any":
            return
        node = _step(node, name, pos)


def _step(node: SchemaNode, name: str, pos: int) -> SchemaNode | None:
    if node.kind == "map":
        return node.items
    if node.kind == "list":
        if name != "-" and not name.isdecimal():
            raise CelError("type", f"JSON pointer: {name!r} is no index of a list", pos)
        return node.items
    if node.kind != "object":
        raise CelError("type", f"JSON pointer: {name!r} lies below a {node.kind}", pos)
    if name not in node.fields:
        raise CelError("type", f"JSON pointer: no field {name!r}{nearest(name, node.fields)}", pos)
    return node.fields[name]


def _check_value(value: Any, path: str, pos: int) -> None:
    """Raises CelError if an `Object{}` inside another one does not have the type of its field."""
    if isinstance(value, list):
        for item in value:
            _check_value(item, path, pos)
    elif isinstance(value, ObjectValue) and value.type_name != path:
        raise CelError("evaluation", f"{path} cannot hold {value.type_name}: the type must be {path}", pos)


def _assigner(fields: list[Field]) -> Callable[[list[Any]], list[tuple[str, int, Any]]]:
    parts = [(name, pos, code.run, optional) for name, pos, code, optional in fields]

    def assign(f: list[Any]) -> list[tuple[str, int, Any]]:
        out = []
        for name, pos, value_of, optional in parts:
            value = value_of(f)
            if optional:
                value = optional_at(value, pos)
                if not value.present:
                    continue
                value = value.value
            out.append((name, pos, value))
        return out

    return assign
