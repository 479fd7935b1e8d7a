"""Static types: what is known of a value before the expression runs. `DYN` is what nothing is known of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from webhook.cel.values.schema import SchemaNode
from webhook.cel.values.values import type_name


@dataclass(frozen=True, slots=True)
class Type:
    """A type by CEL's name; `elem` of lists, maps (values) and optionals; `node` if a schema is known."""

    name: str
    elem: Type | None = None
    node: SchemaNode | None = None

    @property
    def element(self) -> Type:
        """The element's type, `dyn` if unknown."""
        return self.elem or DYN


DYN: Final = Type("dyn")


BOOL: Final = Type("bool")


INT: Final = Type("int")


STRING: Final = Type("string")


LIST: Final = Type("list")


NULL: Final = Type("null_type")


NUMBERS: Final = frozenset({"int", "uint", "double"})


_PRIMITIVE: Final = {"string": STRING, "integer": INT, "boolean": BOOL}


def of_value(value: Any) -> Type:
    """The type of a constant."""
    return Type(type_name(value))


def of_schema(node: SchemaNode | None) -> Type:
    """The type of what a schema node describes. Quantities and int-or-strings may be either, so `dyn`."""
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
    """The common type of alternatives: the same one, or `dyn`."""
    first = types[0] if types else DYN
    return first if all(other == first for other in types) else DYN


def accepts(param: str, value_type: Type) -> bool:
    """Can a value of this static type be passed where `param` ("string", "int|uint", "dyn") is wanted?"""
    return "dyn" in (param, value_type.name) or value_type.name in param.split("|")


def variable(target: Type, position: int, count: int) -> Type:
    """The type of a macro's variable: a list's element or index, a map's key or value."""
    if target.name == "list":
        return target.element if position == count - 1 else INT
    if target.name == "map" and target.node is not None:
        return STRING if position == 0 else DYN
    return target.element if target.name == "map" and position == 1 else DYN


def macro(kind: str, target: Type, result: Type) -> Type:
    """The type of a macro's value, from those of its target and of its last expression."""
    if kind in ("all", "exists", "exists_one", "existsOne"):
        return BOOL
    if kind in ("map", "transformList"):
        return Type("list", result)
    if kind in ("filter", "sortBy"):
        return target if target.name == "list" else LIST
    return Type("map", result if kind == "transformMap" else None)
