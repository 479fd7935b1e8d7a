"""Tests what a gang holds with `auto` (whole domains, or what it uses) and the reason in its answer."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from planner.cluster.build import snapshot
from planner.model.podgroup import Constraint, FabricWish
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import cluster, gang, node, pod_set, racks, shape, topology
from tests.exact.solver import random_instance

ZONE = "topology.kubernetes.io/zone"


def auto(*pod_sets, name="default/Job/gang", **words):
    """A gang with reserve mode `auto`."""
    return replace(gang(*pod_sets, name=name, reserve="auto", **words), reserve_is_default=True)


def taken(moment, *groups):
    """The cluster with the reservations of these gangs, planned one after the other."""
    for group in groups:
        held = reservation_for(moment, group, plan(moment, group))
        assert held is not None
        moment = moment.with_reservation(held)
    return moment


def notebook(number, rack):
    """One pod of one GPU in a rack."""
    pod = shape(gpu=1, selector={"rack": rack})
    return auto(pod_set(1, pod), name=f"default/Notebook/{number}")


# -- the first list of the issue -----------------------------------------------------------------------------


def jobs():
    """60 jobs of one pod with 1 to 8 GPUs, as in one day of a team: most are small."""
    sizes = [1] * 49 + [2, 2, 3, 4, 4] + [8] * 6
    return [auto(1, gpu=gpu, name=f"default/Job/{number}") for number, gpu in enumerate(sizes)]


def test_of_60_jobs_54_run_on_64_gpus():
    """Each reserves what it uses; if each reserved a whole node, eight would run."""
    admitted = {}
    for mode in ("auto", "domain"):
        moment, admitted[mode] = racks(2, 4), 0
        for job in jobs():
            group = replace(job, reserve=mode)
            answer = plan(moment, group)
            if answer.decision == "admitted":
                admitted[mode] += 1
                moment = taken(moment, group)
    assert admitted == {"auto": 54, "domain": 8}


@pytest.mark.parametrize("required", ["", "rack"])
def test_a_notebook_in_each_rack_does_not_keep_two_whole_nodes_waiting(required):
    """Six of eight nodes are empty; the gang holds two of them, also where it requires a rack."""
    moment = taken(racks(2, 4), notebook(1, "r1"), notebook(2, "r2"))
    answer = plan(moment, auto(2, required=required))
    assert (answer.decision, answer.holds, answer.reserves) == ("admitted", "nodes", ())
    assert plan(moment, gang(2, required=required)).decision == "queued"


def test_three_nodes_hold_no_zone_where_the_racks_are_not_recognised():
    """The zone is the level next to the host then, and the whole cluster."""
    moment = cluster("z: a b c d", (ZONE,))
    assert plan(moment, auto(3)).reserves == ()
    assert plan(moment, gang(3)).reserves == (("z",),)
    assert plan(moment, auto(3, preferred=ZONE)).reserves == ()


# -- the domains that a placement touches --------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["domain", "auto"])
def test_each_domain_that_the_pods_touch_is_held_by_its_whole_path(mode):
    """Over random clusters, some of whose nodes have no rack: these are held by themselves."""
    held, bare = 0, 0
    for number in range(250):
        drawn = random_instance(Random(number))
        group = replace(drawn.group, reserve=mode)
        answer = plan(drawn.snapshot, group)
        if answer.holds != "domain":
            continue
        (topology,) = (t for t in drawn.snapshot.topologies if t.name == answer.topology)
        nodes = [drawn.snapshot.nodes[assignment.node] for assignment in answer.assignments]
        paths = [topology.path(node.name, node.labels) for node in nodes]
        assert all(sum(path[: len(domain)] == domain for domain in answer.reserves) == 1 for path in paths)
        assert all(any(path[: len(domain)] == domain for path in paths) for domain in answer.reserves)
        assert all(domain[-1] for domain in answer.reserves)
        held, bare = held + 1, bare + any("" in domain for domain in answer.reserves)
    assert held > 20
    assert bare or mode == "auto"


# -- whole domains -------------------------------------------------------------------------------------------


def test_several_pods_that_require_a_rack_hold_the_rack_that_they_are_in():
    """And nobody else comes in."""
    moment = racks(2, 4)
    answer = plan(moment, auto(1, 1, gpu=1, required="rack"))
    assert answer.reserves == (("r1", "r1-n1"),)
    answer = plan(moment, auto(2, required="rack"))
    assert answer.reserves == (("r1",),)
    assert answer.message.endswith("it holds the rack r1, because it requires one.")
    later = plan(taken(moment, auto(2, required="rack")), auto(3, name="default/Job/later"))
    assert later.domain == ("r2",)


@pytest.mark.parametrize(("nodes", "held"), [(1, False), (2, True), (3, True)])
def test_half_of_the_gpus_of_a_rack_hold_it_without_a_wish(nodes, held):
    """A quarter does not reserve the rack, half does."""
    answer = plan(racks(2, 4), auto(pod_set(2 * nodes, shape(gpu=4))))
    assert (answer.reserves == (("r1",),)) is (held and nodes > 1)
    if nodes == 3:
        assert answer.message.endswith("it holds the rack r1, because it takes 24 of 32 GPUs there.")


@pytest.mark.parametrize(("share", "held"), [(0.5, True), (0.51, False), (0.25, True)])
def test_the_share_is_a_parameter(share, held):
    """`reserve.whole-from`, the share from which on a domain is held whole."""
    answer = plan(racks(2, 4), replace(auto(2), whole_from=share))
    assert bool(answer.reserves) is held


def test_a_rack_without_others_is_taken_before_one_with_others():
    """A gang that requires a rack holds it whole where it can, though an opened rack has room too."""
    moment = taken(racks(2, 4), notebook(1, "r1"))
    assert plan(moment, auto(2)).domain == ("r1",)
    answer = plan(moment, auto(2, required="rack"))
    assert (answer.domain, answer.reserves) == (("r2",), (("r2",),))


def test_where_others_are_the_gang_holds_what_it_uses_and_says_who_is_there():
    """It does not wait for the end of a notebook."""
    moment = taken(racks(1, 4), notebook(1, "r1"))
    answer = plan(moment, auto(2, required="rack"))
    assert answer.message == (
        "2 pods on 2 nodes in rack r1; it holds what it uses: 16 GPUs of 2 nodes, "
        "for default/Notebook/1 is in the rack r1 too."
    )


def test_half_a_rack_is_not_held_where_others_are():
    """It fills half, but a notebook is there too."""
    moment = taken(racks(1, 4), notebook(1, "r1"))
    assert plan(moment, auto(3)).reserves == ()


def test_never_above_the_level_that_was_asked():
    """A rack is preferred, none has room: the block is reservable, and not held."""
    moment = cluster("b1/r1: a b\nb1/r2: c d\nb2/r3: e f", ("block", "rack"), reservable="block")
    answer = plan(moment, auto(3, preferred="rack"))
    assert answer.domain == ("b1",)
    assert answer.reserves == (("b1", "r1"), ("b1", "r2"))
    assert plan(moment, auto(3)).reserves == (("b1",),)


def test_never_above_the_reservable_level():
    """A block is required; each rack in it that the gang uses is held, not the block."""
    moment = racks(4, 2, block=2)
    assert plan(moment, auto(3, required="block")).reserves == (("b1", "r1"), ("b1", "r2"))


def test_a_rack_of_which_little_is_used_is_not_held_for_another_that_is_full():
    """Two racks, one full, one a quarter used: each would have to be half used."""
    assert plan(racks(2, 4), auto(5)).reserves == ()
    assert plan(racks(2, 4), auto(6)).reserves == (("r1",), ("r2",))


def test_a_pod_set_that_requires_a_rack_does_not_hold_that_of_a_launcher():
    """The launcher is in another rack and requires no level."""
    moment = cluster("r1: a b cpu=8\nr2: c d", ("rack",))
    pod = shape(gpu=8, cpu=8, selector={"rack": "r1"})
    workers = pod_set(2, pod, constraint=Constraint(required="rack"))
    launcher = pod_set(1, shape(cpu=4), name="launcher")
    assert plan(moment, auto(workers)).reserves == (("r1",),)
    answer = plan(moment, auto(workers, launcher))
    assert {a.node for a in answer.assignments} > {"a", "b"}
    assert answer.reserves == ()


# -- one pod, and what lies inside a node --------------------------------------------------------------------


@pytest.mark.parametrize(("gpus", "held"), [(1, False), (4, False), (7, False), (8, True)])
def test_one_pod_holds_its_node_only_where_it_takes_all_its_gpus(gpus, held):
    """Whatever level it requires: it has nobody to be near to."""
    for required in ("", "rack", "kubernetes.io/hostname"):
        answer = plan(racks(1, 4), auto(1, gpu=gpus, required=required))
        assert (answer.reserves == (("r1", "r1-n1"),)) is held
    if not held:
        used = f"{gpus} of 8 GPUs of node r1-n1"
        assert answer.message == f"1 pod on node r1/r1-n1; it holds what it uses: {used}."


def halves(*names):
    """Nodes of two NVLink domains of four GPUs each."""
    labels = {"rack": "r1", "gpu.topology/nvlink-domain-size": "4"}
    return snapshot([node(name, labels=labels) for name in names], [topology("rack")])


@pytest.mark.parametrize("group", [auto(1, gpu=4), auto(2, gpu=2), auto(4, gpu=1)])
@pytest.mark.parametrize("required", ["", "kubernetes.io/hostname", "gpu.topology/nvlink-domain"])
def test_two_halves_of_a_node_have_two_holders(group, required):
    """Each half is an NVLink domain."""
    group = replace(group, constraint=Constraint(required=required))
    moment = taken(halves("a"), group, replace(group, name="default/Job/second"))
    assert [held.mode for held in moment.reservations] == ["nodes", "nodes"]


def test_more_than_a_half_holds_the_node():
    """Six GPUs of eight span both NVLink domains; of one pod, they leave two free."""
    assert plan(halves("a"), auto(3, gpu=2)).reserves == (("r1", "a"),)
    assert plan(halves("a"), auto(1, gpu=6)).reserves == ()


def test_parts_of_gpus_hold_no_domain():
    """Two MIG slices that require a rack do not hold its eight GPUs."""
    moment = cluster("r1: a nvidia.com/mig-1g.10gb=7\nr2: b", ("rack",))
    slices = replace(shape(gpu=1), requests={"nvidia.com/mig-1g.10gb": 1, "pods": 1})
    answer = plan(moment, auto(pod_set(2, slices), required="rack"))
    assert (answer.decision, answer.reserves) == ("admitted", ())


def test_a_gang_that_is_distributed_holds_what_it_uses():
    """A pod on each leaf, and every leaf held, would be the whole fabric."""
    group = replace(auto(2, required="rack"), fabric=FabricWish(strategy="distributed", stated=True))
    assert plan(racks(1, 2), group).holds == "nodes"


# -- the same gang again -------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", [auto(2, required="rack"), auto(1, gpu=3), auto(3)])
def test_the_same_gang_gets_the_same_plan_again_also_where_the_default_has_changed(group):
    """What it holds is its reservation's; who said nothing, or auto, has not asked for anything else."""
    first = plan(racks(2, 4), group)
    moment = taken(racks(2, 4), group)
    for again in (
        group,
        replace(group, whole_from=1.0),
        replace(group, reserve="domain"),
        replace(group, reserve="nodes"),
        replace(group, reserve="auto", reserve_is_default=False),
    ):
        answer = plan(moment, again)
        assert answer.replayed
        assert (answer.assignments, answer.holds, answer.reserves) == (
            first.assignments,
            first.holds,
            first.reserves,
        )
        assert reservation_for(moment, again, answer) is moment.holding(group.name)


