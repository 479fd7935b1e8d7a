"""Functions of policies over claims, RDMA adapters and capabilities: plain JSON in, plain JSON out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from planner.claims import CHANNEL_CLASS, UNKNOWN
from planner.errors import Where
from planner.quantity import amount
from webhook.cel import Function

Json = Any
GPU_CLASSES = ("gpu.nvidia.com", "vfio.gpu.nvidia.com")
MIG_CLASS = "mig.nvidia.com"
_RDMA = re.compile(
    r"rdma/.+|openshift\.io/.+|vpc\.amazonaws\.com/efa|networking\.gke\.io\.networks/rdma-\d+"
    r"|(nvidia|mellanox|intel)\.com/.*(rdma|sriov|roce|hostdev|_ib|mlnx).*"
)
"""Resource names of the shared device plugin, SR-IOV, EKS, GKE, AKS and OCI."""


def claimed(pod: Json, known: Json, namespace: Json) -> list[dict[str, Json]]:
    """`devices.claimed(pod, cluster.claims, gang.namespace)`: the pod's claims, one by one.

    Each has `name`, `source` (the claim's or template's name), `known` (the cluster has it), `used` (some
    container does), `channel` (it is a ComputeDomain's), `gpus` and `slices` (devices of GPU and of MIG
    classes), `all` (as many as the node has: then `gpus` is 0).
    """
    spec = _map(_map(pod).get("spec"))
    used = {
        _map(one).get("name")
        for container in (*_list(spec.get("containers")), *_list(spec.get("initContainers")))
        for one in _list(_map(_map(container).get("resources")).get("claims"))
    }
    return [
        _claim(_map(entry), _map(known), str(namespace), used) for entry in _list(spec.get("resourceClaims"))
    ]


def _claim(
    entry: Mapping[str, Json], known: Mapping[str, Json], namespace: str, used: set[Json]
) -> dict[str, Json]:
    template = entry.get("resourceClaimTemplateName")
    source = str(template or entry.get("resourceClaimName") or "")
    key = f"{namespace}/{source}"
    requests = _map(known.get("templates" if template else "claims")).get(key)
    of_domain = bool(template) and any(
        name == source and domain.startswith(f"{namespace}/")
        for domain, name in _map(known.get("domains")).items()
    )
    counted = _list(requests)
    return {
        "name": str(entry.get("name", "")),
        "source": source,
        "known": requests is not None or of_domain,
        "used": entry.get("name") in used,
        "channel": of_domain or any(one["class"] == CHANNEL_CLASS for one in counted),
        "gpus": sum(max(0, one["count"]) for one in counted if one["class"] in GPU_CLASSES),
        "slices": sum(max(0, one["count"]) for one in counted if one["class"] == MIG_CLASS),
        "all": any(one["count"] == UNKNOWN and one["class"] in (*GPU_CLASSES, MIG_CLASS) for one in counted),
    }


def rdma(container: Json) -> dict[str, int]:
    """`rdma.asked(container)`: RDMA resources by name, as the container asks for them; {} for none."""
    found: dict[str, int] = {}
    for name, value in _stated(container):
        if _RDMA.fullmatch(name):
            try:
                found[name] = amount(name, value, Where(), up=True)
            except ValueError:
                continue
    return {name: count for name, count in found.items() if count > 0}


def _stated(container: Json) -> Iterator[tuple[str, Json]]:
    resources = _map(_map(container).get("resources"))
    for side in ("requests", "limits"):
        for name, value in _map(resources.get(side)).items():
            yield str(name), value


def with_capability(security: Json, capability: Json) -> dict[str, Json]:
    """`capabilities.add(securityContext, "IPC_LOCK")`: the context with it, once."""
    context = dict(_map(security))
    capabilities = dict(_map(context.get("capabilities")))
    have = _list(capabilities.get("add"))
    if capability in have or "ALL" in have:
        return context
    return {**context, "capabilities": {**capabilities, "add": [*have, capability]}}


def _map(value: Json) -> Mapping[str, Json]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError("expected a mapping")
    return value


def _list(value: Json) -> list[Json]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError("expected a list")
    return value


DEVICE_FUNCTIONS: Mapping[str, Function] = {
    "devices.claimed": Function(claimed, 3, 3),
    "rdma.asked": Function(rdma, 1, 1),
    "capabilities.add": Function(with_capability, 2, 2),
}
"""Name in CEL → the function, the fewest and the most arguments."""
