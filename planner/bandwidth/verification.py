"""Compares the nodes of a gang's pods with its plan, and gives the model's estimate for these nodes.

Measurements (`nccl_tests`) are shown beside the estimate, in a record of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from planner.bandwidth.comparison import GangLayout, layout_of
from planner.bandwidth.model import Estimate, all_reduce
from planner.bandwidth.nccl_tests import Measurement, NcclRun
from planner.cluster.snapshot import Snapshot
from planner.cluster.usage.occupancy import carried
from planner.model.node import divided
from planner.model.reservation import Reservation
from planner.model.resources import GPU
from planner.model.topology import topology_named


@dataclass(frozen=True, slots=True)
class NodeSeats:
    """A node of a gang: how many of its pods are planned there, and how many run there."""

    node: str
    planned: int
    bound: int


@dataclass(frozen=True, slots=True)
class Verification:
    """The placement of a gang that holds a reservation, compared with its plan.

    `gpus`: the number of GPUs of its pods by node: of the bound pods if all are bound, else as planned.
    `layout`: the placement with the model's estimate; None for fewer than two whole GPUs, or for GPUs that
    are divided (MIG, time slices).
    """

    held: Reservation
    seats: tuple[NodeSeats, ...]
    gpus: Mapping[str, int]
    layout: GangLayout | None

    @property
    def devices_per_gpu(self) -> dict[str, float]:
        """The devices that a pod requests for each GPU, by resource: for example network adapters, without
        which a test would measure TCP.
        """
        pod = max((amounts for _, amounts in self.held.requests), key=lambda amounts: amounts.get(GPU, 0))
        return {name: n / pod[GPU] for name, n in pod.items() if "/" in name and name != GPU and pod.get(GPU)}

    @property
    def waiting(self) -> int:
        """The number of planned pods minus that of bound pods."""
        return sum(seat.planned for seat in self.seats) - sum(seat.bound for seat in self.seats)

    @property
    def as_planned(self) -> bool:
        """Reports whether every pod is where it was planned."""
        return all(seat.planned == seat.bound for seat in self.seats)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A measurement and the model's estimate for the same number of bytes."""

    measured: Measurement
    model: Estimate

    @property
    def share(self) -> float:
        """The measured bus bandwidth as a share of the estimated one."""
        return self.measured.bus_bandwidth / self.model.bus_bandwidth if self.model.bus_bandwidth else 0.0


def verify(snapshot: Snapshot, held: Reservation) -> Verification:
    """Returns the verification of a reservation.

    If several reservations may account for a pod (`carried`), the pod counts for this one only if the gang
    has planned pods on the pod's node.
    """
    planned: Counter[str] = Counter()
    for assignment in held.assignments:
        planned[assignment.node] += assignment.count
    own = snapshot.bound.of_gang(held.gang, held.id)
    bound = Counter(pod.node for pod in own if len(carried(pod)) == 1 or pod.node in planned)
    seats = tuple(NodeSeats(node, planned[node], bound[node]) for node in sorted({*planned, *bound}))
    gpus = _gpus(snapshot, held, bound if sum(bound.values()) == sum(planned.values()) else planned)
    return Verification(held, seats, gpus, _layout(snapshot, held, gpus))


def compare_measurement(layout: GangLayout, run: NcclRun) -> Comparison:
    """Returns the measurement of the largest size in a run, with the model's estimate for this size and
    layout.
    """
    measured = run.largest
    return Comparison(measured, all_reduce(layout.gpus, measured.size, layout.rates.links))


def _gpus(snapshot: Snapshot, held: Reservation, pods: Mapping[str, int]) -> dict[str, int]:
    """Returns the gang's GPUs by node.

    The PodSet of a pod is known only from the plan. On a node with another number of pods than planned, all
    pods count as pods of the PodSet with the most GPUs.
    """
    per_pod = {name: amounts.get(GPU, 0) for name, amounts in held.requests}
    by_node: Counter[str] = Counter()
    seats: Counter[str] = Counter()
    for assignment in held.assignments:
        by_node[assignment.node] += per_pod.get(assignment.pod_set, 0) * assignment.count
        seats[assignment.node] += assignment.count
    largest = max(per_pod.values(), default=0)
    gpus = {
        node: by_node[node] if count == seats[node] else largest * count
        for node, count in pods.items()
        if count and node in snapshot.nodes
    }
    return {node: count for node, count in sorted(gpus.items()) if count}


def _layout(snapshot: Snapshot, held: Reservation, gpus: Mapping[str, int]) -> GangLayout | None:
    if sum(gpus.values()) < 2 or any(divided(snapshot.nodes[node].labels) for node in gpus):
        return None
    topology = topology_named(snapshot.topologies, held.topology) or snapshot.topologies[0]
    return layout_of(snapshot, topology, gpus)
