"""The syntax tree. Every node carries its offset in the text, its depth and its weight (how many nodes)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Node:
    """What all nodes have. `depth` bounds recursion; `weight` is what evaluating the node once costs."""

    pos: int
    depth: int = field(default=1, kw_only=True)
    weight: int = field(default=1, kw_only=True)


@dataclass(slots=True)
class Literal(Node):
    """A constant."""

    value: Any


@dataclass(slots=True)
class Ident(Node):
    """A name; `absolute` for `.name`, which no local variable shadows."""

    name: str
    absolute: bool = False


@dataclass(slots=True)
class Select(Node):
    """`operand.field`, `operand.?field`; `test` inside `has()`."""

    operand: Node
    field: str
    optional: bool = False
    test: bool = False


@dataclass(slots=True)
class Index(Node):
    """`operand[index]`, `operand[?index]`."""

    operand: Node
    index: Node
    optional: bool = False


@dataclass(slots=True)
class Call(Node):
    """`name(args)` or `target.name(args)`."""

    name: str
    target: Node | None
    args: list[Node]


@dataclass(slots=True)
class ListLiteral(Node):
    """`[a, ?b]`: pairs of item and whether it is optional."""

    items: list[tuple[Node, bool]]


@dataclass(slots=True)
class MapLiteral(Node):
    """`{k: v, ?k: v}`: key, value, and whether the value is optional."""

    entries: list[tuple[Node, Node, bool]]


@dataclass(slots=True)
class Struct(Node):
    """`Name.of.type{field: value}`: field, its offset, value, and whether the value is optional."""

    name: str
    fields: list[tuple[str, int, Node, bool]]


@dataclass(slots=True)
class Unary(Node):
    """`!x` or `-x`."""

    op: str
    operand: Node


@dataclass(slots=True)
class Binary(Node):
    """A comparison, membership or arithmetic operator."""

    op: str
    left: Node
    right: Node


@dataclass(slots=True)
class Logic(Node):
    """`a && b && …` or `a || b || …`, flattened, so that a long chain is not a deep one."""

    op: str
    terms: list[Node]


@dataclass(slots=True)
class Conditional(Node):
    """`condition ? then : otherwise`."""

    condition: Node
    then: Node
    otherwise: Node


@dataclass(slots=True)
class Comprehension(Node):
    """A macro over a list or map. `kind` is its name; `names` one or two variables; `test` may be None."""

    kind: str
    target: Node
    names: list[str]
    test: Node | None
    result: Node | None


@dataclass(slots=True)
class Bind(Node):
    """`cel.bind(name, value, body)`."""

    name: str
    value: Node
    body: Node


@dataclass(slots=True)
class OptionalMap(Node):
    """`target.optMap(name, body)`; `flat` for optFlatMap."""

    target: Node
    name: str
    body: Node
    flat: bool
