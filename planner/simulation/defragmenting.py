"""The Bayplan strategy with moves: gangs that have waited long get room by restarting others elsewhere.

The rules are those of `bayplan defrag --for` (`planner.planning.defragmentation.gang_place`), with the limits
of the parameters `defrag.*`. A simulated job has no checkpoints: a moved gang starts again from the
beginning, so the lost work is an upper bound.
"""

from __future__ import annotations

from collections.abc import Iterable

from planner.model.pod import BoundPod
from planner.model.podgroup import ReserveMode
from planner.model.resources import GPU
from planner.planning.defragmentation.gang_place import gang_place
from planner.planning.defragmentation.limits import MoveLimits
from planner.planning.defragmentation.movable import Movable, Relocation
from planner.planning.defragmentation.result import NoMoves
from planner.simulation.hall import Hall
from planner.simulation.jobs import Job
from planner.simulation.strategies import PlannedStrategy, gang_of, name_of, number
from planner.simulation.strategy import MovedJob, RunningJob

ATTEMPTS = 60
"""Maximum number of sets of movables that are planned for one gang: a month has thousands of searches."""


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
        """Returns the jobs to restart so that `place` has room for this one; none if no moves achieve
        that.
        """
        if job.total > floor.gpus - floor.busy:
            return []  # the search would give the same result, thousands of times in a month
        jobs = {name_of(other.job): other for other in running}
        movables = [self._movable(other, floor) for other in jobs.values() if self._may_restart(other.job)]
        group = gang_of(job, floor, self._reserve(job))
        result = gang_place(self._snapshot, movables, group, ATTEMPTS, self.limits.max_lost)
        if isinstance(result, NoMoves) or not result.moves:
            return []
        self._snapshot = result.after.without(group.name)
        return [self._moved(jobs[move.movable.name], move) for move in result.moves]

    def _moved(self, running: RunningJob, move: Relocation) -> MovedJob:
        self._remember(running.job, move.reservation)
        taken = [(number(seat.node), seat.count * running.job.gpus) for seat in move.to]
        return MovedJob(running.job, taken, running.job.total * running.age)

    def _may_restart(self, job: Job) -> bool:
        """Returns whether a job may be restarted, by a multiplicative hash of its number: independent of
        other jobs.
        """
        return (job.number * 2_654_435_761 % 2**32) / 2**32 < self._restartable

    def _movable(self, running: RunningJob, floor: Hall) -> Movable:
        job = running.job
        group = gang_of(job, floor, self._reserve(job))
        held = self._snapshot.holding(group.name)
        pods = (
            BoundPod(f"{group.name}-{place}", f"n{node}", {GPU: job.gpus}, held.id if held else "")
            for place, node in enumerate(
                node for node, gpus in running.taken for _ in range(gpus // job.gpus)
            )
        )
        return Movable(group, tuple(pods), age=running.age, opted_in=True)
