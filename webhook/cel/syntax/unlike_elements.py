"""Lists and maps whose elements have unlike types, which the API server refuses to compile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Final

from webhook.cel.syntax import ast
from webhook.cel.syntax.grammar import parse
from webhook.cel.values.errors import CelError, Origin
from webhook.cel.values.values import type_name

_UNTYPED: Final = frozenset({"object", "oldObject", "params"})
"""Variables whose fields have no static type in the API server: `dyn`."""
_CONVERSIONS: Final = frozenset({"string", "int", "uint", "double", "bool", "bytes", "dyn"})
"""Functions whose result is of the type that is their name."""


def unlike_elements(text: str, origin: Origin | None = None) -> Iterator[CelError]:
    """Yields an error for each list or map of a valid expression whose elements have unlike types.

    The API server allows them only as arguments of `format()` (cel-go, ext/strings.go). Types that are not
    obvious, such as those of results of most functions, are not judged.
    """
    for pos, message in _problems(parse(text)):
        yield CelError("type", message, pos).locate(text, origin)


def _problems(tree: ast.ExprNode) -> Iterator[tuple[int, str]]:
    if isinstance(tree, ast.ListLiteral):
        yield from _unlike("elements", tree.pos, [item for item, _ in tree.items])
    elif isinstance(tree, ast.MapLiteral):
        yield from _unlike("keys", tree.pos, [key for key, _, _ in tree.entries])
        yield from _unlike("values", tree.pos, [value for _, value, _ in tree.entries])
    formats = isinstance(tree, ast.Call) and tree.name == "format"
    for child in _children(getattr(tree, each.name) for each in fields(tree)):
        if not (formats and isinstance(child, ast.ListLiteral)):
            yield from _problems(child)


def _children(values: Iterable[object]) -> Iterator[ast.ExprNode]:
    for value in values:
        if isinstance(value, ast.ExprNode):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _children(value)


def _unlike(parts: str, pos: int, nodes: list[ast.ExprNode]) -> Iterator[tuple[int, str]]:
    kinds = list(dict.fromkeys(kind for node in nodes if (kind := _static_type(node))))
    if len(kinds) > 1:
        shown = " and ".join("fields without a type" if kind == "dyn" else kind for kind in kinds[:2])
        yield pos, f"the API server refuses {parts} of unlike types, {shown}: write dyn(…) around each"


def _static_type(node: ast.ExprNode) -> str:
    """Returns the type that the API server's compiler knows of a node; "" if it is not obvious."""
    if isinstance(node, ast.Literal):
        return type_name(node.value)
    if isinstance(node, ast.Call) and node.target is None and node.name in _CONVERSIONS:
        return node.name
    return "dyn" if _is_field_of_untyped(node) else ""


def _is_field_of_untyped(node: ast.ExprNode) -> bool:
    if isinstance(node, ast.Select) and not node.optional and not node.test:
        return _is_untyped(node.operand)
    return isinstance(node, ast.Index) and not node.optional and _is_untyped(node.operand)


def _is_untyped(node: ast.ExprNode) -> bool:
    return _is_field_of_untyped(node) or (isinstance(node, ast.Ident) and node.name in _UNTYPED)
