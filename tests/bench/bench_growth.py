"""How plans and events grow, and requests that take long searches: `python tests/bench/bench_growth.py`.

Curves: the cost of a plan and of events by the nodes of the cluster, the pods of the gang, the gangs that
hold a reservation, and the device claims and volumes. Before each plan something has changed
(`bench_planner`). A curve is summed up by its exponent between the first and the last size: 1 is linear, and
a curve above `MAX_EXPONENT` fails the run.

Then the requests that ask most of the search: 1,024 and more whole nodes where no level is asked, pods spread
over rows that cut the racks, and a gang for which every set of leaves is tried. Times are the process's own.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import cycle, islice
from math import log
from pathlib import Path
from random import Random
from statistics import median
from typing import ParamSpec, TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from planner.cluster.facts import with_records
from planner.cluster.hardware_update import with_hardware
from planner.cluster.snapshot import Snapshot
from planner.devices.claims import ClaimRequest, ResourceClaim
from planner.model.pod import VolumeClaim
from planner.model.podgroup import Assignment, FabricWish
from planner.model.reservation import Book, Reservation, reservation_id
from planner.model.topology import HOSTNAME
from planner.planning.plan import plan
from tests.bench.bench_planner import Churn, empty, gang, used
from tests.builders import gang as any_gang
from tests.builders import pod_set, shape
from tests.planner.leafspine.test_rules import fabric
from tests.planner.search.rules.test_spread_of_one_class import hall, spread

P, T = ParamSpec("P"), TypeVar("T")

NODES = (1_152, 9_216, 36_864)
PODS = (16, 64, 256, 1_024)
HELD = (10, 1_000, 10_000)
RECORDS = (400, 4_000, 40_000)
AMONG = 9_216
"""Nodes where it is not they that grow."""
TIMES, EVENTS = 40, 60
"""How often a plan and an event are measured for a point of a curve."""
MAX_EXPONENT = 1.15
"""The exponent above which a curve is worse than linear; what it has above 1 is for the machine's caches."""
LARGE = range(1_024, 1_034)


