"""What is true of every plan, whatever the cluster and the gang."""

from dataclasses import replace
from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from planner.cluster.snapshot import Snapshot, snapshot
from planner.model.labels import Requirement, Term
from planner.model.podgroup import PodGroup, PodSet
from planner.model.topology import HOSTNAME
from planner.planning.node_affinity import requirements
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.exact.solver import Instance, instance, path
from tests.exact.test_exact import within_capacity


def drawn(seed: int, leave: bool) -> Instance:
    """An instance; `leave`: the gang leaves to the planner what it holds."""
    one = instance(Random(seed), most=6)
    return replace(one, group=replace(one.group, reserve="auto", presumed=True)) if leave else one


INSTANCES = st.builds(drawn, st.integers(0, 10**9), st.booleans())


def shuffled(moment: Snapshot, random: Random) -> Snapshot:
    """The same cluster read in another order."""
    nodes, pods = list(moment.nodes.values()), list(moment.pods)
    random.shuffle(nodes)
    random.shuffle(pods)
    return snapshot(nodes, moment.topologies, pods, moment.reservations)


def pinned(group: PodGroup, terms: dict[str, tuple[Term, ...]]) -> PodGroup:
    """The gang with node affinity as the mutating pass would write it."""
    sets = tuple(
        PodSet(p.name, p.count, replace(p.shape, affinity=terms[p.name]), p.constraint)
        for p in group.pod_sets
    )
    return replace(group, pod_sets=sets)


@settings(max_examples=200)
@given(INSTANCES)
def test_no_node_is_ever_given_more_than_it_has(one: Instance):
    """Used, reserved and planned stay within allocatable, for every resource."""
    answer = plan(one.snapshot, one.group)
    assert within_capacity(one, {(a.pod_set, a.node): a.count for a in answer.assignments})


@settings(max_examples=200)
@given(INSTANCES)
def test_a_gang_is_placed_wholly_or_not_at_all(one: Instance):
    """An admitted gang has every pod; any other has none, and reserves nothing."""
    answer = plan(one.snapshot, one.group)
    placed = sum(a.count for a in answer.assignments)
    assert placed == (one.group.size if answer.decision == "admitted" else 0)
    assert answer.decision == "admitted" or not answer.reserves


@settings(max_examples=200)
@given(INSTANCES)
def test_a_required_level_is_never_split(one: Instance):
    """All pods of a gang with a required level share one domain of it."""
    answer = plan(one.snapshot, one.group)
    depth = {"": 0, "block": 1, "rack": 2, "host": 3}[one.group.constraint.required]
    within = {path(one.snapshot, a.node)[:depth] for a in answer.assignments}
    assert len(within) <= 1
    assert all(domain[-1] for domain in within if domain)


@settings(max_examples=200)
@given(INSTANCES, st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(one: Instance, random: Random):
    """The same cluster read in another order gives the same answer."""
    assert plan(shuffled(one.snapshot, random), one.group) == plan(one.snapshot, one.group)


@settings(max_examples=200)
@given(INSTANCES)
def test_a_plan_made_again_is_the_same_plan(one: Instance):
    """With its reservation in the book, the same gang gets the same place, marked as replayed."""
    answer = plan(one.snapshot, one.group)
    reservation = reservation_for(one.snapshot, one.group, answer)
    if reservation is None:
        return
    again = plan(one.snapshot.with_reservation(reservation), one.group)
    assert again.replayed
    assert again.assignments == answer.assignments
    assert (again.domain, again.reserves, again.level) == (answer.domain, answer.reserves, answer.level)


@settings(max_examples=500)
@given(INSTANCES)
@example(instance(Random(595), most=6))  # two PodSets alike, over two racks
def test_planning_under_the_affinity_that_the_plan_wrote_gives_the_same_plan(one: Instance):
    """A second pass without the ledger, on the mutated pods, chooses the same nodes."""
    answer = plan(one.snapshot, one.group)
    if answer.decision != "admitted":
        return
    terms = {p.name: requirements(one.snapshot, one.group, answer, p.name) for p in one.group.pod_sets}
    again = plan(one.snapshot, pinned(one.group, terms))
    assert again.assignments == answer.assignments


@settings(max_examples=500)
@given(INSTANCES, st.randoms(use_true_random=False))
@example(instance(Random(1736009), most=6), Random(198))  # without the third host of a rack
def test_what_was_not_chosen_does_not_matter(one: Instance, random: Random):
    """Nodes that the placement does not use may be closed to the pods and the choice stays."""
    answer = plan(one.snapshot, one.group)
    if answer.decision != "admitted":
        return
    used = {a.node for a in answer.assignments}
    open_ = [n for n in one.snapshot.nodes if n in used or random.random() < 0.5]
    term = (Requirement(HOSTNAME, "In", tuple(open_)),)
    again = plan(one.snapshot, pinned(one.group, {p.name: (term,) for p in one.group.pod_sets}))
    assert again.assignments == answer.assignments


@settings(max_examples=100)
@given(INSTANCES, st.integers(1, 4))
def test_gangs_planned_one_after_the_other_never_share_what_is_held(one: Instance, gangs: int):
    """Each sees the former ones' reservations: no domain has two holders, no node gives twice."""
    moment = one.snapshot
    for number in range(gangs):
        group = replace(one.group, name=f"default/Job/g{number}", reserve="domain")
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
