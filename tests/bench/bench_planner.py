"""Planning on racks of 18 nodes, as the cluster grows and changes: `python tests/bench/bench_planner.py`.

Each request is planned many times, and before each time something has changed: a pod came or went, a node was
cordoned, a gang of another rack took or left its place. So nothing is measured that was merely remembered
from the time before. `first` is the very first plan of a request on that cluster. Half of the nodes have a
pod of their own in the second table, so that hardly two racks are equal.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import median, quantiles

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from dataclasses import replace

from planner.node import BoundPod, Node
from planner.placement import plan, reservation_for
from planner.podgroup import Constraint, PodGroup, PodSet, PodShape
from planner.snapshot import Snapshot, snapshot
from planner.topology import HOSTNAME, Topology

RACK, RACKS = 18, 8
"""Nodes of a rack, racks of a block."""
POD = PodShape({"cpu": 1000, "nvidia.com/gpu": 4, "pods": 1})
OFFERS = {"cpu": 64_000, "memory": 2**38, "pods": 110, "nvidia.com/gpu": 4}
SIZES = {1_152: 100, 4_608: 100, 9_216: 200, 100_000: 40}
"""Nodes, and how often each request is planned."""


def gang(pods: int, name: str = "bench/Job/gang", **wish: str) -> PodGroup:
    """Whole-node pods."""
    return PodGroup(name, (PodSet("worker", pods, POD),), Constraint(**wish))


REQUESTS = {
    "required rack, 18": gang(18, required="rack"),
    "preferred rack, 144": gang(144, preferred="rack"),
    "unconstrained 18": gang(18),
    "infeasible 19": gang(19, required="rack"),
}


def empty(count: int) -> Snapshot:
    """Racks of 18 nodes with 4 GPUs, 8 racks a block."""
    nodes = []
    for place in range(count):
        rack, block = place // RACK, place // (RACK * RACKS)
        name = f"b{block}-r{rack % RACKS}-n{place % RACK}"
        labels = {"block": f"b{block}", "rack": f"r{rack % RACKS}", HOSTNAME: name}
        nodes.append(Node(name, labels, OFFERS))
    return snapshot(nodes, [Topology("fabric", ("block", "rack", HOSTNAME))])


def used(moment: Snapshot, random: Random) -> Snapshot:
    """Half of the racks have pods on half of their nodes, of as many sizes as there are nodes."""
    pods = [
        BoundPod(
            f"x/{name}", name, {"cpu": 500 + place % 977, "nvidia.com/gpu": random.randint(0, 2), "pods": 1}
        )
        for place, name in enumerate(moment.nodes)
        if place // RACK % 2 and random.random() < 0.5
    ]
    return replace(moment, pods=tuple(pods))


class Churn:
    """Changes a snapshot, one event at a time, and measures each."""

    def __init__(self, moment: Snapshot, random: Random) -> None:
        self.moment, self._random = moment, random
        self._names = list(moment.nodes)
        self._number = 0
        self.seconds: dict[str, list[float]] = {"pod": [], "node": [], "reservation": []}

    def event(self) -> None:
        """One of: a pod is bound or ends, a node is cordoned or not any more, a gang comes or goes."""
        kind = self._random.choice(("pod", "pod", "node", "reservation"))
        change = {"pod": self._pod, "node": self._node, "reservation": self._gang}[kind]()
        start = time.perf_counter()
        self.moment = change()
        self.seconds[kind].append(time.perf_counter() - start)

    def _pod(self) -> Callable[[], Snapshot]:
        name, moment = self._random.choice(self._names), self.moment
        there = moment.bound.on(name)
        if there:
            return lambda: moment.without_pod(there[0])
        self._number += 1
        pod = BoundPod(
            f"y/p{self._number}", name, {"cpu": 700 + self._number, "nvidia.com/gpu": 1, "pods": 1}
        )
        return lambda: moment.with_pod(pod)

    def _node(self) -> Callable[[], Snapshot]:
        moment = self.moment
        node = moment.nodes[self._random.choice(self._names)]
        changed = replace(node, cordoned=not node.cordoned)
        return lambda: moment.with_node(changed)

    def _gang(self) -> Callable[[], Snapshot]:
        moment = self.moment
        if len(moment.reservations) > 20:
            gone = self._random.choice(moment.reservations).gang
            return lambda: moment.without(gone)
        self._number += 1
        group = gang(self._random.choice((1, 2, 5)), name=f"y/Job/g{self._number}")
        taken = reservation_for(moment, group, plan(moment, group))
        return (lambda: moment.with_reservation(taken)) if taken else (lambda: moment)


def measure(count: int, times: int, *, busy: bool) -> list[str]:
    """One line of the table, and what is said below it."""
    random = Random(count)
    start = time.perf_counter()
    moment = empty(count)
    moment = used(moment, random) if busy else moment
    plan(moment, gang(1))
    built = time.perf_counter() - start
    churn = Churn(moment, random)
    cells = []
    gc.collect()
    for group in REQUESTS.values():
        start = time.perf_counter()
        plan(churn.moment, group)
        first = time.perf_counter() - start
        seconds = []
        for _ in range(times):
            churn.event()
            start = time.perf_counter()
            plan(churn.moment, group)
            seconds.append(time.perf_counter() - start)
        cells.append(f"{median(seconds) * 1e3:6.2f} {p99(seconds) * 1e3:6.2f} {first * 1e3:6.1f}")
    events = "  ".join(
        f"{kind} {median(s) * 1e6:.0f}/{p99(s) * 1e6:.0f}" for kind, s in churn.seconds.items() if len(s) > 1
    )
    return [f"{count:>8,}  " + "  |".join(cells), f"          events, µs: {events}; read in {built:.1f} s"]


def p99(seconds: list[float]) -> float:
    """The 99th percentile."""
    return quantiles(seconds, n=100, method="inclusive")[98]


def memory() -> int:
    """The most memory that the process has used, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) // 1024
    return 0


def main() -> None:
    """Print the tables."""
    print(f"{'ms: median, p99, first':23}" + "  |".join(f"{name:>20}" for name in REQUESTS))
    for title, busy in (("empty", False), ("half of the racks in use, no two alike", True)):
        print(title)
        for count, times in SIZES.items():
            print("\n".join(measure(count, times, busy=busy)), flush=True)
    print(f"most memory used: {memory()} MB")


if __name__ == "__main__":
    main()
