"""Pod affinity and anti-affinity in the plan, against trying every placement.

Over the hostname, over a level, and over a label (`ups`) that is no level and runs across racks; against
bound pods and among the gang's own PodSets; the rules written here once more from kube-scheduler's words.
"""

from __future__ import annotations

import os
from collections import Counter
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
    return starts(moment, [(pod_set, name) for pod_set, name, _ in gangs], bound)


def starts(moment: Snapshot, waiting: list[tuple[PodSet, str]], bound) -> bool:
    """Whether all pods are bound in the end, whatever their order: each beside a pod that all its terms mean,
    or, where no pod is meant by them but itself, as the first one.
    """
    bound_pods = [(space, app, name) for space, app, name, _ in bound]
    while waiting:
        beside = [pod for pod in waiting if is_beside(moment, *pod, bound_pods)]
        if not beside:
            first = [pod for pod in waiting if is_first(moment, *pod, bound_pods)]
            return bool(first) and all(
                starts(
                    moment,
                    [other for other in waiting if other is not pod],
                    [
                        *[(*earlier, ()) for earlier in bound_pods],
                        ("default", pod[0].shape.labels["app"], pod[1], ()),
                    ],
                )
                for pod in first
            )
        waiting = [pod for pod in waiting if pod not in beside]
        bound_pods += [("default", pod_set.shape.labels["app"], name) for pod_set, name in beside]
    return True


def meant(pod_set: PodSet, bound_pods) -> list[str]:
    """The nodes of the pods that all affinity terms of a PodSet mean."""
    terms = [term for term in pod_set.shape.terms if term.attracts]
    return [
        name for space, app, name in bound_pods if all(means(term, "default", space, app) for term in terms)
    ]


def is_beside(moment: Snapshot, pod_set: PodSet, name: str, bound_pods) -> bool:
    """Whether a node is beside pods that a PodSet's terms mean."""
    return all(
        where(moment, name, term.key)
        in {where(moment, node, term.key) for node in meant(pod_set, bound_pods)} - {""}
        for term in pod_set.shape.terms
        if term.attracts
    )


def is_first(moment: Snapshot, pod_set: PodSet, name: str, bound_pods) -> bool:
    """Whether a pod is the first that its terms mean, on a node with their labels."""
    terms = [term for term in pod_set.shape.terms if term.attracts]
    labelled = all(where(moment, name, term.key) for term in terms)
    matched = any(where(moment, node, term.key) for node in meant(pod_set, bound_pods) for term in terms)
    return labelled and not matched and bool(meant(pod_set, [("default", pod_set.shape.labels["app"], name)]))


def in_one_domain(moment: Snapshot, group: PodGroup, assigned: Assigned) -> bool:
    """Whether affinity holds in its strictest form: beside bound pods if any is meant, else in one domain."""
    gangs = [(s, name) for s in group.pod_sets for (whose, name) in assigned if whose == s.name]
    bound = [(pod.name.split("/")[0], pod.labels["app"], pod.node) for pod in moment.pods]
    return all(near_pods(moment, pod_set, name, bound, gangs) for pod_set, name in gangs)


def near_pods(moment: Snapshot, pod_set: PodSet, name: str, bound, gangs) -> bool:
    """Whether the affinity of a pod on a node holds in this form."""
    terms = [term for term in pod_set.shape.terms if term.attracts]

    def all_mean(space: str, app: str) -> bool:
        return all(means(term, "default", space, app) for term in terms)

    others = [other for space, app, other in bound if all_mean(space, app)]
    if any(where(moment, other, term.key) for other in others for term in terms):
        return all(
            where(moment, name, term.key) in {where(moment, other, term.key) for other in others} - {""}
            for term in terms
        )
    mates = [node_name for mate, node_name in gangs if all_mean("default", mate.shape.labels["app"])]
    return not terms or (
        bool(mates)
        and all(
            {where(moment, mate, term.key) for mate in (*mates, name)}
            == {where(moment, name, term.key)}
            != {""}
            for term in terms
        )
    )


