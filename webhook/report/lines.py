"""Finds the line of a field in a YAML or JSON file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import yaml

from webhook.files.yaml_documents import YamlError, compose_all

Path = str | Sequence[str | int]
"""The path of a field: `spec.containers[0].image`, the JSON pointer `/spec/containers/0/image`, or a
sequence of steps.

In the dotted form, a key may contain dots (`metadata.labels.kai.scheduler/queue`); the longest key that
exists is used. `[train]` selects the list item whose field `name` is `train`.
"""

_INDEX = re.compile(r"\[([^\]]*)\]")
_MERGE = "tag:yaml.org,2002:merge"


def line_of(text: str, document_index: int, field_path: Path, item: Sequence[int] = ()) -> int:
    """Returns the line (from 1) of a field in a YAML or JSON text.

    If the field does not exist, returns the line of its nearest parent that exists. Returns 1 if the text
    does not parse, or does not have the document `document_index` (from 0). `item`: the number of the object
    in a List, from 0, after those of the Lists around it.
    """
    documents = _documents(text)
    if not 0 <= document_index < len(documents):
        return 1
    node = documents[document_index]
    within: list[str | int] = [step for number in item for step in ("items", number)]
    return 1 if node is None else _descend(node, [*within, *_steps(field_path)])


@lru_cache(maxsize=16)  # results are ordered by file, so only a few texts are needed at a time
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
    """Returns the line and the value node of the field in `node` that the first steps name, and the number
    of these steps (a key with dots consists of several); None if there is no such field.
    """
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
    """Returns the nodes of a key and its value, also if they are in a merged (`<<`) mapping; None if there
    is no such key.
    """
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


def _text(node: yaml.Node, key: str) -> str:
    entry = _entry(node, key) if isinstance(node, yaml.MappingNode) else None
    return entry[1].value if entry is not None and isinstance(entry[1], yaml.ScalarNode) else ""
