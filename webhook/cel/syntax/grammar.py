"""Parses text to a syntax tree, with a corrected and extended form of cel-python's grammar.

The grammar file comes from the installed `celpy` package. It lacks newer syntax of CEL, which is added here
(`.?`, `[?…]`, `{?k: v}`, `[?x]`, back-quoted field names, trailing commas). The string terminals are
replaced, because those of the file backtrack exponentially on an unfinished string. The tree is built during
the LALR reductions, so deep nesting cannot exhaust Python's stack.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from importlib import util
from pathlib import Path
from typing import Any, Final

from lark import Lark, UnexpectedInput
from lark.exceptions import LarkError, UnexpectedCharacters, UnexpectedToken

from webhook.cel.syntax.ast import ExprNode
from webhook.cel.syntax.build import TreeBuilder
from webhook.cel.values.errors import CelError

MAX_TEXT: Final = 32_768  # characters; cel-go allows 100,000, published policies are far below both limits


_REPLACED: Final = {
    "member": "member_dot | member_opt | member_dot_arg | member_index | member_opt_index | member_object"
    " | primary",
    "member_dot": 'member "." (IDENT | ESC_IDENT)',
    "member_index": 'member "[" expr "]"',
    "member_object": 'member "{" [fieldinits] "}"',
    "list_lit": '"[" [listitems] "]"',
    "map_lit": '"{" [mapinits] "}"',
    "fieldinits": 'fieldinit ("," fieldinit)* [","]',
    "mapinits": 'mapinit ("," mapinit)* [","]',
    "literal": "UINT_LIT | FLOAT_LIT | INT_LIT | MLSTRING_LIT | STRING_LIT | BYTES_LIT",
    "FLOAT_LIT": r'/-?/ DIGIT* "." DIGIT+ EXPONENT? | /-?/ DIGIT+ EXPONENT',
    "STRING_LIT": r"""/[rR]"[^"\r\n]*"|[rR]'[^'\r\n]*'"""
    r"""|"(?:\\[^\r\n]|[^"\\\r\n])*"|'(?:\\[^\r\n]|[^'\\\r\n])*'/""",
    "MLSTRING_LIT": r"""/[rR]\"\"\"(?:[^"]|"(?!""))*\"\"\"|[rR]'''(?:[^']|'(?!''))*'''"""
    r"""|\"\"\"(?:\\(?:.|\n|\r)|[^"\\]|"(?!""))*\"\"\"|'''(?:\\(?:.|\n|\r)|[^'\\]|'(?!''))*'''/""",
    "BYTES_LIT": r"""/(?:[bB][rR]|[rR][bB])(?:\"\"\"(?:[^"]|"(?!""))*\"\"\"|'''(?:[^']|'(?!''))*'''"""
    r"""|"[^"\r\n]*"|'[^'\r\n]*')|[bB](?:\"\"\"(?:\\(?:.|\n|\r)|[^"\\]|"(?!""))*\"\"\""""
    r"""|'''(?:\\(?:.|\n|\r)|[^'\\]|'(?!''))*'''|"(?:\\[^\r\n]|[^"\\\r\n])*"|'(?:\\[^\r\n]|[^'\\\r\n])*')/""",
}


_REMOVED: Final = ("BOOL_LIT", "NULL_LIT", "RESERVED.0")


_ADDED: Final = r"""
member_opt       : member "." "?" (IDENT | ESC_IDENT)
member_opt_index : member "[" "?" expr "]"
listitems        : listitem ("," listitem)* [","]
listitem         : ["?"] expr
mapinit          : ["?"] expr ":" expr
fieldinit        : ["?"] (IDENT | ESC_IDENT) ":" expr
ESC_IDENT        : /`[A-Za-z0-9_.\-\/ ]+`/
"""


def _patched(source: str) -> str:
    """Returns the packaged grammar with the changes of this module. Raises ValueError if a rule to replace is
    missing in it or occurs twice.
    """
    for name, body in {**_REPLACED, **dict.fromkeys(_REMOVED, "")}.items():
        rule = re.compile(rf"^{re.escape(name)}\s*:.*\n(?:[ \t]+[|].*\n)*", re.MULTILINE)
        replacement = f"{name} : {body}\n" if body else ""
        source, count = rule.subn(lambda _, text=replacement: text, source)  # type: ignore[misc]
        if count != 1:
            raise ValueError(f"the grammar of cel-python has no single rule {name}")
    return source + _ADDED


def _packaged() -> str:
    """Returns the grammar file of cel-python, without importing that package: the import would need libraries
    that nothing else uses and that the image does not contain (`make lock`).
    """
    package = util.find_spec("celpy")
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError("the package cel-python is not installed")
    return Path(package.submodule_search_locations[0], "cel.lark").read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _parser() -> Lark:
    return Lark(
        _patched(_packaged()),
        parser="lalr",
        start="expr",
        transformer=TreeBuilder(),
        keep_all_tokens=True,
        maybe_placeholders=False,
    )


def parse(text: str) -> ExprNode:
    """Returns the syntax tree of an expression. Raises CelError of kind "syntax" for invalid text."""
    if len(text) > MAX_TEXT:
        raise CelError("syntax", f"expression is longer than {MAX_TEXT:,} characters")
    run: Callable[[str], Any] = _parser().parse
    try:
        tree = run(text)
    except UnexpectedInput as bad:
        raise _syntax_error(bad, text) from None
    except LarkError as bad:
        cause = bad.__cause__ or bad.__context__
        if isinstance(cause, CelError):
            raise cause from None
        raise CelError("syntax", "expression cannot be read") from None
    assert isinstance(tree, ExprNode)
    return tree


def _syntax_error(bad: UnexpectedInput, text: str) -> CelError:
    offset = int(bad.pos_in_stream or 0)
    if isinstance(bad, UnexpectedToken) and bad.token.type != "$END":
        return CelError("syntax", f"unexpected {str(bad.token)[:20]!r}", offset)
    if isinstance(bad, UnexpectedCharacters) and offset < len(text):
        unfinished = text[offset] in "'\""
        return CelError(
            "syntax", "unfinished string" if unfinished else f"unexpected {text[offset]!r}", offset
        )
    return CelError("syntax", "unexpected end of the expression", len(text.rstrip()))
