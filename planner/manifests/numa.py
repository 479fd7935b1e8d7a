"""Reads NUMA alignment from objects: the aligned requests of a pod, and the zones and policy of a node.

Sources: the kubelet's CPU, Memory and Device Manager; NodeResourceTopology. Devices are always aligned. cpu,
memory and huge pages are aligned only for a Guaranteed pod with container resources, and CPUs only in whole
numbers, because containers with other amounts run on the shared CPUs. Under the scope `pod`, all requests of
the pod are aligned together; init containers add only what exceeds the containers' requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from planner.manifests.fields import mapping, maps, text
from planner.model import quantity
from planner.model.errors import InputError, Where
from planner.model.pod import NOTHING, Alignment, ContainerRequest, as_one
from planner.node.topology_manager import (
    GPUS_LABEL,
    MAX_ZONES,
    POLICY_LABEL,
    RESTRICTED,
    SCOPE_LABEL,
    SINGLE,
    NumaNode,
    Zone,
)

PINNED = ("cpu", "memory")
"""Resources that the kubelet aligns only for Guaranteed pods, as it does huge pages."""


_Amounts = tuple[tuple[str, int], ...]


def alignment_of(spec: Mapping[str, object], where: Where) -> Alignment:
    """Returns the requests of a pod with this spec that the kubelet aligns to NUMA zones.

    Raises `InputError` for malformed resources.
    """
    pinned = is_guaranteed(spec, where) and not spec.get("resources")
    result: list[tuple[str, bool, _Amounts]] = []
    for container, stays in _containers(spec, where):
        amounts = _aligned(_requests(container, where), pinned)
        if amounts:
            name = text(container.get("name"), where)
            result.append((name, stays, tuple(sorted(amounts.items()))))
    return _alignment(tuple(result)) if result else NOTHING


def is_guaranteed(spec: Mapping[str, object], where: Where) -> bool:
    """Reports whether every container has cpu and memory requests above zero that equal its limits."""
    containers = [container for container, _ in _containers(spec, where)]
    return bool(containers) and all(_pinned(container, where) for container in containers)


@lru_cache(maxsize=4096)  # an entry for each kind of pod template, by its amounts
def _alignment(containers: tuple[tuple[str, bool, _Amounts], ...]) -> Alignment:
    """Returns the alignment for these containers (name, whether it keeps its resources, amounts). The record
    is shared by all pods with the same requests, because there are many such pods.
    """
    asks = tuple(ContainerRequest(name, dict(amounts), stays) for name, stays, amounts in containers)
    return Alignment(asks, as_one(asks))


def _containers(spec: Mapping[str, object], where: Where) -> Iterator[tuple[Mapping[str, object], bool]]:
    """Yields init containers, then containers, in the kubelet's order. Each comes with a flag: whether it
    keeps its resources while the pod runs. An init container keeps them only as a sidecar (restartPolicy
    Always).
    """
    for container in maps(spec.get("initContainers"), where.at_path("initContainers")):
        yield container, container.get("restartPolicy") == "Always"
    for container in maps(spec.get("containers"), where.at_path("containers")):
        yield container, True


def _requests(container: Mapping[str, object], where: Where) -> dict[str, int]:
    resources = mapping(container.get("resources"), where)
    limits = quantity.amounts(resources.get("limits"), where, up=True)
    return {**limits, **quantity.amounts(resources.get("requests"), where, up=True)}


def _pinned(container: Mapping[str, object], where: Where) -> bool:
    limits = quantity.amounts(mapping(container.get("resources"), where).get("limits"), where, up=True)
    requests = _requests(container, where)
    return all(limits.get(name, 0) > 0 and limits[name] == requests[name] for name in PINNED)


def _aligned(requests: Mapping[str, int], pinned: bool) -> dict[str, int]:
    """Returns the amounts that are aligned; `pinned`: the pod is Guaranteed, so cpu and memory are too."""
    shared_cpus = requests.get("cpu", 0) % 1000 != 0
    return {
        name: amount
        for name, amount in requests.items()
        if amount > 0
        and name not in ("pods", "ephemeral-storage")
        and (pinned or not (name in PINNED or name.startswith("hugepages-")))
        and not (name == "cpu" and shared_cpus)
    }


_OLD_POLICIES = {
    "SingleNUMANode": (SINGLE, "container"),
    "SingleNUMANodeContainerLevel": (SINGLE, "container"),
    "SingleNUMANodePodLevel": (SINGLE, "pod"),
    "Restricted": (RESTRICTED, "container"),
    "RestrictedContainerLevel": (RESTRICTED, "container"),
    "RestrictedPodLevel": (RESTRICTED, "pod"),
}
"""Policy and scope by the value of `topologyPolicies[0]`, which is older than the attributes. With any other
value the node admits every pod.
"""


def numa_from(item: Mapping[str, object], where: Where) -> NumaNode:
    """Returns a NodeResourceTopology (`topology.node.k8s.io`). Raises `InputError` for a malformed one."""
    metadata = mapping(item.get("metadata"), where.at_path("metadata"))
    policy, scope = _policy(item, where)
    zones = [
        _zone(zone, where.at_path(f"zones[{index}]"))
        for index, zone in enumerate(maps(item.get("zones"), where.at_path("zones")))
        if text(zone.get("type"), where.at_path(f"zones[{index}].type")) == "Node"
    ]
    if len(zones) > MAX_ZONES:
        raise InputError(
            f"{len(zones)} NUMA zones; the Topology Manager knows at most {MAX_ZONES}", where.at_path("zones")
        )
    zones.sort(key=lambda zone: (len(zone.name), zone.name))
    return NumaNode(text(metadata.get("name"), where.at_path("metadata.name")), policy, scope, tuple(zones))


def _policy(item: Mapping[str, object], where: Where) -> tuple[str, str]:
    """Returns the Topology Manager's policy and scope, from the attributes or the older
    `topologyPolicies`.
    """
    attributes = {
        text(attribute.get("name"), where.at_path("attributes")): text(
            attribute.get("value"), where.at_path("attributes")
        )
        for attribute in maps(item.get("attributes"), where.at_path("attributes"))
    }
    policy = attributes.get("topologyManagerPolicy", "")
    if policy:
        return policy, attributes.get("topologyManagerScope", "") or "container"
    old = item.get("topologyPolicies")
    first = old[0] if isinstance(old, list) and old else ""
    return _OLD_POLICIES.get(text(first, where.at_path("topologyPolicies[0]")), ("none", "container"))


def _zone(zone: Mapping[str, object], where: Where) -> Zone:
    allocatable: dict[str, int] = {}
    available: dict[str, int] = {}
    for index, entry in enumerate(maps(zone.get("resources"), where.below("resources"))):
        place = where.below(f"resources[{index}]")
        name = text(entry.get("name"), place)
        offered = next((entry[key] for key in ("allocatable", "capacity") if entry.get(key) is not None), 0)
        allocatable[name] = quantity.amount(name, offered, place, up=False)
        left = entry.get("available")
        available[name] = quantity.amount(name, offered if left is None else left, place, up=False)
    return Zone(text(zone.get("name"), where.below("name")), allocatable, available)


def check_labels(labels: Mapping[str, str], where: Where) -> None:
    """Raises `InputError` if the label for NUMA policy, NUMA scope or GPUs per zone has an invalid value."""
    allowed = {
        POLICY_LABEL: ("none", "best-effort", RESTRICTED, SINGLE),
        SCOPE_LABEL: ("container", "pod"),
        GPUS_LABEL: tuple(str(count) for count in range(1, 129)),
    }
    for key, values in allowed.items():
        if labels.get(key) and labels[key] not in values:
            valid = ", ".join(values) if key != GPUS_LABEL else "1 to 128"
            raise InputError(
                f"{labels[key]!r} cannot be; use {valid}", where.at_path(f"metadata.labels.{key}")
            )
