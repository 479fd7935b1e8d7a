"""Records the course of a cluster: what gangs hold, and which gangs wait, over time. Pure.

A replay has two courses: the recorded one, from the entries, and that of the replayed decisions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from planner.cluster.census.domains import gpus_of
from planner.cluster.snapshot import Snapshot
from planner.model.reservation import Reservation
from planner.simulation.course import Course, CourseRecorder, GangWait, slowdown, state_of
from planner.simulation.rack_use import RackUse, Taken
from webhook.journal.entries import JournalEntry
from webhook.report.fabric_map import fabric_maps
from webhook.wire.request import AdmissionRequest

Rack = tuple[tuple[str, int], ...]
"""The nodes of a domain of the last level above the hosts, each with its number of GPUs."""


def gpu_racks(snapshot: Snapshot) -> list[Rack]:
    """Returns the nodes with GPUs, grouped by the last level above hosts. A node in several topologies counts
    in the first one.
    """
    seen: set[str] = set()
    racks = []
    for row in (row for fabric in fabric_maps(snapshot) for row in fabric.rows):
        cells = [cell for cell in row.cells if cell.count.gpus and cell.node not in seen]
        seen.update(cell.node for cell in cells)
        if cells:
            racks.append(tuple((cell.node, cell.count.gpus) for cell in cells))
    return racks


@dataclass(frozen=True, slots=True)
class _GangUse:
    """The place of a gang. `taken`, `gpus`: the GPUs of its pods, by node and in total. `idle`: the GPUs that
    it holds without using them.
    """

    gang: str
    taken: Taken
    gpus: int
    idle: int


class ClusterCourse:
    """Records which gangs hold GPUs and which wait, over time. `course` returns the result.

    Times are seconds since the epoch, and must not decrease. Reservations are identified by their ids,
    waiting gangs by their names.
    """

    def __init__(self, name: str, snapshot: Snapshot, racks: Sequence[Rack], start: float) -> None:
        """Starts at time `start` with these racks, and with the pods and reservations of the snapshot.

        `name`: the name of the course."""
        self.name, self._start = name, start
        self._use = RackUse([[gpus for _, gpus in rack] for rack in racks])
        names = (node for rack in racks for node, _ in rack)
        self._number = {node: number for number, node in enumerate(names)}
        self._recorder = CourseRecorder()
        self._places: dict[str, _GangUse] = {}
        self._waiting: dict[str, tuple[float, int]] = {}
        self._waits: list[GangWait] = []
        self._slowdown: list[float] = []
        self._running = self._idle = 0
        self._take_existing(snapshot)

    def hold(self, reservation: Reservation, now: float) -> None:
        """Records that a gang holds a reservation from `now` on; it replaces one with the same id."""
        self._advance(now)
        replaced = self._end(reservation.id)
        taken, gpus = self._seats(reservation, self._use.free)
        self._use.take(taken)
        self._keep(reservation, taken, gpus)
        since, _ = self._waiting.pop(reservation.gang, (now, 0))
        if not replaced:
            self._waits.append(GangWait(gpus, now - since))
            if len(taken) > 1:
                self._slowdown.append(slowdown(self._use, taken))

    def end(self, reservation: str, now: float) -> None:
        """Records the end of a reservation."""
        self._advance(now)
        self._end(reservation)

    def wait(self, gang: str, gpus: int, now: float) -> None:
        """Records that a gang waits, unless it already does."""
        self._advance(now)
        self._waiting.setdefault(gang, (now, gpus))

    def leave(self, gang: str, now: float) -> None:
        """Records that a waiting gang has left the queue without a place."""
        self._advance(now)
        if gang in self._waiting:
            since, gpus = self._waiting.pop(gang)
            self._waits.append(GangWait(gpus, now - since, never=True))

    def waiting(self) -> list[str]:
        """Returns the names of the waiting gangs."""
        return list(self._waiting)

    def holders(self) -> dict[str, str]:
        """Returns the id of the reservation of each gang that has a place, by gang name."""
        return {place.gang: reservation for reservation, place in self._places.items()}

    def course(self, end: float) -> Course:
        """Returns the course until `end`. Gangs that still wait count as never started."""
        self._advance(end)
        course = self._recorder.course(self.name)
        still = [GangWait(gpus, end - since, never=True) for since, gpus in self._waiting.values()]
        course.waits, course.slowdown = [*self._waits, *still], self._slowdown
        return course

    def _advance(self, now: float) -> None:
        state = state_of(self._use, self._running, self._idle, len(self._waiting))
        self._recorder.advance(max(now - self._start, self._recorder.now), state)

    def _take_existing(self, snapshot: Snapshot) -> None:
        """Marks the GPUs of the snapshot's pods and reservations as taken."""
        for node, number in self._number.items():
            gpus = min(gpus_of(snapshot.taken_on(node)), self._use.free[number])
            self._use.take([(number, gpus)])
            self._running += gpus
        for reservation in snapshot.reservations:
            taken, gpus = self._seats(reservation, self._use.capacity)
            self._keep(reservation, taken, gpus)
            self._running -= gpus  # `taken_on` has counted them above

    def _keep(self, reservation: Reservation, taken: Taken, gpus: int) -> None:
        own = (self._number[node] for node in reservation.nodes if node in self._number)
        idle = sum(self._use.free[number] for number in own) if reservation.domains else 0
        self._places[reservation.id] = _GangUse(reservation.gang, taken, gpus, idle)
        self._running += gpus
        self._idle += idle

    def _end(self, reservation: str) -> bool:
        """Ends a reservation, and returns whether there was one with this id."""
        place = self._places.pop(reservation, None)
        if place is not None:
            self._use.give(place.taken)
            self._running -= place.gpus
            self._idle -= place.idle
        return place is not None

    def _seats(self, reservation: Reservation, room: Sequence[int]) -> tuple[Taken, int]:
        """Returns the GPUs of a reservation's pods by node of the racks, at most the node's `room`, and their
        sum.
        """
        per_pod = {pod_set: gpus_of(amounts) for pod_set, amounts in reservation.requests}
        by_node: dict[str, int] = {}
        for seat in reservation.assignments:
            by_node[seat.node] = by_node.get(seat.node, 0) + seat.count * per_pod.get(seat.pod_set, 0)
        numbered = ((self._number[node], gpus) for node, gpus in by_node.items() if node in self._number)
        taken = [(node, min(gpus, room[node])) for node, gpus in numbered if gpus and room[node]]
        return taken, sum(gpus for _, gpus in taken)


