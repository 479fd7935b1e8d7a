"""Strategies that place a gang in a simulated hall without a plan: first fit, best fit, pod by pod.

For all of them, a gang that fits into a rack must be in one rack, and a larger one may be anywhere. They
differ in the rack that they choose, and in what a gang holds while it waits.
"""

from __future__ import annotations

from planner.simulation.hall import Hall
from planner.simulation.jobs import Job
from planner.simulation.rack_use import Taken


def in_one_rack(job: Job, floor: Hall) -> bool:
    """Reports whether the gang fits into a rack, so that it must be in one."""
    return job.pods <= floor.per_rack


def _whole_nodes(floor: Hall, rack: int, pods: int) -> Taken:
    full = [node for node in floor.nodes(rack) if floor.free[node] == floor.per_node]
    return [(node, floor.per_node) for node in full[:pods]]


class FirstFit:
    """Chooses the first node or rack with room; a gang larger than a rack takes the first free nodes."""

    name, partial = "first fit", False

    def place(self, job: Job, floor: Hall) -> Taken:
        if job.gpus < floor.per_node:
            node = next((node for node, free in enumerate(floor.free) if free >= job.gpus), None)
            return [] if node is None else [(node, job.gpus)]
        if in_one_rack(job, floor):
            rack = next((rack for rack, whole in enumerate(floor.whole) if whole >= job.pods), None)
            return [] if rack is None else _whole_nodes(floor, rack, job.pods)
        if sum(floor.whole) < job.pods:
            return []
        return [pair for rack in range(floor.racks) for pair in _whole_nodes(floor, rack, job.pods)][
            : job.pods
        ]

    def release(self, job: Job) -> None:
        """Does nothing: the strategy keeps no state."""

    def held_gpus(self, floor: Hall) -> int:
        return 0


class BestFit:
    """Kueue's rule: chooses the rack with the least sufficient room; a job smaller than a node gets the node
    in it with the least sufficient room.

    A gang larger than a rack takes the emptiest racks first; its last pods go to the fullest rack that has
    room for all of them.
    """

    name, partial = "best fit", False

    def place(self, job: Job, floor: Hall) -> Taken:
        if job.gpus < floor.per_node:
            return self._partial_node(job, floor)
        if in_one_rack(job, floor):
            fitting = [rack for rack, whole in enumerate(floor.whole) if whole >= job.pods]
            tightest = min(fitting, key=lambda rack: floor.whole[rack], default=None)
            return [] if tightest is None else _whole_nodes(floor, tightest, job.pods)
        if sum(floor.whole) < job.pods:
            return []
        taken: Taken = []
        left = sorted(range(floor.racks), key=lambda rack: -floor.whole[rack])
        while len(taken) < job.pods:
            wanted = job.pods - len(taken)
            serving = [rack for rack in left if floor.whole[rack] >= wanted]
            rack = min(serving, key=lambda rack: floor.whole[rack]) if serving else left[0]
            left.remove(rack)
            taken += _whole_nodes(floor, rack, wanted)
        return taken

    def _partial_node(self, job: Job, floor: Hall) -> Taken:
        room = [
            sum(floor.free[node] // job.gpus for node in floor.nodes(rack)) for rack in range(floor.racks)
        ]
        rack = min((r for r in range(floor.racks) if room[r]), key=lambda r: room[r], default=None)
        if rack is None:
            return []
        serving = (node for node in floor.nodes(rack) if floor.free[node] >= job.gpus)
        return [(min(serving, key=lambda node: floor.free[node]), job.gpus)]

    def release(self, job: Job) -> None:
        """Does nothing: the strategy keeps no state."""

    def held_gpus(self, floor: Hall) -> int:
        return 0


class PodByPod:
    """Schedules the pods of a job one by one with pod affinity to each other, without gang scheduling.

    The first pod goes to the emptiest node (kube-scheduler's default). The others must be in the rack of that
    node, and placed pods occupy their GPUs until the rest are placed.
    """

    name, partial = "pod by pod", True

    def __init__(self) -> None:
        self._waiting: dict[int, tuple[int, int]] = {}
        """The rack of a waiting job's first pod (-1 for any rack) and the number of placed pods, by job."""

    def place(self, job: Job, floor: Hall) -> Taken:
        if job.gpus < floor.per_node:
            node = max(range(len(floor.free)), key=lambda n: (floor.free[n], -_turn(n, job, floor)))
            return [(node, job.gpus)] if floor.free[node] >= job.gpus else []
        rack, placed_count = self._waiting.get(job.number, (-1, 0))
        if rack < 0 and in_one_rack(job, floor):
            first = max(range(len(floor.free)), key=lambda n: (floor.free[n], -_turn(n, job, floor)))
            if floor.free[first] < floor.per_node:
                return []
            rack = floor.rack(first)
        racks = range(floor.racks) if rack < 0 else (rack,)
        missing = job.pods - placed_count
        taken = [pair for candidate in racks for pair in _whole_nodes(floor, candidate, missing)][:missing]
        if taken:
            self._waiting[job.number] = (rack, placed_count + len(taken))
        return taken

    def release(self, job: Job) -> None:
        self._waiting.pop(job.number, None)

    def held_gpus(self, floor: Hall) -> int:
        return 0


def _turn(node: int, job: Job, floor: Hall) -> int:
    """Returns the position of a node in an order that starts at another node for each job.

    This order decides between equal nodes: deterministic, but spread over the nodes as a random choice is.
    """
    return (node - job.number * 7919) % len(floor.free)
