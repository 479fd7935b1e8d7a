"""Messages about NUMA: what the kubelet's Topology Manager would refuse, and how much one NUMA zone has."""

from __future__ import annotations

from collections.abc import Sequence

from planner.manifests.numa import PINNED
from planner.model.pod_class import PodClass
from planner.model.quantity import show
from planner.model.resources import Resources
from planner.node.numa_state import NumaState, alignment_for
from planner.node.topology_manager import RESTRICTED, Misfit, NumaNode, Zone, closeness, misfit

NUMA = "NUMA"
"""Prefix of the cause for a node that has room for a pod in total, but not in its NUMA zones."""


def cause(zones: NumaState, pod_class: PodClass) -> str:
    """Returns why the kubelet would refuse one pod of the class now; "" if it would admit the pod."""
    alignment = alignment_for(pod_class.shape)
    if zones.max_pods(alignment, 1):
        return ""
    refusal = misfit(_node(zones), alignment.asks(zones.scope), occupied=True)
    assert refusal is not None, "a pod that has no room is refused for something"
    name = min(refusal.zones, key=lambda name: ("/" not in name, name))
    amount = show(name, refusal.request.requests[name])
    return f"{NUMA}: no zone for {amount} {name} under {zones.policy}"


def why_never_aligned(pod_class: PodClass, hosts: Sequence[NumaState]) -> str:
    """Returns the sentence about a pod that no kubelet would admit, although some nodes have enough in total.

    `hosts`: the NUMA states of those nodes. The numbers are those of the node that comes closest.
    """
    alignment = alignment_for(pod_class.shape)
    refused = [(zones, misfit(_node(zones), alignment.asks(zones.scope), occupied=False)) for zones in hosts]
    zones, refusal = max(
        ((zones, refusal) for zones, refusal in refused if refusal is not None),
        key=lambda pair: (closeness(pair[1].closest, pair[1].requested), pair[0].policy),
    )
    per_pod = zones.scope == "pod" or not refusal.request.name
    container_words = "" if per_pod else f" in container {refusal.request.name}"
    left_words = " left beside the containers before it" if refusal.beside else ""
    return (
        f"It asks for {amounts(refusal.requested)}{container_words}, and the Topology Manager "
        f"({zones.policy}, scope {zones.scope}) would refuse that (TopologyAffinityError): one NUMA zone has "
        f"{amounts(refusal.closest)}{left_words}{_widths(zones.policy, refusal)}."
    )


def amounts(resources: Resources) -> str:
    """Returns amounts as text, devices first: "4 × nvidia.com/gpu, 48 cpu"."""
    order = sorted(resources, key=lambda name: ("/" not in name, name))
    return ", ".join(
        f"{show(name, resources[name])} {name}" if name in PINNED else f"{resources[name]} × {name}"
        for name in order
    )


def _widths(policy: str, refusal: Misfit) -> str:
    """Returns the part of the sentence about amounts that take several zones, as the policy `restricted` lets
    them; "" if each takes one.
    """
    widths = set(refusal.zones.values())
    if policy != RESTRICTED or widths == {1}:
        return ""
    if len(widths) == 1 and 0 not in widths:
        return f", and no {widths.pop()} zones have all of it"
    spans = ", ".join(f"{name} {count or 'more than all'}" for name, count in sorted(refusal.zones.items()))
    return f", and all amounts must take the same number of zones ({spans})"


def _node(zones: NumaState) -> NumaNode:
    as_zones = (
        Zone(f"node-{number}", dict(whole), dict(free))
        for number, (whole, free) in enumerate(zip(zones.allocatable, zones.free, strict=True))
    )
    return NumaNode("", zones.policy, zones.scope, tuple(as_zones))
