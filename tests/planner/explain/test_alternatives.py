"""The nearest request that a refusal names is admitted when it is made, for every kind of request."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.model.podgroup import Constraint, FabricWish, PodGroup
from planner.model.settings import DEFAULTS, LevelPolicy
from planner.model.topology import HOSTNAME, Link, Topology
from planner.planning.details import details
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import cluster, gang, node, pod_set, racks, shape, topology

FABRIC = Topology("fabric", ("block", "rack", HOSTNAME))
PACK = LevelPolicy("pack-rack", 10.0, "rack", "pack")


def ways(moment: Snapshot, group: PodGroup):
    return details(moment, group, plan(moment, group))


def empty(moment: Snapshot) -> Snapshot:
    """The same cluster without pods, with every node ready."""
    nodes = (replace(node, cordoned=False, ready=True) for node in moment.nodes.values())
    base = moment.base
    return snapshot(nodes, base.topologies, links=base.links, settings=base.settings)


def test_of_slices_whole_ones_are_named():
    """Racks of five, slices of two within a rack: four of each rack, not five."""
    sliced = pod_set(12, shape(gpu=8), constraint=Constraint(slice_level="rack", slice_size=2))
    account = ways(racks(2, 5), gang(sliced, reserve="nodes"))
    assert account.admitted_if_empty == ("8 pods",)


def test_slices_that_no_rack_can_hold_would_be_had_in_a_block():
    """Fewer slices do not help where one is larger than a rack."""
    sliced = pod_set(6, shape(gpu=8), constraint=Constraint(slice_level="rack", slice_size=6))
    account = ways(racks(2, 4, block=2), gang(sliced, reserve="nodes"))
    assert account.admitted_if_empty == ("slices at block",)


def test_the_pod_set_that_can_be_smaller_is_named():
    """One leader and nine workers on eight nodes: seven workers."""
    leader = pod_set(1, shape(gpu=8, cpu=1), name="leader")
    account = ways(racks(2, 4), gang(leader, pod_set(9, shape(gpu=8)), reserve="nodes"))
    assert account.admitted_if_empty == ("7 pods of worker",)


def test_where_no_pod_set_can_give_way_alone_all_do_alike():
    """Six of each on a rack of four: neither alone leaves room for six of the other."""
    prefill = pod_set(6, shape(gpu=8, cpu=1), name="prefill")
    decode = pod_set(6, shape(gpu=8), name="decode")
    account = ways(racks(1, 4), gang(prefill, decode, reserve="nodes"))
    assert account.admitted_if_empty == ("2 pods of prefill and 2 pods of decode",)


def test_an_elastic_gang_is_told_a_minimum_that_fits():
    """At least six and at most nine of four nodes."""
    elastic = replace(pod_set(6, shape(gpu=8)), max_count=9)
    assert ways(racks(1, 4), gang(elastic)).admitted_if_empty == ("a minimum of 4 pods",)


def test_limits_per_leaf_count_in_what_is_named():
    """Two nodes of a leaf at most, four leaves: eight pods, though each leaf has four nodes."""
    moment = racks(4, 4, block=4)
    limited = replace(DEFAULTS, nodes_per_leaf=2, gpus_per_leaf=16, limited=True)
    moment = snapshot(moment.nodes.values(), moment.topologies, settings=limited)
    answer = plan(moment, replace(gang(9, reserve="nodes"), fabric=FabricWish(stated=True)))
    assert (answer.decision, answer.reason) == ("rejected", "LimitPerLeaf")
    assert "Would work: 8 pods, or higher limits." in answer.message


def test_a_policy_that_packs_is_taken_for_what_it_requires():
    """The policy of KAI's ConfigMap asks for one rack; its level is told, and what would do."""
    moment = racks(2, 4)
    packed = snapshot(
        moment.nodes.values(), moment.topologies, settings=replace(DEFAULTS, policies={PACK.name: PACK})
    )
    account = ways(packed, replace(gang(5), policy=PACK.name))
    assert account.required == "rack"
    assert account.admitted_if_empty == ("4 pods", "no required level")


