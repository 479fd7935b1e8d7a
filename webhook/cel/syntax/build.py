"""Creates syntax nodes from the parser's grammar reductions, and expands macros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from lark import Token, Transformer

from webhook.cel.syntax import ast, literals
from webhook.cel.syntax.ast import ExprNode
from webhook.cel.syntax.macros import expand, measure
from webhook.cel.values.errors import CelError

KEYWORDS: Final = frozenset({"true", "false", "null", "in"})


RESERVED: Final = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)


_CONSTANTS: Final = {"true": True, "false": False, "null": None}


def _nodes(children: list[Any]) -> list[Any]:
    """Returns the children without tokens (punctuation)."""
    return [child for child in children if not isinstance(child, Token)]


def _field(token: Token) -> str:
    name = str(token)
    if name.startswith("`"):
        return name[1:-1]
    if name in KEYWORDS:
        raise CelError("syntax", f"{name!r} is a keyword and cannot name a field", token.start_pos or 0)
    return name


def _position(token: Any) -> int:
    return token.start_pos or 0


class TreeBuilder(Transformer[Token, ExprNode]):
    """Creates a node for each grammar rule. The parser calls the method named after the rule, bottom up, with
    the rule's children.
    """

    def expr(self, c: list[Any]) -> ExprNode:
        if len(c) == 1:
            return c[0]  # type: ignore[no-any-return]
        return measure(ast.Conditional(_position(c[1]), c[0], c[2], c[4]), c[0], c[2], c[4])

    def _logic(self, c: list[Any]) -> ExprNode:
        if len(c) == 1:
            return c[0]  # type: ignore[no-any-return]
        left, token, right = c
        # `a && b && c` is reduced from the left: a term is added to the node of the terms before it.
        if isinstance(left, ast.Logic) and left.op == token:
            left.terms.append(right)
            left.depth = max(left.depth, right.depth + 1)
            left.weight += right.weight
            return left
        return measure(ast.Logic(_position(token), str(token), [left, right]), left, right)

    conditionalor = conditionaland = _logic

    def _operator(self, c: list[Any]) -> Any:
        return tuple(c)

    relation_lt = relation_le = relation_gt = relation_ge = relation_eq = relation_ne = relation_in = (
        _operator
    )
    addition_add = addition_sub = multiplication_mul = multiplication_div = multiplication_mod = _operator

    def _binary(self, c: list[Any]) -> ExprNode:
        if len(c) == 1:
            return c[0]  # type: ignore[no-any-return]
        (left, token), right = c
        return measure(ast.Binary(_position(token), str(token), left, right), left, right)

    relation = addition = multiplication = _binary

    def unary_not(self, c: list[Any]) -> Any:
        return c[0]

    unary_neg = unary_not

    def unary(self, c: list[Any]) -> ExprNode:
        if len(c) == 1:
            return c[0]  # type: ignore[no-any-return]
        token, operand = c
        return measure(ast.Unary(_position(token), str(token), operand), operand)

    def member(self, c: list[Any]) -> ExprNode:
        return c[0]  # type: ignore[no-any-return]

    def primary(self, c: list[Any]) -> ExprNode:
        return c[0]  # type: ignore[no-any-return]

    def member_dot(self, c: list[Any]) -> ExprNode:
        return measure(ast.Select(_position(c[2]), c[0], _field(c[2])), c[0])

    def member_opt(self, c: list[Any]) -> ExprNode:
        return measure(ast.Select(_position(c[3]), c[0], _field(c[3]), optional=True), c[0])

    def member_dot_arg(self, c: list[Any]) -> ExprNode:
        args = c[4] if len(c) == 6 else []
        return expand(ast.Call(_position(c[2]), str(c[2]), c[0], args))

    def member_index(self, c: list[Any]) -> ExprNode:
        return measure(ast.Index(_position(c[1]), c[0], c[2]), c[0], c[2])

    def member_opt_index(self, c: list[Any]) -> ExprNode:
        return measure(ast.Index(_position(c[1]), c[0], c[3], optional=True), c[0], c[3])

    def member_object(self, c: list[Any]) -> ExprNode:
        name = dotted(c[0])
        if name is None:
            raise CelError("syntax", "a type name must stand before '{'", _position(c[1]))
        fields = next((child for child in c[2:] if isinstance(child, list)), [])
        node = ast.Struct(c[0].pos if isinstance(c[0], ast.Ident) else _start(c[0]), name, fields)
        return measure(node, *[value for _, _, value, _ in fields])

    def fieldinits(self, c: list[Any]) -> Any:
        return _nodes(c)

    def fieldinit(self, c: list[Any]) -> Any:
        optional = c[0] == "?"
        token, _, value = c[1:] if optional else c
        return _field(token), _position(token), value, optional

    def dot_ident_arg(self, c: list[Any]) -> ExprNode:
        args = c[3] if len(c) == 5 else []
        return expand(ast.Call(_position(c[1]), str(c[1]), None, args))

    def ident_arg(self, c: list[Any]) -> ExprNode:
        args = c[2] if len(c) == 4 else []
        return expand(ast.Call(_position(c[0]), str(c[0]), None, args))

    def dot_ident(self, c: list[Any]) -> ExprNode:
        return ast.Ident(_position(c[1]), _name(c[1]), absolute=True)

    def ident(self, c: list[Any]) -> ExprNode:
        if c[0] in _CONSTANTS:
            return ast.Literal(_position(c[0]), _CONSTANTS[str(c[0])])
        return ast.Ident(_position(c[0]), _name(c[0]))

    def paren_expr(self, c: list[Any]) -> ExprNode:
        return c[1]  # type: ignore[no-any-return]

    def exprlist(self, c: list[Any]) -> Any:
        return _nodes(c)

    def list_lit(self, c: list[Any]) -> ExprNode:
        items = next((child for child in c[1:] if isinstance(child, list)), [])
        return measure(ast.ListLiteral(_position(c[0]), items), *[item for item, _ in items])

    def listitems(self, c: list[Any]) -> Any:
        return _nodes(c)

    def listitem(self, c: list[Any]) -> Any:
        return c[-1], len(c) == 2

    def map_lit(self, c: list[Any]) -> ExprNode:
        entries = next((child for child in c[1:] if isinstance(child, list)), [])
        return measure(
            ast.MapLiteral(_position(c[0]), entries), *[part for entry in entries for part in entry[:2]]
        )

    def mapinits(self, c: list[Any]) -> Any:
        return _nodes(c)

    def mapinit(self, c: list[Any]) -> Any:
        optional = isinstance(c[0], Token) and c[0] == "?"
        key, _, value = c[1:] if optional else c
        return key, value, optional

    def literal(self, c: list[Any]) -> ExprNode:
        token: Token = c[0]
        try:
            return ast.Literal(_position(token), _LITERALS[token.type](str(token)))
        except literals.LiteralError as bad:
            raise CelError("syntax", str(bad), _position(token)) from None


_LITERALS: Final[dict[str, Callable[[str], Any]]] = {
    "INT_LIT": literals.integer,
    "UINT_LIT": literals.unsigned,
    "FLOAT_LIT": float,
    "STRING_LIT": literals.string,
    "MLSTRING_LIT": literals.string,
    "BYTES_LIT": literals.byte_string,
}


def _name(token: Token) -> str:
    if token in RESERVED or token in KEYWORDS:
        raise CelError("syntax", f"{str(token)!r} is a reserved word", _position(token))
    return str(token)


def dotted(node: ExprNode) -> str | None:
    """Returns "a.b.c" for a chain of plain selections from a name; None for any other node."""
    parts: list[str] = []
    while isinstance(node, ast.Select) and not node.optional and not node.test:
        parts.append(node.field)
        node = node.operand
    if not isinstance(node, ast.Ident):
        return None
    return ".".join([node.name, *reversed(parts)])


def _start(node: ExprNode) -> int:
    while isinstance(node, ast.Select):
        node = node.operand
    return node.pos
