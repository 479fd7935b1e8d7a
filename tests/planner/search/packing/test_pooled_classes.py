"""Gangs with several pod classes and more mixtures than can be tried one by one: the classes are pooled."""

from collections import defaultdict
from collections.abc import Callable
from itertools import combinations
from random import Random

import pytest

from planner.model.effort.work_budget import BudgetEnded, WorkBudget
from planner.model.podgroup import Constraint
from planner.model.resolved import resolved_group
from planner.planning.plan import plan
from planner.request.topology_request import topology_request
from planner.search.mixtures.remaining_costs import AllowedCosts, MixtureWeights
from planner.search.mixtures.several_classes import SeveralClassesPacking
from planner.search.packing.bounds import fewest
from planner.search.packing.domain_packing import DomainPacking
from planner.search.packing.pooled_classes import NestedCounts, weight
from planner.search.packing.work_pieces import WorkPieces
from planner.search.pod_counts import MultiClassCounts
from planner.search.space import search_space
from tests.builders import cluster, gang, pod_set, shape

TRAY = "gpu=4 cpu=144"
ANY_COST = defaultdict[int, int](lambda: 99)


def hall(blocks: int, racks: int, hosts: int, used: Callable[[], int] = lambda: 0):
    """This many blocks of racks of nodes with four GPUs each, some of them in use."""
    rows = [
        f"b{b}/r{b}-{r}: n{b}-{r}-{h} {TRAY} used={used()}"
        for b in range(blocks)
        for r in range(racks)
        for h in range(hosts)
    ]
    return cluster("\n".join(rows), ("block", "rack"))


def half_used(seed: int) -> Callable[[], int]:
    """Half of the nodes have one to four GPUs in use."""
    random = Random(seed)
    return lambda: random.choice((0, 0, 0, 0, 1, 2, 3, 4))


def searches(moment, group):
    """A search of every mixture with enough time, and one that may try no mixture; and their request."""
    view = search_space(moment, moment.base.trees["topo"], occupied=True)
    kinds = topology_request(resolved_group(group), view.tree.topology).pod_classes
    weights, match = view.weights(kinds), view.match(kinds)
    every = DomainPacking(kinds, "shared", weights, WorkBudget(10**9))
    return (
        every,
        SeveralClassesPacking(kinds, "shared", weights, WorkBudget(0), WorkBudget()),
        view.capacity,
        match,
    )


def test_two_sizes_of_pods_over_an_empty_block_are_searched_to_their_end():
    """128 pods of two GPUs and 64 of four fill 128 of 144 nodes, in more mixtures than can be tried."""
    sets = [pod_set(128, shape(gpu=2), name="prefill"), pod_set(64, shape(gpu=4), name="decode")]
    answer = plan(hall(1, 8, 18), gang(*sets, required="block"))
    assert (answer.decision, answer.warnings) == ("admitted", ())
    assert len({assignment.node for assignment in answer.assignments}) == 128


def test_a_launcher_beside_slices_of_many_whole_nodes_is_searched_to_its_end():
    """One pod of one GPU, and 256 whole nodes by fours within racks: the launcher has a host of its own."""
    kept = Constraint(slice_level="rack", slice_size=4)
    sets = [pod_set(1, shape(gpu=1), name="launcher"), pod_set(256, shape(gpu=4), constraint=kept)]
    answer = plan(hall(6, 8, 18, half_used(3)), gang(*sets, reserve="nodes"))
    assert (answer.decision, answer.warnings) == ("admitted", ())
    assert len({assignment.node for assignment in answer.assignments}) == 257


def test_five_unlike_pod_sets_are_searched_to_their_end():
    """On half-used nodes, with a preferred rack that none can be."""
    shapes = [(51, 0, 4), (51, 1, 6), (51, 1, 12), (51, 0, 8), (12, 4, 32)]
    sets = [
        pod_set(count, shape(gpu=gpu, cpu=cores), name=f"s{n}")
        for n, (count, gpu, cores) in enumerate(shapes)
    ]
    answer = plan(hall(2, 8, 18, half_used(5)), gang(*sets, reserve="nodes", preferred="rack"))
    assert (answer.decision, answer.warnings) == ("admitted", ())


@pytest.mark.parametrize("seed", range(12))
def test_pooled_the_least_cost_is_the_same(seed):
    """Whether two or three kinds of pods, required or not: what trying every mixture finds."""
    random = Random(seed)
    sizes = random.sample((0, 1, 2, 4), random.choice((2, 3)))
    sets = [pod_set(random.randint(3, 9), shape(gpu=gpu, cpu=9), name=f"g{gpu}") for gpu in sizes]
    every, pooled, content, match = searches(hall(2, 3, 4, half_used(seed)), gang(*sets))
    assert pooled.cost(content, match) == every.cost(content, match)


@pytest.mark.parametrize("seed", range(12))
def test_mixtures_that_pools_call_too_dear_are_in_no_placement(seed):
    """What is placed once a pool has told the cost is what every mixture gives, ties included."""
    random = Random(seed)
    sizes = random.sample((0, 1, 2, 4), random.choice((2, 3)))
    sets = [pod_set(random.randint(3, 9), shape(gpu=gpu, cpu=9), name=f"g{gpu}") for gpu in sizes]
    every, pooled, content, match = searches(hall(2, 3, 4, half_used(seed)), gang(*sets))
    assert every.cost(content, match) is not None
    assert pooled.place(content, match) == every.place(content, match)


