"""Finds pods in objects of kinds that the table does not have, such as an Argo Workflow or a DaemonSet.

Such an object is admitted unchanged. Reports mention it, so they must recognise that it creates pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from webhook.jsontools.path import Path, dotted
from webhook.workloads.kinds import row_of

_LISTS = ("containers", "initContainers", "steps")
"""Fields with lists of containers, as in pods and in Tekton."""
_SINGLE = ("container", "script")
"""Fields with a single container, as in Argo Workflows."""


def unread_pods(obj: Mapping[str, Any]) -> str | None:
    """Returns the first field with a container in an object of an unknown kind; None if there is none or the
    kind is known.
    """
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str) or row_of(api_version, kind):
        return None
    root = "spec" if "spec" in obj else "template"  # a PodTemplate has no spec
    path = next(_containers(obj.get(root), (root,)), None)
    return dotted(path) if path else None


def _containers(value: Any, path: Path) -> Iterator[Path]:
    """Yields the paths of containers, in the order of the object."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            items = inner if key in _LISTS and isinstance(inner, list) else [inner] if key in _SINGLE else []
            if any(_is_container(item) for item in items):
                yield (*path, key)
            else:
                yield from _containers(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _containers(inner, (*path, index))


def _is_container(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("image"), str)
