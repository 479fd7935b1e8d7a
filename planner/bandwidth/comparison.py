"""What a placement is worth: the all-reduce of a gang's GPUs, beside that of a topology-blind placement.

Both by `planner.bandwidth`'s model. Worked out by whoever shows it, never by `plan`, whose answer does not
depend on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from planner.bandwidth.baseline import RULE, topology_blind
from planner.bandwidth.links import Rates, nvlink_domains, rates_of
from planner.bandwidth.model import GB, Estimate, all_reduce
from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.node import divided
from planner.model.podgroup import Assignment, PodGroup
from planner.model.resources import GPU
from planner.model.topology import Topology
from planner.planning.plan import when_empty
from planner.request.levels import constraints, resolve


@dataclass(frozen=True, slots=True)
class GangLayout:
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

    here: GangLayout
    blind: GangLayout | None
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
    here = _here(snapshot, group, answer)
    if here is None:
        return None
    snapshot = snapshot.without(group.name)
    blind = topology_blind(snapshot, group)
    there = sum(assignment.count for assignment in blind)
    whole = there == group.size
    return Worth(here, _layout(snapshot, _topology(snapshot, answer), group, blind) if whole else None, there)


def _here(snapshot: Snapshot, group: PodGroup, answer: Answer) -> GangLayout | None:
    each = _gpus(group)
    if sum(each.get(a.pod_set, 0) * a.count for a in answer.assignments) < 2:
        return None
    if any(divided(snapshot.nodes[a.node].labels) for a in answer.assignments):
        return None
    return _layout(snapshot, _topology(snapshot, answer), group, answer.assignments)


def _gpus(group: PodGroup) -> dict[str, int]:
    return {pod_set.name: pod_set.shape.requests.get(GPU, 0) for pod_set in group.pod_sets}


def _topology(snapshot: Snapshot, answer: Answer) -> Topology:
    return next((t for t in snapshot.topologies if t.name == answer.topology), snapshot.topologies[0])


@dataclass(frozen=True, slots=True)
class PodDistribution:
    """A gang in several domains of a level that it prefers to be in one of: `here` and in how many, `best`
    and in how many at the least, when the cluster is empty."""

    level: str
    domains: int
    here: GangLayout
    least: int
    best: GangLayout


def placed(group: PodGroup, answer: Answer) -> PodGroup:
    """The gang as it is placed: an elastic one with the pods that it got."""
    counts: Counter[str] = Counter()
    for one in answer.assignments:
        counts[one.pod_set] += one.count
    sets = (replace(one, count=counts.get(one.name, one.count), most=0) for one in group.pod_sets)
    return replace(group, pod_sets=tuple(sets))


def spread(snapshot: Snapshot, group: PodGroup, answer: Answer) -> PodDistribution | None:
    """How an admitted gang lies in the level that it, or the first of its PodSets, prefers and did not get.

    None where each got what it prefers, or has no links to speak of. `snapshot` is the cluster in which it
    was planned; what the gang itself holds there is left aside.
    """
    topology = next((t for t in snapshot.topologies if t.name == answer.topology), None)
    if topology is None or not any(one.preferred for _, one in constraints(group)):
        return None
    for names, preferred in _preferred(group):
        level = resolve(topology, preferred)
        domains = _domains(snapshot, topology, level, names, answer) if level else 0
        if domains < 2:
            continue
        here = _here(snapshot, group, answer)
        best = when_empty(snapshot.without(group.name), placed(group, answer))
        ideal = _here(snapshot, group, best)
        if here is not None and ideal is not None:
            return PodDistribution(
                level, domains, here, _domains(snapshot, topology, level, names, best), ideal
            )
    return None


def _preferred(group: PodGroup) -> list[tuple[frozenset[str], str]]:
    """Who prefers which level: all PodSets together, and each."""
    every = frozenset(one.name for one in group.pod_sets)
    found = [(every, group.constraint.preferred)]
    found += [(frozenset((one.name,)), one.constraint.preferred) for one in group.pod_sets]
    return [(names, level) for names, level in found if level]


def _domains(
    snapshot: Snapshot, topology: Topology, level: str, names: frozenset[str], answer: Answer
) -> int:
    depth = topology.index(level) + 1
    nodes = {one.node for one in answer.assignments if one.pod_set in names}
    return len({topology.path(name, snapshot.nodes[name].labels)[:depth] for name in nodes})


def _layout(
    snapshot: Snapshot, topology: Topology, group: PodGroup, assignments: Iterable[Assignment]
) -> GangLayout:
    each = _gpus(group)
    gpus: dict[str, int] = {}
    for one in assignments:
        if each[one.pod_set]:
            gpus[one.node] = gpus.get(one.node, 0) + each[one.pod_set] * one.count
    domains = nvlink_domains(snapshot.nodes, gpus)
    rates = rates_of(snapshot, topology, list(gpus))
    return GangLayout(len(gpus), domains, rates, all_reduce(domains, GB, rates.links))
