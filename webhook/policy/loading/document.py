"""Policy files as plain values, with the line of each value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.model.names import dotted
from webhook.files.yaml_documents import Mark, YamlError, load_marked
from webhook.jsontools.path import Path
from webhook.policy.loading.errors import PolicyError, Problem

MAX_BYTES = 3 * 1024 * 1024
"""Maximum size of a file, 3 MiB: the API server's limit for a request."""


MAX_DEPTH = 100
"""Maximum nesting, because the parser recurses; policies need about ten levels."""


MAX_NODES = 200_000
"""Maximum number of values after aliases are expanded: otherwise a few lines of YAML could expand to
billions.
"""


@dataclass(frozen=True, slots=True)
class PolicyDocument:
    """One document of a file: its plain value, and the position of each of its values by path."""

    file: str
    value: Any
    marks: Mapping[Path, Mark]

    def mark(self, path: Path) -> Mark:
        """Returns the position of the value at `path`, or of the nearest value around it."""
        while path and path not in self.marks:
            path = path[:-1]
        return self.marks.get(path, Mark(1, 1))

    @property
    def name(self) -> str:
        """The object's `Kind/name`, for messages."""
        if not isinstance(self.value, dict):
            return ""
        metadata = self.value.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        kind = self.value.get("kind")
        return "/".join(part for part in (kind, name) if isinstance(part, str))

    def problem(self, path: Path, message: str) -> Problem:
        """Returns a problem with the value at `path`."""
        mark = self.mark(path)
        return Problem(self.file, mark.line, mark.column, self.name, dotted(path), message)


def parse(file: str, text: str) -> list[PolicyDocument]:
    """Returns the documents of a file, without empty ones.

    Raises PolicyError, with line and column, if the text is not YAML or exceeds a limit.
    """
    if len(text.encode(errors="surrogatepass")) > MAX_BYTES:
        raise PolicyError([Problem(file, 0, 0, "", "", f"larger than the limit of {MAX_BYTES} bytes")])
    try:
        documents = load_marked(text, max_depth=MAX_DEPTH, max_values=MAX_NODES)
    except YamlError as error:
        problem = Problem(file, error.line, error.column, "", "", f"not YAML: {error.problem}")
        raise PolicyError([problem]) from None
    return [PolicyDocument(file, document.value, document.marks) for document in documents]
