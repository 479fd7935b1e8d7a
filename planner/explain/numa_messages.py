"""Messages about NUMA: what the kubelet's Topology Manager would refuse, how much one NUMA zone has, and what
would work.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.manifests.numa import PINNED
from planner.model.pod_class import PodClass
from planner.model.quantity import show
from planner.model.resources import Resources
from planner.node.numa_state import NumaState, alignment_for
from planner.node.topology_manager import RESTRICTED, Misfit, NumaNode, Zone, max_in_one_zone, misfit

NUMA = "NUMA"
"""Prefix of the cause for a node that has room for a pod in total, but not in its NUMA zones."""


def cause(zones: NumaState, kind: PodClass) -> str:
    """Returns why the kubelet would refuse one pod of the class now; "" if it would admit the pod."""
    alignment = alignment_for(kind.shape)
    if zones.max_pods(alignment, 1):
        return ""
    refusal = misfit(_node(zones), alignment.asks(zones.scope), occupied=True)
    assert refusal is not None, "a pod that has no room is refused for something"
    name = min(refusal.zones, key=lambda name: ("/" not in name, name))
    amount = show(name, refusal.request.requests[name])
    return f"{NUMA}: no zone for {amount} {name} under {zones.policy}"


def why_never_aligned(kind: PodClass, hosts: Sequence[NumaState]) -> str:
    """Returns the sentence about a pod that no kubelet would admit, although some nodes have enough in total.

    `hosts`: the NUMA states of those nodes. The numbers are those of the node that comes closest.
    """
    alignment = alignment_for(kind.shape)
    refused = [(zones, misfit(_node(zones), alignment.asks(zones.scope), occupied=False)) for zones in hosts]
    zones, refusal = max(
        ((zones, refusal) for zones, refusal in refused if refusal is not None),
        key=lambda pair: (_closeness(pair[0], pair[1]), pair[0].policy),
    )
    per_pod = zones.scope == "pod" or not refusal.request.name
    container_words = "" if per_pod else f" in container {refusal.request.name}"
    max_amounts = max_in_one_zone(_node(zones), sorted(refusal.zones))
    return (
        f"It asks for {amounts(_requested(refusal))}{container_words}, and the Topology Manager "
        f"({zones.policy}, scope {zones.scope}) would refuse that (TopologyAffinityError): one NUMA zone has "
        f"{amounts(max_amounts)}. Would work: {_remedies(zones, refusal, max_amounts)}."
    )


def amounts(resources: Resources) -> str:
    """Returns amounts as text, devices first: "4 × nvidia.com/gpu, 48 cpu"."""
    order = sorted(resources, key=lambda name: ("/" not in name, name))
    return ", ".join(
        f"{show(name, resources[name])} {name}" if name in PINNED else f"{resources[name]} × {name}"
        for name in order
    )


def _remedies(zones: NumaState, refusal: Misfit, max_amounts: Resources) -> str:
    unit = "pod" if zones.scope == "pod" else "container"
    excess = {
        name: max_amounts.get(name, 0)
        for name in refusal.zones
        if refusal.request.requests[name] > max_amounts.get(name, 0)
    }
    ways = [f"at most {amounts(excess)} a {unit}"] if excess else []
    if zones.policy == RESTRICTED and len(set(refusal.zones.values())) > 1:
        spans = ", ".join(f"{name} takes {count}" for name, count in sorted(refusal.zones.items()))
        ways.append(f"amounts that all take the same number of zones ({spans})")
    return ", or ".join(ways) or f"less in one {unit}"


def _requested(refusal: Misfit) -> Resources:
    return {name: refusal.request.requests[name] for name in refusal.zones}


def _closeness(zones: NumaState, refusal: Misfit) -> int:
    """Returns how close a host comes to admitting the pod, from 0 to 1000: for the scarcest resource, how
    many thousandths of the request one zone has.
    """
    max_amounts = max_in_one_zone(_node(zones), refusal.zones)
    return min(
        min(1000, 1000 * max_amounts.get(n, 0) // max(1, need)) for n, need in _requested(refusal).items()
    )


def _node(zones: NumaState) -> NumaNode:
    as_zones = (
        Zone(f"node-{number}", dict(whole), dict(free))
        for number, (whole, free) in enumerate(zip(zones.allocatable, zones.free, strict=True))
    )
    return NumaNode("", zones.policy, zones.scope, tuple(as_zones))
