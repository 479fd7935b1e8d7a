"""Host ports in the plan, against trying every placement; the rule written here once more."""

from __future__ import annotations

import os
from dataclasses import replace
from random import Random

import pytest

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.model.host_ports import HostPort, port_labels, port_terms
from planner.model.pod import BoundPod
from planner.model.podgroup import PodSet
from planner.planning.plan import plan
from tests.builders import amounts, gang, node, shape, topology
from tests.exact.solver import Instance, domains, every_placement, on_power_supplies, valid
from tests.exact.verdict import placed

INSTANCES = int(os.environ.get("BAYPLAN_EXACT", "400"))
CHUNKS = 4
Ports = dict[str, tuple[HostPort, ...]]
"""By PodSet, or by node the ports of its bound pod."""


def ports(random: Random) -> tuple[HostPort, ...]:
    """None to two ports, on one of two addresses or on all."""
    return tuple(
        dict.fromkeys(
            (
                random.choice(("TCP", "TCP", "UDP")),
                random.choice((80, 81)),
                random.choice(("0.0.0.0", "a", "b")),
            )
            for _ in range(random.choice((0, 1, 1, 2)))
        )
    )


def random_instance(random: Random) -> tuple[Instance, Ports, Ports]:
    """Up to five hosts in racks, some with a bound pod; up to two PodSets of three."""
    nodes, bound, taken, wanted = [], [], {}, {}
    for number in range(random.randint(2, 5)):
        name = f"n{number}"
        nodes.append(
            node(name, labels=on_power_supplies(random, without=0.15), gpu=random.choice((2, 3)), cpu=8)
        )
        if random.random() < 0.5:
            taken[name] = ports(random)
            bound.append(BoundPod(f"x/p-{name}", name, amounts(pods=1), labels=port_labels(taken[name])))
    sets = []
    for place in range(random.randint(1, 2)):
        mine = wanted[f"s{place}"] = ports(random)
        pod = replace(shape(gpu=1, cpu=1), labels=port_labels(mine), terms=port_terms(mine))
        sets.append(PodSet(f"s{place}", random.randint(1, 3), pod))
    group = gang(*sets, reserve="nodes", required=random.choice(("", "", "rack", "block")))
    return Instance(snapshot(nodes, [topology("block", "rack")], bound), group), wanted, taken


def conflict(first: tuple[HostPort, ...], second: tuple[HostPort, ...]) -> bool:
    """Whether two pods cannot share a host."""
    return any(a[:2] == b[:2] and (a[2] == b[2] or "0.0.0.0" in (a[2], b[2])) for a in first for b in second)


def fewest_domains(
    instance: Instance, wanted: Ports, taken: Ports, *, empty: bool = False
) -> tuple[int, ...] | None:
    """The least (blocks, racks, hosts) of any placement that keeps every port to one pod."""
    moment = Snapshot(instance.snapshot.base) if empty else instance.snapshot
    counts = []
    for assigned in every_placement(moment, instance.group):
        on_host: dict[str, list[tuple[HostPort, ...]]] = {}
        for (name, host), count in assigned.items():
            on_host.setdefault(host, []).extend([wanted[name]] * count)
        if not empty:
            for host, mine in taken.items():
                on_host.setdefault(host, []).append(mine)
        apart = not any(
            conflict(mine, other)
            for pods in on_host.values()
            for i, mine in enumerate(pods)
            for other in pods[:i]
        )
        if apart and valid(moment, instance.group, assigned):
            counts.append(domains(moment, {name for _, name in assigned}))
    return min(counts, default=None)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_host_ports_are_kept_exactly(chunk):
    """Whether there is a place, and on how few domains, agrees with trying every placement."""
    seen = {"admitted": 0, "queued": 0, "rejected": 0}
    for number in range(chunk, INSTANCES, CHUNKS):
        instance, wanted, taken = random_instance(Random(number))
        fewest, answer = fewest_domains(instance, wanted, taken), plan(instance.snapshot, instance.group)
        seen[answer.decision] += 1
        if placed(
            answer,
            fewest,
            lambda instance=instance, w=wanted, t=taken: fewest_domains(instance, w, t, empty=True),
            number,
        ):
            assert domains(instance.snapshot, {a.node for a in answer.assignments}) == fewest, (
                number,
                answer,
            )
    assert all(seen.values()), "the sample has gangs that fit, that wait, and that never fit"
