"""Tests properties of every plan, for random clusters and gangs."""

from dataclasses import replace
from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.model.labels import Requirement, Term
from planner.model.podgroup import PodGroup, PodSet
from planner.model.topology import HOSTNAME
from planner.planning.node_affinity import requirements
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.exact.solver import Instance, path, random_instance
from tests.exact.test_exact import within_capacity


def drawn(seed: int, leave: bool) -> Instance:
    """An instance. With `leave`, the gang has reserve mode `auto`."""
    instance = random_instance(Random(seed), max_pods=6)
    return (
        replace(instance, group=replace(instance.group, reserve="auto", reserve_is_default=True))
        if leave
        else instance
    )


INSTANCES = st.builds(drawn, st.integers(0, 10**9), st.booleans())


def shuffled(moment: Snapshot, random: Random) -> Snapshot:
    """The same cluster read in another order."""
    nodes, pods = list(moment.nodes.values()), list(moment.pods)
    random.shuffle(nodes)
    random.shuffle(pods)
    return snapshot(nodes, moment.topologies, pods, moment.reservations)


def pinned(group: PodGroup, terms: dict[str, tuple[Term, ...]]) -> PodGroup:
    """The gang with the node affinity that the mutating webhook would write."""
    sets = tuple(
        PodSet(p.name, p.count, replace(p.shape, affinity=terms[p.name]), p.constraint)
        for p in group.pod_sets
    )
    return replace(group, pod_sets=sets)


@settings(max_examples=200)
@given(INSTANCES)
def test_no_node_is_ever_given_more_than_it_has(instance: Instance):
    """Used, reserved and planned stay within allocatable, for every resource."""
    answer = plan(instance.snapshot, instance.group)
    assert within_capacity(instance, {(a.pod_set, a.node): a.count for a in answer.assignments})


@settings(max_examples=200)
@given(INSTANCES)
def test_a_gang_is_placed_wholly_or_not_at_all(instance: Instance):
    """An admitted gang has every pod; any other has none, and reserves nothing."""
    answer = plan(instance.snapshot, instance.group)
    placed = sum(a.count for a in answer.assignments)
    assert placed == (instance.group.size if answer.decision == "admitted" else 0)
    assert answer.decision == "admitted" or not answer.reserves


@settings(max_examples=200)
@given(INSTANCES)
def test_a_required_level_is_never_split(instance: Instance):
    """All pods of a gang with a required level share one domain of it."""
    answer = plan(instance.snapshot, instance.group)
    depth = {"": 0, "block": 1, "rack": 2, "host": 3}[instance.group.constraint.required]
    within = {path(instance.snapshot, a.node)[:depth] for a in answer.assignments}
    assert len(within) <= 1
    assert all(domain[-1] for domain in within if domain)


@settings(max_examples=200)
@given(INSTANCES, st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(instance: Instance, random: Random):
    """The same cluster read in another order gives the same answer."""
    assert plan(shuffled(instance.snapshot, random), instance.group) == plan(
        instance.snapshot, instance.group
    )


@settings(max_examples=200)
@given(INSTANCES)
def test_a_plan_made_again_is_the_same_plan(instance: Instance):
    """With its reservation in the book, the same gang gets the same place, marked as replayed."""
    answer = plan(instance.snapshot, instance.group)
    reservation = reservation_for(instance.snapshot, instance.group, answer)
    if reservation is None:
        return
    again = plan(instance.snapshot.with_reservation(reservation), instance.group)
    assert again.replayed
    assert again.assignments == answer.assignments
    assert (again.domain, again.reserves, again.level) == (answer.domain, answer.reserves, answer.level)


@settings(max_examples=500)
@given(INSTANCES)
@example(random_instance(Random(595), max_pods=6))  # two PodSets alike, over two racks
def test_planning_under_the_affinity_that_the_plan_wrote_gives_the_same_plan(instance: Instance):
    """A second pass without the ledger, on the mutated pods, chooses the same nodes."""
    answer = plan(instance.snapshot, instance.group)
    if answer.decision != "admitted":
        return
    terms = dict(requirements(instance.snapshot, instance.group, answer))
    again = plan(instance.snapshot, pinned(instance.group, terms))
    assert again.assignments == answer.assignments


@settings(max_examples=500)
@given(INSTANCES, st.randoms(use_true_random=False))
@example(random_instance(Random(1736009), max_pods=6), Random(198))  # without the third host of a rack
def test_what_was_not_chosen_does_not_matter(instance: Instance, random: Random):
    """Nodes that the placement does not use may be closed to the pods and the choice stays."""
    answer = plan(instance.snapshot, instance.group)
    if answer.decision != "admitted":
        return
    used = {a.node for a in answer.assignments}
    open_ = [n for n in instance.snapshot.nodes if n in used or random.random() < 0.5]
    term = (Requirement(HOSTNAME, "In", tuple(open_)),)
    again = plan(
        instance.snapshot, pinned(instance.group, {p.name: (term,) for p in instance.group.pod_sets})
    )
    assert again.assignments == answer.assignments


@settings(max_examples=100)
@given(INSTANCES, st.integers(1, 4))
def test_gangs_planned_one_after_the_other_never_share_what_is_held(instance: Instance, gangs: int):
    """Each sees the former ones' reservations: no domain has two holders, no node gives twice."""
    moment = instance.snapshot
    for number in range(gangs):
        group = replace(instance.group, name=f"default/Job/g{number}", reserve="domain")
        reservation = reservation_for(moment, group, plan(moment, group))
        if reservation is not None:
            others = frozenset().union(*(r.touched for r in moment.reservations))
            assert not reservation.touched & others
            moment = moment.with_reservation(reservation)
    for name, node in moment.nodes.items():
        held = moment.taken.get(name, {})
        used = moment.used.get(name, {})
        for resource, amount in held.items():
            assert amount <= max(node.allocatable.get(resource, 0), used.get(resource, 0))
