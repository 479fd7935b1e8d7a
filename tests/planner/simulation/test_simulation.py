"""Tests the simulation: its jobs, its cluster, the placement strategies, and its counts."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.simulation.figures import figures
from planner.simulation.hall import Hall
from planner.simulation.jobs import DAY, Job, jobs, quantile
from planner.simulation.planned import PlannedStrategy
from planner.simulation.simulate import GIVE_UP, simulate
from planner.simulation.strategies import BestFit, FirstFit, PodByPod

WAYS = {
    "first fit": lambda floor: FirstFit(),
    "best fit": lambda floor: BestFit(),
    "pod by pod": lambda floor: PodByPod(),
    "nodes": lambda floor: PlannedStrategy(floor, "nodes", 8),
    "domains": lambda floor: PlannedStrategy(floor, "domain", 8),
}
EVERY_WAY = pytest.mark.parametrize("way", WAYS)


def small() -> Hall:
    """Four racks of four nodes with four GPUs each."""
    return Hall(4, 4, 4)


def job(number: int, pods: int, gpus: int = 4, arrival: float = 0.0, length: float = DAY) -> Job:
    return Job(number, pods, gpus, arrival, length)


def filled(*taken: tuple[int, int]) -> Hall:
    """The small cluster with these GPUs in use."""
    floor = small()
    floor.take(list(taken))
    return floor


def test_jobs_follow_the_published_shares_and_lengths():
    """Of 1-GPU jobs there are nine in ten, of 64 GPUs and more three in a hundred; Philly's quantiles."""
    drawn = jobs(Random(1), gpus=2304, per_node=4, days=30, load=0.8)
    sizes = Counter(job.total for job in drawn)
    lengths = [job.length for job in drawn]
    assert sizes[1] / len(drawn) == pytest.approx(0.932 * 0.97, abs=0.02)
    assert sum(n for size, n in sizes.items() if size >= 64) / len(drawn) == pytest.approx(0.03, abs=0.006)
    assert quantile(lengths, 0.5) == pytest.approx(1144, rel=0.05)
    assert quantile(lengths, 0.9) == pytest.approx(11266, rel=0.1)


def test_jobs_ask_for_the_load_that_was_wanted():
    """Their GPU time is the load's share of what the cluster gives, and a last job more at most."""
    drawn = jobs(Random(3), gpus=576, per_node=4, days=30, load=0.8)
    wanted = 0.8 * 576 * 30 * DAY
    asked = sum(job.total * job.length for job in drawn)
    assert wanted <= asked < wanted + 288 * 604_800
    assert max(job.total for job in drawn) <= 288


@given(st.lists(st.tuples(st.integers(0, 15), st.integers(-4, 4)), max_size=40))
@settings(max_examples=60)
def test_the_floors_sums_are_those_of_its_nodes(changes):
    """Whatever is taken and given back, in any order."""
    floor = small()
    for node, gpus in changes:
        if 0 <= floor.free[node] - gpus <= 4:
            (floor.take if gpus > 0 else floor.give)([(node, abs(gpus))])
    assert floor.busy == sum(4 - free for free in floor.free)
    assert floor.partly == sum(0 < free < 4 for free in floor.free)
    racks = [[floor.free[node] for node in floor.nodes(rack)] for rack in range(4)]
    assert floor.whole == [sum(free == 4 for free in rack) for rack in racks]
    assert floor.pristine == sum(sum(rack) == 16 for rack in racks)


def test_the_floor_refuses_what_cannot_be():
    """Neither more GPUs taken than there are, nor given back than were taken."""
    with pytest.raises(ValueError, match="has 4 free GPUs"):
        small().take([(0, 5)])
    with pytest.raises(ValueError, match="never had"):
        small().give([(0, 1)])


def test_first_fit_opens_what_comes_first_and_best_fit_what_is_tightest():
    """Rack 1 has one node left; a single node goes there only by best fit."""
    floor = filled((4, 4), (5, 4), (6, 4))
    assert FirstFit().place(job(0, 1, 4), floor) == [(0, 4)]
    assert BestFit().place(job(0, 1, 4), floor) == [(7, 4)]