def test_a_reservation_from_before_auto_is_kept():
    """Its fingerprint names the mode that was the default then."""
    stated = gang(2)
    moment = taken(racks(2, 4), stated)
    answer = plan(moment, auto(2))
    assert answer.replayed
    assert answer.reserves == (("r1",),)


def test_another_mode_that_is_asked_for_is_another_request():
    """A gang that holds two nodes asks for the rack: it is planned again."""
    moment = taken(racks(2, 4), auto(pod_set(2, shape(gpu=4))))
    assert not plan(moment, gang(pod_set(2, shape(gpu=4)), reserve="domain")).replayed


def test_gangs_one_after_the_other_share_racks_but_no_gpu():
    """Holders of nodes in one rack, a holder of another rack, and never more than there is."""
    moment = taken(
        racks(3, 2),
        auto(2, required="rack", name="default/Job/a"),
        *(auto(1, gpu=3, name=f"default/Job/s{number}") for number in range(4)),
    )
    modes = Counter(held.mode for held in moment.reservations)
    assert modes == {"domain": 1, "nodes": 4}
    assert all(free >= 0 for name in moment.nodes for free in (moment.plain_free_on(name) or {}).values())
    last = plan(moment, auto(2, required="rack", name="default/Job/last"))
    assert last.reserves == (("r3",),)
