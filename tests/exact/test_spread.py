"""Hard topology spread constraints in the plan, against trying every placement and every order of binding.

The rule is written here once more as kube-scheduler has it, for one pod that comes after others. A placement
keeps it if each pod might be the last to come, and if all can come in some order: as they were asked for, and
pinned to the nodes of their PodSet.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from random import Random

import pytest

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.model.labels import Requirement
from planner.model.node import Node
from planner.model.pod import BoundPod, PodTerm, SpreadConstraint
from planner.model.podgroup import PodGroup, PodSet
from planner.model.topology import HOSTNAME
from planner.planning.plan import plan
from tests.builders import amounts, gang, node, shape, topology
from tests.exact.solver import Assigned, Instance, domains, every_placement, on_power_supplies, valid

INSTANCES = int(os.environ.get("BAYPLAN_EXACT", "400"))
CHUNKS = 4
KEYS = (HOSTNAME, "rack", "block", "block", "ups", "ups")


def random_instance(random: Random) -> Instance:
    """Up to five hosts in racks and blocks, on power supplies or on none; up to two PodSets of few pods."""
    nodes: list[Node] = []
    pods: list[BoundPod] = []
    for number in range(random.randint(2, 5)):
        labels = on_power_supplies(random, without=0.1)
        if random.random() < 0.2:
            labels["old"] = "true"
        name = f"n{number}"
        nodes.append(node(name, labels=labels, gpu=random.choice((2, 3)), cpu=8))
        for place in range(random.choice((0, 0, 1, 2))):
            space, app = random.choice(("default", "default", "other")), random.choice("ab")
            used = {k: v for k, v in amounts(pods=1, gpu=random.choice((0, 1))).items() if v}
            pods.append(BoundPod(f"{space}/p-{name}-{place}", name, used, "", {"app": app}))
    sets = [_pod_set(random, place) for place in range(random.choice((1, 1, 2)))]
    group = gang(*sets, reserve="nodes", required=random.choice(("", "", "", "rack", "block")))
    return Instance(snapshot(nodes, [topology("block", "rack")], pods), group)


def _pod_set(random: Random, place: int) -> PodSet:
    selector = {"old": "true"} if random.random() < 0.1 else {}
    pod = shape(gpu=random.choice((0, 1, 1, 2)), cpu=1, selector=selector)
    spread = tuple(_spread(random) for _ in range(random.choice((0, 1, 1, 2))))
    apart = PodTerm(random.choice(KEYS), (Requirement("app", "In", ("a",)),))
    terms = (apart,) if random.random() < 0.15 else ()
    pod = replace(pod, labels={"app": random.choice("aab")}, spread=spread, terms=terms)
    return PodSet(f"s{place}", random.randint(1, 5 if not place else 2), pod)


def _spread(random: Random) -> SpreadConstraint:
    apps = random.choice((("a",), ("a",), ("b",), ("a", "b")))
    return SpreadConstraint(
        random.choice(KEYS),
        random.choice((1, 1, 2)),
        (Requirement("app", "In", apps),),
        random.choice((1, 1, 1, 2, 3)),
        random.random() < 0.8,
    )


Where = Mapping[str, int]
"""By host the pods of one PodSet."""


def may_come(
    moment: Snapshot, group: PodGroup, pod_set: PodSet, host: str, bound: tuple, pinned: frozenset[str]
):
    """Whether one more pod of a PodSet may be bound to a host, with these of the gang bound before."""
    labels = {name: n.labels | {HOSTNAME: name} for name, n in moment.nodes.items()}
    keys = [spread.key for spread in pod_set.shape.spread]
    for spread in pod_set.shape.spread:
        apps = spread.selector[0].values
        eligible = [
            name
            for name in moment.nodes
            if all(key in labels[name] for key in keys)
            and (
                not spread.by_affinity
                or (name in pinned and pod_set.shape.node_selector.items() <= labels[name].items())
            )
        ]
        if spread.key not in labels[host]:
            return False
        counts = {labels[name][spread.key]: 0 for name in eligible}
        for pod in moment.pods:
            if pod.node in eligible and pod.name.startswith("default/") and pod.labels["app"] in apps:
                counts[labels[pod.node][spread.key]] += 1
        for (name, other), count in bound:
            app = next(s.shape.labels["app"] for s in group.pod_sets if s.name == name)
            if other in eligible and app in apps:
                counts[labels[other][spread.key]] += count
        fewest = 0 if len(counts) < spread.min_domains else min(counts.values(), default=0)
        own = 1 if pod_set.shape.labels["app"] in apps else 0
        if counts.get(labels[host][spread.key], 0) + own - fewest > spread.skew:
            return False
    return True


def can_come(moment: Snapshot, group: PodGroup, assigned: Assigned, *, pin: bool) -> bool:
    """Whether the pods of a placement may be bound in some order."""
    every = frozenset(moment.nodes)
    used = {s.name: frozenset(h for name, h in assigned if name == s.name) for s in group.pod_sets}
    sets = {s.name: s for s in group.pod_sets}

    @cache
    def rest(bound: tuple) -> bool:
        came = dict(bound)
        if came == assigned:
            return True
        for (name, host), count in assigned.items():
            if came.get((name, host), 0) < count and may_come(
                moment, group, sets[name], host, bound, used[name] if pin else every
            ):
                following = came | {(name, host): came.get((name, host), 0) + 1}
                if rest(tuple(sorted(following.items()))):
                    return True
        return False

    return rest(())


def in_the_end(moment: Snapshot, group: PodGroup, assigned: Assigned) -> bool:
    """Whether each pod with a constraint might have come last."""
    sets = {s.name: s for s in group.pod_sets}
    for name, host in assigned:
        before = {**assigned, (name, host): assigned[name, host] - 1}
        if not may_come(moment, group, sets[name], host, tuple(before.items()), frozenset(moment.nodes)):
            return False
    return True


def apart(moment: Snapshot, group: PodGroup, assigned: Assigned) -> bool:
    """Whether anti-affinity holds, of the gang's pods alone and against those bound."""
    for name, host in assigned:
        pod_set = next(s for s in group.pod_sets if s.name == name)
        for term in pod_set.shape.terms:
            labels = {n: moment.nodes[n].labels | {HOSTNAME: n} for n in moment.nodes}
            domain = labels[host].get(term.key)
            if domain is None:
                continue
            near = sum(
                1
                for p in moment.pods
                if p.name.startswith("default/")
                and p.labels["app"] == "a"
                and labels[p.node].get(term.key) == domain
            )
            for (other, other_host), number in assigned.items():
                mate = next(s for s in group.pod_sets if s.name == other)
                if mate.shape.labels["app"] == "a" and labels[other_host].get(term.key) == domain:
                    near += number - (1 if (other, other_host) == (name, host) else 0)
            if near:
                return False
    return True


