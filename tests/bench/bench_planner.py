"""Planning on racks of 18 nodes, as the cluster grows and changes: `python tests/bench/bench_planner.py`.

Each request is planned many times, and before each time something has changed: a pod came or went, a node was
cordoned, labelled, added or removed, a gang of another rack took or left its place. So nothing is measured
that was merely remembered from the time before. `first` is the very first plan of a request on that cluster,
when nothing is known of its shape. In the second table half of the racks have pods on half of their nodes, as
many sizes of them as there are nodes, so that hardly two racks are equal.

Beside the wall's time stands the thread's own (`cpu`): on a machine that others use the first is theirs too.
`first` is the thread's own.
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

from dataclasses import dataclass, field, replace

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.model.node import Node
from planner.model.pod import BoundPod, PodShape
from planner.model.podgroup import Constraint, PodGroup, PodSet
from planner.model.topology import HOSTNAME, Topology
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from webhook.cli.main import YOUNG_OBJECTS

RACK, RACKS = 18, 8
"""Nodes of a rack, racks of a block."""
POD = PodShape({"cpu": 1000, "nvidia.com/gpu": 4, "pods": 1})
OFFERS = {"cpu": 64_000, "memory": 2**38, "pods": 110, "nvidia.com/gpu": 4}
SIZES = {1_152: 100, 4_608: 100, 9_216: 300, 100_000: 100}
"""Nodes, and how often each request is planned."""
EVENTS = 250
"""How often each kind of event is measured."""
KUEUE = {
    1_152: (0.42, 0.52, 0.66, 0.44),
    4_608: (2.98, 3.42, 4.54, 2.85),
    9_216: (10.0, 10.2, 13.6, 9.64),
}
"""Kueue's own Go code, snapshot and placing, ms, on an empty cluster of the same shape and two cores."""


def gang(pods: int, name: str = "bench/Job/gang", **wish: str) -> PodGroup:
    """Whole-node pods."""
    return PodGroup(name, (PodSet("worker", pods, POD),), Constraint(**wish))


REQUESTS = {
    "required rack, 18": gang(18, required="rack"),
    "preferred rack, 144": gang(144, preferred="rack"),
    "unconstrained 18": gang(18),
    "infeasible 19": gang(19, required="rack"),
}
SERVER = PodShape({"cpu": 9000, "nvidia.com/gpu": 1, "pods": 1})
LAUNCHER = PodShape({"cpu": 2000, "pods": 1})


def pair(pod_set: PodSet, other: PodSet, **wish: str) -> PodGroup:
    """A gang of two kinds of pods."""
    return PodGroup("bench/Job/pair", (pod_set, other), Constraint(**wish))


MIXTURES = {
    "launcher + 17, required rack": pair(
        PodSet("launcher", 1, LAUNCHER), PodSet("worker", 17, POD), required="rack"
    ),
    "launcher + 143, preferred rack": pair(
        PodSet("launcher", 1, LAUNCHER), PodSet("worker", 143, POD), preferred="rack"
    ),
    "prefill 4 + decode 8, preferred": pair(
        PodSet("prefill", 4, POD), PodSet("decode", 8, SERVER), preferred="rack"
    ),
    "prefill 40 + decode 80, preferred": pair(
        PodSet("prefill", 40, POD), PodSet("decode", 80, SERVER), preferred="rack"
    ),
}


def host(place: int, name: str) -> Node:
    """A node with 4 GPUs in the rack of this place: 18 nodes a rack, 8 racks a block."""
    rack, block = place // RACK, place // (RACK * RACKS)
    name = f"b{block}-r{rack % RACKS}-{name}"
    return Node(name, {"block": f"b{block}", "rack": f"r{rack % RACKS}", HOSTNAME: name}, OFFERS)


