"""Pod affinity and anti-affinity in the plan, against trying every placement.

Over the hostname, over a level, and over a label (`ups`) that is no level and runs across racks; against
bound pods and among the gang's own PodSets; the rules written here once more from kube-scheduler's words.
"""

from __future__ import annotations

import os
from dataclasses import replace
from random import Random

import pytest

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.model.labels import Requirement
from planner.model.node import Node
from planner.model.pod import BoundPod, PodTerm
from planner.model.podgroup import PodGroup, PodSet
from planner.model.topology import HOSTNAME
from planner.planning.plan import plan
from tests.builders import amounts, gang, node, shape, topology
from tests.exact.solver import Assigned, Instance, domains, every_placement, on_power_supplies, valid

INSTANCES = int(os.environ.get("BAYPLAN_EXACT", "400"))
CHUNKS = 4
KEYS = (HOSTNAME, HOSTNAME, "rack", "ups", "ups", "block")


def random_instance(random: Random) -> Instance:
    """Up to five hosts in racks and blocks, each on a power supply or on none; up to two PodSets of three."""
    nodes: list[Node] = []
    pods: list[BoundPod] = []
    for number in range(random.randint(2, 5)):
        labels = on_power_supplies(random, without=0.15)
        name = f"n{number}"
        nodes.append(node(name, labels=labels, gpu=random.choice((2, 3)), cpu=8))
        if random.random() < 0.3:
            pods.append(_bound(random, name))
    sets = [_pod_set(random, place) for place in range(random.randint(1, 2))]
    group = gang(*sets, reserve="nodes", required=random.choice(("", "", "", "rack", "block")))
    return Instance(snapshot(nodes, [topology("block", "rack")], pods), group)


def _bound(random: Random, name: str) -> BoundPod:
    space = random.choice(("default", "default", "other"))
    terms = (_term(random, attracts=False),) if random.random() < 0.4 else ()
    used = amounts(pods=1, gpu=random.choice((0, 1)))
    labels = {"app": random.choice("ab")}
    return BoundPod(f"{space}/p-{name}", name, {k: v for k, v in used.items() if v}, "", labels, terms=terms)


def _term(random: Random, *, attracts: bool) -> PodTerm:
    apps = random.choice((("a",), ("b",), ("a", "b")))
    selector = (Requirement("app", "In", apps),)
    return PodTerm(random.choice(KEYS), selector, (), random.random() < 0.2, attracts)


def _pod_set(random: Random, place: int) -> PodSet:
    pod = shape(gpu=random.choice((0, 1, 2)), cpu=1)
    terms = tuple(_term(random, attracts=random.random() < 0.3) for _ in range(random.choice((0, 1, 1, 2))))
    pod = replace(pod, labels={"app": random.choice("ab")}, terms=terms)
    return PodSet(f"s{place}", random.randint(1, 3), pod)


def means(term: PodTerm, own: str, space: str, app: str) -> bool:
    """Whether a term of a pod in one namespace means a pod of this app in another."""
    return (term.every or own == space) and app in term.selector[0].values


def where(moment: Snapshot, name: str, key: str) -> str:
    """The node's domain of a label, "" for none."""
    return moment.nodes[name].labels.get(key, "")


def neighbourly(moment: Snapshot, group: PodGroup, assigned: Assigned) -> bool:
    """Whether every term of the gang's pods and of those bound holds."""
    gangs = [
        (s, name, count)
        for s in group.pod_sets
        for (whose, name), count in assigned.items()
        if whose == s.name
    ]
    bound = [(pod.name.split("/")[0], pod.labels["app"], pod.node, pod.terms) for pod in moment.pods]
    for pod_set, name, count in gangs:
        app = pod_set.shape.labels["app"]
        for space, _, other, terms in bound:
            for term in terms:
                domain = where(moment, name, term.key)
                if means(term, space, "default", app) and domain and domain == where(moment, other, term.key):
                    return False
        for term in pod_set.shape.terms:
            if term.attracts:
                continue
            domain = where(moment, name, term.key)
            bound_domains = {
                where(moment, o, term.key) for s, a, o, _ in bound if means(term, "default", s, a)
            }
            mates = [
                (s, n, c) for s, n, c in gangs if means(term, "default", "default", s.shape.labels["app"])
            ]
            near = sum(c for _, n, c in mates if domain and where(moment, n, term.key) == domain)
            mine = count if any(s is pod_set for s, _, _ in mates) else 0
            if domain and (domain in bound_domains or near - mine > 0 or mine > 1):
                return False
        if not near_pods(moment, pod_set, name, bound, gangs):
            return False
    return True


def near_pods(moment: Snapshot, pod_set: PodSet, name: str, bound, gangs) -> bool:
    """Whether the affinity of a pod on a node holds: only pods that all its terms mean count for any."""
    terms = [term for term in pod_set.shape.terms if term.attracts]

    def all_mean(space: str, app: str) -> bool:
        return all(means(term, "default", space, app) for term in terms)

    others = [other for space, app, other, _ in bound if all_mean(space, app)]
    if any(where(moment, other, term.key) for other in others for term in terms):
        return all(
            where(moment, name, term.key) in {where(moment, other, term.key) for other in others} - {""}
            for term in terms
        )
    mates = [node_name for mate, node_name, _ in gangs if all_mean("default", mate.shape.labels["app"])]
    return not terms or (
        bool(mates)
        and all(
            {where(moment, mate, term.key) for mate in (*mates, name)}
            == {where(moment, name, term.key)}
            != {""}
            for term in terms
        )
    )


def fewest_domains(instance: Instance, *, empty: bool = False) -> tuple[int, ...] | None:
    """The least (blocks, racks, hosts) of any placement that keeps every rule."""
    moment = Snapshot(instance.snapshot.base) if empty else instance.snapshot
    best: tuple[int, ...] | None = None
    for assigned in every_placement(moment, instance.group):
        if valid(moment, instance.group, assigned) and neighbourly(moment, instance.group, assigned):
            count = domains(moment, {name for _, name in assigned})
            best = count if best is None or count < best else best
    return best


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_pods_are_kept_apart_and_together_exactly(chunk):
    """Whether there is a place, and on how few domains, agrees with trying every placement; none is refused
    for ever that has one on the empty cluster."""
    seen = {"admitted": 0, "queued": 0, "rejected": 0}
    for number in range(chunk, INSTANCES, CHUNKS):
        instance = random_instance(Random(number))
        answer = plan(instance.snapshot, instance.group)
        seen[answer.decision] += 1
        assert not any("SearchBudgetExhausted" in message for message in (answer.reason, *answer.warnings))
        fewest = fewest_domains(instance)
        if fewest is None:
            assert answer.decision != "admitted", (number, answer)
            assert answer.decision == "queued" or fewest_domains(instance, empty=True) is None, (
                number,
                answer,
            )
            continue
        assert answer.decision == "admitted", (number, fewest, answer)
        assigned = {(a.pod_set, a.node): a.count for a in answer.assignments}
        assert valid(instance.snapshot, instance.group, assigned), number
        assert neighbourly(instance.snapshot, instance.group, assigned), (number, answer)
        assert domains(instance.snapshot, {name for _, name in assigned}) == fewest, (number, fewest, answer)
    assert seen["admitted"], "the sample has gangs that fit"
    assert seen["queued"], "the sample has gangs that wait"