def fewest_domains(instance: Instance) -> tuple[int, ...] | None:
    """The least (blocks, racks, hosts) of any placement that keeps every rule."""
    best: tuple[int, ...] | None = None
    for assigned in every_placement(instance.snapshot, instance.group):
        count = domains(instance.snapshot, {name for _, name in assigned})
        if (best is None or count < best) and fine(instance, assigned):
            best = count
    return best


def fine(instance: Instance, assigned: Assigned) -> bool:
    """Whether a placement keeps every rule."""
    moment, group = instance.snapshot, instance.group
    selected = all(
        s.shape.node_selector.items() <= moment.nodes[h].labels.items()
        for s in group.pod_sets
        for name, h in assigned
        if name == s.name
    )
    return (
        selected
        and valid(moment, group, assigned)
        and apart(moment, group, assigned)
        and in_the_end(moment, group, assigned)
        and can_come(moment, group, assigned, pin=False)
        and can_come(moment, group, assigned, pin=True)
    )


def plain(instance: Instance) -> bool:
    """One PodSet with one constraint, and no pods that count there: nearly always searched to the end."""
    spreads = [spread for s in instance.group.pod_sets for spread in s.shape.spread]
    apps = {app for spread in spreads for app in spread.selector[0].values}
    bound_pods = (pod for pod in instance.snapshot.pods if pod.name.startswith("default/"))
    return (
        len(instance.group.pod_sets) == 1
        and len(spreads) < 2
        and not any(pod.labels["app"] in apps for pod in bound_pods)
    )


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_pods_are_spread_exactly(chunk):
    """Whether there is a place, and on how few domains, agrees with trying every placement."""
    seen, unended = {"admitted": 0, "queued": 0, "rejected": 0}, 0
    for number in range(chunk, INSTANCES, CHUNKS):
        instance = random_instance(Random(number))
        answer = plan(instance.snapshot, instance.group)
        seen[answer.decision] += 1
        ended = any("SearchBudgetExhausted" in message for message in (answer.reason, *answer.warnings))
        unended += ended and plain(instance)
        fewest = fewest_domains(instance)
        if fewest is None:
            assert answer.decision != "admitted", (number, answer)
            continue
        assert answer.decision == "admitted" or ended, (number, fewest, answer)
        if answer.decision != "admitted":
            continue
        assigned = {(a.pod_set, a.node): a.count for a in answer.assignments}
        assert fine(instance, assigned), (number, answer)
        assert ended or domains(instance.snapshot, {name for _, name in assigned}) == fewest, (number, answer)
    assert unended * 1000 <= sum(seen.values()), "fewer than one in a thousand of the plain ones ends early"
    assert seen["admitted"], "the sample has gangs that fit"
    assert seen["queued"], "the sample has gangs that wait"
