"""Host ports: on each node a port belongs to one pod, whether bound, reserved, or of the gang itself."""

from __future__ import annotations

import pytest

from planner.cluster.build import snapshot
from planner.manifests.cluster import read
from planner.manifests.pods.pod import shape_of
from planner.manifests.reservation import reservation_from, reservation_manifest
from planner.model.errors import InputError, Where
from planner.model.podgroup import PodSet
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import gang, node, topology


def spec(*ports: dict[str, object], **fields: object) -> dict[str, object]:
    """A pod of one GPU with these host ports."""
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    return {"containers": [{"name": "c", "resources": limits, "ports": list(ports)}], **fields}


def pods(count: int, *ports: dict[str, object], name: str = "worker", **fields: object) -> PodSet:
    """A PodSet of such pods."""
    return PodSet(name, count, shape_of(spec(*ports, **fields), Where()))


def cluster(*bound: dict[str, object]):
    """Hosts n1 and n2; the first bound pod is on n1, the second on n2."""
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "status": {"allocatable": {"nvidia.com/gpu": 8}},
        }
        for name in ("n1", "n2")
    ]
    bound_pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p{number}", "namespace": "other"},
            "spec": {**pod, "nodeName": f"n{number}"},
        }
        for number, pod in enumerate(bound, 1)
    ]
    return read([("c.yaml", [*nodes, *bound_pods])])


PORT = {"containerPort": 80, "hostPort": 8080}


def test_pods_with_one_host_port_are_on_different_hosts():
    """Two pods with room for eight on each host take two hosts; a third has none, ever."""
    answer = plan(cluster(), gang(pods(2, PORT), reserve="nodes"))
    assert {a.node: a.count for a in answer.assignments} == {"n1": 1, "n2": 1}
    assert plan(cluster(), gang(pods(3, PORT), reserve="nodes")).decision == "rejected"
    assert plan(cluster(), gang(pods(3, {"containerPort": 80}), reserve="nodes")).decision == "admitted"


def test_a_port_of_a_bound_pod_is_taken():
    """In any namespace; the answer names the port, and the gang waits, for the pod may end."""
    answer = plan(cluster(spec(PORT)), gang(pods(1, PORT), reserve="nodes"))
    assert [a.node for a in answer.assignments] == ["n2"]
    waits = plan(cluster(spec(PORT), spec(PORT)), gang(pods(1, PORT), reserve="nodes"))
    assert waits.decision == "queued"
    assert "Both nodes have host port 8080/TCP in use" in waits.message


@pytest.mark.parametrize(
    ("bound", "asked", "conflicts"),
    [
        ({"hostPort": 80}, {"hostPort": 80}, True),
        ({"hostPort": 80}, {"hostPort": 81}, False),
        ({"hostPort": 80, "protocol": "UDP"}, {"hostPort": 80}, False),
        ({"hostPort": 80, "hostIP": "0.0.0.0"}, {"hostPort": 80, "hostIP": "10.0.0.1"}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.1"}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.2"}, False),
        ({"containerPort": 80}, {"hostPort": 80}, False),
    ],
)
def test_ports_conflict_as_in_kube_scheduler(bound, asked, conflicts):
    """The same protocol and port, on the same address or with either on 0.0.0.0."""
    answer = plan(cluster(spec(bound), spec(bound)), gang(pods(1, asked), reserve="nodes"))
    assert answer.decision == ("queued" if conflicts else "admitted")


def test_with_host_network_each_container_port_is_a_host_port():
    """As the API server writes it into pods; in a template it is not written yet."""
    on_host = pods(2, {"containerPort": 80}, hostNetwork=True)
    answer = plan(cluster(), gang(on_host, reserve="nodes"))
    assert {a.node: a.count for a in answer.assignments} == {"n1": 1, "n2": 1}


def test_sidecars_count_and_init_containers_do_not():
    """An init container has ended when the pod's others start."""
    init = {"name": "i", "ports": [PORT]}
    sidecar = {**init, "restartPolicy": "Always"}
    assert plan(cluster(), gang(pods(3, initContainers=[init]), reserve="nodes")).decision == "admitted"
    assert plan(cluster(), gang(pods(3, initContainers=[sidecar]), reserve="nodes")).decision == "rejected"


def test_a_reserved_port_is_taken_also_after_the_reservation_was_read_again():
    """As it stands in the API server."""
    moment = snapshot([node("n1"), node("n2")], [topology("rack")])
    first = gang(pods(1, PORT), name="default/Job/first", reserve="nodes")
    held = reservation_for(moment, first, plan(moment, first))
    again = reservation_from(reservation_manifest(held), Where())
    answer = plan(moment.with_reservation(again), gang(pods(2, PORT), reserve="nodes"))
    assert answer.decision == "queued"
    assert "host port 8080/TCP in use" in answer.message


def test_two_pod_sets_of_a_gang_keep_their_ports_apart():
    """A launcher and a worker that both want the port are on two hosts."""
    pair = gang(pods(1, PORT, name="launcher"), pods(1, PORT), reserve="nodes")
    assert len({a.node for a in plan(cluster(), pair).assignments}) == 2


def test_a_malformed_port_is_named():
    """With the whole path."""
    with pytest.raises(InputError) as refused:
        pods(1, {"hostPort": "80"})
    assert "containers[0].ports[0].hostPort: expected a whole number" in str(refused.value)
