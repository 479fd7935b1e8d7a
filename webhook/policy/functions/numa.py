"""The CEL function over NUMA zones: why a kubelet would reject a pod. Plain JSON.

The kubelet's rules are in `planner.node.topology_manager`. Its CPU, Memory and Device Managers align cpu,
memory and huge pages only for a Guaranteed pod, and a container's CPUs only if their number is whole; they
always align devices.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.manifests.numa import PINNED, alignment_of
from planner.manifests.pods.pod import shape_of
from planner.model.errors import Where
from planner.model.labels import Taint
from planner.model.node import Node
from planner.model.pod import PodShape
from planner.model.quantity import show
from planner.node.eligibility import obstacle
from planner.node.topology_manager import RESTRICTED, Misfit, NumaNode, Zone, misfit
from webhook.cel import Function
from webhook.policy.functions.admitted_shape import with_runtime_class

Json = Any


NONE: Mapping[str, Json] = {}


def numa_misfit(pod: Json, nodes: Json, chosen: Json, runtime_classes: Json = NONE) -> Mapping[str, Json]:
    """`numa.misfit(pod, cluster.numa, names, cluster.runtimeClasses)`: why the kubelet of a node would reject
    the pod, or {}.

    With `names`, these nodes are checked with what is free in their zones; {} if none rejects the pod.
    Without names, each node is checked as if it were empty, if the pod may go there and it has enough
    allocatable; {} if one of them accepts the pod. The map describes the first node that rejects it: `node`,
    `nodes` (how many reject it), `policy`, `scope`, `container` ("" for the pod as a whole), and as text the
    amounts `asked`, `fits` (what one zone has, the one that comes closest, beside the containers before) and,
    only with the policy `restricted`, `zones` (how many zones each resource needs; else "").

    A pod template is read as the API server creates its pods, with what their RuntimeClass adds; without the
    last argument, only as it is.
    """
    spec = _map(_map(pod).get("spec"))
    shape = with_runtime_class(shape_of(spec, Where()), runtime_classes)
    alignment = alignment_of(spec, Where())
    refused: list[Mapping[str, Json]] = []
    for entry in nodes or ():
        if (entry["node"] not in chosen) if chosen else not _may_go(shape, entry):
            continue
        node = _numa_node(entry)
        shortfall = misfit(node, alignment.asks(entry["scope"]), occupied=bool(chosen))
        if shortfall is None and not chosen:
            return NONE
        if shortfall is not None:
            refused.append(_misfit_json(node, shortfall))
    return {**refused[0], "nodes": len(refused)} if refused else NONE


def _may_go(shape: PodShape, entry: Mapping[str, Json]) -> bool:
    taints = tuple(Taint(**taint) for taint in entry["taints"])
    allocatable = entry["allocatable"]
    enough = all(allocatable.get(name, 0) >= amount for name, amount in shape.requests.items())
    return enough and not obstacle(
        shape, Node(entry["node"], entry["labels"], allocatable, taints), occupied=False
    )


def _numa_node(entry: Mapping[str, Json]) -> NumaNode:
    zones = tuple(Zone(zone["name"], zone["allocatable"], zone["available"]) for zone in entry["zones"])
    return NumaNode(entry["node"], entry["policy"], entry["scope"], zones)


def _misfit_json(node: NumaNode, shortfall: Misfit) -> dict[str, Json]:
    spans = (f"{name} {count or 'more than all'}" for name, count in sorted(shortfall.zones.items()))
    return {
        "node": node.name,
        "policy": node.policy,
        "scope": node.scope,
        "container": shortfall.request.name,
        "asked": _text(shortfall.requested),
        "fits": _text(shortfall.closest)
        + (" left beside the containers before it" if shortfall.beside else ""),
        "zones": ", ".join(spans) if node.policy == RESTRICTED else "",
    }


def _text(amounts: Mapping[str, int]) -> str:
    return ", ".join(
        f"{show(name, amount)} {name}" if name in PINNED else f"{amount} × {name}"
        for name, amount in sorted(amounts.items())
    )


def _map(value: Json) -> Mapping[str, Json]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError("expected a mapping")
    return value


NUMA_FUNCTIONS: Mapping[str, Function] = {"numa.misfit": Function(numa_misfit, 3, 4)}
"""Name in CEL → the function, the fewest and the most arguments."""
