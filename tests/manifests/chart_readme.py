"""manifests/chart/README.md, with a row for each value of values.yaml: `python -m tests.manifests.generate`.

The comment above a key is its description. A key without one is a group, whose keys have theirs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from tests.docs.markdown import table
from tests.manifests.chart_deployment import MANIFESTS

CHART = MANIFESTS / "chart"
FILE = CHART / "README.md"
LINE = re.compile(r"^(?P<indent> *)(?:# ?(?P<comment>.*)|(?P<key>\w+):.*)$")
WIDTH = 60
"""Longest default that is shown."""

HEAD = """\
# Helm chart of Bayplan

The chart installs Bayplan, an admission webhook with a gang planner for GPU clusters. It renders the same
objects as the plain manifests, in the namespace `bayplan-system`.

```sh
helm install bayplan manifests/chart --set image.repository=registry.example.com/bayplan --wait
```

The page `docs/helm.md` describes installation, upgrade, rollback and removal, and what happens to workloads
meanwhile.

## Values

"""


def described(text: str) -> Iterator[tuple[str, str]]:
    """Each documented key of a values file as a dotted path, with its description."""
    comment: list[str] = []
    path: list[str] = []
    inside = -1  # the indent of the documented key whose own content is skipped
    for line in text.splitlines():
        match = LINE.match(line)
        indent = len(match["indent"]) if match else -1
        if not match or (inside >= 0 and indent > inside):
            comment = comment if match else []
            continue
        if match["key"] is None:
            comment.append(match["comment"])
            continue
        path = [*path[: indent // 2], match["key"]]
        inside = indent if comment else -1
        if comment:
            yield ".".join(path), " ".join(comment)
        comment = []


def leaves(values: dict[str, Any], above: str = "") -> Iterator[str]:
    """The path of each value that holds no others."""
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{above}{key}.")
        else:
            yield f"{above}{key}"


def _default(values: dict[str, Any], path: str) -> str:
    value: Any = values
    for key in path.split("."):
        value = value[key]
    shown = json.dumps(value)
    return f"`{shown}`" if len(shown) <= WIDTH else "see values.yaml"


def text() -> str:
    """The page. Raises `ValueError` for a value that has no description."""
    source = (CHART / "values.yaml").read_text()
    values = yaml.safe_load(source)
    rows = dict(described(source))
    missing = [leaf for leaf in leaves(values) if not any(f"{leaf}.".startswith(f"{row}.") for row in rows)]
    if missing:
        raise ValueError(f"values.yaml: no comment above {', '.join(missing)}")
    columns = ("value", "default", "description")
    return HEAD + table(columns, ((f"`{row}`", _default(values, row), rows[row]) for row in rows))