def timed(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> tuple[float, T]:
    """The process's own time, ms, and what came of it."""
    began = time.process_time()
    result = work(*args, **kwargs)
    return (time.process_time() - began) * 1e3, result


def half_used(count: int, held: int = 0) -> Churn:
    """So many nodes, half of the racks in use, and so many gangs of a pod with one GPU."""
    random = Random(count)
    moment = used(empty(count), random)
    taken = [reservation(moment, name, n) for n, name in enumerate(islice(cycle(moment.nodes), held))]
    moment = replace(moment, reservations=tuple(taken))
    plan(moment, gang(1))
    return Churn(moment, random)


def reservation(moment: Snapshot, node: str, number: int) -> Reservation:
    """What a gang of one pod with a GPU holds on the node."""
    name = f"held/Job/g{number}"
    labels = moment.nodes[node].labels
    return Reservation(
        id=reservation_id(name),
        gang=name,
        topology="fabric",
        level=HOSTNAME,
        domain=(labels["block"], labels["rack"], labels[HOSTNAME]),
        mode="nodes",
        domains=(),
        nodes=frozenset({node}),
        assignments=(Assignment("w", node, 1),),
        requests=(("w", {"nvidia.com/gpu": 1, "cpu": 100, "pods": 1}),),
        fingerprint="",
    )


def plans(churn: Churn, pods: int) -> float:
    """The median plan of a gang that prefers one rack."""
    group, took = gang(pods, preferred="rack"), []
    for number in range(TIMES + 1):
        churn.event()
        spent, _ = timed(plan, churn.moment, group)
        took += [spent] if number else []  # the first plan of its shape is measured in `bench_planner`
    return median(took)


def events(churn: Churn, kind: str) -> float:
    """The median event of the kind, µs."""
    before = len(churn.seconds[kind])
    for _ in range(EVENTS):
        churn.event(kind)
    return median(churn.seconds[kind][before:]) * 1e6


def reserving(churn: Churn) -> float:
    """The median µs in which one more gang takes its place and gives it up."""
    moment = churn.moment
    wanted = [reservation(moment, name, 1_000_000) for name in islice(moment.nodes, EVENTS)]
    return median(timed(_and_back, moment, held)[0] for held in wanted) * 1e3


def _and_back(moment: Snapshot, held: Reservation) -> Snapshot:
    return moment.with_reservation(held).without(held.gang)


def next_books(moment: Snapshot) -> float:
    """The median µs in which a snapshot takes up the ledger's book with one more gang, as each call does."""
    gangs = [reservation(moment, name, 1_000_000) for name in islice(moment.nodes, EVENTS)]
    books = [Book(number, (*moment.reservations, held)) for number, held in enumerate(gangs, start=1)]
    moment.with_book(Book(0, moment.reservations))
    return median(timed(moment.with_book, book)[0] for book in books) * 1e3


def records(moment: Snapshot, count: int) -> float:
    """The next snapshot after one of so many claims and volumes has changed, µs."""
    claim = ResourceClaim((ClaimRequest("gpu.nvidia.com", 1),))
    many = {f"x/c{number}": claim for number in range(count)}
    volumes = {f"x/c{number}": VolumeClaim(f"x/c{number}") for number in range(count)}
    facts = with_records(moment.base, {"claims.claims": many, "volumes.claims": volumes})
    moment = with_hardware(moment, facts)
    costs = []
    for number in range(EVENTS):
        key, device = f"x/c{number}", ("gpu.nvidia.com", "pool", f"gpu-{number}")
        changed = {
            "claims.claims": {key: replace(claim, allocated=(device,))},
            "volumes.claims": {key: VolumeClaim(key, volume="v", bound=True)},
        }
        spent, facts = timed(with_records, facts, changed)
        spent_on_nodes, moment = timed(with_hardware, moment, facts)
        costs.append(spent + spent_on_nodes)
    return median(costs) * 1e3


def curve(title: str, unit: str, points: Mapping[int, float]) -> bool:
    """Prints a curve; whether it is no worse than linear."""
    (first, first_cost), *_, (last, last_cost) = points.items()
    exponent = log(last_cost / first_cost) / log(last / first)
    row = "  ".join(f"{size:,}: {cost:.2f}" for size, cost in points.items())
    print(f"  {title:<44} {row} {unit}; grows with the power {exponent:.2f}", flush=True)
    return exponent <= MAX_EXPONENT


def curves() -> list[bool]:
    """Every curve."""
    by_nodes = {count: half_used(count) for count in NODES}
    print("by the nodes of the cluster, half of the racks in use")
    kept = [curve("plan, preferred rack, 144 pods", "ms", {n: plans(c, 144) for n, c in by_nodes.items()})]
    for kind in ("pod", "node", "added", "removed"):
        points = {count: events(churn, kind) for count, churn in by_nodes.items()}
        kept.append(curve(f"event: {kind}", "µs", points))
    print(f"by the pods of the gang, {AMONG:,} nodes")
    churn = by_nodes[AMONG]
    kept.append(curve("plan, preferred rack", "ms", {pods: plans(churn, pods) for pods in PODS}))
    print(f"by the gangs that hold a reservation, {AMONG:,} nodes")
    by_held = {held: half_used(AMONG, held) for held in HELD}
    kept.append(curve("plan, preferred rack, 144 pods", "ms", {n: plans(c, 144) for n, c in by_held.items()}))
    kept.append(curve("a gang reserves and gives up", "µs", {n: reserving(c) for n, c in by_held.items()}))
    books = {held: next_books(churn.moment) for held, churn in by_held.items()}
    kept.append(curve("a book with one change is taken up", "µs", books))
    kept.append(curve("event: added", "µs", {n: events(c, "added") for n, c in by_held.items()}))
    print(f"by the device claims and the volumes, {AMONG:,} nodes")
    changes = {count: records(churn.moment, count) for count in RECORDS}
    kept.append(curve("a claim gets a device, its volume is bound", "µs", changes))
    return kept


def long_searches() -> None:
    """The requests that ask most of the search."""
    print(f"{LARGE[0]:,} to {LARGE[-1]:,} whole nodes, no level asked, {AMONG:,} nodes; each size once")
    large("empty", empty(AMONG), 0)
    large("empty but for ten events", empty(AMONG), 10)
    large("half of the racks in use", used(empty(AMONG), Random(AMONG)), 10)
    print("spread over 24 rows that cut the racks, 504 nodes, 70 % in use; the first plan")
    for pods, skew, seed in ((96, 2, 1), (120, 2, 2), (120, 1, 1)):
        spent, answer = timed(plan, hall(504, 24, 0.7, seed), spread(pods, skew))
        print(f"  {f'{pods} pods, skew {skew}':<44} {spent:.1f} ms; {answer.decision}")
    pair = (pod_set(8, shape(gpu=8), name="a"), pod_set(8, shape(gpu=8, cpu=8), name="b"))
    every_set = replace(any_gang(*pair, reserve="nodes"), fabric=FabricWish(stated=True))
    spent, _ = timed(plan, fabric(30, 3), every_set)
    print(f"  {'leaf-spine, 48 sets of leaves in vain':<44} {spent:.1f} ms")


def large(title: str, moment: Snapshot, changes: int) -> None:
    """Prints the row of the large gangs on a cluster after so many changes."""
    churn = Churn(moment, Random(AMONG))
    for _ in range(changes):
        churn.event()
    plan(churn.moment, gang(1))
    took, answers = zip(*(timed(plan, churn.moment, gang(pods)) for pods in LARGE), strict=True)
    proved = sum(not answer.warnings for answer in answers)
    print(f"  {title:<44} median {median(took):.1f}, most {max(took):.1f} ms; {proved} of {len(took)} proved")


def main() -> None:
    """Print the curves and the rows; fails where a curve is worse than linear."""
    kept = curves()
    long_searches()
    if not all(kept):
        sys.exit("a curve is worse than linear")


if __name__ == "__main__":
    main()
