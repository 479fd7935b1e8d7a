"""Macros: calls such as `has(x.y)` and `list.all(x, …)`, which the parser replaces by nodes of their own."""

from __future__ import annotations

from typing import Final

from webhook.cel.syntax import ast
from webhook.cel.syntax.ast import ExprNode
from webhook.cel.values.errors import CelError

MAX_DEPTH: Final = 150  # levels of nested operations; cel-go allows 250, but each needs a Python frame here


# By macro: the valid numbers of arguments after one variable, and after two variables.
_COMPREHENSIONS: Final[dict[str, tuple[tuple[int, ...], tuple[int, ...]]]] = {
    "all": ((1,), (1,)),
    "exists": ((1,), (1,)),
    "exists_one": ((1,), (1,)),
    "existsOne": ((1,), (1,)),
    "map": ((1, 2), ()),
    "filter": ((1,), ()),
    "transformList": ((), (1, 2)),
    "transformMap": ((), (1, 2)),
    "transformMapEntry": ((), (1, 2)),
    "sortBy": ((1,), ()),
}


def measure(node: ExprNode, *children: ExprNode) -> ExprNode:
    """Sets the depth and weight of a node from its children, and returns it. Raises CelError above
    `MAX_DEPTH`.
    """
    node.depth = 1 + max((child.depth for child in children), default=0)
    node.weight = 1 + sum(child.weight for child in children)
    if node.depth > MAX_DEPTH:
        raise CelError("syntax", f"expression is nested more than {MAX_DEPTH} deep", node.pos)
    return node


def expand(call: ast.Call) -> ExprNode:
    """Returns the node of a macro, or the call itself if it is not a macro. Raises CelError for a malformed
    macro.
    """
    target, args = call.target, call.args
    children = args if target is None else [target, *args]
    if target is None:
        return _has(call) if call.name == "has" else measure(call, *children)
    if isinstance(target, ast.Ident) and target.name == "cel" and call.name == "bind":
        return _bind(call)
    if call.name in ("optMap", "optFlatMap") and len(args) == 2:
        node = ast.OptionalMap(call.pos, target, _variable(args[0]), args[1], call.name == "optFlatMap")
        return measure(node, *children)
    if call.name in _COMPREHENSIONS:
        return _comprehension(call, target)
    return measure(call, *children)


def _has(call: ast.Call) -> ExprNode:
    if len(call.args) != 1 or not isinstance(call.args[0], ast.Select):
        raise CelError("syntax", "has() takes one field selection, such as has(object.spec)", call.pos)
    field = call.args[0]
    field.test = True
    return field


def _bind(call: ast.Call) -> ExprNode:
    if len(call.args) != 3:
        raise CelError("syntax", "cel.bind() takes a name, a value and an expression", call.pos)
    name, value, body = call.args
    return measure(ast.Bind(call.pos, _variable(name), value, body), value, body)


def _variable(node: ExprNode) -> str:
    if isinstance(node, ast.Ident) and not node.absolute:
        return node.name
    raise CelError("syntax", "a macro's variable must be a simple name", node.pos)


def _comprehension(call: ast.Call, target: ExprNode) -> ExprNode:
    counts, two = _COMPREHENSIONS[call.name]
    args = call.args
    if len(args) - 1 in counts and not (
        len(args) - 2 in two and isinstance(args[1], ast.Ident) and len(args) > 2
    ):
        names, rest = 1, args[1:]
    elif len(args) - 2 in two:
        names, rest = 2, args[2:]
    else:
        return measure(call, target, *args)  # a function may have this name and this number of arguments
    variables = [_variable(arg) for arg in args[:names]]
    if len(set(variables)) != names:
        raise CelError("syntax", "a macro's two variables need two names", args[1].pos)
    test = rest[0] if len(rest) == 2 else None
    node = ast.Comprehension(call.pos, call.name, target, variables, test, rest[-1])
    return measure(node, target, *rest)
