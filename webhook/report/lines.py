"""On which line of a file a field stands, so that a finding can point at it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import yaml

from webhook.files.yaml_documents import YamlError, compose_all

Path = str | Sequence[str | int]
"""`spec.containers[0].image`, the JSON pointer `/spec/containers/0/image`, or the steps one by one.

In the dotted form a step may hold dots itself (`metadata.labels.kai.scheduler/queue`): the longest key that
is there wins. `[name]` picks the list item of that name."""

_INDEX = re.compile(r"\[([^\]]*)\]")
_MERGE = "tag:yaml.org,2002:merge"


def line_of(text: str, document_index: int, field_path: Path, *, kind: str = "", name: str = "") -> int:
    """The line, from 1, of the field in the document of that index (from 0) of a YAML or JSON text.

    A field that is not there gives the line of the nearest one above it that is; a text that does not parse,
    or has no such document, gives 1. In a List, `kind` and `name` (metadata.name) tell which item is meant.
    """
    documents = _documents(text)
    if not 0 <= document_index < len(documents):
        return 1
    node = _item(documents[document_index], kind, name)
    return 1 if node is None else _descend(node, _steps(field_path))


@lru_cache(maxsize=16)  # findings come file by file, so few texts are asked for in turn
def _documents(text: str) -> tuple[yaml.Node | None, ...]:
    try:
        return tuple(compose_all(text))
    except YamlError:
        return ()


def _steps(path: Path) -> list[str | int]:
    if not isinstance(path, str):
        return list(path)
    if path.startswith("/"):
        return [step.replace("~1", "/").replace("~0", "~") for step in path[1:].split("/")]
    dotted = _INDEX.sub(lambda match: "." + match[1].strip("'\""), path)
    return [step for step in dotted.split(".") if step]


def _descend(node: yaml.Node, steps: list[str | int]) -> int:
    line = node.start_mark.line + 1
    while steps:
        entered = _enter(node, steps)
        if entered is None:
            break
        line, node, taken = entered
        steps = steps[taken:]
    return line


def _enter(node: yaml.Node, steps: list[str | int]) -> tuple[int, yaml.Node, int] | None:
    """The line and node one step down, and how many of `steps` that step took."""
    if isinstance(node, yaml.SequenceNode):
        item = _element(node, str(steps[0]))
        return None if item is None else (item.start_mark.line + 1, item, 1)
    if isinstance(node, yaml.MappingNode):
        for taken in range(len(steps), 0, -1):
            entry = _entry(node, ".".join(str(step) for step in steps[:taken]))
            if entry is not None:
                return entry[0].start_mark.line + 1, entry[1], taken
    return None


def _entry(node: yaml.MappingNode, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    """The key's and the value's node, also out of a merged (`<<`) mapping."""
    for key_node, value_node in node.value:
        if isinstance(key_node, yaml.ScalarNode) and key_node.value == key and key_node.tag != _MERGE:
            return key_node, value_node
    for key_node, value_node in node.value:
        if key_node.tag == _MERGE and isinstance(value_node, yaml.MappingNode):
            return _entry(value_node, key)
    return None


def _element(node: yaml.SequenceNode, step: str) -> yaml.Node | None:
    if step.isdecimal():
        return node.value[int(step)] if int(step) < len(node.value) else None
    return next((item for item in node.value if _text(item, "name") == step), None)


def _item(node: yaml.Node | None, kind: str, name: str) -> yaml.Node | None:
    """The document itself or, in a List, the item that is meant."""
    if not isinstance(node, yaml.MappingNode) or not _text(node, "kind").endswith("List"):
        return node
    items = _entry(node, "items")
    if not name or items is None or not isinstance(items[1], yaml.SequenceNode):
        return node
    for item in items[1].value:
        entry = _item(item, kind, name)
        if entry is not None and _is(entry, kind, name):
            return entry
    return node


def _is(node: yaml.Node, kind: str, name: str) -> bool:
    metadata = _entry(node, "metadata") if isinstance(node, yaml.MappingNode) else None
    return _text(node, "kind") == kind and metadata is not None and _text(metadata[1], "name") == name


def _text(node: yaml.Node, key: str) -> str:
    entry = _entry(node, key) if isinstance(node, yaml.MappingNode) else None
    return entry[1].value if entry is not None and isinstance(entry[1], yaml.ScalarNode) else ""
