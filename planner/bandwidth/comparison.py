"""The all-reduce time of a gang's GPUs in its placement, compared with a topology-blind placement.

Both times are estimates of `planner.bandwidth.model`. The callers that show a comparison compute it; `plan`
never does, so its answer does not depend on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from planner.bandwidth.baseline import RULE, topology_blind
from planner.bandwidth.links import Rates, nvlink_domains, rates_of
from planner.bandwidth.model import GB, Estimate, all_reduce
from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.node import divided
from planner.model.podgroup import Assignment, PodGroup
from planner.model.resources import GPU
from planner.model.topology import Topology, topology_named


@dataclass(frozen=True, slots=True)
class GangLayout:
    """A placement as the model sees it. `nodes`: the number of nodes. `gpus`: the number of GPUs in each
    NVLink domain, the largest first. `rates`: the links. `estimate`: the time of an all-reduce of 1 GB.
    """

    nodes: int
    gpus: tuple[int, ...]
    rates: Rates
    estimate: Estimate

    def to_json(self) -> dict[str, object]:
        """Returns plain JSON, with milliseconds and GB/s."""
        return {
            "milliseconds": round(self.estimate.seconds * 1000, 3),
            "busBandwidthGBps": round(self.estimate.bus_bandwidth, 1),
            "nodes": self.nodes,
            "gpusByNVLinkDomain": list(self.gpus),
            "links": self.rates.words,
        }


@dataclass(frozen=True, slots=True)
class BandwidthComparison:
    """The comparison of a plan with a topology-blind placement.

    `placement`: the layout of the plan. `baseline`: that of the topology-blind placement; None if it has room
    for only some of the gang's pods. `baseline_pods`: for how many it has room.
    """

    placement: GangLayout
    baseline: GangLayout | None
    baseline_pods: int

    def to_json(self) -> dict[str, object]:
        """Returns plain JSON, which always has the model's name and the rule of the
        topology-blind placement.
        """
        return {
            "model": self.placement.estimate.model,
            "bytes": GB,
            "placement": self.placement.to_json(),
            "topologyBlind": {
                "rule": RULE,
                "podsPlaced": self.baseline_pods,
                **(self.baseline.to_json() if self.baseline else {}),
            },
        }


def compare_with_blind(snapshot: Snapshot, group: PodGroup, answer: Answer) -> BandwidthComparison | None:
    """Returns the comparison for an admitted answer, or None.

    None for an answer without a placement or with fewer than two whole GPUs, and if `group` is only a part of
    the gang: a pod that arrives alone does not state the GPUs of the gang's other PodSets. MIG instances and
    time slices, which some nodes offer as GPUs, have no links and so no comparison. `snapshot` is the cluster
    in which the gang was planned; the gang's own reservation is ignored.
    """
    layout = answer_layout(snapshot, group, answer)
    if layout is None:
        return None
    snapshot = snapshot.without(group.name)
    baseline = topology_blind(snapshot, group)
    baseline_pods = sum(assignment.count for assignment in baseline)
    all_placed = baseline_pods == group.size
    return BandwidthComparison(
        layout,
        _layout(snapshot, _topology(snapshot, answer), group, baseline) if all_placed else None,
        baseline_pods,
    )


def answer_layout(snapshot: Snapshot, group: PodGroup, answer: Answer) -> GangLayout | None:
    """Returns the layout of an answer's placement; None for fewer than two whole GPUs, for nodes whose GPUs
    are divided (MIG, time slices), or if the answer has a PodSet that the gang does not have.
    """
    pod_gpus = _gpus(group)
    if any(assignment.pod_set not in pod_gpus for assignment in answer.assignments):
        return None
    if sum(pod_gpus[a.pod_set] * a.count for a in answer.assignments) < 2:
        return None
    if any(divided(snapshot.nodes[a.node].labels) for a in answer.assignments):
        return None
    return _layout(snapshot, _topology(snapshot, answer), group, answer.assignments)


def _gpus(group: PodGroup) -> dict[str, int]:
    return {pod_set.name: pod_set.shape.requests.get(GPU, 0) for pod_set in group.pod_sets}


def _topology(snapshot: Snapshot, answer: Answer) -> Topology:
    return topology_named(snapshot.topologies, answer.topology) or snapshot.topologies[0]


def placed(group: PodGroup, answer: Answer) -> PodGroup:
    """Returns the gang with the pod counts that were placed, which differ only for an elastic gang."""
    counts: Counter[str] = Counter()
    for assignment in answer.assignments:
        counts[assignment.pod_set] += assignment.count
    sets = (
        replace(pod_set, count=counts.get(pod_set.name, pod_set.count), max_count=0)
        for pod_set in group.pod_sets
    )
    return replace(group, pod_sets=tuple(sets))


def _layout(
    snapshot: Snapshot, topology: Topology, group: PodGroup, assignments: Iterable[Assignment]
) -> GangLayout:
    pod_gpus = _gpus(group)
    gpus: dict[str, int] = {}
    for assignment in assignments:
        if pod_gpus[assignment.pod_set]:
            gpus[assignment.node] = (
                gpus.get(assignment.node, 0) + pod_gpus[assignment.pod_set] * assignment.count
            )
    return layout_of(snapshot, topology, gpus)


def layout_of(snapshot: Snapshot, topology: Topology, gpus: Mapping[str, int]) -> GangLayout:
    """Returns the layout for `gpus`, the number of GPUs by node name; it must have at least one node."""
    domains = nvlink_domains(snapshot.nodes, gpus)
    rates = rates_of(snapshot, topology, list(gpus))
    return GangLayout(len(gpus), domains, rates, all_reduce(domains, GB, rates.links))
