"""The KubeletConfiguration advised for pods with exclusive CPUs beside their GPUs, and a node's drift. Pure.

Guaranteed pods get whole CPUs only under the static CPU manager, on the NUMA zone of their GPUs only under
the Topology Manager's `restricted` or `single-numa-node`, and their memory there only under the Static memory
manager. That one demands that `reservedMemory` over all zones is exactly what is reserved: kubeReserved,
systemReserved and the hard eviction threshold (kubernetes.io, "Utilizing the NUMA-aware Memory Manager").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.model.errors import Where
from planner.model.node import Node
from planner.model.quantity import amounts as amounts_of
from planner.model.resources import GPU
from planner.node.topology_manager import RESTRICTED, SINGLE, NumaNode

API_VERSION = "kubelet.config.k8s.io/v1beta1"

RESERVED = {"cpu": "1", "memory": "2Gi"}
"""The systemReserved that is advised where a node reserves none of a resource: the static CPU manager does
not start without a reserved CPU."""

EVICTION_MEMORY = 100 * 2**20
"""The kubelet's default of evictionHard's `memory.available`."""

_MI = 2**20


@dataclass(frozen=True, slots=True)
class Drift:
    """A setting of one node: what it is ("" where that is not known to be set) and what is advised."""

    node: str
    setting: str
    actual: str
    advised: str


def advised(node: Node, numa: NumaNode | None, config: Mapping[str, Any], largest_pod: int) -> dict[str, Any]:
    """The settings, as a drop-in file for `--config-dir`.

    `config`: the kubelet's present configuration, {} where it is not known; what it reserves is kept.
    `largest_pod`: the most GPUs that one pod asks for, 0 where that is not known; where a zone may have
    fewer, `single-numa-node` would refuse that pod for ever, and `restricted` is advised.
    """
    zones = numa.zones if numa is not None else ()
    reserved = _reserved(config)
    in_zone = min((zone.allocatable.get(GPU, 0) for zone in zones if zone.allocatable.get(GPU, 0)), default=0)
    fits = len(zones) == 1 or 0 < largest_pod <= in_zone
    result: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": "KubeletConfiguration",
        "cpuManagerPolicy": "static",
        "cpuManagerPolicyOptions": {"full-pcpus-only": "true"},
        "topologyManagerPolicy": SINGLE if fits else RESTRICTED,
        **reserved,
    }
    if zones:
        result["memoryManagerPolicy"] = "Static"
        result["reservedMemory"] = _by_zone(node, reserved, config, [zone.name for zone in zones])
    return result


def drift(
    node: Node, numa: NumaNode | None, config: Mapping[str, Any], wanted: Mapping[str, Any]
) -> list[Drift]:
    """How a node differs. Without its configuration only the policy of its NodeResourceTopology is known.

    What a node reserves is its own affair, as long as it reserves something and `reservedMemory` adds up.
    """
    if not config:
        policy = numa.policy if numa is not None else ""
        if not policy or policy in (SINGLE, RESTRICTED):
            return []
        return [Drift(node.name, "topologyManagerPolicy", policy, wanted["topologyManagerPolicy"])]
    result = []
    for setting in ("cpuManagerPolicy", "topologyManagerPolicy", "memoryManagerPolicy"):
        actual, advice = str(config.get(setting) or "none"), str(wanted.get(setting, ""))
        if advice and actual.lower() != advice.lower():
            result.append(Drift(node.name, setting, actual, advice))
    whole_cores = str((config.get("cpuManagerPolicyOptions") or {}).get("full-pcpus-only") or "false")
    if whole_cores != "true":
        result.append(Drift(node.name, "full-pcpus-only", whole_cores, "true"))
    actual_bytes, advised_bytes = (_total(settings.get("reservedMemory")) for settings in (config, wanted))
    if "reservedMemory" in wanted and actual_bytes != advised_bytes:
        amounts_mi = f"{actual_bytes // _MI}Mi", f"{advised_bytes // _MI}Mi"
        result.append(Drift(node.name, "reservedMemory", *amounts_mi))
    return result


def _reserved(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """kubeReserved and systemReserved: what the node states, and `RESERVED` of what it has in neither."""
    stated = {name: dict(config.get(name) or {}) for name in ("kubeReserved", "systemReserved")}
    for resource, amount in RESERVED.items():
        if not any(resource in amounts for amounts in stated.values()):
            stated["systemReserved"][resource] = amount
    if config.get("reservedSystemCPUs"):
        stated["systemReserved"].pop("cpu", None)  # the kubelet takes these CPUs instead of an amount
    return {name: amounts for name, amounts in stated.items() if amounts}


def _by_zone(
    node: Node, reserved: Mapping[str, Mapping[str, Any]], config: Mapping[str, Any], zones: list[str]
) -> list[dict[str, Any]]:
    """The reserved memory, in equal parts of whole MiB; the first zone has the rest."""
    total = sum(_memory(amount.get("memory"), node.name) for amount in reserved.values())
    total += _threshold(node, config)
    part = total // len(zones) // _MI * _MI
    parts = [total - part * (len(zones) - 1), *[part] * (len(zones) - 1)]
    return [
        {"numaNode": _number(zone, index), "limits": {"memory": f"{part // 1024}Ki"}}
        for index, (zone, part) in enumerate(zip(zones, parts, strict=True))
    ]


def _threshold(node: Node, config: Mapping[str, Any]) -> int:
    """evictionHard's memory in bytes; of a percentage the default is taken, as the capacity is not known."""
    stated = str((config.get("evictionHard") or {}).get("memory.available", ""))
    return _memory(stated, node.name) if stated and not stated.endswith("%") else EVICTION_MEMORY


def _memory(stated: object, node: str) -> int:
    where = Where("", node, "reserved memory")
    return amounts_of({"memory": stated}, where, up=True).get("memory", 0) if stated else 0


def _total(entries: object) -> int:
    listed = entries if isinstance(entries, list) else []
    return sum(_memory((entry.get("limits") or {}).get("memory"), "") for entry in listed)


def _number(zone: str, index: int) -> int:
    """The number of a zone, called `node-0` in a NodeResourceTopology."""
    ending = zone.rpartition("-")[2]
    return int(ending) if ending.isdecimal() else index
