"""The nodes of the syntax tree."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class ExprNode:
    """The base of all nodes. `pos`: offset in the text. `depth`: the number of levels of the tree below and
    with the node, limited because closures recurse. `weight`: the number of nodes in this tree, which is the
    cost of evaluating it once.
    """

    pos: int
    depth: int = field(default=1, kw_only=True)
    weight: int = field(default=1, kw_only=True)


@dataclass(slots=True)
class Literal(ExprNode):
    """A constant."""

    value: Any


@dataclass(slots=True)
class Ident(ExprNode):
    """A name; `absolute` for `.name`, which never means a macro's variable."""

    name: str
    absolute: bool = False


@dataclass(slots=True)
class Select(ExprNode):
    """`operand.field`, `operand.?field`; `test` inside `has()`."""

    operand: ExprNode
    field: str
    optional: bool = False
    test: bool = False


@dataclass(slots=True)
class Index(ExprNode):
    """`operand[index]`, `operand[?index]`."""

    operand: ExprNode
    index: ExprNode
    optional: bool = False


@dataclass(slots=True)
class Call(ExprNode):
    """`name(args)` or `target.name(args)`."""

    name: str
    target: ExprNode | None
    args: list[ExprNode]


@dataclass(slots=True)
class ListLiteral(ExprNode):
    """`[a, ?b]`: each item, and whether it is optional."""

    items: list[tuple[ExprNode, bool]]


@dataclass(slots=True)
class MapLiteral(ExprNode):
    """`{k: v, ?k: v}`: key, value, and whether the value is optional."""

    entries: list[tuple[ExprNode, ExprNode, bool]]


@dataclass(slots=True)
class Struct(ExprNode):
    """`Name.of.type{field: value}`: field, its offset, value, and whether the value is optional."""

    name: str
    fields: list[tuple[str, int, ExprNode, bool]]


@dataclass(slots=True)
class Unary(ExprNode):
    """`!x` or `-x`."""

    op: str
    operand: ExprNode


@dataclass(slots=True)
class Binary(ExprNode):
    """A comparison, membership or arithmetic operator."""

    op: str
    left: ExprNode
    right: ExprNode


@dataclass(slots=True)
class Logic(ExprNode):
    """`a && b && …` or `a || b || …` as one node, so that a long chain has no great depth."""

    op: str
    terms: list[ExprNode]


@dataclass(slots=True)
class Conditional(ExprNode):
    """`condition ? then : otherwise`."""

    condition: ExprNode
    then: ExprNode
    otherwise: ExprNode


@dataclass(slots=True)
class Comprehension(ExprNode):
    """A macro over a list or map. `kind`: its name. `names`: its one or two variables. `test`: a condition on
    elements, None for none. `result`: the expression that is evaluated for each element.
    """

    kind: str
    target: ExprNode
    names: list[str]
    test: ExprNode | None
    result: ExprNode | None


@dataclass(slots=True)
class Bind(ExprNode):
    """`cel.bind(name, value, body)`."""

    name: str
    value: ExprNode
    body: ExprNode


@dataclass(slots=True)
class OptionalMap(ExprNode):
    """`target.optMap(name, body)`; `flat` for optFlatMap."""

    target: ExprNode
    name: str
    body: ExprNode
    flat: bool
