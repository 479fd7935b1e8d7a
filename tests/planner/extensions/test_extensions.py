"""Tests named policies, elastic gangs and equal slices."""

from dataclasses import replace

import pytest
import yaml

from planner.extensions.equal_parts import shares
from planner.manifests.cluster import read
from planner.manifests.settings import with_config
from planner.model.errors import InputError, Where
from planner.model.settings import DEFAULTS, LevelPolicy
from planner.planning.plan import plan
from planner.planning.replay import fingerprint
from planner.planning.reservation import reservation_for
from tests.builders import cluster, gang, pod_set, racks, shape


def shares_of(moment, answer) -> dict[tuple[str, ...], int]:
    """The number of workers in each domain above the node."""
    return shares(moment, moment.topologies[0], answer.assignments, "worker")


def elastic(min_count: int, max_count: int, **words: object):
    """Workers of a whole node each, between `min_count` and `max_count`."""
    return gang(replace(pod_set(min_count, shape(gpu=8)), max_count=max_count), **words)


@pytest.mark.parametrize(("max_count", "placed"), [(4, 4), (8, 8), (12, 8), (3, 3)])
def test_an_elastic_gang_takes_as_many_pods_as_fit(max_count, placed):
    """Eight nodes are there: up to eight pods, never more than the most."""
    answer = plan(racks(2, 4), elastic(2, max_count))
    assert sum(a.count for a in answer.assignments) == placed
    assert f"{placed} pods of 2 to {max_count} have a place" in answer.message


def test_an_elastic_gang_keeps_its_required_level():
    """One rack has four nodes."""
    answer = plan(racks(2, 4), elastic(2, 8, required="rack"))
    assert sum(a.count for a in answer.assignments) == 4
    assert answer.domain == ("r1",)


def test_an_elastic_gang_below_its_least_is_not_placed():
    """The answer is that of the least: never with fewer."""
    answer = plan(racks(1, 4), elastic(5, 9))
    assert (answer.decision, answer.assignments) == ("rejected", ())


def test_an_elastic_gang_keeps_what_it_has():
    """Asked again it gets the same pods, and its reservation covers all of them."""
    moment, group = racks(2, 4), elastic(2, 6)
    held = moment.with_reservation(reservation_for(moment, group, plan(moment, group)))
    again = plan(held, group)
    assert again.replayed
    assert sum(a.count for a in again.assignments) == 6
    assert fingerprint(group) != fingerprint(elastic(2, 7))


def test_balanced_slices_are_equal_over_racks():
    """Twelve pods over racks of five: 5 + 5 + 2 when greedy, 4 + 4 + 4 when balanced."""
    moment = racks(4, 5)
    plain = gang(12, reserve="nodes")
    assert sorted(shares_of(moment, plan(moment, plain)).values()) == [2, 5, 5]
    even = plan(moment, replace(plain, balanced=True))
    assert list(shares_of(moment, even).values()) == [4, 4, 4]


def test_128_pods_on_nvl72_racks_are_eight_times_sixteen():
    """Not 7×18 + 2: the case that users of NVL72 racks complain of."""
    moment = racks(8, 18, gpu=4)
    even = plan(moment, replace(gang(128, gpu=4), balanced=True))
    assert list(shares_of(moment, even).values()) == [16] * 8


def test_a_balanced_gang_that_fits_one_rack_stays_there():
    """One domain is balanced by itself."""
    assert plan(racks(4, 5), replace(gang(5), balanced=True)).domain == ("r1",)


def test_where_nothing_is_equal_the_plan_says_so():
    """Seven pods over racks of four are no equal parts while there are fewer than seven racks."""
    answer = plan(racks(3, 4), replace(gang(7, reserve="nodes"), balanced=True))
    assert answer.decision == "admitted"
    assert "placed as 4 + 3" in answer.warnings[-1]


def kai(**config: object) -> dict[str, object]:
    """The ConfigMap of KAI."""
    data = {"config.yaml": yaml.safe_dump(config)}
    metadata = {"name": "kai-scheduler-config"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


LEVELS = [{"name": "nvlink", "label": "rack"}, {"name": "elsewhere", "label": "unknown/label"}]
POLICIES = [
    {"name": "tight", "weight": 100, "topology": "nvlink", "strategy": "pack"},
    {"name": "loose", "weight": 50, "topology": "nvlink", "strategy": "prefer"},
]


def settled(*policies: LevelPolicy):
    """Two racks of four nodes in a cluster with these policies."""
    moment = racks(2, 4)
    settings = replace(DEFAULTS, policies={policy.name: policy for policy in policies})
    return replace(moment, base=replace(moment.base, settings=settings))


def test_levels_of_the_config_map_are_other_names_of_labels():
    """A request may name them; those of other clusters' labels are left aside."""
    nodes = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{n}", "labels": {"rack": f"r{n // 2}"}},
         "status": {"allocatable": {"nvidia.com/gpu": "8", "pods": "10"}}}
        for n in range(4)
    ]  # fmt: skip
    moment = read([("c.yaml", [*nodes, kai(levels=LEVELS, policies=POLICIES)])])
    assert moment.topologies[0].aliases == {"nvlink": "rack"}
    assert plan(moment, gang(2, required="nvlink")).level == "rack"
    assert plan(moment, replace(gang(3), policy="tight")).reason == "TooLargeForLevel"


def test_pack_requires_the_level_and_prefer_prefers_it():
    """Five nodes are more than a rack has."""
    moment = settled(LevelPolicy("tight", 1, "rack", "pack"), LevelPolicy("loose", 1, "rack", "prefer"))
    assert plan(moment, replace(gang(5), policy="tight")).decision == "rejected"
    assert plan(moment, replace(gang(5), policy="loose")).decision == "admitted"


def test_of_several_policies_the_heaviest_serves():
    """And what the gang itself requires goes before any policy."""
    moment = settled(LevelPolicy("tight", 9, "rack", "pack"), LevelPolicy("loose", 1, "rack", "prefer"))
    assert plan(moment, replace(gang(5), policy="loose, tight")).decision == "rejected"
    own = gang(4, required="rack").constraint
    assert plan(moment, replace(gang(4), policy="tight", constraint=own)).domain == ("r1",)


def test_an_unknown_policy_is_a_warning_with_the_known_ones():
    """The gang is planned as if it named none."""
    moment = settled(LevelPolicy("tight", 9, "rack", "pack"))
    answer = plan(moment, replace(gang(2), policy="tihgt"))
    assert answer.decision == "admitted"
    assert "the policies are: tight" in answer.warnings[0]
    assert "none" in plan(cluster("r1: a b"), replace(gang(2), policy="x")).warnings[0]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"policies": [{"name": "a", "topology": "rack", "strategy": "spread"}]}, "use pack or prefer"),
        ({"policies": [{"name": "a", "topology": "rack", "weight": -1}]}, "not zero or more"),
        ({"policies": [{"name": "a"}]}, "a name and a topology"),
        ({"levels": [{"name": "a"}]}, "a name and a label"),
    ],
)
def test_a_bad_policy_or_level_is_refused(config, message):
    """The file, the object and the key of its data are named."""
    with pytest.raises(InputError, match=message):
        with_config(DEFAULTS, kai(**config), Where("c.yaml", "ConfigMap kai"))
