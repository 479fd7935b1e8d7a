"""Parses YAML as Kubernetes reads manifests, at the speed of libyaml and within limits against hostile files.

It returns plain values (`load_all`), values with their positions (`load_marked`), or PyYAML's nodes
(`compose_all`). Unlike in YAML 1.1, there are no dates and no base-60 numbers, and keys are text.
`YamlError`, with line and column, is raised for a duplicate key, for a number that JSON cannot represent, and
for a document that exceeds the limits of nesting or of expanded aliases. libyaml composes nodes recursively
in C, which deep nesting could crash; a text that may nest deeply is therefore first checked as a flat stream
of events.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeVar

import orjson
import yaml

from webhook.jsontools.path import Path

DEPTH_LIMIT = 128
"""Maximum nesting of a document."""


NODES_LIMIT = 1_000_000
"""Maximum number of values of a document with aliases, after the aliases are expanded."""


INT64_MIN, UINT64_MAX = -(2**63), 2**64 - 1


_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


_TAG = "tag:yaml.org,2002:"


_INT = re.compile(
    r"^[-+]?(?:0[bB]_*[01][01_]*|0[oO]_*[0-7][0-7_]*|0[xX]_*[0-9a-fA-F][0-9a-fA-F_]*|0[0-7_]*|[1-9][0-9_]*)$"
)


_FLOAT = re.compile(
    r"^(?:[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)


_BRACKETS = {ord(c): 1 for c in "[{"} | {ord(c): -1 for c in "]}"}
"""By how much each bracket changes the nesting depth."""


_NOT_BRACKETS = bytes(sorted(set(range(256)) - set(_BRACKETS)))
"""All bytes apart from brackets. `bytes.translate` deletes them fast, to count the brackets."""


_MAY_NEST = re.compile(rb"(?:[-?:] +){16}|^ {100}[^\n]*[-:?](?: |$)", re.MULTILINE)
"""Matches text that may nest deeply in block style: 16 indicators in a row, or a line indented by 100
spaces. Other text nests up to about 200 levels (two for each column, because a list may have the column of
its key), which is safe to parse; `reader` then checks the depth of the values."""


_MAY_ALIAS = re.compile(rb"(?:^|[\s\[{,:-])\*[\w-]")
"""Matches what may be an alias (`*name`), also in a string."""


_T = TypeVar("_T")


class YamlError(ValueError):
    """The text is no YAML, or not valid for Kubernetes. `line`, `column`: from 1; 0 if unknown."""

    def __init__(self, problem: str, line: int = 0, column: int = 0) -> None:
        super().__init__(problem)
        self.problem, self.line, self.column = problem, line, column


@dataclass(frozen=True, slots=True)
class Mark:
    """The position of a value, from line 1 and column 1. For a block scalar, this is where its text begins,
    and `indent` is the indentation of its lines; 0 for other values."""

    line: int
    column: int
    indent: int = 0


@dataclass(frozen=True, slots=True)
class MarkedDocument:
    """The value of a document, and the position of each value in it, by path."""

    value: Any
    marks: Mapping[Path, Mark]


class _Loader(_Base):  # type: ignore[misc]
    """The PyYAML loader of all functions below. It recurses, so `_check` must accept the text before."""


def _resolvers() -> dict[str | None, list[tuple[str, re.Pattern[str]]]]:
    left_out = {_TAG + "timestamp", _TAG + "value", _TAG + "int", _TAG + "float"}
    kept: dict[str | None, list[tuple[str, re.Pattern[str]]]] = {
        first: [(tag, pattern) for tag, pattern in rows if tag not in left_out]
        for first, rows in _Base.yaml_implicit_resolvers.items()
    }
    for tag, pattern, firsts in (("int", _INT, "-+0123456789"), ("float", _FLOAT, "-+0123456789.")):
        for first in firsts:
            kept.setdefault(first, []).append((_TAG + tag, pattern))
    return kept


RESOLVERS = _resolvers()
"""The tag of a scalar without quotes, by its first character and a pattern, as kubectl (Go's yaml.v2)
resolves it. But `y` and `n`, booleans for kubectl, are text here, so that a file may use them as names.
"""


_Loader.yaml_implicit_resolvers = RESOLVERS


def _error_at(node: yaml.Node, problem: str) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def _constructed(construct: Callable[..., _T], loader: Any, node: yaml.ScalarNode) -> _T:
    """Returns the value of a scalar. If its tag does not allow its text (`!!int ""`), raises an error with a
    position, in place of the various errors of PyYAML."""
    try:
        return construct(loader, node)
    except (ValueError, OverflowError, LookupError):
        raise _error_at(node, f"{node.value[:24]!r} is no {node.tag.removeprefix(_TAG)}") from None


def _boolean(loader: Any, node: yaml.ScalarNode) -> bool:
    return bool(_constructed(_Base.construct_yaml_bool, loader, node))


def _no_base_60(node: yaml.ScalarNode) -> None:
    """Raises an error for a base-60 number: `!!int 1:30` is 90 in YAML 1.1, but no number to the API
    server.
    """
    if ":" in node.value:
        raise _error_at(node, f"{node.value[:24]!r} is no {node.tag.removeprefix(_TAG)}")


def _whole(_: Any, node: yaml.ScalarNode) -> int:
    text = node.value.replace("_", "")
    digits = text.lstrip("+-")
    return int(text, 8 if digits.startswith("0") and digits.isdecimal() else 0)


def _integer(loader: Any, node: yaml.ScalarNode) -> int:
    # 64 binary digits, with as many underscores, are below 130 characters. Python refuses to parse far longer
    # numbers, so these count as too large.
    value: int = 2**64 if len(node.value) > 130 else _constructed(_whole, loader, node)
    if not INT64_MIN <= value <= UINT64_MAX:
        raise _error_at(node, f"{node.value[:24]} does not fit in 64 bits")
    return value


def _number(loader: Any, node: yaml.ScalarNode) -> float:
    """Returns the number; a whole one as an integer, as it is sent to the API server: `2.0` as 2."""
    _no_base_60(node)
    value: float = _constructed(_Base.construct_yaml_float, loader, node)
    if value != value or value in (float("inf"), float("-inf")):
        raise _error_at(node, f"{node.value} is no number that JSON can hold; write it as text")
    return int(value) if value.is_integer() and INT64_MIN <= value < -INT64_MIN else value


def _mapping(loader: Any, node: yaml.MappingNode) -> Iterator[dict[str, Any]]:
    mapping: dict[str, Any] = {}
    yield mapping  # PyYAML fills it later, so that an alias inside the mapping can refer to it
    seen: set[str] = set()
    for key_node, _ in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise _error_at(key_node, "a key must be text")
        if key_node.tag != _TAG + "merge":
            if key_node.value in seen:
                raise _error_at(key_node, f"key {key_node.value[:60]!r} occurs twice")
            seen.add(key_node.value)
    loader.flatten_mapping(node)
    for key_node, value_node in node.value:
        mapping[_name(loader, key_node)] = loader.construct_object(value_node, deep=True)


def _name(loader: Any, key_node: yaml.Node) -> str:
    """Returns a mapping key as text; `1` and `true` as in JSON."""
    key = loader.construct_object(key_node, deep=True)
    return key if isinstance(key, str) else orjson.dumps(key).decode()


def _foreign(loader: Any, node: yaml.Node) -> None:
    raise _error_at(node, f"tag !!{node.tag.removeprefix(_TAG)} is nothing that JSON can hold")


_Loader.add_constructor(_TAG + "bool", _boolean)


_Loader.add_constructor(_TAG + "int", _integer)


_Loader.add_constructor(_TAG + "float", _number)


_Loader.add_constructor(_TAG + "map", _mapping)


def _unknown(loader: Any, node: yaml.Node) -> None:
    raise _error_at(node, f"the tag {node.tag[:60]!r} is not supported")


_Loader.add_constructor(None, _unknown)


for _tag in ("set", "omap", "pairs", "binary", "timestamp"):
    _Loader.add_constructor(_TAG + _tag, _foreign)


def load_all(text: bytes) -> list[Any]:
    """Returns the values of the documents in a text, None for an empty one. Raises `YamlError`."""
    return _read(text, lambda utf8: list(yaml.load_all(utf8, Loader=_Loader)))


def load_marked(text: str, *, max_depth: int, max_values: int) -> list[MarkedDocument]:
    """Returns the documents in a text with the position of each value, without empty documents.

    Raises `YamlError`, also for a document that is nested deeper than `max_depth` or has more than
    `max_values` values after its aliases are expanded.
    """
    return _read(text.encode(), lambda _: list(_marked(text, max_depth, max_values)))


def compose_all(text: str) -> list[yaml.Node | None]:
    """Returns PyYAML's root node of each document in a text, None for an empty one. Raises `YamlError`."""
    return _read(text.encode(), lambda _: list(yaml.compose_all(text, Loader=_Loader)))


def as_utf8(text: bytes) -> bytes:
    """Returns a text that begins with a byte order mark of UTF-16, as PowerShell writes it, in UTF-8; other
    texts unchanged. Raises `UnicodeDecodeError` if it is no UTF-16.
    """
    is_utf16 = text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return text.decode("utf-16").encode() if is_utf16 else text


def _read(text: bytes, read: Callable[[bytes], _T]) -> _T:
    """Checks the limits of a text, and returns the result of `read` on it. Raises every error of PyYAML as
    `YamlError`."""
    try:
        utf8 = as_utf8(text)  # the patterns of `_check` are of bytes, and match nothing in UTF-16
        _check(utf8)
        return read(utf8)
    except yaml.MarkedYAMLError as error:
        problem = error.problem or error.context or "it does not parse"
        mark = error.problem_mark or error.context_mark
        raise (YamlError(problem, mark.line + 1, mark.column + 1) if mark else YamlError(problem)) from None
    except (yaml.YAMLError, ValueError) as error:
        raise YamlError(str(error).splitlines()[0]) from None  # the first line says what is wrong
    except RecursionError:
        raise YamlError("nested too deeply") from None


def _marked(text: str, max_depth: int, max_values: int) -> Iterator[MarkedDocument]:
    loader = _Loader(text)
    rows = text.split("\n")
    try:
        while loader.check_node():
            node = loader.get_node()
            value = None if node is None else loader.construct_document(node)
            if value is not None:
                yield MarkedDocument(value, _marks(loader, node, rows, max_depth, max_values))
    finally:
        loader.dispose()


def _marks(
    loader: Any, document: yaml.Node, rows: Sequence[str], max_depth: int, max_values: int
) -> dict[Path, Mark]:
    """Returns the position of each value, by its path. Raises a MarkedYAMLError beyond the bounds."""
    marks: dict[Path, Mark] = {}
    for path, node in _nodes(loader, document, ()):
        if len(marks) >= max_values or len(path) > max_depth:
            raise _error_at(node, "nested too deeply, or too many values")
        marks[path] = _mark_of(node, rows)
    return marks


def _nodes(loader: Any, node: yaml.Node, path: Path) -> Iterator[tuple[Path, yaml.Node]]:
    """Yields the path and node of each value. To be called after construction, which expands merge keys."""
    yield path, node
    if isinstance(node, yaml.MappingNode):
        for key_node, value_node in node.value:
            yield from _nodes(loader, value_node, (*path, _name(loader, key_node)))
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _nodes(loader, item, (*path, index))


def _mark_of(node: yaml.Node, rows: Sequence[str]) -> Mark:
    """Returns the position of a node; of a quoted or block scalar, that of its text. `rows`: the text's
    lines.
    """
    line, column = node.start_mark.line + 1, node.start_mark.column + 1
    style = node.style if isinstance(node, yaml.ScalarNode) else None
    if style in ("'", '"'):
        return Mark(line, column + 1)
    if style not in ("|", ">"):
        return Mark(line, column)
    for offset, row in enumerate(rows[line:], 1):
        if row.strip():
            indent = len(row) - len(row.lstrip(" "))
            return Mark(line + offset, indent + 1, indent)
    return Mark(line + 1, 1)


def _check(text: bytes) -> None:
    """Raises `yaml.MarkedYAMLError` if the text exceeds the limits of nesting or of expanded aliases.

    Only a text with many open brackets, deep indentation or aliases can do so; other texts are not parsed
    here, which saves time.
    """
    if (
        _depth_of_brackets(text) <= DEPTH_LIMIT // 2
        and not _MAY_NEST.search(text)
        and not _MAY_ALIAS.search(text)
    ):
        return
    depth = 0
    # Numbers of values after expansion: of each anchored collection, and of each open collection.
    anchors: dict[str | None, int] = {}
    sizes: list[int] = []
    open_anchors: list[str | None] = []
    for event in yaml.parse(text, Loader=_Base):
        if isinstance(event, yaml.DocumentStartEvent):
            anchors, sizes, open_anchors = {}, [0], []
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            depth += 1
            if depth > DEPTH_LIMIT:
                raise _limit_error(f"nested deeper than {DEPTH_LIMIT} levels", event)
            sizes.append(1)
            open_anchors.append(event.anchor)
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            depth -= 1
            size, anchor = sizes.pop(), open_anchors.pop()
            sizes[-1] += size
            if anchor:
                anchors[anchor] = size
        elif isinstance(event, yaml.AliasEvent):
            sizes[-1] += anchors.get(event.anchor, 1)
        elif isinstance(event, yaml.ScalarEvent):
            sizes[-1] += 1
        if sizes and sizes[-1] > NODES_LIMIT and anchors:
            raise _limit_error(f"its aliases unfold to more than {NODES_LIMIT} values", event)


def _limit_error(problem: str, event: yaml.Event) -> yaml.constructor.ConstructorError:
    mark: Any = event.start_mark
    return yaml.constructor.ConstructorError(None, None, problem, mark)


def _depth_of_brackets(text: bytes) -> int:
    """Returns an upper bound for the nesting of flow collections: brackets in strings are counted too."""
    brackets = text.translate(None, _NOT_BRACKETS)
    opens_only = brackets.count(b"[") + brackets.count(b"{")
    if opens_only <= DEPTH_LIMIT // 2:
        return opens_only
    return max(accumulate(_BRACKETS[byte] for byte in brackets), default=0)
