"""Pods in objects of kinds that the table of kinds does not have: a Workflow of Argo's, a DaemonSet.

Such an object is admitted unchanged. Whoever reports on it says so, and has to see that it makes pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from webhook.jsontools.path import Path, dotted
from webhook.workloads.kinds import row_of

_LISTS = ("containers", "initContainers", "steps")
"""Lists of containers, as pods have them and as Tekton has them."""
_SINGLE = ("container", "script")
"""A container for itself, as Argo Workflows have it."""


def unread_pods(obj: Mapping[str, Any]) -> str | None:
    """The field in which an object of a kind that is not read first says what its pods run; None where it
    does not, or where its kind is read."""
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str) or row_of(api_version, kind):
        return None
    root = "spec" if "spec" in obj else "template"
    path = next(_containers(obj.get(root), (root,)), None)
    return dotted(path) if path else None


def _containers(value: Any, path: Path) -> Iterator[Path]:
    """The places that hold containers, in the order of the object."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            items = inner if key in _LISTS and isinstance(inner, list) else [inner] if key in _SINGLE else []
            if any(_is_container(item) for item in items):
                yield (*path, key)
            else:
                yield from _containers(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _containers(inner, (*path, place))


def _is_container(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("image"), str)
