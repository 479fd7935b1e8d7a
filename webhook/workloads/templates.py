"""Converts a pod template to a v1 Pod and back. Pure; the given object is never modified."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from webhook.jsontools.path import Path, replaced
from webhook.workloads.workload import Template, Workload

Json = dict[str, Any]


def pod_of(template: Template, obj: Mapping[str, Any]) -> Json:
    """Returns the template as a v1 Pod, in the object's namespace if the template names none.

    A Pod is returned as it is. Fields that are not part of a pod's metadata or spec are left out.
    """
    if not template.path:
        return copy.deepcopy(dict(obj))
    metadata = copy.deepcopy(value_at(obj, template.metadata_path)) or {}
    if template.metadata_path == template.path:  # Grove keeps labels and annotations beside the spec
        metadata = {key: metadata[key] for key in ("labels", "annotations") if metadata.get(key)}
    namespace = (obj.get("metadata") or {}).get("namespace")
    if namespace and "namespace" not in metadata:
        metadata["namespace"] = namespace
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": copy.deepcopy(value_at(obj, template.spec_path)),
    }


def write_pod(obj: Mapping[str, Any], template: Template, pod: Mapping[str, Any]) -> Json:
    """Returns the object with the template changed to match the pod; an unchanged pod changes nothing.

    Everything outside the pod is shared with the object.
    """
    if not template.path:
        return copy.deepcopy(dict(pod))
    # A policy may have removed the spec: null is what the object's own validation then refuses.
    written: Json = replaced(obj, template.spec_path, copy.deepcopy(pod.get("spec")))
    metadata = _own_metadata(written, template, copy.deepcopy(dict(pod.get("metadata") or {})))
    if template.metadata_path == template.path:
        kept = {key: metadata[key] for key in ("labels", "annotations") if key in metadata}
        return replaced(written, template.path, {**value_at(written, template.path), **kept})  # type: ignore[no-any-return]
    holder = value_at(written, template.path)
    if not metadata and "metadata" not in holder:
        return written
    before = value_at(written, template.metadata_path)
    stated = metadata if metadata or before is not None else None  # `metadata: null` stays null
    return replaced(written, template.path, {**holder, "metadata": stated})  # type: ignore[no-any-return]


def pod_specs(obj: Mapping[str, Any], workload: Workload) -> list[Any]:
    """Returns the PodSpecs of an object's templates, including those of pods that are written in another
    form.
    """
    return [value_at(obj, template.spec_path) for template in (*workload.templates, *workload.inlined)]


def _own_metadata(obj: Json, template: Template, metadata: Json) -> Json:
    """Returns the pod's metadata without the namespace that `pod_of` added."""
    before = value_at(obj, template.metadata_path) or {}
    lent = (obj.get("metadata") or {}).get("namespace")
    if "namespace" not in before and metadata.get("namespace") == lent:
        metadata.pop("namespace", None)
    return metadata


def value_at(obj: Any, path: Path) -> Any:
    """Returns the value at the path in a JSON value; None if a mapping does not have the last key."""
    for step in path:  # almost every value is a `dict` or a `list`, which are checked in a fifth of the time
        kind = type(obj)
        is_map = kind is dict or (kind is not list and isinstance(obj, Mapping))
        obj = obj.get(step) if is_map else obj[step]
    return obj