def test_best_fit_takes_the_roomiest_first_and_the_tightest_last():
    """Kueue's rule: 6 pods over racks with 4, 4, 3 and 2 nodes free are 4 and 2."""
    floor = filled((8, 1), (12, 1), (13, 1))
    assert [node for node, _ in BestFit().place(job(0, 6), floor)] == [0, 1, 2, 3, 14, 15]


def test_pod_by_pod_holds_a_part_until_it_gives_up():
    """Three of four nodes of the chosen rack have room: the gang holds them an hour, and runs nothing."""
    floor = filled(*((rack * 4, 1) for rack in range(4)))
    run = simulate([job(0, 4)], floor, PodByPod(), days=0.5)
    assert [wait.never for wait in run.waits] == [True]
    others = 4 / 64
    assert run.mean.held == pytest.approx(others + 12 / 64 * 0.5, abs=0.01)
    assert GIVE_UP == 3600


def test_a_held_domain_is_nobody_elses_and_counts_as_held():
    """Two gangs of three nodes: each holds a rack of four, of which one node idles."""
    way = PlannedStrategy(small(), "domain", 8)
    run = simulate([job(0, 3), job(1, 3)], small(), way, days=0.5)
    assert run.mean.held == pytest.approx(2 * 4 / 64)
    assert run.mean.running == pytest.approx(2 * 12 / 64)


def test_bayplan_leaves_racks_pristine_where_an_opened_one_serves():
    """A one-GPU job joins the node that is partly used, not the first free one."""
    floor = small()
    way = PlannedStrategy(floor, "nodes", 8)
    first = way.place(job(0, 1, 1), floor)
    floor.take(first)
    assert way.place(job(1, 1, 1), floor) == first


@EVERY_WAY
def test_a_gang_that_fits_a_rack_is_in_one(way):
    """Whatever the way, as the request demands it."""
    floor = small()
    for number in range(4):
        taken = WAYS[way](floor).place(job(number, 3), floor)
        assert len({floor.rack(node) for node, _ in taken}) == 1


@EVERY_WAY
def test_the_same_jobs_give_the_same_days(way):
    """Two runs agree in every number."""
    drawn = jobs(Random(5), gpus=64, per_node=4, days=2, load=0.7)
    first, other = (figures([simulate(drawn, small(), WAYS[way](small()), days=2)]) for _ in range(2))
    assert first == other


@EVERY_WAY
def test_every_job_is_counted_once_and_shares_are_shares(way):
    """Each has a wait, none below zero; nothing exceeds the whole floor."""
    drawn = jobs(Random(7), gpus=64, per_node=4, days=2, load=0.9)
    seen = []
    run = simulate(drawn, small(), WAYS[way](small()), 2, seen.append)
    assert [wait.gpus for wait in run.waits] == [job.total for job in drawn]
    assert min(wait.seconds for wait in run.waits) >= 0
    assert all(0 <= s.running + s.held <= 1.000001 and 0 <= s.pristine <= 1 for s in run.samples)
    assert min(run.slowdown, default=1.0) >= 0.999
    assert seen == sorted(seen)


def test_an_old_gang_is_not_overtaken_for_ever():
    """After its patience nothing of several nodes starts before it, though it would fit."""
    running = [job(n, 1, 4, 0.0, (n + 1) * DAY / 8) for n in range(16)]
    old = job(16, 15, 4, 1.0)
    younger = [job(17 + n, 2, 4, 2.0 + n * 3600, 3 * 3600.0) for n in range(60)]
    run = simulate([*running, old, *younger], small(), FirstFit(), days=4)
    assert not run.waits[16].never


def test_a_gang_of_whole_racks_could_start_while_so_many_are_pristine():
    """A gang in one of four racks for half the time: one and two racks are always there, four for half."""
    run = simulate([job(0, 2, length=DAY / 2)], small(), FirstFit(), days=1)
    assert run.mean.startable == pytest.approx((1.0, 1.0, 0.5))


def test_the_outcome_of_several_seeds_is_their_mean():
    """Shares are averaged; waits of all gangs count alike."""
    idle = simulate([], small(), FirstFit(), days=1)
    full = simulate([job(n, 4) for n in range(5)], small(), FirstFit(), days=1)
    outcome = figures([idle, full])
    assert outcome.running == pytest.approx(0.5)
    assert outcome.by_seed == pytest.approx((0.0, 1.0))
    assert (outcome.waits[1].gangs, outcome.waits[1].never) == (5, 1)
