"""YAML (and so JSON) text to plain values that still know on which line each of them stood.

Values are as Kubernetes reads YAML: what looks like a date stays text, keys are strings, a key that stands
twice is an error. Limits keep a hostile file from costing more than it should: its size, its nesting, and
the nodes that its aliases unfold to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from webhook.files.yaml_documents import check
from webhook.jsontools.path import Path, dotted
from webhook.policy.loading.errors import PolicyError, Problem

MAX_BYTES = 3 * 1024 * 1024
"""The API server's limit for a request."""


MAX_DEPTH = 100
"""Levels of nesting; policies need about ten, and the parser recurses."""


MAX_NODES = 200_000
"""Values after aliases are unfolded: a few lines of YAML can otherwise unfold to billions."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a value stands; for a block scalar, where its text begins, and the `indent` of its lines."""

    line: int
    column: int
    indent: int = 0


@dataclass(frozen=True, slots=True)
class PolicyDocument:
    """One document of a file: its plain value, and the place of each of its values by path."""

    file: str
    value: Any
    marks: Mapping[Path, Mark]

    def mark(self, path: Path) -> Mark:
        """The place of the value at `path`, or of the nearest value around it."""
        while path and path not in self.marks:
            path = path[:-1]
        return self.marks.get(path, Mark(1, 1))

    @property
    def name(self) -> str:
        """`Kind/name` of the object, as messages name it."""
        if not isinstance(self.value, dict):
            return ""
        metadata = self.value.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        kind = self.value.get("kind")
        return "/".join(part for part in (kind, name) if isinstance(part, str))

    def problem(self, path: Path, message: str) -> Problem:
        """A problem with the value at `path`."""
        mark = self.mark(path)
        return Problem(self.file, mark.line, mark.column, self.name, dotted(path), message)


def parse(file: str, text: str) -> list[PolicyDocument]:
    """The documents of a file; empty ones are left out.

    Raises PolicyError, with the line and column, where the text is no YAML or goes past a limit.
    """
    if len(text) > MAX_BYTES:
        raise PolicyError([Problem(file, 0, 0, "", "", f"larger than the limit of {MAX_BYTES} bytes")])
    try:
        check(text.encode())  # in C, before what is slow on a hostile text
        return list(_documents(file, text))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise PolicyError([Problem(file, *place, "", "", f"not YAML: {error.problem}")]) from None
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())[:120]
        raise PolicyError([Problem(file, 0, 0, "", "", f"not YAML: {reason}")]) from None
    except RecursionError:
        raise PolicyError([Problem(file, 0, 0, "", "", "nested too deeply")]) from None


def _documents(file: str, text: str) -> Iterator[PolicyDocument]:
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is None:
                continue
            builder = _Builder(file, loader)
            value = builder.build(node, ())
            if value is not None:
                yield PolicyDocument(file, value, builder.marks)
    finally:
        loader.dispose()


class _Loader(yaml.SafeLoader):
    """SafeLoader without dates: Kubernetes reads them as text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rows if tag != "tag:yaml.org,2002:timestamp"]
    for first, rows in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


_SCALARS = {f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str")}


class _Builder:
    """Builds one document's value and collects its marks."""

    def __init__(self, file: str, loader: _Loader) -> None:
        self.file, self.loader = file, loader
        self.marks: dict[Path, Mark] = {}
        self.nodes = 0

    def build(self, node: yaml.Node, path: Path) -> Any:
        self.nodes += 1
        if self.nodes > MAX_NODES or len(path) > MAX_DEPTH:
            raise self.wrong(node, "nested too deeply, or too many values")
        self.marks[path] = _mark_of(node)
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]
        return self.scalar(node)

    def mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        self.loader.flatten_mapping(node)
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self.scalar(key_node) if isinstance(key_node, yaml.ScalarNode) else None
            if key is None:
                raise self.wrong(key_node, "a key must be text")
            name = key_node.value if not isinstance(key, str) else key
            if name in result:
                raise self.wrong(key_node, f"the key {name[:60]!r} stands twice")
            result[name] = self.build(value_node, (*path, name))
        return result

    def scalar(self, node: yaml.Node) -> Any:
        if node.tag not in _SCALARS:
            raise self.wrong(node, f"the tag {node.tag[:60]!r} is not supported")
        try:
            return self.loader.construct_object(node)
        except (ValueError, OverflowError, LookupError):
            raise self.wrong(node, "a number that cannot be read") from None

    def wrong(self, node: yaml.Node, message: str) -> PolicyError:
        mark = _mark_of(node)
        return PolicyError([Problem(self.file, mark.line, mark.column, "", "", message)])


def _mark_of(node: yaml.Node) -> Mark:
    """1-based place of a node; for quoted and block scalars, of their text."""
    line, column = node.start_mark.line + 1, node.start_mark.column + 1
    style = node.style if isinstance(node, yaml.ScalarNode) else None
    if style in ("'", '"'):
        return Mark(line, column + 1)
    if style not in ("|", ">"):
        return Mark(line, column)
    buffer = node.start_mark.buffer
    if buffer is None:
        return Mark(line + 1, 1)
    for offset, row in enumerate(buffer[node.start_mark.pointer :].split("\n")[1:], 1):
        if row.strip():
            indent = len(row) - len(row.lstrip(" "))
            return Mark(line + offset, indent + 1, indent)
    return Mark(line + 1, 1)
