"""CEL functions over pods, containers and metadata: plain JSON in, plain JSON out.

They use the planner's tables (which resources are GPUs) and the table of workload kinds, so that policies
count as the planner does. They raise ValueError with a short message for malformed input.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from planner.manifests.pods.pod import CONTAINERS, INIT_CONTAINERS
from planner.model.errors import Where
from planner.model.quantity import parse
from planner.model.resources import GPU_RESOURCES, MIG_PREFIX
from webhook.cel import Function
from webhook.workloads import pod_templates
from webhook.workloads.templates import value_at

Json = Any


MOST_DEVICES = 10**6
"""Maximum number of devices of a container; a larger amount counts as this, so that shares stay
computable.
"""


_COMPUTE_SLICES = re.compile(r"(?:^|\.)(\d+)g\.")
"""Finds the number of compute slices in a MIG profile: 3 in "3g.40gb" and in "1c.3g.20gb"."""


def templates(obj: Json) -> list[Json]:
    """`workload.templates(object)`: each pod template of a workload as a Pod; for a Pod, the Pod itself.

    The Pods share their parts with the object, because expressions do not modify them.
    """
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": value_at(obj, template.metadata_path) or {},
            "spec": value_at(obj, template.spec_path),
        }
        for template in pod_templates(_map(obj, "an object"))
    ]


def asked(pod: Json) -> bool:
    """`gpus.asked(pod)`: whether a container of the pod requests a whole GPU or a MIG slice."""
    spec = _map(pod, "a pod").get("spec")
    containers = [
        container
        for name in (*CONTAINERS, INIT_CONTAINERS)
        for container in _list(_map(spec, "spec").get(name))
    ]
    return any(count(container) or slices(container) for container in containers)


def count(container: Json) -> int:
    """`gpus.count(container)`: the number of whole GPUs that the container requests, of any vendor."""
    return sum(amount for name, amount in _devices(container).items() if name in GPU_RESOURCES)


def slices(container: Json) -> int:
    """`gpus.slices(container)`: the number of MIG compute slices that the container requests; 2 × 3g.40gb are
    6.
    """
    total = 0
    for name, amount in _devices(container).items():
        if name.startswith(MIG_PREFIX):
            size = _COMPUTE_SLICES.search(name.removeprefix(MIG_PREFIX))
            total += amount * (int(size[1]) if size else 1)
    return total


def whole(quantity: Json, multiple: Json = 1) -> Json:
    """`cpus.whole("1500m")` is "2", `cpus.whole("5", 4)` is "8": CPUs rounded up to a multiple of whole CPUs.

    A quantity that is a multiple already is returned as it was written; so is an invalid quantity, which the
    API server reports.
    """
    step = max(1, int(multiple))
    try:
        cores = parse(quantity, Where())
    except ValueError:
        return quantity
    rounded = math.ceil(cores / step) * step
    return quantity if rounded == cores else str(rounded)


def add_annotations(metadata: Json, values: Json) -> dict[str, Json]:
    """`annotations.add(metadata, {key: value})`: the metadata with these annotations; existing ones
    are kept.
    """
    return _added(metadata, "annotations", values)


def add_labels(metadata: Json, values: Json) -> dict[str, Json]:
    """`labels.add(metadata, {key: value})`: the metadata with these labels; existing ones are kept."""
    return _added(metadata, "labels", values)


def _added(metadata: Json, part: str, values: Json) -> dict[str, Json]:
    members = _map(metadata, "metadata")
    stated = _map(members.get(part), part)
    lacking = {key: value for key, value in _map(values, "a map").items() if key not in stated}
    return {**members, part: {**stated, **lacking}} if lacking else dict(members)


def _devices(container: Json) -> dict[str, int]:
    """Returns GPUs and MIG slices by resource name; a limit takes precedence over a request."""
    resources = _map(_map(container, "a container").get("resources"), "resources")
    stated = {**_map(resources.get("requests"), "requests"), **_map(resources.get("limits"), "limits")}
    return {
        name: _amount(value)
        for name, value in stated.items()
        if name in GPU_RESOURCES or str(name).startswith(MIG_PREFIX)
    }


def _amount(value: Json) -> int:
    try:
        return min(math.ceil(parse(value, Where())), MOST_DEVICES)
    except ValueError:
        return 0


def mapping_of(value: Json) -> Mapping[str, Json]:
    """Returns the value if it is a mapping, else an empty one."""
    # Almost always a `dict`, which is checked in a fifth of the time.
    return value if isinstance(value, (dict, Mapping)) else {}


def _map(value: Json, field: str) -> Mapping[str, Json]:
    if value is None:
        return {}
    if isinstance(value, (dict, Mapping)):  # almost always a `dict`, which is checked in a fifth of the time
        return value
    raise ValueError(f"{field} is no mapping")


def _list(value: Json) -> list[Json]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError("containers is no list")
    return value


POD_FUNCTIONS: Mapping[str, Function] = {
    "workload.templates": Function(templates, 1, 1, remembered=True),
    "gpus.asked": Function(asked, 1, 1),
    "gpus.count": Function(count, 1, 1),
    "gpus.slices": Function(slices, 1, 1),
    "cpus.whole": Function(whole, 1, 2),
    "annotations.add": Function(add_annotations, 2, 2),
    "labels.add": Function(add_labels, 2, 2),
}
"""Name in CEL → the function, the fewest and the most arguments."""
