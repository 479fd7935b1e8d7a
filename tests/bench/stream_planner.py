"""How often a search ends by its budget on a realistic stream: `python tests/bench/stream_planner.py 12000`.

Gangs come and go on six clusters: sizes by Philly's counts for small jobs and 3 % of 64 to 1,024 GPUs, in the
forms that people write (one PodSet, launcher and workers, prefill and decode, replicas, slices, several sets
with levels of their own). Those that are admitted hold their place until a random other one ends, so that the
clusters are busy nearly all the time. Every answer that a budget ended must say so. A second argument is the
seed; a third, `wide`, asks for another mix: routers with prefill and decode, LeaderWorkerSets, sets in slices
of their own, three to five sets of unlike shapes, crowds of small pods.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.model.node import Node
from planner.model.pod import BoundPod, PodShape
from planner.model.podgroup import Constraint, PodGroup, PodSet, ReserveMode
from planner.model.topology import HOSTNAME, Topology
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for

LEVELS = ("block", "rack")
SIZES = ((1, 93.2), (2, 2.2), (4, 2.3), (8, 2.0), (16, 0.24), (32, 0.08))
"""GPUs of a job and their share in percent (Philly); 3 % more are large."""
LARGE = (64, 72, 96, 128, 144, 216, 256, 384, 512, 1024)
MOST_WAITING = 12


def fabric(racks: list[int], per_block: int, gpus: int, cpu: int) -> Snapshot:
    """Racks of so many nodes each, several racks a block."""
    nodes = [
        Node(
            name := f"b{rack // per_block}-r{rack % per_block}-n{host}",
            {"block": f"b{rack // per_block}", "rack": f"r{rack % per_block}", HOSTNAME: name},
            {"cpu": cpu * 1000, "memory": 2**40, "pods": 110, "nvidia.com/gpu": gpus},
        )
        for rack, hosts in enumerate(racks)
        for host in range(hosts)
    ]
    return snapshot(nodes, [Topology("fabric", (*LEVELS, HOSTNAME))])


CLUSTERS: dict[str, Callable[[], Snapshot]] = {
    "gb200, 64 racks of 18": lambda: fabric([18] * 64, 8, 4, 144),
    "gb200, 512 racks of 18": lambda: fabric([18] * 512, 8, 4, 144),
    "superpod, 16 racks of 8": lambda: fabric([8] * 16, 4, 8, 112),
    "discovered, 8 racks of 10 to 18": lambda: fabric([18, 18, 17, 16, 15, 14, 11, 10], 8, 4, 64),
    "kai, 256 racks of 2": lambda: fabric([2] * 256, 8, 8, 96),
    "kueue, 10 racks of 64": lambda: fabric([64] * 10, 10, 8, 96),
}


def asks(random: Random, per_node: int, *, wide: bool = False) -> PodGroup:
    """One request of the mix."""
    forms = WIDE if wide else FORMS
    large = random.random() < 0.03
    gpus = random.choice(LARGE) if large else random.choices(*zip(*SIZES, strict=True))[0]
    sets = random.choice(forms if wide or gpus > 4 else forms[:2])(random, gpus, per_node)
    levels = random.choice(
        ({}, {"preferred": "rack"}, {"preferred": "rack", "required": "block"}, {"required": "rack"})
    )
    reserve: ReserveMode = random.choice(("domain", "nodes", "nodes"))
    return PodGroup("", sets, Constraint(**levels), reserve=reserve)


def _shape(random: Random, gpus: int) -> PodShape:
    cores = random.choice((4, 6, 8, 12)) * max(1, gpus)
    asked = {"cpu": cores * 1000, "memory": 2**33 * max(1, gpus), "pods": 1}
    return PodShape(asked | ({"nvidia.com/gpu": gpus} if gpus else {}))


def _single_set(random: Random, gpus: int, per_node: int) -> tuple[PodSet, ...]:
    """One PodSet: whole nodes, or pods of one or two GPUs."""
    each = min(gpus, random.choice((per_node, per_node, 1, 2)))
    return (PodSet("worker", max(1, gpus // each), _shape(random, each)),)


def _launcher(random: Random, gpus: int, per_node: int) -> tuple[PodSet, ...]:
    """A launcher without GPUs and its workers."""
    return (PodSet("launcher", 1, _shape(random, 0)), *_single_set(random, gpus, per_node))


def _roles(random: Random, gpus: int, per_node: int) -> tuple[PodSet, ...]:
    """Prefill and decode of unlike shapes, often each in a rack of its own if it can be."""
    level = random.choice(({}, {"preferred": "rack"}, {"required": "rack"} if gpus <= 32 else {}))
    sizes = (1, per_node) if random.random() < 0.5 else (2, 4)
    return tuple(
        PodSet(name, max(1, gpus // 2 // each), _shape(random, each), Constraint(**level))
        for name, each in zip(("prefill", "decode"), sizes, strict=True)
    )


def _replicas(random: Random, gpus: int, per_node: int) -> tuple[PodSet, ...]:
    """Three PodSets of a size, of unlike shapes, each with a preferred rack."""
    each = per_node if gpus > 32 else 1
    return tuple(
        PodSet(f"r{n}", max(1, gpus // 3 // each), _shape(random, each), Constraint(preferred="rack"))
        for n in range(3)
    )


def _sliced(random: Random, gpus: int, per_node: int) -> tuple[PodSet, ...]:
    """Slices that stay within a rack, beside a leader."""
    size = random.choice((2, 4))
    each = per_node if gpus > 16 else 1
    count = max(1, gpus // each // size) * size
    leader = PodSet("leader", 1, _shape(random, random.choice((0, 1))))
    kept = Constraint(slice_level="rack", slice_size=size)
    return (leader, PodSet("worker", count, _shape(random, each), kept))


def _ray(random: Random, gpus: int, per_node: int) -> tuple[PodSet, ...]:
    """A head, workers with GPUs and workers without."""
    cpu = PodSet("cpu", random.choice((2, 4, 8, 16)), _shape(random, 0))
    return (PodSet("head", 1, _shape(random, 0)), cpu, *_single_set(random, gpus, per_node))


FORMS = (_single_set, _launcher, _single_set, _roles, _replicas, _sliced, _ray)


def _routed(random: Random, gpus: int, per_node: int) -> tuple[PodSet, ...]:
    """A router without GPUs, prefill and decode, and perhaps a part of its own for what is large."""
    sizes = random.sample((1, 2, 4, per_node), random.choice((2, 3)))
    level = random.choice(({}, {"preferred": "rack"}, {"required": "block"}))
    parts = (
        PodSet(f"p{n}", max(1, gpus // len(sizes) // each), _shape(random, each), Constraint(**level))
        for n, each in enumerate(sizes)
    )
    return (PodSet("router", random.choice((1, 2, 4)), _shape(random, 0)), *parts)


def _groups(random: Random, gpus: int, per_node: int) -> tuple[PodSet, ...]:
    """Replicas with a leader and workers each, every one within a rack, as of a LeaderWorkerSet."""
    each = per_node if gpus > 16 else 1
    level = Constraint(**random.choice(({"required": "rack"}, {"preferred": "rack"})))
    leader, worker = _shape(random, random.choice((0, 1, each))), _shape(random, each)
    workers = max(1, min(8, gpus // each // 2))
    return tuple(
        pod_set
        for n in range(random.choice((1, 2)))
        for pod_set in (PodSet(f"l{n}", 1, leader, level), PodSet(f"w{n}", workers, worker, level))
    )


def _slices(random: Random, gpus: int, per_node: int) -> tuple[PodSet, ...]:
    """Two PodSets in slices of their own, beside a leader or none."""
    sizes, each = random.sample((2, 4, 8), 2), per_node if gpus > 32 else 1
    sets = tuple(
        PodSet(
            f"s{n}",
            max(1, gpus // 2 // each // size) * size,
            _shape(random, each),
            Constraint(slice_level=random.choice(("rack", "block")), slice_size=size),
        )
        for n, size in enumerate(sizes)
    )
    return (PodSet("leader", 1, _shape(random, 0)), *sets)[random.choice((0, 1)) :]


def _unlike(random: Random, gpus: int, per_node: int) -> tuple[PodSet, ...]:
    """Three to five PodSets of unlike shapes, some with levels of their own."""
    sizes = random.sample((0, 0, 1, 1, 2, 4, per_node), random.choice((3, 4, 5)))
    share = max(1, gpus // len(sizes))
    levels = ({}, {}, {}, {"preferred": "rack"}, {"required": "rack"} if share <= 16 else {})
    return tuple(
        PodSet(
            f"u{n}", max(1, share // max(1, each)), _shape(random, each), Constraint(**random.choice(levels))
        )
        for n, each in enumerate(sizes)
    )


def _crowd(random: Random, gpus: int, per_node: int) -> tuple[PodSet, ...]:
    """Many small pods: samplers without a GPU beside learners with one."""
    return (
        PodSet("sampler", gpus, _shape(random, 0)),
        PodSet("learner", gpus, _shape(random, random.choice((1, 1, 2)))),
    )


WIDE = (_routed, _groups, _slices, _unlike, _unlike, _crowd, _sliced, _ray)


@dataclass(slots=True)
class Stream:
    """One cluster with its gangs, fed with requests."""

    name: str
    moment: Snapshot
    random: Random
    seconds: list[float] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    ended: list[str] = field(default_factory=list)
    running: list[str] = field(default_factory=list)
    waiting: int = 0
    wide: bool = False

    def step(self, number: int) -> None:
        """One request; where many wait, some that run end."""
        per_node = max(node.allocatable["nvidia.com/gpu"] for node in self.moment.nodes.values())
        group = asks(self.random, per_node, wide=self.wide)
        group = PodGroup(f"x/Job/g{number}", group.pod_sets, group.constraint, group.reserve)
        start = time.thread_time()
        answer = plan(self.moment, group)
        self.seconds.append(time.thread_time() - start)
        self.seen[answer.decision] += 1
        if any("SearchBudgetExhausted" in text for text in (answer.reason, *answer.warnings)):
            self.ended.append(describe(group))
        taken = reservation_for(self.moment, group, answer)
        if taken is not None:
            self.moment = self.moment.with_reservation(taken)
            self.running.append(group.name)
        if answer.decision == "queued":
            self.waiting += 1
        while self.waiting > MOST_WAITING and self.running:
            self.end()
            self.waiting -= 1

    def fill(self, number: int, share: float) -> None:
        """Single nodes' worth of other people's pods, until so much of the cluster is in use."""
        for place, node in enumerate(self.moment.nodes.values()):
            if self.random.random() < share:
                used = self.random.randint(1, node.allocatable["nvidia.com/gpu"])
                amounts = {
                    "nvidia.com/gpu": used,
                    "cpu": used * self.random.choice((4000, 8000, 11500)),
                    "pods": 1,
                }
                self.moment = self.moment.with_pod(BoundPod(f"y/p{number}-{place}", node.name, amounts))

    def end(self) -> None:
        """A random gang ends."""
        place = self.random.randrange(len(self.running))
        self.moment = self.moment.without(self.running.pop(place))


def describe(group: PodGroup) -> str:
    """A request in a line."""
    sets = ", ".join(
        f"{p.count}×{p.shape.requests.get('nvidia.com/gpu', 0)} GPU"
        f" {p.constraint.required or '-'}/{p.constraint.preferred or '-'}/{p.constraint.slice_size}"
        for p in group.pod_sets
    )
    return f"{group.reserve} {group.constraint.required or '-'}/{group.constraint.preferred or '-'}: {sets}"


def streams(seed: int, *, wide: bool = False) -> Iterator[Stream]:
    """The clusters at their start: from none to three quarters of the nodes are partly used."""
    for place, (name, make) in enumerate(CLUSTERS.items()):
        stream = Stream(name, make(), Random(seed + place), wide=wide)
        stream.fill(place, (0.0, 0.25, 0.5, 0.75)[(seed + place) % 4])
        yield stream


def main(requests: int, seed: int = 1, *, wide: bool = False) -> None:
    """Print what came of the stream."""
    total = ended = 0
    for stream in streams(seed, wide=wide):
        for number in range(requests // len(CLUSTERS)):
            stream.step(number)
        seconds = sorted(stream.seconds)
        total, ended = total + len(seconds), ended + len(stream.ended)
        print(
            f"{stream.name:32} {dict(stream.seen)} ended by budget {len(stream.ended)}; ms median "
            f"{seconds[len(seconds) // 2] * 1e3:.2f}, p99 {seconds[len(seconds) * 99 // 100] * 1e3:.1f}, "
            f"most {seconds[-1] * 1e3:.0f}",
            flush=True,
        )
        for text in stream.ended[:8]:
            print(f"    {text}", flush=True)
    print(f"{ended} of {total} requests ended by budget", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), wide=sys.argv[3:] == ["wide"])
