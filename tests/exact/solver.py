"""Small random instances, and a solver that tries every placement: slow, obvious, and right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.model.node import Node
from planner.model.pod import BoundPod
from planner.model.podgroup import Assignment, Constraint, PodGroup, PodSet, ReserveMode
from planner.model.reservation import Reservation, reservation_id
from planner.model.topology import HOSTNAME, Domain, Topology
from tests.builders import amounts, gang, node, shape, topology

LEVELS = ("block", "rack")


@dataclass(frozen=True)
class Instance:
    """A cluster and a gang to place in it."""

    snapshot: Snapshot
    group: PodGroup


def on_power_supplies(random: Random, *, without: float) -> dict[str, str]:
    """The labels of a host in one of three racks; `ups` is no level, runs across racks, and some lack it."""
    rack = random.randint(0, 2)
    labels = {"block": f"b{rack // 2}", "rack": f"r{rack}", "ups": random.choice(("u1", "u2", "u3"))}
    if random.random() < without:
        del labels["ups"]
    return labels


def random_instance(
    random: Random, *, racks: int = 3, hosts: int = 3, max_pods: int = 5, sets: int = 2
) -> Instance:
    """At most so many racks, hosts a rack and pods; half-used, held and unlabelled hosts too."""
    topo = topology(*LEVELS, reservable=random.choice(("", "", "rack", "block")))
    nodes: list[Node] = []
    pods: list[BoundPod] = []
    for rack in range(random.randint(1, racks)):
        block = random.choice(("b1", "b1", "b2"))
        for host in range(random.randint(1, hosts)):
            labels = {"block": block, "rack": f"r{rack}"}
            if random.random() < 0.08:
                del labels["rack"]
            name = f"n{rack}{host}"
            nodes.append(
                node(name, labels=labels, gpu=random.choice((0, 2, 4, 4)), cpu=random.choice((4, 8)))
            )
            if random.random() < 0.25:
                used = amounts(gpu=random.randint(0, 2), cpu=random.randint(0, 2), pods=1)
                pods.append(BoundPod(f"x/p{name}", name, {k: v for k, v in used.items() if v}))
    bare = snapshot(nodes, [topo], pods)
    return Instance(_with_holders(random, bare, topo), _group(random, max_pods, sets))


def _with_holders(random: Random, bare: Snapshot, topo: Topology) -> Snapshot:
    if random.random() < 0.6:
        return bare
    chosen = random.choice(list(bare.nodes))
    path = topo.path(chosen, bare.nodes[chosen].labels)
    mode: ReserveMode = random.choice(("domain", "domain", "nodes"))
    depth = random.choice((2, 3)) if path[1] else 3
    domains: tuple[Domain, ...] = (path[:depth],) if mode == "domain" else ()
    inside = {n for n, x in bare.nodes.items() if topo.path(n, x.labels)[:depth] == path[:depth]}
    held = Reservation(
        id=reservation_id("other"),
        gang="other",
        topology=topo.name,
        level="",
        domain=path,
        mode=mode,
        domains=domains,
        nodes=frozenset(inside if domains else ()),
        assignments=(Assignment("w", chosen, 1),),
        requests=(("w", amounts(cpu=1, pods=1)),),
        fingerprint="",
    )
    return bare.with_reservation(held)


def _group(random: Random, max_pods: int, sets: int) -> PodGroup:
    count = random.randint(1, sets)
    wanted = [random.randint(1, max(1, max_pods // count)) for _ in range(count)]
    pod_sets = [_pod_set(random, place, pods) for place, pods in enumerate(wanted)]
    return gang(
        *pod_sets,
        reserve=random.choice(("domain", "nodes", "none")),
        required=random.choice(("", "", "rack", "block", "host")),
        preferred=random.choice(("", "", "rack")),
    )


def _pod_set(random: Random, place: int, pods: int) -> PodSet:
    own = Constraint()
    if random.random() < 0.25:
        own = Constraint(required=random.choice(("rack", "host", "block")))
    elif random.random() < 0.2:
        size = random.choice([n for n in range(1, pods + 1) if pods % n == 0])
        own = Constraint(slice_level=random.choice(("rack", "host")), slice_size=size)
    apart = ("kubernetes.io/hostname",) if random.random() < 0.15 else ()
    pod = shape(gpu=random.choice((0, 1, 2)), cpu=random.choice((1, 1, 2, 3)), apart=apart)
    return PodSet(f"s{place}", pods, pod, own)


Assigned = dict[tuple[str, str], int]
"""Pods by PodSet and node."""


def solve(instance: Instance, *, empty: bool = False) -> tuple[int, ...] | None:
    """The least (blocks, racks, hosts) of any valid placement, None where there is none."""
    best: tuple[int, ...] | None = None
    moment = _empty(instance.snapshot) if empty else instance.snapshot
    for assigned in every_placement(moment, instance.group):
        if valid(moment, instance.group, assigned):
            count = domains(moment, {name for _, name in assigned})
            best = count if best is None or count < best else best
    return best


def _empty(full: Snapshot) -> Snapshot:
    return Snapshot(full.base)


def every_placement(moment: Snapshot, group: PodGroup) -> Iterator[Assigned]:
    """Every way to put the pods on nodes within capacity."""
    nodes = list(moment.nodes)
    free = {
        name: {r: a - moment.taken.get(name, {}).get(r, 0) for r, a in moment.nodes[name].allocatable.items()}
        for name in nodes
    }

    def fill(place: int, node_index: int, left: int, assigned: Assigned) -> Iterator[Assigned]:
        if place == len(group.pod_sets):
            yield dict(assigned)
            return
        pod_set = group.pod_sets[place]
        if left == 0:
            following = group.pod_sets[place + 1].count if place + 1 < len(group.pod_sets) else 0
            yield from fill(place + 1, 0, following, assigned)
            return
        if node_index == len(nodes):
            return
        name, need = nodes[node_index], pod_set.shape.requests
        room = min(left, *(free[name].get(r, 0) // n for r, n in need.items()))
        for count in range(max(0, room), -1, -1):
            for resource, amount in need.items():
                free[name][resource] = free[name].get(resource, 0) - amount * count
            if count:
                assigned[pod_set.name, name] = count
            yield from fill(place, node_index + 1, left - count, assigned)
            assigned.pop((pod_set.name, name), None)
            for resource, amount in need.items():
                free[name][resource] += amount * count

    yield from fill(0, 0, group.pod_sets[0].count, {})


def valid(moment: Snapshot, group: PodGroup, assigned: Assigned) -> bool:
    """Whether a placement keeps every constraint and takes nothing that another gang holds."""
    used = {name for _, name in assigned}
    if not _together(moment, used, group.constraint.required):
        return False
    for pod_set in group.pod_sets:
        own = {name: count for (whose, name), count in assigned.items() if whose == pod_set.name}
        if not _together(moment, set(own), pod_set.constraint.required):
            return False
        if pod_set.shape.anti_affinity and max(own.values()) > 1:
            return False
        if not _sliced(moment, own, pod_set.constraint):
            return False
    return _held_by_nobody(moment, group, used)


def path(moment: Snapshot, name: str) -> Domain:
    """A node's path in the instance's only topology."""
    return moment.topologies[0].path(name, moment.nodes[name].labels)


def _depth(level: str) -> int:
    return {"block": 1, "rack": 2, "host": 3, HOSTNAME: 3}[level]


def _together(moment: Snapshot, used: set[str], level: str) -> bool:
    if not level:
        return True
    within = {path(moment, name)[: _depth(level)] for name in used}
    return len(within) == 1 and all(domain[-1] for domain in within)


def _sliced(moment: Snapshot, own: dict[str, int], asked: Constraint) -> bool:
    if not asked.slice_level:
        return True
    pods: dict[Domain, int] = {}
    for name, count in own.items():
        within = path(moment, name)[: _depth(asked.slice_level)]
        pods[within] = pods.get(within, 0) + count
    return all(count % asked.slice_size == 0 and within[-1] for within, count in pods.items())


def _held_by_nobody(moment: Snapshot, group: PodGroup, used: set[str]) -> bool:
    if not moment.reservations:
        return True
    other = moment.reservations[0]
    whole = other.nodes
    touched = other.touched
    if group.reserve != "domain":
        return not used & whole
    held = {
        name
        for domain in holds(moment, used)
        for name in moment.nodes
        if path(moment, name)[: len(domain)] == domain
    }
    return not held & touched


def holds(moment: Snapshot, used: set[str]) -> set[Domain]:
    """The domains that a placement on these nodes holds whole, by the words of the design."""
    paths = [path(moment, name) for name in used]
    topo = moment.topologies[0]
    for depth in (3, 2, 1):
        within = {p[:depth] for p in paths}
        if len(within) == 1 and all(d[-1] for d in within) and depth - 1 >= topo.reservable_index:
            return within
    depth = topo.reservable_index + 1
    return {p[:depth] if p[depth - 1] else p for p in paths}


def domains(moment: Snapshot, used: set[str]) -> tuple[int, ...]:
    """How many blocks, racks and hosts a placement touches; a host without a rack label is its own rack."""
    paths = [path(moment, name) for name in used]
    racks = {p[:2] if p[1] else p for p in paths}
    return (len({p[:1] for p in paths}), len(racks), len(paths))
