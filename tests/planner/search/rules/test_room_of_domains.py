"""Where spread constraints leave too few pods in their domains, that is proved instead of searched."""

from dataclasses import replace

from planner.cluster.build import snapshot
from planner.model.labels import Requirement
from planner.model.pod import BoundPod, SpreadConstraint
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import GPU, gang, node, pod_set, shape, topology

APP = (Requirement("app", "In", ("a",)),)
HOSTNAME = "kubernetes.io/hostname"


def spread(pods, *constraints):
    """This many pods of one node each under these constraints."""
    return gang(pod_set(pods, replace(shape(gpu=8), labels={"app": "a"}, spread=constraints)), reserve="none")


def zones(nodes, free_in_first):
    """Three zones of racks of 18 nodes; of the first zone, this many nodes are free."""
    hosts = [
        node(f"n{place}", labels={"rack": f"r{place // 18}", "zone": f"z{place // 18 % 3}"})
        for place in range(nodes)
    ]
    first = [host for host in hosts if host.labels["zone"] == "z0"]
    pods = [BoundPod(f"x/on-{host.name}", host.name, {GPU: 8, "pods": 1}) for host in first[free_in_first:]]
    return snapshot(hosts, [topology("rack")], pods)


def test_a_full_zone_bounds_the_pods_in_the_others_beside_a_constraint_over_hosts():
    """With 3 pods in the first zone and maxSkew 1, the others have at most 4 each."""
    answer = plan(
        zones(540, 3), spread(18, SpreadConstraint("zone", 1, APP), SpreadConstraint(HOSTNAME, 1, APP))
    )
    assert (answer.decision, answer.warnings) == ("queued", ())
    assert "room for 11 of 18 pods" in answer.message


def test_two_constraints_are_refuted_by_either():
    """Two rows are fewer than the three domains that minDomains asks for, so each takes two pods: four in
    all, which is proved although another constraint holds too.
    """
    hosts = [
        node(f"n{place}", labels={"rack": f"r{place // 2}", "row": f"row{place % 2}"}) for place in range(19)
    ]
    rows = SpreadConstraint("row", 2, APP, min_domains=3)
    answer = plan(snapshot(hosts, [topology("rack")]), spread(6, rows, SpreadConstraint("rack", 1, APP)))
    assert (answer.decision, answer.warnings) == ("rejected", ())
    assert "room for 4 of 6 pods" in answer.message


def test_a_gang_may_hold_a_block_inside_a_zone_that_another_gang_uses():
    """It cannot hold the zone. In the block, the first three pods that are tried are all in row b."""
    rows = {"b1/r1": "bb", "b1/r2": "ba", "b2/r3": "bbb"}
    hosts = [
        node(f"{rack[3:]}-{place}", labels={"zone": "z", "block": rack[:2], "rack": rack[3:], "row": row})
        for rack, names in rows.items()
        for place, row in enumerate(names)
    ]
    empty = snapshot(hosts, [topology("zone", "block", "rack", reservable="zone")])
    other = gang(pod_set(1, shape(selector={"rack": "r3"})), name="default/Job/other")
    held = reservation_for(empty, other, plan(empty, other))
    app = replace(shape(gpu=8), labels={"app": "a"}, spread=(SpreadConstraint("row", 1, APP),))
    answer = plan(empty.with_reservation(held), gang(pod_set(3, app)))
    assert (answer.decision, answer.domain) == ("admitted", ("z", "b1"))
