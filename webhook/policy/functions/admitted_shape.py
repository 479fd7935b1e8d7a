"""The scheduling fields of a pod as the API server admits it, for functions that compare it with nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.manifests.pods.pod import shape_of
from planner.manifests.requirements import tolerations_of
from planner.model.errors import Where
from planner.model.pod import PodShape
from planner.node.runtime_class import RuntimeClass

Json = Any


def admitted_shape(
    spec: Mapping[str, Json], runtime_classes: Mapping[str, Mapping[str, Json]]
) -> PodShape | None:
    """Returns the shape of a pod with what its RuntimeClass adds; None if the pod is malformed, which the API
    server refuses.

    `runtime_classes`: `cluster.runtimeClasses`, or a part of it.
    """
    try:
        shape = shape_of(spec, Where())
    except ValueError:
        return None
    return with_runtime_class(shape, runtime_classes)


def with_runtime_class(shape: PodShape, runtime_classes: Mapping[str, Mapping[str, Json]]) -> PodShape:
    """Returns the shape with what the pod's class adds, for `runtime_classes` as in `admitted_shape`."""
    own = runtime_classes.get(shape.runtime_class)
    if own is None:
        return shape
    tolerations = tolerations_of(own, Where())
    return RuntimeClass(shape.runtime_class, own["overhead"], own["nodeSelector"], tolerations).admitted(
        shape
    )
