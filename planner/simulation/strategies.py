"""Strategies that place a gang in a simulated hall without a plan: first fit, best fit, pod by pod.

All obey the same request: a gang that fits a rack must be in one rack; a larger one may be anywhere. They
differ in which rack they choose, and in what a gang holds while it waits or runs.
"""

from __future__ import annotations

from planner.simulation.hall import Hall
from planner.simulation.jobs import Job
from planner.simulation.rack_use import Taken


def in_one_rack(job: Job, floor: Hall) -> bool:
    """Whether the gang fits a rack, and so must be in one."""
    return job.pods <= floor.per_rack


def _whole_nodes(floor: Hall, rack: int, pods: int) -> Taken:
    full = [node for node in floor.nodes(rack) if floor.free[node] == floor.per_node]
    return [(node, floor.per_node) for node in full[:pods]]


class FirstFit:
    """The first node, or the first rack, with room; gangs larger than a rack take the first free nodes."""

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

    def held(self, floor: Hall) -> int:
        return 0


class BestFit:
    """Kueue's rule: the fullest rack that fits, and in it the fullest node.

    A gang larger than a rack takes the emptiest racks first, and the fullest that fits for its remainder.
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

    def held(self, floor: Hall) -> int:
        return 0


class PodByPod:
    """Pod affinity without a gang.

    The first pod goes to the emptiest node of the emptiest rack (kube-scheduler's default). The others must
    follow into that rack, and placed pods hold their GPUs until the rest are placed.
    """

    name, partial = "pod by pod", True

    def __init__(self) -> None:
        self._waiting: dict[int, tuple[int, int]] = {}
        """By job: the rack that its first pod chose (-1 for any) and the pods that have a place."""

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

    def held(self, floor: Hall) -> int:
        return 0


def _turn(node: int, job: Job, floor: Hall) -> int:
    """Returns the position of a node in an order that starts at a different node for each job, instead of a
    random one.
    """
    return (node - job.number * 7919) % len(floor.free)
