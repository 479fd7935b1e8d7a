"""Static types: what is known of a value before the expression runs. `DYN` is what nothing is known of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from webhook.cel.schema import Node
from webhook.cel.values import type_name


@dataclass(frozen=True, slots=True)
class Type:
    """A type by CEL's name; `elem` of lists, maps (values) and optionals; `node` if a schema is known."""

    name: str
    elem: Type | None = None
    node: Node | None = None

    @property
    def element(self) -> Type:
        """The element's type, `dyn` if unknown."""
        return self.elem or DYN


DYN: Final = Type("dyn")
BOOL: Final = Type("bool")
INT: Final = Type("int")
STRING: Final = Type("string")
LIST: Final = Type("list")
MAP: Final = Type("map")
NULL: Final = Type("null_type")
TYPE: Final = Type("type")
OPTIONAL: Final = Type("optional_type")
NUMBERS: Final = frozenset({"int", "uint", "double"})

_PRIMITIVE: Final = {"string": STRING, "integer": INT, "boolean": BOOL}


def of_value(value: Any) -> Type:
    """The type of a constant."""
    return Type(type_name(value))


def of_schema(node: Node | None) -> Type:
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


def accepts(param: str, given: Type) -> bool:
    """Can a value of this static type be passed where `param` ("string", "int|uint", "dyn") is wanted?"""
    return "dyn" in (param, given.name) or given.name in param.split("|")
