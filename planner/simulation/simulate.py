"""Discrete-event simulation of a GPU cluster: how long gangs wait, and the state of the cluster over time.

All strategies follow the same rules. When a gang ends, the waiting gangs are tried in order of arrival; a
gang that arrives is tried at once. A younger gang may start before an older one for which there is no room,
until the older one has waited `PATIENCE`; then no younger gang of several pods starts before it (jobs of one
pod may). A partly placed gang (strategy pod by pod) holds its part; after `GIVE_UP` it releases the part, and
tries again after the same time. The length of a gang does not depend on its placement. With moves
(`planned`), the oldest gang that has waited long and for which moves can make room gets that room. A moved
gang starts again from the beginning, after `RESTART`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from planner.simulation.course import Course, CourseRecorder, GangWait, Moves, slowdown, state_of
from planner.simulation.hall import Hall
from planner.simulation.jobs import DAY, Job
from planner.simulation.rack_use import Taken
from planner.simulation.strategy import MovedJob, MovingStrategy, RunningJob, Strategy

PATIENCE = 12 * 3600.0
"""Seconds that a gang waits before it blocks younger ones."""


GIVE_UP = 3600.0
"""Seconds after which a partly placed gang releases its part, and again after which it may try again."""


RESTART = 300.0
"""Seconds in which a moved gang occupies its GPUs without progress: loading images, model and data."""


MOVE_SEARCH_SECONDS = 300.0
"""Seconds between two searches for moves if the first one finds none."""


def simulate(
    jobs: Sequence[Job],
    floor: Hall,
    strategy: Strategy,
    days: float,
    progress: Callable[[float], None] = lambda share: None,
) -> Course:
    """Runs the jobs (sorted by arrival) in an empty hall for `days` and returns what happens.

    `progress` is called with the share of the time that has been simulated.
    """
    return _Simulation(jobs, floor, strategy, days * DAY, progress).run()


class _Simulation:
    """The state of a simulation.

    By job number: `placed`, the GPUs of a running or partly placed job; `started`, its first start; `since`,
    the start of its current run; `moved`, its last move; `not_before`, when a job that has released its part
    may be tried again. `stuck`: the shapes (pods, GPUs per pod) of jobs for which no room was found since the
    last `_pass`. `next_look`: the earliest time of the next search for moves. Times are in seconds.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        floor: Hall,
        strategy: Strategy,
        end: float,
        progress: Callable[[float], None],
    ) -> None:
        self.jobs, self.floor, self.strategy, self.end = jobs, floor, strategy, end
        self.progress = progress
        self.now = 0.0
        self.running_gpus = 0
        self.events: list[tuple[float, int, str, Job]] = []
        self.waiting: list[Job] = []
        self.placed: dict[int, Taken] = {}
        self.not_before: dict[int, float] = {}
        self.stuck: set[tuple[int, int]] = set()
        self.started: dict[int, float] = {}
        self.slowdown: list[float] = []
        self.running: dict[int, Job] = {}
        self.since: dict[int, float] = {}
        self.moved: dict[int, float] = {}
        self.moves = Moves()
        self.next_look = 0.0
        self.recorder = CourseRecorder(end)

    def run(self) -> Course:
        for job in self.jobs:
            self._schedule(job.arrival, "arrive", job)
        while self.events and self.events[0][0] < self.end:
            time, _, event, job = heapq.heappop(self.events)
            self._advance(time)
            getattr(self, f"_{event}")(job)
        self._advance(self.end)
        course = self.recorder.course(self.strategy.name)
        course.waits = [
            GangWait(job.total, self.started.get(job.number, self.end) - job.arrival, not self._ran(job))
            for job in self.jobs
            if job.arrival < self.end
        ]
        course.slowdown, course.moves, course.gpus = self.slowdown, self.moves, self.floor.gpus
        return course

    def _ran(self, job: Job) -> bool:
        return job.number in self.started

    def _advance(self, time: float) -> None:
        """Records that the current state lasted until `time`, and advances the clock to it."""
        floor, before = self.floor, len(self.recorder.samples)
        held = floor.busy - self.running_gpus + self.strategy.held_gpus(floor)
        self.recorder.advance(time, state_of(floor, self.running_gpus, held, len(self.waiting)))
        if len(self.recorder.samples) > before:
            self.progress(time / self.end)
        self.now = time

    # -- events ---------------------------------------------------------------------------------------------

    def _arrive(self, job: Job) -> None:
        if (job.pods > 1 and self._impatient()) or _shape(job) in self.stuck or not self._try(job):
            self.waiting.append(job)
            if isinstance(self.strategy, MovingStrategy):
                self._schedule(self.now + self.strategy.limits.after, "overdue", job)

    def _finish(self, job: Job) -> None:
        if self.since[job.number] + job.length > self.now:
            return  # the job was restarted, so it ends later
        taken = self.placed.pop(job.number)
        del self.running[job.number]
        self.running_gpus -= job.total
        self.floor.give(taken)
        self.strategy.release(job)
        self._pass()

    def _give_up(self, job: Job) -> None:
        """Releases the placed pods of a gang that still waits for the rest of its pods."""
        if job.number not in self.placed or self._ran(job):
            return
        self.floor.give(self.placed.pop(job.number))
        self.strategy.release(job)
        self.not_before[job.number] = self.now + GIVE_UP
        self._schedule(self.now + GIVE_UP, "again", job)
        self._pass()

    def _again(self, job: Job) -> None:
        self._pass()

    def _overdue(self, job: Job) -> None:
        """Looks for moves once a gang has waited `limits.after`; an older waiting gang may get the room
        instead.
        """
        if isinstance(self.strategy, MovingStrategy) and not self._ran(job):
            self._make_room(self.strategy)
            if not self._ran(job):
                self._schedule(max(self.now + MOVE_SEARCH_SECONDS, self.next_look), "overdue", job)

    def _schedule(self, time: float, event: str, job: Job) -> None:
        heapq.heappush(self.events, (time, job.number, event, job))

    # -- starting gangs -------------------------------------------------------------------------------------

    def _impatient(self) -> bool:
        """Reports whether the oldest waiting gang of several pods has waited longer than `PATIENCE`."""
        oldest = next((job for job in self.waiting if job.pods > 1), None)
        return oldest is not None and self.now - oldest.arrival > PATIENCE

    def _pass(self) -> None:
        """Tries the waiting gangs, the oldest first, except those of the same shape as one that failed, and
        gangs of several pods behind one that has waited `PATIENCE`.
        """
        self.stuck.clear()
        still: list[Job] = []
        blocked = False
        for job in self.waiting:
            if (blocked and job.pods > 1) or not self._worth_trying(job) or not self._try(job):
                still.append(job)
                blocked = blocked or (job.pods > 1 and self.now - job.arrival > PATIENCE)
        self.waiting = still

    def _worth_trying(self, job: Job) -> bool:
        if self.not_before.get(job.number, 0.0) > self.now:
            return False
        return _shape(job) not in self.stuck or job.number in self.placed

    def _try(self, job: Job) -> bool:
        """Places the job, or some of its pods without a place; returns whether all of its pods now run."""
        taken = self.strategy.place(job, self.floor)
        before = self.placed.get(job.number, [])
        self.floor.take(taken)
        placed = [*before, *taken]
        if sum(gpus for _, gpus in placed) == job.total:
            self.placed[job.number] = placed
            self._start(job, placed)
            return True
        if not before:
            self.stuck.add(_shape(job))
        if taken:
            self.placed[job.number] = placed
            if not before:
                self._schedule(self.now + GIVE_UP, "give_up", job)
        return False

    def _make_room(self, strategy: MovingStrategy) -> None:
        """Makes room for the oldest gang that has waited long and for which moves are found, if any."""
        if self.now < self.next_look:
            return
        self.next_look = self.now + MOVE_SEARCH_SECONDS
        blocked = False
        for job in [job for job in self.waiting if self.now - job.arrival >= strategy.limits.after]:
            if blocked and job.pods > 1:
                continue
            moved = strategy.make_room(job, self._running(strategy.limits.rest), self.floor)
            if moved:
                self._move(moved)
                self.next_look = self.now + max(MOVE_SEARCH_SECONDS, strategy.limits.every)
                self._pass()
                return
            blocked = blocked or (job.pods > 1 and self.now - job.arrival > PATIENCE)

    def _running(self, rest: float) -> list[RunningJob]:
        """Returns the running jobs, except those that were moved less than `rest` seconds ago."""
        return [
            RunningJob(job, self.placed[job.number], self.now - self.since[job.number])
            for job in self.running.values()
            if self.moved.get(job.number, -rest) + rest <= self.now
        ]

    def _move(self, moved: Sequence[MovedJob]) -> None:
        """Restarts these jobs elsewhere.

        All old GPUs are released before any new ones are taken, because a job may move onto another's GPUs.
        """
        for move in moved:
            self.floor.give(self.placed[move.job.number])
        for move in moved:
            self.floor.take(move.taken)
            self.placed[move.job.number] = move.taken
            self.moved[move.job.number] = self.now
            self.since[move.job.number] = self.now + RESTART
            self._schedule(self.now + RESTART + move.job.length, "finish", move.job)
        self.moves.gangs += 1
        self.moves.restarts += len(moved)
        self.moves.lost += sum(move.lost + RESTART * move.job.total for move in moved)

    def _start(self, job: Job, placed: Taken) -> None:
        self.started[job.number] = self.since[job.number] = self.now
        self.running[job.number] = job
        self.running_gpus += job.total
        self._schedule(self.now + job.length, "finish", job)
        if job.pods > 1:
            self.slowdown.append(slowdown(self.floor, placed))


def _shape(job: Job) -> tuple[int, int]:
    return job.pods, job.gpus
