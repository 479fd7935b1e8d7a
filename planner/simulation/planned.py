"""Strategies that place a gang by Bayplan's plan, without moves and with moves.

With moves, other gangs are restarted elsewhere to make room for a gang that has waited long. The rules are
those of `bayplan defrag --for` (`planner.planning.defragmentation.gang_place`), with the limits of the
parameters `defrag.*`. A simulated job has no checkpoints: a moved gang starts again from the beginning, so
the lost work is an upper bound.
"""

from __future__ import annotations

from collections.abc import Iterable

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.model.node import Node
from planner.model.pod import BoundPod, PodShape
from planner.model.podgroup import Constraint, PodGroup, PodSet, ReserveMode
from planner.model.reservation import Reservation
from planner.model.resources import GPU
from planner.model.topology import HOSTNAME, Topology
from planner.planning.defragmentation.gang_place import gang_place
from planner.planning.defragmentation.limits import MoveLimits
from planner.planning.defragmentation.movable import Movable, Relocation
from planner.planning.defragmentation.result import NoMoves
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from planner.simulation.hall import Hall
from planner.simulation.jobs import Job
from planner.simulation.rack_use import Taken
from planner.simulation.strategies import in_one_rack
from planner.simulation.strategy import MovedJob, RunningJob

RACK = "rack"

ATTEMPTS = 60
"""Maximum number of sets of workloads whose move is planned for one gang: a simulated month has thousands of
such searches."""


class PlannedStrategy:
    """Bayplan: `planner.planning.plan.plan` on a snapshot with every running gang's reservation.

    With `mode` `auto`, the planner chooses for every job whether it holds whole domains. With `domain`, gangs
    of several pods with at least `hold_from` GPUs hold whole domains; all others hold what they use.
    """

    partial = False

    def __init__(self, floor: Hall, mode: ReserveMode, hold_from: int) -> None:
        self.name = f"bayplan, {mode}{'s' * (mode == 'domain')}"
        self._mode, self._hold_from = mode, hold_from
        self._snapshot = hall_snapshot(floor)
        self._pristine_held: dict[int, list[int]] = {}

    def place(self, job: Job, floor: Hall) -> Taken:
        if not _may_fit(job, floor, self._holds(job)):
            return []
        group = gang_of(job, floor, self._reserve(job))
        answer = plan(self._snapshot, group)
        reservation = reservation_for(self._snapshot, group, answer)
        if reservation is None:
            return []
        self._snapshot = self._snapshot.with_reservation(reservation)
        self._remember(job, reservation)
        return [(number(a.node), a.count * job.gpus) for a in answer.assignments]

    def _reserve(self, job: Job) -> ReserveMode:
        return "auto" if self._mode == "auto" else "domain" if self._holds(job) else "nodes"

    def _remember(self, job: Job, reservation: Reservation) -> None:
        """Records the nodes that the job holds whole."""
        self._pristine_held.pop(job.number, None)
        if reservation.domains:
            self._pristine_held[job.number] = [number(name) for name in reservation.nodes]

    def _holds(self, job: Job) -> bool:
        return self._mode == "domain" and job.total >= self._hold_from and job.pods > 1

    def release(self, job: Job) -> None:
        self._snapshot = self._snapshot.without(name_of(job))
        self._pristine_held.pop(job.number, None)

    def held_gpus(self, floor: Hall) -> int:
        return sum(floor.free[node] for nodes in self._pristine_held.values() for node in nodes)


class DefragmentingStrategy(PlannedStrategy):
    """Bayplan with moves. `restartable`: the share of jobs that may be restarted."""

    def __init__(
        self, floor: Hall, mode: ReserveMode, hold_from: int, limits: MoveLimits, restartable: float = 1.0
    ) -> None:
        super().__init__(floor, mode, hold_from)
        self.name += ", moves"
        self.limits = limits
        self._restartable = restartable

    def make_room(self, job: Job, running: Iterable[RunningJob], floor: Hall) -> list[MovedJob]:
        """Returns the jobs to restart so that `place` finds room for this one; empty if no moves suffice."""
        if job.total > floor.gpus - floor.busy:
            return []  # moves free no GPUs; this saves thousands of searches in a month
        jobs = {name_of(other.job): other for other in running}
        movables = [self._movable(other, floor) for other in jobs.values() if self._may_restart(other.job)]
        group = gang_of(job, floor, self._reserve(job))
        result = gang_place(self._snapshot, movables, group, plan, ATTEMPTS, self.limits.max_lost)
        if isinstance(result, NoMoves) or not result.moves:
            return []
        self._snapshot = result.after.without(group.name)  # the caller lets `place` plan the gang itself
        return [self._moved(jobs[move.movable.name], move) for move in result.moves]

    def _moved(self, running: RunningJob, move: Relocation) -> MovedJob:
        self._remember(running.job, move.reservation)
        taken = [(number(seat.node), seat.count * running.job.gpus) for seat in move.to]
        return MovedJob(running.job, taken, running.job.total * running.age)

    def _may_restart(self, job: Job) -> bool:
        """Returns whether a job may be restarted. A multiplicative hash of its number decides, so the answer
        for a job does not depend on other jobs.
        """
        return (job.number * 2_654_435_761 % 2**32) / 2**32 < self._restartable

    def _movable(self, running: RunningJob, floor: Hall) -> Movable:
        job = running.job
        group = gang_of(job, floor, self._reserve(job))
        held = self._snapshot.holding(group.name)
        pods = (
            BoundPod(f"{group.name}-{index}", f"n{node}", {GPU: job.gpus}, held.id if held else "")
            for index, node in enumerate(
                node for node, gpus in running.taken for _ in range(gpus // job.gpus)
            )
        )
        return Movable(group, tuple(pods), age=running.age, opted_in=True)


def _may_fit(job: Job, floor: Hall, whole: bool) -> bool:
    """Reports whether a plan could succeed, by a cheap check of sums.

    `whole`: the job holds whole racks, which must be pristine.
    """
    if job.gpus < floor.per_node:
        return any(free >= job.gpus for free in floor.free)
    if whole:
        return floor.pristine * floor.per_rack >= job.pods
    if in_one_rack(job, floor):
        return max(floor.whole) >= job.pods
    return sum(floor.whole) >= job.pods


def name_of(job: Job) -> str:
    """Returns the name of the job's gang."""
    return f"simulation/Job/{job.number}"


def number(node: str) -> int:
    """Returns the number of a node from its name."""
    return int(node.removeprefix("n"))


def gang_of(job: Job, floor: Hall, reserve: ReserveMode) -> PodGroup:
    """Returns the job as a PodGroup; a gang of several pods that fits into a rack requires the level rack."""
    pods = PodSet("worker", job.pods, PodShape({GPU: job.gpus, "pods": 1}))
    required = RACK if job.pods > 1 and in_one_rack(job, floor) else ""
    return PodGroup(name_of(job), (pods,), Constraint(required=required), reserve)


def hall_snapshot(floor: Hall) -> Snapshot:
    """Returns the empty hall as a snapshot, with racks r0, r1, … and nodes n0, n1, …"""
    nodes = (
        Node(
            f"n{node}",
            {RACK: f"r{floor.rack(node)}", HOSTNAME: f"n{node}"},
            {GPU: floor.per_node, "pods": 110},
        )
        for node in range(len(floor.free))
    )
    return snapshot(nodes, [Topology("hall", (RACK, HOSTNAME))])
