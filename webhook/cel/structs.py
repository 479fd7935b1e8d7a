"""Lists, maps, and the two types that mutations build: `Object{}` and `JSONPatch{}`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import Any, Final

from webhook.cel import types
from webhook.cel.ast import Struct
from webhook.cel.code import Code
from webhook.cel.declarations import Declarations
from webhook.cel.errors import CelError
from webhook.cel.schema import ANY, Node
from webhook.cel.types import Type
from webhook.cel.values import JSONPatch, ObjectValue, Optional, to_key, type_name

Run = Callable[[list[Any]], Any]
Field = tuple[str, int, "Code", bool]
_PATCH_FIELDS: Final = {"op": "op", "path": "path", "from": "source", "value": "value"}
_PATCH_OPS: Final = frozenset({"add", "remove", "replace", "move", "copy", "test"})


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean …?` for a name that resembles a known one."""
    close = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def plain_list(items: list[Run]) -> Run:
    """`[a, b]`."""
    return lambda f: [item(f) for item in items]


def optional_list(items: list[Run], options: list[bool], places: list[int]) -> Run:
    """`[a, ?b]`: an optional item that is absent is left out."""

    def run(f: list[Any]) -> list[Any]:
        out = []
        for item, optional, pos in zip(items, options, places, strict=True):
            value = item(f)
            if optional:
                if not isinstance(value, Optional):
                    raise CelError("evaluation", f"'?' needs an optional, not {type_name(value)}", pos)
                if not value.present:
                    continue
                value = value.value
            out.append(value)
        return out

    return run


def make_map(parts: list[tuple[Run, Run, bool, int]]) -> Run:
    """`{k: v, ?k: v}`. Keys are strings, ints, uints or bools, each once."""

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
                if not isinstance(value, Optional):
                    raise CelError("evaluation", f"'?' needs an optional, not {type_name(value)}", pos)
                if not value.present:
                    continue
                value = value.value
            if key in out:
                raise CelError("evaluation", "a map's key is repeated", pos)
            out[key] = value
        return out

    return run


def struct(node: Struct, fields: list[Field], declared: Declarations) -> Code:
    """`Object.path{…}` or `JSONPatch{…}`; any other type is unknown."""
    if declared.mutations and node.name == "JSONPatch":
        return _json_patch(fields)
    if declared.mutations and node.name.split(".")[0] == "Object":
        return _object(node, fields, declared.object_schema)
    hint = "" if declared.mutations else "; Object{} and JSONPatch{} belong to mutations"
    raise CelError("undeclared", f"unknown type {node.name!r}{hint}", node.pos)


def _json_patch(fields: list[Field]) -> Code:
    for name, pos, code, _ in fields:
        if name not in _PATCH_FIELDS:
            raise CelError("type", f"JSONPatch has no field {name!r}; it has op, path, from and value", pos)
        if name != "value" and code.type.name not in ("dyn", "string", "optional_type"):
            raise CelError("type", f"JSONPatch's {name} must be a string, not {code.type.name}", pos)
        if name == "op" and isinstance(code.constant, str) and code.constant not in _PATCH_OPS:
            raise CelError("type", f"JSONPatch's op must be one of {', '.join(sorted(_PATCH_OPS))}", pos)
    assign = _assigner(fields)

    def run(f: list[Any]) -> JSONPatch:
        given: dict[str, Any] = {}
        for name, pos, value in assign(f):
            if name != "value" and type(value) is not str:
                raise CelError(
                    "evaluation", f"JSONPatch's {name} must be a string, not {type_name(value)}", pos
                )
            given[_PATCH_FIELDS[name]] = value
        return JSONPatch(**given, has_value="value" in given)

    return Code(run, Type("JSONPatch"))


def _object(node: Struct, fields: list[Field], schema: Node | None) -> Code:
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


def _place(schema: Node, steps: list[str]) -> Node | None:
    """Where a type path leads: a list stands for its element. ANY beyond what is known, None for no field."""
    node: Node | None = schema
    for step in steps:
        if node is None or node.kind == "any":
            break
        node = node.items if node.kind == "map" else node.fields.get(step)
        while node is not None and node.kind == "list":
            node = node.items
    return node


def _check_field(owner: str, name: str, pos: int, code: Code, optional: bool, place: Node) -> None:
    if place.kind != "object":
        return
    child = place.fields.get(name)
    if child is None:
        raise CelError("type", f"{owner} has no field {name!r}{nearest(name, place.fields)}", pos)
    given = (code.type.element if optional else code.type).name
    wanted = _wanted(child, f"{owner}.{name}")
    if given not in ("dyn", "null_type") and wanted and given not in wanted:
        raise CelError("type", f"{owner}.{name} must be {' or '.join(wanted)}, not {given}", pos)


def _wanted(child: Node, path: str) -> tuple[str, ...]:
    if child.kind == "object":
        return (path,)
    if child.kind == "map":
        return ("map", path)
    if child.kind == "list":
        return ("list",)
    name = types.of_schema(child).name
    return () if name == "dyn" else (name,)


def _check_value(value: Any, path: str, pos: int) -> None:
    """An `Object{}` inside another must carry the type of the field that it is put into."""
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
                if not isinstance(value, Optional):
                    raise CelError("evaluation", f"'?' needs an optional, not {type_name(value)}", pos)
                if not value.present:
                    continue
                value = value.value
            out.append((name, pos, value))
        return out

    return assign
