"""YAML as Kubernetes reads manifests, at the speed of libyaml and with bounds that a hostile file meets.

No dates and no base-60 numbers; keys are text; a key that stands twice, a number that JSON cannot hold, and
what nests or unfolds (by aliases) past the limits is an error with its line and column. libyaml composes
recursively in C, so a file that may nest deeply is first walked as a flat stream of events.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import orjson
import yaml

DEPTH_LIMIT = 128
"""Levels of nesting of one document."""


NODES_LIMIT = 1_000_000
"""Values that a document with aliases may unfold to."""


INT64_MIN, UINT64_MAX = -(2**63), 2**64 - 1


_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


_TAG = "tag:yaml.org,2002:"


_INT = re.compile(r"^[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)$")


_FLOAT = re.compile(
    r"^(?:[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?)"
    r"|[-+]?[0-9]+[eE][-+]?[0-9]+|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)


_BRACKETS = {ord(c): 1 for c in "[{"} | {ord(c): -1 for c in "]}"}


_NOT_BRACKETS = bytes(sorted(set(range(256)) - set(_BRACKETS)))


_MAY_NEST = re.compile(rb"(?:[-?:] +){16}|^ {100}[^\n]*[-:?](?: |$)", re.MULTILINE)


_MAY_ALIAS = re.compile(rb"(?:^|[\s\[{,:-])\*[\w-]")


class ManifestLoader(_Base):  # type: ignore[misc]
    """The loader for `yaml.load_all`; run `check` on the text before."""


def _resolvers() -> dict[str | None, list[tuple[str, re.Pattern[str]]]]:
    left_out = {_TAG + "timestamp", _TAG + "int", _TAG + "float"}
    kept: dict[str | None, list[tuple[str, re.Pattern[str]]]] = {
        first: [(tag, pattern) for tag, pattern in rows if tag not in left_out]
        for first, rows in _Base.yaml_implicit_resolvers.items()
    }
    for tag, pattern, firsts in (("int", _INT, "-+0123456789"), ("float", _FLOAT, "-+0123456789.")):
        for first in firsts:
            kept.setdefault(first, []).append((_TAG + tag, pattern))
    return kept


ManifestLoader.yaml_implicit_resolvers = _resolvers()


def _wrong(node: yaml.Node, problem: str) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def _integer(loader: Any, node: yaml.ScalarNode) -> int:
    value: int = _Base.construct_yaml_int(loader, node)
    if not INT64_MIN <= value <= UINT64_MAX:
        raise _wrong(node, f"{node.value[:24]} does not fit in 64 bits")
    return value


def _number(loader: Any, node: yaml.ScalarNode) -> float:
    value: float = _Base.construct_yaml_float(loader, node)
    if value != value or value in (float("inf"), float("-inf")):
        raise _wrong(node, f"{node.value} is no number that JSON can hold; write it as text")
    return value


def _mapping(loader: Any, node: yaml.MappingNode) -> Iterator[dict[str, Any]]:
    mapping: dict[str, Any] = {}
    yield mapping
    seen: set[str] = set()
    for key_node, _ in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise _wrong(key_node, "a key must be text")
        if key_node.tag != _TAG + "merge":
            if key_node.value in seen:
                raise _wrong(key_node, f"key {key_node.value[:60]!r} stands twice")
            seen.add(key_node.value)
    loader.flatten_mapping(node)
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        name = key if isinstance(key, str) else orjson.dumps(key).decode()
        mapping[name] = loader.construct_object(value_node, deep=True)


def _foreign(loader: Any, node: yaml.Node) -> None:
    raise _wrong(node, f"tag !!{node.tag.removeprefix(_TAG)} is nothing that JSON can hold")


ManifestLoader.add_constructor(_TAG + "int", _integer)


ManifestLoader.add_constructor(_TAG + "float", _number)


ManifestLoader.add_constructor(_TAG + "map", _mapping)


for _tag in ("set", "omap", "pairs", "binary", "timestamp"):
    ManifestLoader.add_constructor(_TAG + _tag, _foreign)


def load_all(text: bytes) -> list[Any]:
    """The documents of a text. Raises `yaml.YAMLError`, with a mark where the place is known."""
    check(text)
    return list(yaml.load_all(text, Loader=ManifestLoader))


def check(text: bytes) -> None:
    """Raises `yaml.MarkedYAMLError` where the text nests or unfolds past the limits.

    Cheap for what cannot: only a text with many open brackets, deep indentation or aliases is walked.
    """
    if (
        _depth_of_brackets(text) <= DEPTH_LIMIT // 2
        and not _MAY_NEST.search(text)
        and not _MAY_ALIAS.search(text)
    ):
        return
    depth = 0
    anchors: dict[str | None, int] = {}
    sizes: list[int] = []
    open_anchors: list[str | None] = []
    for event in yaml.parse(text, Loader=_Base):
        if isinstance(event, yaml.DocumentStartEvent):
            anchors, sizes, open_anchors = {}, [0], []
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            depth += 1
            if depth > DEPTH_LIMIT:
                raise _past(f"nested deeper than {DEPTH_LIMIT} levels", event)
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
            raise _past(f"its aliases unfold to more than {NODES_LIMIT} values", event)


def _past(problem: str, event: yaml.Event) -> yaml.constructor.ConstructorError:
    mark: Any = event.start_mark
    return yaml.constructor.ConstructorError(None, None, problem, mark)


def _depth_of_brackets(text: bytes) -> int:
    """The deepest that flow collections can nest; too much where brackets stand in text, never too little."""
    brackets = text.translate(None, _NOT_BRACKETS)
    opens_only = brackets.count(b"[") + brackets.count(b"{")
    if opens_only <= DEPTH_LIMIT // 2:
        return opens_only
    return max(accumulate(_BRACKETS[byte] for byte in brackets), default=0)
