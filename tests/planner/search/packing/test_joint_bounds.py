"""Racks and blocks searched together: large gangs of whole nodes without a level have proven optimal
places.
"""

from dataclasses import replace
from itertools import product
from random import Random

import pytest

from planner.model.pod import BoundPod
from planner.model.topology import HOSTNAME
from planner.planning.plan import plan
from planner.search.packing.joint_bounds import LevelPairBound, fewest_by_level
from tests.builders import GPU, cluster, gang
from tests.effort import calls

RACKS, HOSTS = 512, 18


def hall(used_racks=frozenset(), random=None):
    """512 racks of 18 nodes, eight racks per block; every node of these racks is used, or about half of the
    nodes with `random`.
    """
    pods = [
        BoundPod(f"x/on-r{rack}-n{host}", f"r{rack}-n{host}", {GPU: 8, "pods": 1})
        for rack in sorted(used_racks)
        for host in range(HOSTS)
        if random is None or random.random() < 0.5
    ]
    lines = (
        f"b{rack // 8}/r{rack}: " + " ".join(f"r{rack}-n{host}" for host in range(HOSTS))
        for rack in range(RACKS)
    )
    return cluster("\n".join(lines), ("block", "rack"), pods=pods)


def used_as(used, seed):
    """The hall without pods, with half of the racks fully used, or with half of the nodes of every other rack
    used.
    """
    random = Random(seed)
    if used == "none":
        return hall()
    if used == "whole racks":
        return hall(frozenset(random.sample(range(RACKS), RACKS // 2)))
    return hall(frozenset(range(1, RACKS, 2)), random)


def whole_nodes(pods):
    """This many pods of one node each, without a constraint."""
    return gang(pods, gpu=8, cpu=1)


def domains(answer):
    """The number of blocks and racks that an answer uses."""
    racks = {pod.node.partition("-")[0] for pod in answer.assignments}
    return len({int(rack[1:]) // 8 for rack in racks}), len(racks)


@pytest.mark.parametrize(
    ("used", "seed", "fewest"),
    [
        pytest.param("none", 0, (8, 57), id="empty"),
        pytest.param("whole racks", 3, (10, 57), id="half of the racks used"),
        pytest.param("in racks", 1, (9, 70), id="half of the nodes used in every other rack"),
    ],
)
def test_a_thousand_whole_nodes_are_in_the_fewest_racks_and_proved_to_be(used, seed, fewest):
    """Nobody asks for a level, so many blocks and racks come into question; nothing is given up."""
    moment = used_as(used, seed)
    answer = plan(moment, whole_nodes(1024))
    assert (answer.decision, answer.warnings) == ("admitted", ())
    assert domains(answer) == fewest


def test_one_rack_with_a_node_more_leaves_the_place_of_a_thousand_nodes_proved():
    """Many sums are as good as others; so of racks and blocks without a pod all but one are full or empty."""
    moment = hall()
    labels = moment.nodes["r60-n3"].labels
    extra = replace(moment.nodes["r60-n3"], name="extra", labels={**labels, HOSTNAME: "extra"})
    answer = plan(moment.with_node(extra), whole_nodes(1030))
    assert (answer.decision, answer.warnings) == ("admitted", ())
    assert domains(answer) == (8, 58)


@pytest.mark.parametrize("used", ["none", "whole racks", "in racks"])
def test_a_thousand_whole_nodes_are_planned_in_a_bounded_number_of_steps(used):
    """A gang of another number of pods each time, so that nothing is remembered from the time before. Without
    the bounds of two levels together the search runs into its budget: millions of calls. `make bench` has the
    times.
    """
    moment = used_as(used, 3)
    plan(moment, whole_nodes(1))
    for pods in range(1024, 1028):
        assert calls(lambda pods=pods: plan(moment, whole_nodes(pods))) < 100_000


def test_two_levels_together_say_more_than_each_by_itself():
    """One block of racks with 12, 12, 12 nodes, ten of racks with 18, 4, 4: the module's worked example."""
    blocks = [(3 * (12 - 4), *[18 - 4] * 10)]
    sums = tuple(sum(blocks[0][:count]) for count in range(12))
    tops = (((36, 62, 88),), ((18, 36, 54, 72, 90),))
    alone = fewest_by_level(60, tops, (LevelPairBound(()),))
    together = fewest_by_level(60, tops, (LevelPairBound(((4, sums),)),))
    assert (alone, together) == ([2, 4], [2, 6])


def test_the_best_toll_for_a_number_of_pods_is_the_best_of_all():
    """Some tolls and what domains hold above them: for each number the bound is that of one of them."""
    for seed in range(200):
        random = Random(seed)
        surplus = tuple(
            (toll, (0, *sorted(random.choices(range(80), k=4))))
            for toll in random.sample(range(1, 30), random.randrange(8))
        )
        bound = LevelPairBound(surplus)
        for domains, pods in product(range(6), range(0, 200, 7)):
            by_toll = [-((held[min(domains, 4)] - pods) // toll) for toll, held in surplus]
            assert max(0, bound.fewest_finer(domains, pods)) == max([0, *by_toll]), (surplus, domains, pods)