WORDS = ("", " used=4", " used=8", " cordoned", " notready", " gpu=4")
CONSTRAINTS = st.sampled_from(
    (
        Constraint(),
        Constraint(),
        Constraint(required="rack"),
        Constraint(required="block"),
        Constraint(preferred="rack"),
        Constraint(slice_level="rack", slice_size=2),
        Constraint(required="block", slice_level="rack", slice_size=3),
    )
)


@st.composite
def fabrics(draw) -> Snapshot:
    """Up to four racks of up to four nodes under two spines, some in use, unavailable or reserved."""
    lines = [
        f"b{rack // 3}/r{rack}: r{rack}-{host}{draw(st.sampled_from(WORDS))}"
        for rack in range(1, draw(st.integers(1, 4)) + 1)
        for host in range(draw(st.integers(1, 4)))
    ]
    drawn = cluster("\n".join(lines), ("block", "rack"))
    links = {
        "fabric": tuple(
            Link(f"r{n}", f"s{n % 2}", draw(st.sampled_from((100.0, 400.0)))) for n in range(1, 5)
        )
    }
    limits = replace(DEFAULTS, nodes_per_leaf=draw(st.sampled_from((1, 2, 4))), limited=draw(st.booleans()))
    limits = replace(limits, policies={PACK.name: PACK})
    moment = snapshot(drawn.nodes.values(), [FABRIC], drawn.pods, links=links, settings=limits)
    for number in range(draw(st.integers(0, 2))):
        group = gang(draw(st.integers(1, 2)), gpu=4, name=f"default/Job/{number}")
        group = replace(group, reserve=draw(st.sampled_from(("domain", "nodes"))))
        held = reservation_for(moment, group, plan(moment, group))
        moment = moment.with_reservation(held) if held else moment
    return moment


@st.composite
def requests(draw) -> PodGroup:
    """One or two PodSets with levels, slices, elastic counts, equal parts or the leaf-spine rules."""
    sets = []
    for name in ("worker", "leader")[: draw(st.integers(1, 2))]:
        asked = shape(gpu=draw(st.sampled_from((4, 8))), cpu=len(name))
        member = pod_set(draw(st.integers(1, 6)), asked, name=name, constraint=draw(CONSTRAINTS))
        sets.append(replace(member, max_count=member.count + draw(st.sampled_from((0, 0, 2)))))
    wish = draw(
        st.sampled_from(
            (
                FabricWish(),
                FabricWish(),
                FabricWish(stated=True),
                FabricWish(strategy="distributed"),
                FabricWish(strategy="consolidated", gbps=200.0),
            )
        )
    )
    group = gang(*sets, reserve=draw(st.sampled_from(("domain", "nodes"))))
    policy = draw(st.sampled_from(("", "", PACK.name)))
    return replace(
        group, constraint=draw(CONSTRAINTS), fabric=wish, policy=policy, balanced=draw(st.booleans())
    )


@given(fabrics(), requests())
@settings(max_examples=250)
def test_whatever_is_named_is_admitted(moment, group):
    """Now in the cluster as it is (once the gang has ended whose end is named), ever in the empty one."""
    account = details(moment, group, plan(moment, group))
    if account is None:
        return
    for way in account.ways_now:
        now = moment.ended(way.ended) if way.ended else moment
        assert plan(now, way.group).decision == "admitted", way.words
    for way in account.ways_ever:
        assert plan(empty(moment), way.group).decision == "admitted", way.words


def test_a_level_that_only_one_of_two_topologies_has_is_no_error():
    """The place without it is in the other topology, whose levels say nothing of those of the first."""
    labels = ({"zone": "z1", "ups": "u1"}, {"zone": "z2", "ups": "u1"}, {"zone": "z3", "ups": "u2"})
    nodes = [node(f"n{place}", labels=values, gpu=1) for place, values in enumerate(labels)]
    moment = snapshot(nodes, [topology("zone", name="t"), topology("ups", name="u")])
    answer = plan(moment, gang(2, gpu=1, required="zone", reserve="nodes"))
    assert answer.decision == "rejected"
    assert "no required level" in answer.message
