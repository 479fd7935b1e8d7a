"""CEL functions over containers, device claims, RDMA adapters and capabilities. Plain JSON.

A malformed part of a pod counts as missing: the API server reports it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from planner.devices.claims import CHANNEL_CLASS
from planner.model.claim_spec import UNKNOWN
from planner.model.errors import Where
from planner.model.quantity import amount
from webhook.cel import Function
from webhook.cel.values.stand_in import derived
from webhook.policy.functions.pods import count, mapping_of

Json = Any


GPU_CLASSES = ("gpu.nvidia.com", "vfio.gpu.nvidia.com")


MIG_CLASS = "mig.nvidia.com"


_RDMA = re.compile(
    r"rdma/.+|openshift\.io/.+|vpc\.amazonaws\.com/efa|networking\.gke\.io\.networks/rdma-\d+"
    r"|(nvidia|mellanox|intel)\.com/.*(rdma|sriov|roce|hostdev|_ib|mlnx).*"
)
"""Resource names of the shared device plugin, SR-IOV, EKS, GKE, AKS and OCI."""


def claimed(pod: Json, claims: Json, namespace: Json) -> list[dict[str, Json]]:
    """`devices.claimed(pod, cluster.claims, gang.namespace)`: a map for each claim in `spec.resourceClaims`.

    Each has `name`, `source` (the name of the ResourceClaim or template), `known` (whether the cluster has
    this claim or template, or a ComputeDomain that makes the template), `containers` (the names of the
    containers that use the claim), `channel` (whether the claim is for a ComputeDomain), `gpus` and `slices`
    (the numbers of devices of GPU and of MIG classes), `all` (whether it asks for all GPUs or all MIG slices
    of a node, which `gpus` and `slices` do not count).
    """
    spec = mapping_of(mapping_of(pod).get("spec"))
    used = [
        (_text(claim.get("name")), _text(container.get("name")))
        for part in ("containers", "initContainers")
        for container in _maps(spec.get(part))
        for claim in _maps(mapping_of(container.get("resources")).get("claims"))
    ]
    return [
        _claim(entry, mapping_of(claims), str(namespace), used)
        for entry in _maps(spec.get("resourceClaims"))
        if _text(entry.get("name"))
    ]


def _claim(
    entry: Mapping[str, Json], claims: Mapping[str, Json], namespace: str, used: list[tuple[str, str]]
) -> dict[str, Json]:
    template = entry.get("resourceClaimTemplateName")
    source = _text(template) or _text(entry.get("resourceClaimName"))
    key = f"{namespace}/{source}"
    requests = mapping_of(claims.get("templates" if template else "claims")).get(key)
    of_domain = bool(template) and any(
        name == source and domain.startswith(f"{namespace}/")
        for domain, name in mapping_of(claims.get("domains")).items()
    )
    counted = _list(requests)
    return {
        "name": entry["name"],
        "source": source,
        "known": requests is not None or of_domain,
        "containers": [container for claim, container in used if claim == entry["name"]],
        "channel": of_domain or any(request["class"] == CHANNEL_CLASS for request in counted),
        "gpus": sum(max(0, request["count"]) for request in counted if request["class"] in GPU_CLASSES),
        "slices": sum(max(0, request["count"]) for request in counted if request["class"] == MIG_CLASS),
        "all": any(
            request["count"] == UNKNOWN and request["class"] in (*GPU_CLASSES, MIG_CLASS)
            for request in counted
        ),
    }


def rdma(container: Json) -> dict[str, int]:
    """`rdma.asked(container)`: the number of each RDMA resource that the container requests, by name."""
    counts: dict[str, int] = {}
    for name, value in _stated(container):
        if _RDMA.fullmatch(name):
            try:
                counts[name] = amount(name, value, Where(), up=True)
            except ValueError:
                continue
    return {name: count for name, count in counts.items() if count > 0}


def _stated(container: Json) -> Iterator[tuple[str, Json]]:
    resources = mapping_of(mapping_of(container).get("resources"))
    for side in ("requests", "limits"):
        for name, value in mapping_of(resources.get(side)).items():
            yield str(name), value


def with_capability(security: Json, capability: Json) -> Json:
    """`capabilities.add(securityContext, "IPC_LOCK")`: the security context with the capability added, unless
    it has that one or `ALL`.
    """
    context = mapping_of(security)
    capabilities = context.get("capabilities") or {}
    have = mapping_of(capabilities).get("add") or []
    if (
        not isinstance(capabilities, Mapping)
        or not isinstance(have, list)
        or {"ALL", capability} & {*map(str, have)}
    ):
        return security
    return {**context, "capabilities": {**capabilities, "add": [*have, capability]}}


def containers(pod: Json) -> list[dict[str, Json]]:
    """`containers.of(pod)`: a summary of each container that has a name, without init containers.

    Each has `index`, `name`, `env` (name and value, as strings), `envFrom` (whether it has the field of this
    name), `mounts` (paths), `security`, `limits`, `gpus` (whole GPUs) and `rdma` (as `rdma.asked`).
    """
    listed = _list(mapping_of(mapping_of(pod).get("spec")).get("containers"))
    return [
        {
            "index": index,
            "name": container["name"],
            "env": derived(container.get("env"), _variables),
            "envFrom": derived(container.get("envFrom"), bool),
            "mounts": derived(container.get("volumeMounts"), _mount_paths),
            "security": container.get("securityContext"),
            "limits": mapping_of(mapping_of(container.get("resources")).get("limits")),
            "gpus": count(container),
            "rdma": rdma(container),
        }
        for index, container in enumerate(listed)
        if isinstance(container, Mapping) and isinstance(container.get("name"), str)
    ]


def _variables(env: Json) -> list[dict[str, str]]:
    return [{"name": str(entry.get("name", "")), "value": _text(entry.get("value"))} for entry in _maps(env)]


def _mount_paths(mounts: Json) -> list[str]:
    return [_text(mount.get("mountPath")) for mount in _maps(mounts)]


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _maps(value: Json) -> list[Mapping[str, Json]]:
    return [item for item in _list(value) if isinstance(item, Mapping)]


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


DEVICE_FUNCTIONS: Mapping[str, Function] = {
    "containers.of": Function(containers, 1, 1),
    "devices.claimed": Function(claimed, 3, 3),
    "rdma.asked": Function(rdma, 1, 1),
    "capabilities.add": Function(with_capability, 2, 2),
}
"""Name in CEL → the function, the fewest and the most arguments."""
