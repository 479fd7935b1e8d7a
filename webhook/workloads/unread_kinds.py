"""Finds pods in objects whose pods are not planned with them, such as an Argo Workflow, a TrainJob or a
PodCliqueSet.

Such an object is never refused for lack of room. `plan` and reports mention it, so they must recognise that
it creates pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from planner.model.names import dotted
from planner.model.resources import DEVICE_NAMES, DEVICE_PREFIXES
from webhook.jsontools.path import Path
from webhook.workloads.kinds import KINDS, row_of

_LISTS = ("containers", "initContainers", "steps")
"""Fields with lists of containers, as in pods and in Tekton."""
_SINGLE = ("container", "script")
"""Fields with a single container, as in Argo Workflows."""


_GPU = "gpu"
"""The name by which a DynamoGraphDeployment requests GPUs."""


_NEAR = 0.85
"""Minimum similarity of a kind, and of its apiVersion, to those of a row of the table for which they are
taken to be misspelt: `bacth/v1`, `job`. Other kinds (`MXJob`, `batch.volcano.sh`) stay below it.
"""


def _kind_meant(api_version: str, kind: str) -> str:
    """Returns the kind of the table that is probably meant: "Job of batch/v1"; "" if none is similar."""
    titles = (
        (row.name, f"{row.group}/{version}" if row.group else version)
        for row in KINDS.values()
        if row.has_templates
        for version in row.versions
    )
    near = (
        f"{name} of {version}"
        for name, version in titles
        if get_close_matches(kind.lower(), (name.lower(),), 1, _NEAR)
        and get_close_matches(api_version, (version,), 1, _NEAR)
    )
    return next(near, "")


def unread_pods(obj: Mapping[str, Any]) -> str | None:
    """Returns the first field with a container, or with the GPUs of one, in an object whose pods are not
    planned with it; None if there is none, or if the pods are planned.

    The kinds of the table that only create other workloads (TrainJob), and those whose pods Grove plans,
    count as well, whatever their fields.
    """
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return None
    row = row_of(api_version, kind)
    if row is not None and row.placed_by_grove:
        return row.pods.specs[0].partition("[")[0]
    if row is not None:
        return "spec" if row.makes_workloads else None
    root = "spec" if "spec" in obj else "template"  # a PodTemplate has no spec
    path = next(_containers(obj.get(root), (root,)), None)
    return dotted(path) if path else None


def handling(obj: Mapping[str, Any]) -> str:
    """Returns a sentence that says how an object with `unread_pods` is handled."""
    api_version, kind = obj["apiVersion"], obj["kind"]
    row = row_of(api_version, kind)
    if row is not None and row.placed_by_grove:
        return (
            f"{kind} of {api_version} is planned by Grove: only policies apply to the object, and it is not "
            "refused if it is too large for the cluster; each of its pods is planned by itself once Grove "
            "has opened its gate"
        )
    of_the_table = row is not None
    reason = "has no pods of its own" if of_the_table else "is not a supported kind"
    if not of_the_table and (meant := _kind_meant(api_version, kind)):
        return f"{kind} of {api_version} {reason}. What would work: {meant}"
    return (
        f"{kind} of {api_version} {reason}: the object is admitted unchanged; a workload of a supported kind "
        "that is made of it is planned when it is created, as a gang if it is one; any other pod is handled "
        "by itself when it is created, and belongs to no gang unless it names one"
    )


def _containers(value: Any, path: Path) -> Iterator[Path]:
    """Yields the paths of containers, and of resources with GPUs elsewhere, in the order of the object."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            items = inner if key in _LISTS and isinstance(inner, list) else [inner] if key in _SINGLE else []
            if any(_is_container(item) for item in items) or _has_gpus(key, inner):
                yield (*path, key)
            else:
                yield from _containers(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _containers(inner, (*path, index))


def _has_gpus(key: str, value: Any) -> bool:
    """Returns whether a field is a container's `resources`, or `resources…` of a kind's own, and has GPUs."""
    if not key.startswith("resources") or not isinstance(value, Mapping):
        return False
    amounts = [part for name in ("limits", "requests") if isinstance(part := value.get(name), Mapping)]
    return any(
        str(name) in (*DEVICE_NAMES, _GPU) or str(name).startswith(DEVICE_PREFIXES)
        for part in amounts
        for name in part
    )


def _is_container(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("image"), str)
