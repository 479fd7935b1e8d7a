"""NUMA zones in the plan: nodes whose kubelet would refuse the pod are excluded, and pods are packed by
zone.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.manifests.cluster import read
from planner.manifests.pods.pod import shape_of
from planner.manifests.reservation import reservation_from, reservation_manifest
from planner.model.errors import InputError, Where
from planner.model.pod import Alignment, BoundPod, ContainerRequest
from planner.model.podgroup import Assignment, PodSet
from planner.model.reservation import Reservation
from planner.node.numa_state import pods_to_come
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import gang, node, topology

GPU = "nvidia.com/gpu"
LABELS = {"bayplan.dev/gpus-per-numa-node": "4", "bayplan.dev/topology-manager-policy": "single-numa-node"}


def dgx(count: int = 1, pods: tuple[BoundPod, ...] = (), **labels: str) -> Snapshot:
    """DGX nodes of 8 GPUs with labels for four GPUs per NUMA node; `labels` replaces these."""
    names = {key.replace("_", "-"): value for key, value in labels.items()}
    numa_labels = {**LABELS, **{f"bayplan.dev/{key}": value for key, value in names.items()}}
    nodes = [
        node(f"dgx-{place}", labels={"rack": "r", **numa_labels}, gpu=8, cpu=128) for place in range(count)
    ]
    return snapshot(nodes, [topology("rack")], pods)


def workers(count: int, *gpus: int, name: str = "worker", mode: str = "nodes"):
    """This many pods of containers with these numbers of GPUs."""
    spec = {
        "containers": [
            {"name": f"c{index}", "resources": {"limits": {GPU: str(each)}}}
            for index, each in enumerate(gpus)
        ]
    }
    return gang(PodSet(name, count, shape_of(spec, Where())), name=f"default/Job/{name}", reserve=mode)


def test_a_pod_larger_than_a_zone_is_refused_with_the_size_that_would_fit():
    """Six GPUs, where a zone has four; two containers of three fit."""
    answer = plan(dgx(), workers(1, 6))
    assert (answer.decision, answer.reason) == ("rejected", "NoNUMAFit")
    assert "6 × nvidia.com/gpu in container c0" in answer.message
    assert "one NUMA zone has 4 × nvidia.com/gpu" in answer.message
    assert "Would work: at most 4 × nvidia.com/gpu a container" in answer.message
    assert plan(dgx(), workers(1, 3, 3)).decision == "admitted"


def test_the_scope_of_the_pod_adds_up_its_containers():
    """The same two containers then want six GPUs of one zone."""
    answer = plan(dgx(topology_manager_scope="pod"), workers(1, 3, 3))
    assert answer.reason == "NoNUMAFit"
    assert "at most 4 × nvidia.com/gpu a pod" in answer.message


@pytest.mark.parametrize(
    ("sidecar", "init", "main", "reason"),
    [(0, 4, 4, "Placed"), (1, 3, 3, "Placed"), (2, 3, 2, "NoNUMAFit"), (2, 1, 3, "NoNUMAFit")],
)
def test_an_init_container_does_not_add_to_the_pods_sum(sidecar, init, main, reason):
    """It has ended when the containers start; a sidecar that started before it goes on."""

    def container(name: str, gpus: int, **fields: str):
        return {"name": name, "resources": {"limits": {GPU: str(gpus)}}, **fields}

    first = [container("sidecar", sidecar, restartPolicy="Always"), container("init", init)]
    spec = {"initContainers": first, "containers": [container("main", main)]}
    group = gang(PodSet("worker", 1, shape_of(spec, Where())), reserve="nodes")
    assert plan(dgx(topology_manager_scope="pod"), group).reason == reason


def test_pods_that_each_fit_alone_may_not_fit_together():
    """Three pods of three GPUs: two a node, though the node has eight."""
    answer = plan(dgx(2), workers(3, 3))
    assert sorted(assignment.count for assignment in answer.assignments) == [1, 2]
    assert plan(dgx(1), workers(3, 3)).reason == "TooLargeForCluster"


@pytest.mark.parametrize("policy", ["none", "best-effort"])
def test_a_policy_that_refuses_nothing_leaves_no_node_out(policy):
    """The administrator's label takes precedence."""
    assert plan(dgx(topology_manager_policy=policy), workers(1, 6)).decision == "admitted"


def test_a_node_that_tells_nothing_is_not_left_out():
    """A node without zone information is used for six GPUs."""
    moment = dgx()
    bare = node("plain", labels={"rack": "r"}, gpu=8)
    answer = plan(snapshot([*moment.nodes.values(), bare], [topology("rack")]), workers(1, 6))
    assert [assignment.node for assignment in answer.assignments] == ["plain"]


def test_what_is_bound_fills_zones_from_the_lowest():
    """Two GPUs in use leave two and four: a pod of four fits, a second one does not and waits."""
    pods = (BoundPod("x/p", "dgx-0", {GPU: 2, "pods": 1}),)
    assert plan(dgx(1, pods), workers(1, 4)).decision == "admitted"
    answer = plan(dgx(1, pods), workers(2, 3))
    assert (answer.decision, answer.reason) == ("queued", "NoRoomNow")
    pods = tuple(BoundPod(f"x/p{n}", "dgx-0", {GPU: 3, "pods": 1}) for n in range(2))
    answer = plan(dgx(1, pods), workers(1, 2))
    assert answer.obstacles == {"NUMA: no zone for 2 nvidia.com/gpu under single-numa-node": 1}