@dataclass(slots=True)
class Recorded:
    """Builds the recorded course from entries. `tells_places`: an entry had a reservation or a queued gang;
    entries of an audit log have neither.
    """

    cluster: ClusterCourse
    tells_places: bool = False

    def follow(self, entry: JournalEntry) -> None:
        """Records new and ended reservations, queued gangs, and waiting gangs that were deleted."""
        now, request = entry.time, entry.request
        for reservation in entry.gone:
            self.cluster.end(reservation, now)
        for held in entry.came:
            self.tells_places = True
            self.cluster.hold(held, now)
        if request.dry_run or entry.answer.mode != "enforce" or not entry.answer.allowed:
            return
        if request.operation == "DELETE":
            for gang in gangs_of(request, self.cluster.waiting()):
                self.cluster.leave(gang, now)
            holders = self.cluster.holders()
            for gang in gangs_of(request, holders):
                self.cluster.end(holders[gang], now)
        elif entry.phase == "mutate":
            for name, answer in entry.answer.gangs.items():
                if answer.decision == "queued":
                    self.tells_places = True
                    self.cluster.wait(name, answer.gpus, now)


def gangs_of(request: AdmissionRequest, gangs: Iterable[str]) -> Iterator[str]:
    """Yields those of `gangs` (names) that belong to the request's object: the object as a gang, and its
    replicas."""
    metadata = (request.object or request.old_object or {}).get("metadata")
    name = request.name or (metadata.get("name") if isinstance(metadata, dict) else "")
    own = f"{request.namespace}/{request.kind.kind}/{name}"
    return (gang for gang in gangs if gang == own or gang.startswith(f"{own}/"))
