"""Tests which of the possible places is chosen."""

import pytest

from planner.model.podgroup import Constraint
from planner.model.topology import HOSTNAME
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import GPU, cluster, gang, pod_set, racks, shape


def _counts(answer):
    counts: dict[str, int] = {}
    for assignment in answer.assignments:
        rack = assignment.node.split("-")[0]
        counts[rack] = counts.get(rack, 0) + assignment.count
    return counts


def test_a_pristine_rack_is_not_broken_where_two_opened_ones_serve():
    """Racks of 18, 10 and 10 free trays and 20 pods: 10 + 10, though 18 + 2 uses as many racks."""
    snapshot = cluster(
        f"""
        r1: {" ".join(f"r1-n{i}" for i in range(18))}
        r2: {" ".join(f"r2-n{i}" for i in range(10))}
        r2: {" ".join(f"r2-u{i}" for i in range(8))} used=8
        r3: {" ".join(f"r3-n{i}" for i in range(10))}
        r3: {" ".join(f"r3-u{i}" for i in range(8))} used=8
        """
    )
    assert _counts(plan(snapshot, gang(20))) == {"r2": 10, "r3": 10}


def test_less_is_left_over_where_racks_are_equally_pristine():
    """Racks that have 18, 10 and 10 trays at all: 10 + 10 leaves none over."""
    snapshot = cluster(
        "\n".join(
            f"{r}: " + " ".join(f"{r}-n{i}" for i in range(n))
            for r, n in (("r1", 18), ("r2", 10), ("r3", 10))
        )
    )
    assert _counts(plan(snapshot, gang(20))) == {"r2": 10, "r3": 10}


def test_racks_of_six_and_four_take_pod_sets_of_three_three_and_four():
    """Three PodSets, each in one rack: the search goes back where the fullest rack first would fail."""
    snapshot = cluster("r1: a b c d e f\nr2: g h i j")
    rack = Constraint(required="rack")
    sets = [pod_set(n, shape(gpu=8), name=f"s{i}", constraint=rack) for i, n in enumerate((3, 3, 4))]
    answer = plan(snapshot, gang(*sets))
    assert answer.decision == "admitted", answer.message
    assert {a.node for a in answer.assignments if a.pod_set == "s2"} == set("ghij")


def test_pod_sets_that_each_need_one_rack_are_packed_together():
    """Rack A has 4 cpu and 2 GPUs, rack B 4 cpu: four cpu pods go to B, so that the GPU pods have A."""
    snapshot = cluster("A: a cpu=4 gpu=2\nB: b cpu=4 gpu=0")
    wanted = gang(
        pod_set(4, shape(cpu=1), name="feeder", constraint=Constraint(required="rack")),
        pod_set(2, shape(cpu=2, gpu=1), name="trainer", constraint=Constraint(required="rack")),
    )
    answer = plan(snapshot, wanted)
    assert {(a.pod_set, a.node, a.count) for a in answer.assignments} == {
        ("feeder", "b", 4),
        ("trainer", "a", 2),
    }


def test_the_fullest_host_that_serves_is_taken():
    """One pod of two GPUs goes where two are free, not where eight are."""
    snapshot = cluster("r1: a\nr1: b used=6")
    assert [a.node for a in plan(snapshot, gang(1, gpu=2)).assignments] == ["b"]


def test_names_are_ordered_as_people_count():
    """Among equal racks r2 comes before r10."""
    answer = plan(racks(12, 2), gang(2))
    assert answer.domain == ("r1",)
    names = [a.node for a in plan(racks(1, 12), gang(11)).assignments]
    assert names == [f"r1-n{i}" for i in range(1, 12)]


def test_a_gang_that_fits_a_rack_goes_into_one():
    """Neither required nor preferred is as preferred at the finest level that can hold it."""
    answer = plan(racks(4, 4, block=2), gang(3))
    assert (answer.level, answer.domain, answer.reserves) == ("rack", ("b1", "r1"), (("b1", "r1"),))


def test_a_gang_larger_than_a_rack_uses_the_fewest_racks_of_one_block():
    """Six pods on racks of four: two racks, both in one block, and both are held."""
    answer = plan(racks(4, 4, block=2), gang(6))
    assert (answer.level, answer.domain) == ("block", ("b1",))
    assert answer.reserves == (("b1", "r1"), ("b1", "r2"))


def test_a_gang_of_cpu_pods_keeps_away_from_pristine_gpus():
    """Equal otherwise, the host with the fewest free devices is taken."""
    snapshot = cluster("r1: a\nr1: b gpu=0")
    assert [x.node for x in plan(snapshot, gang(pod_set(1, shape(cpu=1)))).assignments] == ["b"]
    assert GPU not in snapshot.nodes["b"].allocatable


def test_a_hold_of_a_host_goes_where_a_gang_already_holds_one():
    """A rack of which a gang holds a part is lost to whole racks anyway; plain pods in another may end."""
    moment = cluster("r1: a b c\nr2: d used=4\nr2: e f\nr3: g h i")
    holder = gang(pod_set(1, shape(gpu=8, selector={"rack": "r3"})), name="default/Job/there")
    held = moment.with_reservation(reservation_for(moment, holder, plan(moment, holder)))
    assert plan(moment, gang(1, gpu=4)).domain == ("r2", "d")
    assert plan(held, gang(1, gpu=4)).domain == ("r3", "h")
    assert plan(held, gang(3, gpu=8, required="rack")).domain == ("r1",)


def test_two_small_gangs_share_a_rack_although_another_has_less_left():
    """The second one-host gang follows the first, so that one rack fewer is lost to whole-rack gangs."""
    moment = cluster("r1: a b c d\nr2: e f g used=8\nr2: h i\nr3: j k used=8\nr3: l m n")
    taken = []
    for number in range(3):
        group = gang(1, name=f"default/Job/g{number}")
        answer = plan(moment, group)
        moment = moment.with_reservation(reservation_for(moment, group, answer))
        taken.append(answer.domain[0])
    assert taken == ["r2", "r2", "r3"]


@pytest.mark.parametrize(
    "constraint",
    [
        Constraint(required="rack", preferred=HOSTNAME),
        Constraint(preferred=HOSTNAME, slice_level="rack", slice_size=2),
        Constraint(required="rack", slice_level="rack", slice_size=2, preferred=HOSTNAME),
    ],
)
def test_a_preferred_host_is_in_the_required_rack(constraint):
    """The host that would take both workers is in no rack: they go to two hosts of one."""
    snapshot = cluster(": bare gpu=8\nr1: a b c d gpu=1")
    sets = (pod_set(2, shape(gpu=1), constraint=constraint), pod_set(1, shape(gpu=3), name="other"))
    answer = plan(snapshot, gang(*sets))
    assert {(a.pod_set, a.node) for a in answer.assignments} == {
        ("worker", "a"),
        ("worker", "b"),
        ("other", "bare"),
    }


def test_one_slice_on_a_host_is_in_the_required_rack():
    """The only host that takes both workers is in no rack."""
    kept = Constraint(required="rack", slice_level=HOSTNAME, slice_size=2)
    answer = plan(cluster(": bare gpu=8\nr1: a b gpu=2"), gang(pod_set(2, shape(gpu=2), constraint=kept)))
    assert answer.decision == "rejected", answer