def test_what_is_reserved_fills_zones_too():
    """Two gangs of three GPUs a pod leave one GPU in each zone, before any of their pods is bound."""
    moment = dgx()
    for name in ("a", "b"):
        group = workers(1, 3, name=name)
        moment = moment.with_reservation(reservation_for(moment, group, plan(moment, group)))
    assert plan(moment, workers(1, 1)).decision == "admitted"
    assert plan(moment, workers(1, 2)).decision == "queued"


def test_a_gangs_own_pod_does_not_fill_the_zones_twice():
    """Once bound it sits on its seat: the other zone stays free."""
    moment = dgx()
    group = workers(1, 3, name="a")
    held = reservation_for(moment, group, plan(moment, group))
    pod = BoundPod("default/a-0", "dgx-0", {GPU: 3, "pods": 1}, reservation=held.id)
    moment = moment.with_reservation(held).with_pod(pod)
    assert plan(moment, workers(1, 4)).decision == "admitted"


def published(available: str) -> dict[str, object]:
    """The NodeResourceTopology of a node, with this many GPUs available in the first zone."""
    zones = [
        {
            "name": f"node-{n}",
            "type": "Node",
            "resources": [{"name": GPU, "capacity": "4", "available": left}],
        }
        for n, left in enumerate((available, "4"))
    ]
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": "dgx-1"},
        "attributes": [{"name": "topologyManagerPolicy", "value": "single-numa-node"}],
        "zones": zones,
    }


def live(available: str, bound: bool) -> Snapshot:
    """A node that publishes its zones; a pod of three GPUs is bound to it, and published or not yet."""
    host = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "dgx-1"},
        "status": {"allocatable": {GPU: "8", "pods": "110"}},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"nodeName": "dgx-1", "containers": [{"name": "c", "resources": {"limits": {GPU: "3"}}}]},
    }
    return read([("c.yaml", [host, published(available), *([pod] if bound else [])])])


@pytest.mark.parametrize("available", ["1", "4"])
def test_a_bound_pod_counts_once_whether_or_not_the_zones_know_of_it(available):
    """Three GPUs are gone from a zone, by the object or by the pod that it does not show yet."""
    moment = live(available, bound=True)
    assert plan(moment, workers(1, 1, 4)).decision == "admitted"
    assert plan(moment, workers(1, 2, 2)).decision == "admitted"
    assert plan(moment, workers(1, 2, 3)).decision == "queued"


def test_a_node_may_change_its_policy():
    """The plan follows the label, in a snapshot that is carried on."""
    moment = dgx()
    assert plan(moment, workers(1, 6)).decision == "rejected"
    loose = replace(moment.nodes["dgx-0"], labels={"rack": "r"})
    assert plan(moment.with_node(loose), workers(1, 6)).decision == "admitted"
    assert (
        plan(moment.with_node(loose).with_node(moment.nodes["dgx-0"]), workers(1, 6)).decision == "rejected"
    )


def test_a_reservation_keeps_what_the_kubelet_will_align():
    """It is read back from its object as it was written."""
    moment, group = dgx(), workers(1, 3, 1)
    held = reservation_for(moment, group, plan(moment, group))
    ((_, traits),) = held.traits
    asks = (ContainerRequest("", {GPU: 3}), ContainerRequest("", {GPU: 1}))
    assert traits.alignment == Alignment(asks, (ContainerRequest("", {GPU: 4}),))
    assert reservation_from(reservation_manifest(held), Where()) == held


@pytest.mark.parametrize(
    ("label", "value", "valid"),
    [
        ("topology-manager-policy", "strict", "none, best-effort, restricted, single-numa-node"),
        ("topology-manager-scope", "node", "container, pod"),
        ("gpus-per-numa-node", "many", "1 to 128"),
    ],
)
def test_a_label_that_cannot_be_is_refused_with_the_valid_values(label, value, valid):
    """File, object, field, and what would do."""
    host = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "a", "labels": {f"bayplan.dev/{label}": value}},
    }
    with pytest.raises(
        InputError, match=f"metadata.labels.bayplan.dev/{label}: '{value}' cannot be; use {valid}"
    ):
        read([("c.yaml", host)])


def test_the_seat_of_a_pod_with_a_claim_is_taken_when_the_pod_is_there():
    """What the claim comes to stands in the reservation, and not among the pod's own requests."""
    asked = {"cpu": 1000, "pods": 1}
    held = Reservation(
        id="bp-1",
        gang="default/Job/a",
        topology="t",
        level="",
        domain=(),
        mode="nodes",
        domains=(),
        nodes=frozenset(),
        assignments=(Assignment("main", "n", 2),),
        requests=(("main", {**asked, "gpu.nvidia.com": 1, "claims/0123": 1}),),
        fingerprint="",
    )
    pod = BoundPod("default/a-0", "n", asked, "bp-1")
    assert len(list(pods_to_come("n", [], [held]))) == 2
    assert len(list(pods_to_come("n", [pod], [held]))) == 1
