"""Tests the details of an answer: each level, each node by its reason, and the nearest requests."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.model.labels import Requirement
from planner.model.podgroup import Constraint, PodGroup
from planner.model.topology import HOSTNAME, Topology
from planner.planning.details import AS_ASKED, details
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import cluster, gang, pod_set, racks, shape

EVERY_CAUSE = """
    z/r1: a1 a2 a3 a4
    z/r2: b1 used=8
    z/r2: b2 cpu=2
    z/r2: b3 taint=team/ml
    z/r2: b4 cordoned
    z/r3: c1 notready
    z/r3: c2 gpu=0
    z/r3: c3 c4
    z/r4: d1 d2
    z: e1 e2
"""
LEVELS = ("zone", "rack")


def holding(moment, *groups):
    for group in groups:
        moment = moment.with_reservation(reservation_for(moment, group, plan(moment, group)))
    return moment


def account_of(moment, group):
    return details(moment, group, plan(moment, group))


def only_in(count, *racks_, gpu=8):
    """Pods with a required node affinity for these racks."""
    return pod_set(count, shape(gpu=gpu, affinity=((Requirement("rack", "In", racks_),),)))


def test_every_node_is_counted_once_by_its_own_cause():
    """One of each: full, too small, tainted, cordoned, not ready, without GPUs, held whole, partly held."""
    moment = cluster(EVERY_CAUSE, LEVELS)
    whole = gang(pod_set(3, shape(gpu=8, cpu=4)), name="default/Job/whole", required="rack")
    part = gang(only_in(1, "r4"), name="default/Job/part", reserve="nodes")
    moment = holding(moment, whole, part)
    account = account_of(moment, gang(pod_set(3, shape(gpu=8, cpu=4)), required="rack"))
    assert account.excluded == {
        "reserved by default/Job/whole": 4,
        "insufficient nvidia.com/gpu": 2,
        "no label rack": 2,
        "cordoned": 1,
        "in rack z/r4, which is partly held by default/Job/part": 1,
        "insufficient cpu": 1,
        "not ready": 1,
        "reserved by default/Job/part": 1,
        "taint team/ml:NoSchedule": 1,
    }
    assert (account.nodes, account.usable) == (16, 2)


def test_what_passes_is_left_out_now_only():
    """On the empty cluster the tainted, the small, the GPU-less and the unlabelled nodes remain left out."""
    account = account_of(cluster(EVERY_CAUSE, LEVELS), gang(pod_set(3, shape(gpu=8, cpu=4)), required="rack"))
    assert account.excluded_ever == {
        "no label rack": 2,
        "insufficient cpu": 1,
        "insufficient nvidia.com/gpu": 1,
        "taint team/ml:NoSchedule": 1,
    }


def test_each_level_tells_its_best_domain_now_and_when_empty():
    """Racks of four with two, three and no free hosts; a block holds five."""
    drawing = "b1/r1: a b\nb1/r1: c d used=8\nb1/r2: e f g\nb1/r2: h used=8\nb2/r3: i j k l used=8"
    account = account_of(cluster(drawing, levels=("block", "rack")), gang(4, required="rack"))
    assert [(fit.level, fit.now.domain, fit.now.fits, fit.empty.fits) for fit in account.levels] == [
        ("", (), 4, 4),
        ("block", ("b1",), 4, 4),
        ("rack", ("b1", "r2"), 3, 4),
        ("kubernetes.io/hostname", ("b1", "r1", "a"), 1, 1),
    ]


def test_an_admitted_gang_is_nearest_as_asked():
    """Now and ever; and its levels are told as well."""
    account = account_of(racks(2, 4), gang(3, required="rack"))
    assert account.admitted_now == account.admitted_if_empty == (AS_ASKED,)
    assert [fit.now.fits for fit in account.levels] == [3, 3, 1]
    assert (account.required, account.usable, account.excluded) == ("rack", 8, {})


def test_a_queued_gang_is_told_what_would_fit_now():
    """Fewer pods or a coarser level now; as asked on the empty cluster."""
    moment = holding(racks(4, 4, block=2), gang(2, name="default/Job/first", reserve="nodes"))
    moment = holding(moment, gang(only_in(8, "r2", "r3"), name="default/Job/second", reserve="nodes"))
    moment = holding(moment, gang(only_in(2, "r4"), name="default/Job/third", reserve="nodes"))
    account = account_of(moment, gang(4, required="rack", reserve="nodes"))
    assert account.admitted_now == ("2 pods", "no required level")
    assert account.admitted_if_empty == (AS_ASKED,)


def test_a_rejected_gang_is_told_what_would_fit_now_and_ever():
    """Racks of four, one of which is half used: two different numbers."""
    moment = cluster("r1: a b\nr1: c d used=8\nr2: e f used=8\nr2: g h used=8")
    account = account_of(moment, gang(5, required="rack"))
    assert account.admitted_now == ("2 pods",)
    assert account.admitted_if_empty == ("4 pods", "no required level")


def test_smaller_pods_are_named_where_fewer_do_not_help():
    """No node has 16 GPUs; with 8 a pod the gang has a place, ever; now with 5."""
    moment = cluster("r1: a b used=3")
    account = account_of(moment, gang(2, gpu=16))
    assert account.admitted_if_empty == ("at most 8 nvidia.com/gpu a pod",)
    assert account.admitted_now == ("at most 5 nvidia.com/gpu a pod",)


def test_a_contradiction_has_no_account():
    """Nothing was searched; the message names the valid values."""
    moment, group = racks(1, 2), gang(1, required="row")
    assert details(moment, group, plan(moment, group)) is None


def test_nodes_of_another_pool_are_counted_too():
    """They are not in the topology that the gang names."""
    from planner.model.node import Node

    inside = [Node(f"a{n}", {"pool": "a", "rack": "r1"}, {"nvidia.com/gpu": 8, "pods": 9}) for n in range(2)]
    outside = [Node(f"b{n}", {"pool": "b", "row": "x"}, {"nvidia.com/gpu": 8, "pods": 9}) for n in range(3)]
    halls = [
        Topology("one", ("rack", HOSTNAME), {"pool": "a"}),
        Topology("two", ("row", HOSTNAME), {"pool": "b"}),
    ]
    account = account_of(snapshot([*inside, *outside], halls), gang(2, required="rack"))
    assert account.excluded == {"not in topology one": 3}
    assert (account.nodes, account.usable) == (5, 2)


def test_plain_json_has_it_all():
    """Levels, nodes by cause, the nearest requests."""
    json = account_of(cluster("r1: a b\nr1: c cordoned"), gang(3, required="rack")).to_json()
    assert json["nodes"] == {"total": 3, "usable": 2, "excluded": {"cordoned": 1}, "excludedWhenEmpty": {}}
    assert json["nearest"] == {"now": ["2 pods"], "ever": [AS_ASKED]}
    assert json["levels"][1] == {
        "level": "rack",
        "now": {"domain": ["r1"], "pods": 2, "wanted": 3},
        "whenEmpty": {"domain": ["r1"], "pods": 3, "wanted": 3},
    }


@st.composite
def busy(draw) -> Snapshot:
    """Up to three racks of up to four nodes: full, partly used, cordoned, tainted or free; some reserved."""
    words = ("", " used=4", " used=8", " cordoned", " taint=x", " gpu=4", " notready")
    lines = [
        f"r{rack}: r{rack}-{host}{draw(st.sampled_from(words))}"
        for rack in range(draw(st.integers(1, 3)))
        for host in range(draw(st.integers(1, 4)))
    ]
    moment = cluster("\n".join(lines))
    for number in range(draw(st.integers(0, 2))):
        mode = draw(st.sampled_from(("domain", "nodes")))
        group = gang(draw(st.integers(1, 2)), gpu=4, name=f"default/Job/{number}", reserve=mode)
        if plan(moment, group).decision == "admitted":
            moment = holding(moment, group)
    return moment


def asking(draw_count, gpu, required, mode) -> PodGroup:
    return gang(draw_count, gpu=gpu, required=required, reserve=mode)


GROUPS = st.builds(
    asking,
    st.integers(1, 6),
    st.sampled_from((4, 8)),
    st.sampled_from(("", "rack")),
    st.sampled_from(("domain", "nodes")),
)


@given(busy(), GROUPS)
@settings(max_examples=150)
def test_nodes_add_up_and_the_nearest_request_is_admitted(moment, group):
    """Whatever the cluster: usable and left out are all nodes, and fewer pods as named have a place now."""
    answer = plan(moment, group)
    account = details(moment, group, answer)
    assert account.usable + sum(account.excluded.values()) == account.nodes == len(moment.nodes)
    assert account.usable >= 0
    assert min(account.excluded.values(), default=1) > 0
    for way in account.admitted_now:
        if way == AS_ASKED:
            assert answer.decision == "admitted"
        elif way.split()[1:] in (["pod"], ["pods"]):
            assert fewer(moment, group, int(way.split()[0])) == "admitted"
        elif way == "no required level":
            loose = replace(group, constraint=Constraint())
            assert plan(moment, loose).decision == "admitted"
    if answer.decision == "queued":
        assert account.admitted_if_empty == (AS_ASKED,)


def fewer(moment, group, pods):
    return plan(moment, replace(group, pod_sets=(replace(group.pod_sets[0], count=pods),))).decision


@given(busy(), GROUPS)
@settings(max_examples=100)
def test_each_levels_number_is_what_fits_a_domain_of_it(moment, group):
    """As many pods as are told have a place when that level is required, and not one more."""
    account = details(moment, group, plan(moment, group))
    for fit in account.levels[1:]:
        asked = replace(group, constraint=Constraint(required=fit.level))
        if fit.now.fits:
            assert fewer(moment, asked, fit.now.fits) == "admitted"
        if fit.now.fits < group.size:
            assert fewer(moment, asked, fit.now.fits + 1) != "admitted"


@pytest.mark.parametrize("required", ["", "rack"])
def test_the_account_is_the_same_when_the_gang_holds_its_place(required):
    """What the gang itself holds is not in its way."""
    moment, group = racks(2, 4), gang(3, required=required)
    before = account_of(moment, group)
    assert account_of(holding(moment, group), group) == before
