"""Static types: the type of a value as far as it is known before evaluation. `DYN` is an unknown type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from webhook.cel.values.schema import SchemaNode
from webhook.cel.values.values import type_name


@dataclass(frozen=True, slots=True)
class Type:
    """A type by its name in CEL. `elem`: the type of a list's elements, a map's values or an optional's
    value. `node`: the schema of an object, if known.
    """

    name: str
    elem: Type | None = None
    node: SchemaNode | None = None

    @property
    def element(self) -> Type:
        """The type of elements, `DYN` if unknown."""
        return self.elem or DYN


DYN: Final = Type("dyn")


BOOL: Final = Type("bool")


INT: Final = Type("int")


STRING: Final = Type("string")


LIST: Final = Type("list")


NUMBERS: Final = frozenset({"int", "uint", "double"})


_PRIMITIVE: Final = {"string": STRING, "integer": INT, "boolean": BOOL}


def of_value(value: Any) -> Type:
    """Returns the type of a constant."""
    return Type(type_name(value))


def of_schema(node: SchemaNode | None) -> Type:
    """Returns the type of a schema node; `DYN` if values may be of several types, such as quantities."""
    if node is None:
        return DYN
    if node.kind == "object":
        return Type("map", node=node)
    if node.kind == "map":
        return Type("map", of_schema(node.items))
    if node.kind == "list":
        return Type("list", of_schema(node.items))
    return _PRIMITIVE.get(node.kind, DYN)


def join(types: list[Type]) -> Type:
    """Returns the type of a value that has one of these types: `DYN` unless they are equal."""
    first = types[0] if types else DYN
    return first if all(other == first for other in types) else DYN


def accepts(param: str, value_type: Type) -> bool:
    """Returns whether a value of this static type may be passed for `param` ("string", "int|uint", "dyn")."""
    return "dyn" in (param, value_type.name) or value_type.name in param.split("|")


def variable(target: Type, position: int, count: int) -> Type:
    """Returns the type of a macro's variable: a list's element or index, a map's key or value.

    `position`: the variable's index among the macro's `count` variables.
    """
    if target.name == "list":
        return target.element if position == count - 1 else INT
    if target.name == "map" and target.node is not None:
        return STRING if position == 0 else DYN
    return target.element if target.name == "map" and position == 1 else DYN


def macro(kind: str, target: Type, result: Type) -> Type:
    """Returns the type of a macro's value, by the types of its target and of its last expression."""
    if kind in ("all", "exists", "exists_one", "existsOne"):
        return BOOL
    if kind in ("map", "transformList"):
        return Type("list", result)
    if kind in ("filter", "sortBy"):
        return target if target.name == "list" else LIST
    return Type("map", result if kind == "transformMap" else None)