def test_a_mixture_may_cost_what_the_pool_of_the_rest_leaves():
    """The example of `remaining_costs`: 24 GPUs at 206, of which the racks to come hold 12, 16 or 24."""
    counts = MultiClassCounts((6, 12))
    weights = MixtureWeights((4, 1), counts)
    allowed = AllowedCosts(weights, {12: 103, 16: 104, 24: 205}, 24, 206)
    mixtures = [(3, 0), (2, 4), (1, 4), (2, 2), (0, 0)]
    assert [allowed[counts.pack(mixture)] for mixture in mixtures] == [103, 103, 102, 102, 1]
    assert AllowedCosts(weights, {8: 101}, 24, 206)[counts.pack((3, 3))] < 0


def test_the_next_block_does_not_try_the_mixtures_that_were_too_many(monkeypatch):
    """Trials cost time in each of 64 blocks: once one did not suffice, pools come first."""
    tried = []
    trial = WorkPieces.trial
    monkeypatch.setattr(WorkPieces, "trial", lambda self, work: tried.append(work) or trial(self, work))
    monkeypatch.setattr("planner.search.mixtures.several_classes._FIRST", 20)
    sets = [pod_set(4, shape(gpu=4), name="prefill"), pod_set(8, shape(gpu=1, cpu=9), name="decode")]
    answer = plan(hall(3, 3, 4, half_used(2)), gang(*sets, required="block"))
    assert (answer.decision, tried) == ("admitted", [20])


@pytest.mark.parametrize("seed", range(28, 36))
def test_pooled_sets_that_are_each_in_one_rack_have_the_same_place(seed, monkeypatch):
    """What one rack leaves of the goal for another may be GPUs of pods that are none of its own."""
    kept = Constraint(required="rack")
    large = pod_set(4, shape(gpu=4, cpu=64), name="large", constraint=kept)
    small = pod_set(4, shape(gpu=2, cpu=48), name="small", constraint=kept)
    wanted = gang(large, small, reserve="nodes")
    every = plan(hall(2, 3, 4, half_used(seed)), wanted)
    monkeypatch.setattr("planner.search.mixtures.several_classes._FIRST", 0)
    assert plan(hall(2, 3, 4, half_used(seed)), wanted) == every


@pytest.mark.parametrize("seed", range(60))
def test_what_is_cut_off_sums_is_of_no_use(seed):
    """Two domains of four hosts, directions that hold one another: as few hosts as trying every choice."""
    random = Random(seed)
    along = random.sample([(0, 1, 0), (0, 1, 1), (1, 1, 1), (1, 2, 2), (1, 2, 1), (2, 2, 1), (0, 0, 1)], 4)
    packings = [[[random.randint(0, 2) for _ in range(3)] for _ in range(2)] for _ in range(8)]
    hosts = [[max(weight(direction, pods) for pods in host) for direction in along] for host in packings]
    wanted = [random.randint(2, 6) for _ in range(3)]
    needs = tuple(weight(direction, wanted) for direction in along)
    counts = NestedCounts(needs, along)
    sides = []
    for side in (hosts[:4], hosts[4:]):
        stage = {counts.zero: 0}
        for host in side:
            stage = counts.undominated(counts.sums(stage, [(counts.pack(host), 1)], counts.full, ANY_COST))
        sides.append(stage)
    sums = counts.sums(sides[0], sorted(sides[1].items()), counts.full, ANY_COST)
    chosen = (some for size in range(9) for some in combinations(hosts, size))
    enough = (len(s) for s in chosen if all(map(int.__ge__, map(sum, zip(*s, strict=True)), needs)) and s)
    assert sums.get(counts.full) == next(enough, None)


def test_a_cut_by_one_direction_leaves_what_another_says():
    """Four pods of one kind and ten of two others have enough together: neither is cut short."""
    along = [(0, 1, 1), (1, 2, 2), (1, 2, 1)]
    counts = NestedCounts(tuple(weight(direction, (1, 5, 5)) for direction in along), along)
    sides = [
        counts.sums(
            {counts.zero: 0},
            [(counts.pack([weight(direction, pods) for direction in along]), 1)],
            counts.full,
            ANY_COST,
        )
        for pods in ((4, 0, 0), (0, 2, 8))
    ]
    sums = counts.sums(sides[0], sorted(sides[1].items()), counts.full, ANY_COST)
    assert sums[counts.full] == 2


def test_pooled_no_place_is_none():
    """Eight hosts of four GPUs hold eight pods of three and nothing of ten, though 32 GPUs are there."""
    sets = [pod_set(8, shape(gpu=3), name="three"), pod_set(2, shape(gpu=4), name="four")]
    every, pooled, content, match = searches(hall(1, 2, 4), gang(*sets))
    assert every.cost(content, match) is None
    assert pooled.cost(content, match) is None


def test_what_pools_do_not_decide_ends_the_budget():
    """Nothing is made up: without work allowed neither every mixture nor a pool is an answer."""
    sets = [pod_set(3, shape(gpu=1), name="one"), pod_set(2, shape(gpu=4), name="four")]
    view = search_space(hall(1, 2, 4), hall(1, 2, 4).base.trees["topo"], occupied=True)
    kinds = topology_request(resolved_group(gang(*sets)), view.tree.topology).pod_classes
    none = SeveralClassesPacking(kinds, "shared", view.weights(kinds), WorkBudget(0), WorkBudget(0))
    with pytest.raises(BudgetEnded):
        none.cost(view.capacity, view.match(kinds))


def test_the_fewest_domains_are_told_by_the_fullest_ones_together():
    """Racks of 72, 30 and 24 free GPUs: 100 need two, 103 three; further racks hold 24 at the most."""
    tops = ((72, 102, 126),)
    assert [fewest((gpus,), tops) for gpus in (1, 72, 100, 103, 126, 127, 151)] == [1, 1, 2, 3, 3, 4, 5]
