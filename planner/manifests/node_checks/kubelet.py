"""The recommended KubeletConfiguration for pods with exclusive CPUs and GPUs, and how a node differs from it.

A Guaranteed pod gets whole CPUs only with the static CPU manager, on the NUMA zone of its GPUs only with the
Topology Manager policy `restricted` or `single-numa-node`, and its memory there only with the Static memory
manager. The latter requires that `reservedMemory` over all zones equals the sum of kubeReserved,
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
"""The recommended systemReserved for a node that reserves none of a resource: the static CPU manager does not
start without a reserved CPU.
"""

EVICTION_MEMORY = 100 * 2**20
"""The kubelet's default of evictionHard's `memory.available`."""

_MI = 2**20


@dataclass(frozen=True, slots=True)
class Drift:
    """A setting of one node: its value ("" if none is known) and the recommended value."""

    node: str
    setting: str
    actual: str
    advised: str


def advised(node: Node, numa: NumaNode | None, config: Mapping[str, Any], largest_pod: int) -> dict[str, Any]:
    """Returns the recommended settings as a drop-in file for `--config-dir`.

    `config`: the kubelet's current configuration, {} if unknown; its reserved amounts are kept.
    `largest_pod`: the maximum GPUs of one pod, 0 if unknown. If a zone may have fewer GPUs than that pod,
    `single-numa-node` would always refuse it, so `restricted` is recommended.
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
    """Returns the settings in which a node differs from `wanted`. If `config` is unknown ({}), only the
    policy in its NodeResourceTopology is compared.

    Of the reserved amounts, only the total of `reservedMemory` is compared.
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
    """Returns kubeReserved and systemReserved: the node's values, and `RESERVED` for resources in neither."""
    stated = {name: dict(config.get(name) or {}) for name in ("kubeReserved", "systemReserved")}
    for resource, amount in RESERVED.items():
        if not any(resource in amounts for amounts in stated.values()):
            stated["systemReserved"][resource] = amount
    if config.get("reservedSystemCPUs"):
        stated["systemReserved"].pop("cpu", None)  # the kubelet uses these CPUs instead of an amount
    return {name: amounts for name, amounts in stated.items() if amounts}


def _by_zone(
    node: Node, reserved: Mapping[str, Mapping[str, Any]], config: Mapping[str, Any], zones: list[str]
) -> list[dict[str, Any]]:
    """Returns the reserved memory, divided equally over the zones in whole MiB; the first zone has the
    remainder.
    """
    total = sum(_memory(amount.get("memory"), node.name) for amount in reserved.values())
    total += _threshold(node, config)
    part = total // len(zones) // _MI * _MI
    parts = [total - part * (len(zones) - 1), *[part] * (len(zones) - 1)]
    return [
        {"numaNode": _number(zone, index), "limits": {"memory": f"{part // 1024}Ki"}}
        for index, (zone, part) in enumerate(zip(zones, parts, strict=True))
    ]


def _threshold(node: Node, config: Mapping[str, Any]) -> int:
    """Returns evictionHard's memory in bytes; the default for a percentage, because the capacity
    is unknown.
    """
    stated = str((config.get("evictionHard") or {}).get("memory.available", ""))
    return _memory(stated, node.name) if stated and not stated.endswith("%") else EVICTION_MEMORY


def _memory(stated: object, node: str) -> int:
    where = Where("", node, "reserved memory")
    return amounts_of({"memory": stated}, where, up=True).get("memory", 0) if stated else 0


def _total(entries: object) -> int:
    listed = entries if isinstance(entries, list) else []
    return sum(_memory((entry.get("limits") or {}).get("memory"), "") for entry in listed)


def _number(zone: str, index: int) -> int:
    """Returns the number at the end of a zone's name, for example 0 for `node-0`; `index` if it has none."""
    ending = zone.rpartition("-")[2]
    return int(ending) if ending.isdecimal() else index
