"""Containers that a cloud's own webhook adds to pods, which no manifest contains. Pure.

A webhook that runs after Bayplan's adds them, or one that changes only pods and not their templates. Without
them a plan takes a node to be large enough that is not, and a container that is given the whole of its node
leaves no room for them: the pods would stay pending.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.model import quantity
from planner.model.errors import InputError, Where


@dataclass(frozen=True, slots=True)
class InjectedContainer:
    """A container that pods get whose annotation `switch` is "true" or "True".

    `prefix`: of the annotations PREFIX + RESOURCE + `-request` and `-limit` with its amounts. If only one of
    the two is stated, it is both; `defaults`: both by resource, if neither is.
    """

    name: str
    switch: str
    prefix: str
    defaults: Mapping[str, str]

    def resources(self, annotations: Mapping[str, object]) -> dict[str, dict[str, str]]:
        """Returns its requests and limits. A malformed amount, which the webhook refuses, counts as not
        stated."""
        requests: dict[str, str] = {}
        limits: dict[str, str] = {}
        for resource, default in self.defaults.items():
            request = _amount(resource, annotations.get(f"{self.prefix}{resource}-request"))
            limit = _amount(resource, annotations.get(f"{self.prefix}{resource}-limit"))
            if not request and (not limit or _is_zero(resource, limit)):
                request, limit = default, limit or default  # a limit of 0 is no limit
            requests[resource], limits[resource] = request or limit, limit or request
        return {
            side: {resource: text for resource, text in amounts.items() if not _is_zero(resource, text)}
            for side, amounts in (("requests", requests), ("limits", limits))
        }


INJECTED: Sequence[InjectedContainer] = (
    # GoogleCloudPlatform/gcs-fuse-csi-driver 01870a9d, pkg/webhook/config.go and pkg/util/util.go
    InjectedContainer(
        "gke-gcsfuse-sidecar",
        "gke-gcsfuse/volumes",
        "gke-gcsfuse/",
        {"cpu": "250m", "memory": "256Mi", "ephemeral-storage": "5Gi"},
    ),
)


def with_injected(spec: Mapping[str, object], annotations: Mapping[str, object]) -> Mapping[str, object]:
    """Returns the spec of a pod with the containers that it gets by its annotations, as sidecars that start
    before its own init containers; unchanged if it gets none or has them already."""
    added = injected(spec, annotations)
    if not added:
        return spec
    own = spec.get("initContainers")
    return {**spec, "initContainers": [*added, *(own if isinstance(own, list) else [])]}


def with_containers(
    spec: Mapping[str, object], added: Sequence[Mapping[str, object]]
) -> Mapping[str, object]:
    """Returns the spec of a pod with these containers at the end; without those that it has already."""
    own = spec.get("containers")
    lacking = [container for container in added if not _has(spec, str(container["name"]))]
    return {**spec, "containers": [*own, *lacking]} if lacking and isinstance(own, list) else spec


def injected(spec: Mapping[str, object], annotations: Mapping[str, object]) -> list[dict[str, object]]:
    """Returns the containers that a pod gets by its annotations, without those that it has already."""
    return [
        {"name": row.name, "restartPolicy": "Always", "resources": row.resources(annotations)}
        for row in INJECTED
        if annotations.get(row.switch) in ("true", "True") and not _has(spec, row.name)
    ]


def _has(spec: Mapping[str, object], name: str) -> bool:
    lists = (spec.get(part) for part in ("containers", "initContainers"))
    containers = [container for part in lists if isinstance(part, list) for container in part]
    return any(isinstance(container, Mapping) and container.get("name") == name for container in containers)


def _amount(resource: str, text: object) -> str:
    if not isinstance(text, str) or not text:
        return ""
    try:
        quantity.amount(resource, text, Where(), up=True)
    except InputError:
        return ""
    return text


def _is_zero(resource: str, text: str) -> bool:
    return not quantity.amount(resource, text, Where(), up=True)
