"""PodSets that are required in one domain together, against trying every placement.

Racks of one name stand in several blocks; some PodSets have a finer level of their own or must be apart.
"""

from __future__ import annotations

import os
from dataclasses import replace
from random import Random

import pytest

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.model.podgroup import Constraint, PodGroup, PodSet
from planner.model.topology import HOSTNAME
from planner.planning.plan import plan
from tests.builders import gang, node, shape, topology
from tests.exact.solver import Assigned, Instance, domains, every_placement, path, valid

INSTANCES = int(os.environ.get("BAYPLAN_EXACT", "400"))
CHUNKS = 4
DEPTH = {"block": 1, "rack": 2, HOSTNAME: 3}


def random_instance(random: Random) -> Instance:
    """Up to six hosts in two blocks of two racks each, and three PodSets of which one to three are tied."""
    nodes = []
    for number in range(random.randint(3, 6)):
        labels = {"block": random.choice(("b1", "b2")), "rack": random.choice(("r1", "r2"))}
        if random.random() < 0.1:
            del labels["rack"]
        nodes.append(node(f"n{number}", labels=labels, gpu=random.choice((1, 2, 3)), cpu=8))
    sets = [_pod_set(random, place) for place in range(3)]
    names = tuple(pod_set.name for pod_set in random.sample(sets, random.choice((1, 2, 2, 3))))
    ties = [(random.choice(("block", "rack", "rack", HOSTNAME)), names)]
    if random.random() < 0.2:
        ties.append(("block", tuple(pod_set.name for pod_set in sets)))
    group = replace(gang(*sets, reserve="nodes"), within=tuple(ties))
    return Instance(snapshot(nodes, [topology("block", "rack")]), group)


def _pod_set(random: Random, place: int) -> PodSet:
    apart = (HOSTNAME,) if random.random() < 0.15 else ()
    pod = shape(gpu=random.choice((0, 1, 1, 2)), cpu=random.choice((1, 2)), apart=apart)
    level = random.choice(("", "", "", "rack", HOSTNAME))
    return PodSet(f"s{place}", random.randint(1, 2), pod, Constraint(required=level))


def tied(moment: Snapshot, group: PodGroup, assigned: Assigned) -> bool:
    """Whether all pods of tied PodSets are in one named domain."""
    for level, names in group.within:
        paths = {path(moment, host)[: DEPTH[level]] for whose, host in assigned if whose in names}
        if len(paths) > 1 or not all(domain[-1] for domain in paths):
            return False
    return True


def contradicts(group: PodGroup) -> bool:
    """Whether a part is asked for a coarser level than its whole."""
    depth = DEPTH | {"": 9}
    own = [(pod_set.constraint.required, pod_set.name) for pod_set in group.pod_sets]
    return any(
        any(name in names and depth[level] < depth[outer] for level, name in own)
        or any(set(part) < set(names) and depth[level] < depth[outer] for level, part in group.within)
        for outer, names in group.within
    )


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_tied_pod_sets_share_a_domain_exactly(chunk):
    """Whether there is a place, and on how few domains, agrees with trying every placement; only a
    contradiction is refused unlooked at."""
    seen = {"admitted": 0, "rejected": 0, "contradicts": 0}
    for number in range(chunk, INSTANCES, CHUNKS):
        instance = random_instance(Random(number))
        answer = plan(instance.snapshot, instance.group)
        assert (answer.reason == "PodSetLevelTooCoarse") == contradicts(instance.group), (number, answer)
        if contradicts(instance.group):
            seen["contradicts"] += 1
            continue
        seen[answer.decision] += 1
        counts = [
            domains(instance.snapshot, {name for _, name in assigned})
            for assigned in every_placement(instance.snapshot, instance.group)
            if valid(instance.snapshot, instance.group, assigned)
            and tied(instance.snapshot, instance.group, assigned)
        ]
        assert answer.decision == ("admitted" if counts else "rejected"), (number, answer)
        if counts:
            assigned = {(a.pod_set, a.node): a.count for a in answer.assignments}
            assert valid(instance.snapshot, instance.group, assigned), (number, answer)
            assert tied(instance.snapshot, instance.group, assigned), (number, answer)
            assert domains(instance.snapshot, {name for _, name in assigned}) == min(counts), (number, answer)
    assert all(seen.values()), "the sample has gangs of each kind"
