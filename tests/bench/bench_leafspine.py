"""The leaf-spine scheduler's promises, measured: `python tests/bench/bench_leafspine.py`.

It promises a placement in under 500 ms and 100 decisions a second on 1,000 nodes and 10,000 GPUs. Here are
1,250 nodes of 8 GPUs, 10 on a leaf, 25 leaves on each two spines, half of the leaves partly used. Jobs with
its annotations come one after the other, of 2 to 16 nodes; what is placed is reserved, and the oldest gang
ends when 40 run. `plan` is the planner alone, `decide` all that the webhook does between bytes and bytes:
policies, plan, patch. Times are of one core's CPU.
"""

from __future__ import annotations

import sys
import time
from itertools import cycle
from pathlib import Path
from statistics import median, quantiles

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.model.errors import Where
from planner.model.node import Node
from planner.model.pod import BoundPod
from planner.model.topology import HOSTNAME, Link, Topology
from planner.planning.plan import plan
from webhook.admission.decision import decide
from webhook.cli.common.inputs import policies
from webhook.server.garbage_collection import freeze_survivors
from webhook.wire.request import from_object
from webhook.workloads import read

NODES, PER_LEAF, LEAVES = 1_250, 10, 25
GPU = "nvidia.com/gpu"
OFFERS = {"cpu": 220_000, "memory": 2**41, "pods": 110, GPU: 8}
SIZES = (2, 4, 8, 16)
CALLS = 60
PROMISED_MS, PROMISED_RATE = 500.0, 100.0


def fabric() -> Snapshot:
    """Leaves under the spines of their group; every third node of every second leaf has a pod."""
    nodes, pods, links = [], [], set()
    for place in range(NODES):
        leaf = place // PER_LEAF
        group, name = leaf // LEAVES, f"n{place}"
        labels = {"spine": f"g{group}", "leaf": f"leaf-{leaf}", HOSTNAME: name}
        nodes.append(Node(name, labels, OFFERS))
        links |= {Link(f"leaf-{leaf}", f"spine-{group}-{spine}", 400.0) for spine in range(2)}
        if leaf % 2 and place % 3 == 0:
            pods.append(BoundPod(f"x/{name}", name, {"cpu": 8_000, GPU: 1 + place % 7, "pods": 1}))
    topology = Topology("fabric", ("spine", "leaf", HOSTNAME), source="bayplan.dev")
    ordered = tuple(sorted(links, key=lambda link: (link.end_a, link.end_b)))
    return snapshot(nodes, [topology], pods, links={"fabric": ordered})


def job(number: int, pods: int, strategy: str) -> dict[str, object]:
    """A Job of whole nodes with the leaf-spine annotations."""
    limits = {GPU: "8", "cpu": "64", "memory": "512Gi"}
    container = {"name": "main", "image": "pytorch", "resources": {"limits": limits, "requests": limits}}
    annotations = {
        "topology.scheduler/gpu-count": str(8 * pods),
        "topology.scheduler/placement-strategy": strategy,
        "topology.scheduler/network-bandwidth": "200Gb",
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"train-{number}", "namespace": "research", "annotations": annotations},
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


def measured() -> tuple[dict[str, dict[int, list[float]]], int]:
    """Seconds of each plan and of each decision by size, and how many gangs were placed."""
    moment, loaded = fabric(), policies([])
    seconds: dict[str, dict[int, list[float]]] = {
        "plan": {size: [] for size in SIZES},
        "decide": {size: [] for size in SIZES},
    }
    running: list[str] = []
    strategies = cycle(("consolidated", "balanced", "distributed"))
    moment.base.trees  # noqa: B018 - built once, when the cluster is read
    freeze_survivors()  # as `bayplan serve` does
    placed = 0
    for number in range(CALLS):
        size = SIZES[number % len(SIZES)]
        document = job(number, size, next(strategies))
        gangs = read(document, where=Where("bench")).gangs
        begun = time.process_time()
        plan(moment, gangs[0])
        planned = time.process_time()
        decision = decide(from_object(document), loaded, moment, "mutate")
        seconds["plan"][size].append(planned - begun)
        seconds["decide"][size].append(time.process_time() - planned)
        for held in decision.plan.reservations if decision.plan else ():
            moment, placed = moment.with_reservation(held), placed + 1
            running.append(held.gang)
        while len(running) > 40:
            moment = moment.without(running.pop(0))
    return seconds, placed


def main() -> None:
    """The table, with the promises beside it."""
    seconds, placed = measured()
    print(
        f"leaf-spine decisions, {NODES} nodes, {NODES * 8} GPUs, {placed} of {CALLS} gangs placed, one core"
    )
    print(f"{'nodes of the gang':24}{'median ms':>12}{'p99 ms':>10}{'worst ms':>10}")
    for step, rows in seconds.items():
        for size, row in rows.items():
            ms = [call * 1000 for call in row]
            p99 = quantiles(ms, n=100)[98]
            print(f"{step + ', ' + str(size):<24}{median(ms):12.1f}{p99:10.1f}{max(ms):10.1f}")
        rate = CALLS / sum(map(sum, rows.values()))
        worst = max(max(row) for row in rows.values()) * 1000
        print(f"{step}: {rate:.0f} a second, worst {worst:.0f} ms ", end="")
        print(f"(promised {PROMISED_RATE:.0f} a second, below {PROMISED_MS:.0f} ms)")


if __name__ == "__main__":
    main()
