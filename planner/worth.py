"""What a placement is worth: the all-reduce of a gang's GPUs, beside that of a topology-blind placement.

Both by `planner.bandwidth`'s model. Worked out by whoever shows it, never by `plan`, whose answer does not
depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from planner.answer import Answer, Assignment
from planner.bandwidth import GB, Estimate, all_reduce
from planner.blind import RULE, topology_blind
from planner.match import divided
from planner.podgroup import PodGroup
from planner.rates import Rates, nvlink_domains, rates_of
from planner.snapshot import Snapshot
from planner.topology import Topology

NVIDIA = "nvidia.com/gpu"
"""The one resource whose links the model has rates for."""


@dataclass(frozen=True, slots=True)
class Layout:
    """One way to lay the gang out: GPUs in each NVLink domain, the nodes and the links, and the estimate."""

    nodes: int
    gpus: tuple[int, ...]
    rates: Rates
    estimate: Estimate

    def to_json(self) -> dict[str, object]:
        """Plain JSON: milliseconds, GB/s."""
        return {
            "milliseconds": round(self.estimate.seconds * 1000, 3),
            "busBandwidthGBps": round(self.estimate.bus_bandwidth, 1),
            "nodes": self.nodes,
            "gpusByNVLinkDomain": list(self.gpus),
            "links": self.rates.words,
        }


@dataclass(frozen=True, slots=True)
class Worth:
    """The placement and the blind one; `blind` is None where it finds room for `blind_pods` pods only."""

    here: Layout
    blind: Layout | None
    blind_pods: int

    def to_json(self) -> dict[str, object]:
        """Plain JSON; always with the model's name and the rule of the comparison."""
        return {
            "model": self.here.estimate.model,
            "bytes": GB,
            "placement": self.here.to_json(),
            "topologyBlind": {
                "rule": RULE,
                "podsPlaced": self.blind_pods,
                **(self.blind.to_json() if self.blind else {}),
            },
        }


def worth(snapshot: Snapshot, group: PodGroup, answer: Answer) -> Worth | None:
    """The worth of an admitted answer; None for one without a place, or with fewer than two whole GPUs.

    MIG instances and time slices, which some nodes give as GPUs, have no links and so no worth. `snapshot` is
    the cluster in which it was planned; what the gang itself holds there is left aside.
    """
    each = {pod_set.name: pod_set.shape.requests.get(NVIDIA, 0) for pod_set in group.pod_sets}
    if sum(each.get(a.pod_set, 0) * a.count for a in answer.assignments) < 2:
        return None
    if any(divided(snapshot.nodes[a.node].labels) for a in answer.assignments):
        return None
    snapshot = snapshot.without(group.name)
    topology = next((t for t in snapshot.topologies if t.name == answer.topology), snapshot.topologies[0])
    blind = topology_blind(snapshot, group)
    placed = sum(assignment.count for assignment in blind)
    return Worth(
        here=_layout(snapshot, topology, each, answer.assignments),
        blind=_layout(snapshot, topology, each, blind) if placed == group.size else None,
        blind_pods=placed,
    )


def _layout(
    snapshot: Snapshot, topology: Topology, each: dict[str, int], assignments: Iterable[Assignment]
) -> Layout:
    gpus: dict[str, int] = {}
    for one in assignments:
        if each[one.pod_set]:
            gpus[one.node] = gpus.get(one.node, 0) + each[one.pod_set] * one.count
    domains = nvlink_domains(snapshot.nodes, gpus)
    rates = rates_of(snapshot, topology, list(gpus))
    return Layout(len(gpus), domains, rates, all_reduce(domains, GB, rates.links))