def fewest_domains(
    instance: Instance, *, empty: bool = False, strict: bool = False
) -> tuple[int, ...] | None:
    """The least (blocks, racks, hosts) of any placement that keeps every rule; `strict`: in one domain."""
    moment = Snapshot(instance.snapshot.base) if empty else instance.snapshot
    best: tuple[int, ...] | None = None
    for assigned in every_placement(moment, instance.group):
        fine = valid(moment, instance.group, assigned) and neighbourly(moment, instance.group, assigned)
        if fine and (not strict or in_one_domain(moment, instance.group, assigned)):
            count = domains(moment, {name for _, name in assigned})
            best = count if best is None or count < best else best
    return best


def checked(instance: Instance, number: int) -> tuple[str, bool]:
    """What the plan decides, and whether the pods have a place, but none in one domain.

    Whether there is a place, and on how few domains, agrees with trying every placement; none is refused for
    ever that has one on the empty cluster. Where the pods have no place in one domain, the plan may not find
    theirs, but never denies it.
    """
    answer = plan(instance.snapshot, instance.group)
    ended = any("SearchBudgetExhausted" in message for message in (answer.reason, *answer.warnings))
    fewest, anywhere = fewest_domains(instance, strict=True), fewest_domains(instance)
    assert not ended or fewest is None, (number, answer)
    if anywhere is None:
        assert answer.decision != "admitted", (number, answer)
        assert answer.decision == "queued" or fewest_domains(instance, empty=True) is None, (number, answer)
        return answer.decision, False
    if answer.decision != "admitted":
        assert fewest is None, (number, fewest, answer)
        assert ended, (number, answer)
        return answer.decision, True
    assigned = {(a.pod_set, a.node): a.count for a in answer.assignments}
    assert valid(instance.snapshot, instance.group, assigned), number
    assert neighbourly(instance.snapshot, instance.group, assigned), (number, answer)
    if fewest is not None:
        count = domains(instance.snapshot, {name for _, name in assigned})
        assert count == fewest, (number, fewest, answer)
    return answer.decision, fewest is None


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_pods_are_kept_apart_and_together_exactly(chunk):
    """Up to two PodSets with any terms."""
    seen = Counter(
        checked(random_instance(Random(number)), number)[0] for number in range(chunk, INSTANCES, CHUNKS)
    )
    assert seen["admitted"], "the sample has gangs that fit"
    assert seen["queued"], "the sample has gangs that wait"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_pods_beside_others_that_are_in_several_domains_have_a_place(chunk):
    """One PodSet has affinity to another, which needs more than a domain in many instances."""
    scattered = Counter()
    for number in range(chunk, INSTANCES, CHUNKS):
        decision, without_one_domain = checked(of_followers(Random(number)), number)
        scattered[decision] += without_one_domain
    assert scattered["admitted"] > 10, scattered
    assert scattered["admitted"] > 5 * scattered["queued"], scattered
    assert not scattered["rejected"]


def of_followers(random: Random) -> Instance:
    """The instance in which one PodSet has affinity to the pods of another, without terms, and to bound pods
    with its label."""
    instance = random_instance(random)
    key, count = random.choice(KEYS), random.randint(2, 3)
    term = PodTerm(key, (Requirement("app", "In", ("a",)),), (), random.random() < 0.2, attracts=True)
    workers = replace(shape(gpu=random.choice((1, 2)), cpu=1), labels={"app": "a"})
    beside = replace(
        shape(gpu=random.choice((0, 1)), cpu=1), labels={"app": random.choice("ab")}, terms=(term,)
    )
    sets = PodSet("s0", count, workers), PodSet("s1", random.randint(1, 2), beside)
    return replace(instance, group=gang(*sets, reserve="nodes"))
