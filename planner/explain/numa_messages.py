"""The planner's words about NUMA: what a kubelet would refuse, what one zone has, and what would work."""

from __future__ import annotations

from collections.abc import Sequence

from planner.manifests.numa import PINNED
from planner.model.pod_class import PodClass
from planner.model.quantity import show
from planner.model.resources import Resources
from planner.node.numa_state import NumaState, alignment_for
from planner.node.topology_manager import RESTRICTED, Misfit, NumaNode, Zone, max_in_one_zone, misfit

NUMA = "NUMA"
"""How the cause begins where a node has room for a pod, but no NUMA zones of it do."""


def cause(zones: NumaState, kind: PodClass) -> str:
    """Why the zones' kubelet would refuse one pod of the kind now; "" where it would take it."""
    alignment = alignment_for(kind.shape)
    if zones.max_pods(alignment, 1):
        return ""
    found = misfit(_node(zones), alignment.asks(zones.scope), now=True)
    assert found is not None, "a pod that has no room is refused for something"
    name = min(found.zones, key=lambda name: ("/" not in name, name))
    asked = show(name, found.request.requests[name])
    return f"{NUMA}: no zone for {asked} {name} under {zones.policy}"


def never(kind: PodClass, hosts: Sequence[NumaState], count: int) -> str:
    """The message to a pod that no kubelet of `count` nodes with room would take; `hosts`: their zones."""
    alignment = alignment_for(kind.shape)
    whose = " and ".join(name for name, _ in kind.parts)
    refused = [(zones, misfit(_node(zones), alignment.asks(zones.scope), now=False)) for zones in hosts]
    zones, found = max(
        ((zones, found) for zones, found in refused if found is not None),
        key=lambda pair: (_worth(pair[0], pair[1]), pair[0].policy),
    )
    one = zones.scope == "pod" or not found.request.name
    where = "" if one else f" in container {found.request.name}"
    nodes = "the only node" if count == 1 else f"all {count} nodes"
    most = max_in_one_zone(_node(zones), sorted(found.zones))
    return (
        f"One pod of {whose} asks for {amounts(_asked(found))}{where}, which the Topology Manager "
        f"({zones.policy}, scope {zones.scope}) refuses on {nodes} with room for it "
        f"(TopologyAffinityError): one NUMA zone has {amounts(most)}. "
        f"Would work: {_would(zones, found, most)}."
    )


def amounts(found: Resources) -> str:
    """Amounts in words: "4 × nvidia.com/gpu, 48 cpu"; devices first."""
    order = sorted(found, key=lambda name: ("/" not in name, name))
    return ", ".join(
        f"{show(name, found[name])} {name}" if name in PINNED else f"{found[name]} × {name}" for name in order
    )


def _would(zones: NumaState, found: Misfit, most: Resources) -> str:
    each = "pod" if zones.scope == "pod" else "container"
    over = {
        name: most.get(name, 0) for name in found.zones if found.request.requests[name] > most.get(name, 0)
    }
    ways = [f"at most {amounts(over)} a {each}"] if over else []
    if zones.policy == RESTRICTED and len(set(found.zones.values())) > 1:
        spans = ", ".join(f"{name} takes {count}" for name, count in sorted(found.zones.items()))
        ways.append(f"amounts that all take the same number of zones ({spans})")
    return ", or ".join(ways) or f"less in one {each}"


def _asked(found: Misfit) -> Resources:
    return {name: found.request.requests[name] for name in found.zones}


def _worth(zones: NumaState, found: Misfit) -> int:
    """How near a host comes: the share of what is asked for that its best zone has."""
    most = max_in_one_zone(_node(zones), found.zones)
    return min(min(1000, 1000 * most.get(n, 0) // max(1, need)) for n, need in _asked(found).items())


def _node(zones: NumaState) -> NumaNode:
    named = (
        Zone(f"node-{number}", dict(whole), dict(free))
        for number, (whole, free) in enumerate(zip(zones.allocatable, zones.free, strict=True))
    )
    return NumaNode("", zones.policy, zones.scope, tuple(named))
