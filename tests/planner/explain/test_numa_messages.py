"""A refusal for NUMA says what one real zone has, and names only requests that are admitted.

```
        zone 0            zone 1
n0      6 GPUs, 4 CPUs    1 GPU, 12 CPUs       no zone has 6 GPUs and 12 CPUs
```
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.manifests.pods.pod import shape_of
from planner.model.errors import Where
from planner.model.pod import PodShape
from planner.model.podgroup import PodSet
from planner.node.topology_manager import NumaNode, Zone
from planner.planning.details import details
from planner.planning.plan import plan
from tests.builders import gang, node, pod_set, topology

GPU = "nvidia.com/gpu"


def uneven(count: int = 1, policy: str = "single-numa-node", scope: str = "pod", zones=((6, 4), (1, 12))):
    """Nodes with these GPUs and CPUs in their zones."""
    gpus, cpus = (sum(amounts) for amounts in zip(*zones, strict=True))
    hosts = [node(f"n{place}", gpu=gpus, cpu=cpus, labels={"rack": "r"}) for place in range(count)]
    amounts = [{GPU: gpu, "cpu": cpu * 1000} for gpu, cpu in zones]
    each = tuple(Zone(f"node-{number}", zone, zone) for number, zone in enumerate(amounts))
    numa = {host.name: NumaNode(host.name, policy, scope, each) for host in hosts}
    return snapshot(hosts, [topology("rack")], numa=numa)


def shape(*containers: tuple[int, int]) -> PodShape:
    """A Guaranteed pod of containers with these GPUs and CPUs."""
    limits = [{GPU: str(gpu), "cpu": str(cpu), "memory": "1Mi"} for gpu, cpu in containers]
    each = [{"name": f"c{place}", "resources": {"limits": amounts}} for place, amounts in enumerate(limits)]
    return shape_of({"containers": each}, Where())


def workers(count: int, *containers: tuple[int, int]):
    return gang(PodSet("worker", count, shape(*containers)), reserve="nodes")


def zone_words(moment: Snapshot, group) -> str:
    """The message from what one zone has, or from what would work."""
    answer = plan(moment, group)
    assert answer.reason == "NoNUMAFit"
    match = re.search("one NUMA zone has .*", answer.message)
    assert match
    return match[0]


def test_the_amounts_are_those_of_one_zone():
    """Six GPUs and twelve CPUs are in different zones."""
    assert zone_words(uneven(), workers(1, (5, 13))) == (
        f"one NUMA zone has 6 × {GPU}, 4 cpu. Would work: at most 4 cpu a pod."
    )
    assert plan(uneven(), workers(1, (5, 4))).decision == "admitted"


def test_what_one_pod_could_have_is_not_named_where_the_gang_cannot_have_it():
    """The second pod would find one GPU in the other zone; on two nodes there is a zone for each."""
    assert zone_words(uneven(), workers(2, (5, 13))) == (
        f"one NUMA zone has 6 × {GPU}, 4 cpu. No similar request fits either."
    )
    assert "Would work: at most 4 cpu a pod." in zone_words(uneven(2), workers(2, (5, 13)))


def test_a_zone_that_is_less_close_is_named_where_the_gang_has_room_only_there():
    """Two of zone 1 fit, one of zone 0."""
    zones = ((6, 4), (3, 12), (3, 12))
    assert zone_words(uneven(zones=zones), workers(2, (6, 11))) == (
        f"one NUMA zone has 3 × {GPU}, 12 cpu. Would work: at most 3 × {GPU} a pod."
    )
    closest_first = zone_words(uneven(zones=((6, 9), (3, 12), (3, 12))), workers(2, (6, 11)))
    assert closest_first == f"one NUMA zone has 6 × {GPU}, 9 cpu. Would work: at most 3 × {GPU} a pod."


def test_a_container_finds_what_those_before_it_have_left():
    """Two containers of three GPUs leave one in each zone; a third wants two."""
    assert zone_words(
        uneven(scope="container", zones=((4, 8), (4, 8))), workers(1, (3, 1), (3, 1), (2, 1))
    ) == (
        f"one NUMA zone has 1 × {GPU}, 7 cpu left beside the containers before it. "
        "No similar request fits either."
    )


def test_restricted_says_how_many_zones_each_amount_takes():
    """Eight GPUs take two zones, eight CPUs one."""
    moment = uneven(policy="restricted", zones=((4, 8), (4, 8)))
    assert zone_words(moment, workers(1, (8, 8))) == (
        f"one NUMA zone has 4 × {GPU}, 8 cpu, and all amounts must take the same number of zones "
        f"(cpu 1, {GPU} 2). Would work: at most 4 × {GPU} a pod."
    )


def test_restricted_says_that_no_zones_together_have_it():
    """Two zones have seven GPUs, two others 14 CPUs."""
    moment = uneven(policy="restricted", zones=((4, 1), (4, 1), (1, 8), (1, 8)))
    assert ", and no 2 zones have all of it." in zone_words(moment, workers(1, (7, 14)))


def test_more_than_all_zones_have_is_said_so():
    """The node has eight GPUs, of which its zones list six."""
    whole = node("n0", gpu=8, cpu=8, labels={"rack": "r"})
    moment = snapshot(
        [whole], [topology("rack")], numa=uneven(policy="restricted", zones=((3, 4),) * 2).base.numa
    )
    assert f"({GPU} more than all)" in zone_words(
        moment, gang(pod_set(1, PodShape({GPU: 8, "pods": 1})), reserve="nodes")
    )


def test_the_pod_set_is_named_where_there_are_others():
    """Only the workers have to be smaller."""
    leader = PodSet("leader", 1, shape((1, 1)))
    group = gang(leader, PodSet("worker", 1, shape((6, 2))), reserve="nodes")
    moment = uneven(scope="container", zones=((4, 8), (4, 8)))
    assert zone_words(moment, group).endswith(f"Would work: at most 4 × {GPU} a container of worker.")


def test_an_amount_that_policies_added_is_named_as_a_limit_to_set():
    """They would add it again if the pod stated none."""
    own = shape((4, 12))
    raised = replace(own, stated={name: n for name, n in own.requests.items() if name != "cpu"})
    group = gang(PodSet("worker", 1, raised), reserve="nodes")
    assert zone_words(uneven(zones=((4, 8), (4, 8))), group).endswith("Would work: limits of 8 cpu a pod.")


@pytest.mark.parametrize("scope", ["container", "pod"])
def test_a_pod_larger_than_every_node_is_told_the_zones_amounts(scope):
    """Eight GPUs, the most of a node, would not fit a zone."""
    moment = uneven(scope=scope, zones=((4, 8), (4, 8)))
    answer = plan(moment, workers(1, (12, 8)))
    assert answer.reason == "PodFitsNoNode"
    assert answer.message.endswith(f"Would work: at most 4 × {GPU} a {scope}.")


def test_another_change_and_less_may_be_needed_together():
    """A product that is misspelt, and more GPUs than a zone of that product has."""
    moment = uneven(zones=((4, 8), (4, 8)))
    hosts = [replace(host, labels={**host.labels, "product": "H100"}) for host in moment.nodes.values()]
    moment = snapshot(hosts, [topology("rack")], numa=moment.base.numa)
    asked = replace(shape((6, 2)), node_selector={"product": "H10"})
    account = details(moment, group := gang(PodSet("worker", 1, asked), reserve="nodes"), plan(moment, group))
    assert account is not None
    assert account.admitted_if_empty == (f"product: H100 with at most 4 × {GPU} a pod",)