def empty(count: int) -> Snapshot:
    """So many nodes with nothing on them."""
    nodes = [host(place, f"n{place % RACK}") for place in range(count)]
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
        self._kinds = {
            "pod": self._pod,
            "node": self._node,
            "label": self._label,
            "added": self._added,
            "removed": self._removed,
            "gang": self._gang,
        }
        self.seconds: dict[str, list[float]] = {kind: [] for kind in self._kinds}

    def event(self, kind: str = "") -> None:
        """A pod is bound or ends, a node is cordoned or not any more, labelled, new or gone, a gang comes or
        goes."""
        kind = kind or self._random.choice(("pod", "pod", "pod", "node", "gang", *self._kinds))
        change = self._kinds[kind]()
        start = time.thread_time()
        self.moment = change()
        self.seconds[kind].append(time.thread_time() - start)

    def _pod(self) -> Callable[[], Snapshot]:
        name, moment = self._random.choice(self._names), self.moment
        pods = moment.bound.on(name)
        if pods:
            return lambda: moment.without_pod(pods[0])
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

    def _label(self) -> Callable[[], Snapshot]:
        moment = self.moment
        node = moment.nodes[self._random.choice(self._names)]
        changed = replace(node, labels={**node.labels, "seen": str(self._random.random())})
        return lambda: moment.with_node(changed)

    def _added(self) -> Callable[[], Snapshot]:
        moment, place = self.moment, self._random.randrange(len(self._names) // RACK) * RACK
        self._number += 1
        node = host(place, f"x{self._number}")
        self._names.append(node.name)
        return lambda: moment.with_node(node)

    def _removed(self) -> Callable[[], Snapshot]:
        moment, index = self.moment, self._random.randrange(len(self._names))
        name = self._names[index]
        self._names[index] = self._names[-1]
        self._names.pop()
        return lambda: moment.without_node(name)

    def _gang(self) -> Callable[[], Snapshot]:
        moment = self.moment
        if len(moment.reservations) > 20:
            gone = self._random.choice(moment.reservations).gang
            return lambda: moment.without(gone)
        self._number += 1
        group = gang(self._random.choice((1, 2, 5)), name=f"y/Job/g{self._number}")
        taken = reservation_for(moment, group, plan(moment, group))
        return (lambda: moment.with_reservation(taken)) if taken else (lambda: moment)


@dataclass(slots=True)
class Row:
    """What was measured of one cluster, ms: wall and thread times by request; the first is a thread time."""

    count: int
    wall: dict[str, list[float]] = field(default_factory=dict)
    own: dict[str, list[float]] = field(default_factory=dict)
    first: dict[str, float] = field(default_factory=dict)

    def lines(self, churn: Churn, built: float) -> list[str]:
        """The row of the table, and what is said below it."""
        cells = [
            f"{median(self.wall[name]):6.2f} {p99(self.wall[name]):6.2f} {median(self.own[name]):6.2f} "
            f"{p99(self.own[name]):6.2f} {self.first[name]:6.1f}"
            for name in REQUESTS
        ]
        events = "  ".join(
            f"{kind} {median(s) * 1e6:.0f}/{p99(s) * 1e6:.0f}" for kind, s in churn.seconds.items() if s
        )
        return [
            f"{self.count:>8,}  " + " |".join(cells),
            f"          events, cpu µs, median/p99: {events}; read in {built:.1f} s; {memory()} MB so far",
        ]


def ready(moment: Snapshot) -> Snapshot:
    """The cluster as it is when a replica of `bayplan serve` becomes ready: read, and with frozen garbage."""
    plan(moment, gang(1))
    gc.set_threshold(YOUNG_OBJECTS)
    gc.collect()
    gc.freeze()
    return moment


def measure(count: int, times: int, *, busy: bool) -> Row:
    """Plans and events on a cluster of so many nodes; prints its row."""
    random = Random(count)
    start = time.perf_counter()
    moment = empty(count)
    moment = ready(used(moment, random) if busy else moment)
    built = time.perf_counter() - start
    churn, row = Churn(moment, random), Row(count)
    for name, group in REQUESTS.items():
        own = time.thread_time()
        plan(churn.moment, group)
        row.first[name] = (time.thread_time() - own) * 1e3
        row.wall[name], row.own[name] = [], []
        for _ in range(times):
            churn.event()
            start, own = time.perf_counter(), time.thread_time()
            plan(churn.moment, group)
            row.own[name].append((time.thread_time() - own) * 1e3)
            row.wall[name].append((time.perf_counter() - start) * 1e3)
    for kind in churn.seconds:
        for _ in range(EVENTS - len(churn.seconds[kind])):
            churn.event(kind)
    print("\n".join(row.lines(churn, built)), flush=True)
    gc.unfreeze()
    return row


def mixtures(count: int, times: int) -> list[str]:
    """The same for gangs of two kinds, of which the search keeps less from plan to plan."""
    random, lines = Random(count), []
    churn = Churn(ready(used(empty(count), random)), random)
    for name, group in MIXTURES.items():
        own = []
        for _ in range(times + 1):
            churn.event()
            start = time.thread_time()
            plan(churn.moment, group)
            own.append((time.thread_time() - start) * 1e3)
        first, *again = own
        lines.append(f"  {name:<34} {median(again):7.1f} {max(again):7.1f} {first:7.1f}")
    gc.unfreeze()
    return lines


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
    print(f"{'ms: median, p99; cpu: the same; first':>38}" + f"   {', '.join(REQUESTS)}")
    for title, busy in (("empty", False), ("half of the racks in use, no two alike", True)):
        print(title)
        rows = [measure(count, times, busy=busy) for count, times in SIZES.items()]
        grown = [median(rows[-1].own[name]) / median(rows[0].own[name]) for name in REQUESTS]
        ratio = rows[-1].count / rows[0].count
        print(
            f"  {ratio:.0f} times the nodes cost {', '.join(f'{cost:.1f}' for cost in grown)} times as much"
        )
    print("several kinds of pods, 9,216 nodes, half of the racks in use; cpu ms: median, most, first")
    for line in mixtures(9_216, 20):
        print(line, flush=True)
    print("Kueue, empty, ms: snapshot and placing, its own Go code on two cores (facts, not measured here)")
    for count, cells in KUEUE.items():
        print(f"{count:>8,}  " + " |".join(f"{cell:6.2f}" for cell in cells))
    print(f"most memory used: {memory()} MB")


if __name__ == "__main__":
    main()
