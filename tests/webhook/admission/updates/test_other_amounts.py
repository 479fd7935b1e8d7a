"""An update to pods of another size: the pods of the gang that run, and are replaced, give them room."""

from __future__ import annotations

from typing import Any

import pytest

from planner.cluster.snapshot import Snapshot
from planner.model.pod import BoundPod
from tests.builders import racks
from tests.policies.helpers import policies
from tests.webhook.admission.updates.test_resized_gang import (
    GROUPS,
    asked,
    nodes_of,
    ray,
    reserved,
    started,
    updated,
)
from tests.webhook.workloads import objects as o
from webhook.admission.decision import decide
from webhook.wire.request import from_object

Json = dict[str, Any]
RESOURCES = ("spec", "containers", 0, "resources")
OF_RAY = (*GROUPS, 0, "template", *RESOURCES)
OF_DEPLOYMENT = ("spec", "template", *RESOURCES)
ONE_RACK, TWO_RACKS = racks(1, 4), racks(2, 4)
NODES = ["r1-n1", "r1-n2", "r1-n3", "r1-n4"]
ROOM = "its new pods get the room of those that run now, and start as these end"


def deployment(replicas: int, gpus: int) -> Json:
    """A Deployment whose pods start together."""
    template = o.pod_template(gpus)
    template["metadata"] = {"labels": {"app": "a"}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    return o.obj("apps/v1", "Deployment", spec, **{"bayplan.dev/gang": "true"})


def resized(obj: Json, path: tuple[str | int, ...], gpus: int) -> Json:
    """A copy whose pods ask for this many GPUs."""
    return o.changed(obj, path, {"limits": {"nvidia.com/gpu": gpus}})


def of_others(on: Snapshot, *nodes: str) -> Snapshot:
    """The cluster with a pod of others on the whole of each node."""
    for node in nodes:
        on = on.with_pod(BoundPod(f"other/{node}", node, {"nvidia.com/gpu": 8, "pods": 1}))
    return on


def test_smaller_pods_of_a_deployment_get_the_room_of_its_larger_ones() -> None:
    """They were queued, as all nodes are full, and a gated pod never replaces one that runs."""
    old, on = started(deployment(4, 8), ONE_RACK)
    decision = updated(old, resized(old, OF_DEPLOYMENT, 4), on)
    (held,) = reserved(decision)
    assert len(nodes_of(held)) == 4
    assert set(nodes_of(held)) <= set(NODES)
    assert ROOM in decision.response.warnings
    assert "is queued" not in str(decision.response.warnings)
    assert "schedulingGates" not in str(decision.object)


def test_larger_pods_of_a_ray_cluster_get_the_room_of_its_smaller_ones() -> None:
    """Four workers of half a node become four of a whole node, in the rack of four nodes."""
    old, on = started(resized(ray(4), OF_RAY, 4), ONE_RACK)
    (held,) = reserved(updated(old, resized(old, OF_RAY, 8), on))
    assert nodes_of(held) == NODES


def test_a_place_beside_the_pods_that_run_is_taken_first() -> None:
    """Pods that start before others end need it."""
    old, on = started(deployment(4, 8), TWO_RACKS)
    decision = updated(old, resized(old, OF_DEPLOYMENT, 4), on)
    (held,) = reserved(decision)
    assert {node.partition("-")[0] for node in nodes_of(held)} == {"r2"}
    assert ROOM not in decision.response.warnings


def test_without_room_even_then_it_is_queued_as_before() -> None:
    """Two nodes of the rack are used by others."""
    old, on = started(resized(ray(2), OF_RAY, 8), ONE_RACK)
    decision = asked(
        o.changed(resized(old, OF_RAY, 4), (*GROUPS, 0, "replicas"), 7), of_others(on, *NODES[2:]), old
    )
    assert any("is queued" in warning for warning in decision.response.warnings)
    assert ROOM not in decision.response.warnings


def test_the_room_of_other_gangs_is_not_taken() -> None:
    """Only that of its own pods."""
    old, on = started(resized(ray(2), OF_RAY, 8), ONE_RACK)
    (held,) = reserved(updated(old, resized(old, OF_RAY, 4), of_others(on, *NODES[2:])))
    assert set(nodes_of(held)) <= set(NODES[:2])


@pytest.mark.parametrize("replicas", [4, 3])
def test_the_validating_call_repeats_the_place(replicas: int) -> None:
    """The old pods still run then."""
    old, on = started(deployment(replicas, 8), racks(1, replicas))
    first = updated(old, resized(old, OF_DEPLOYMENT, 4), on)
    (held,) = reserved(first)
    request = from_object(dict(first.object or {}), uid="uid", operation="UPDATE", old_object=old)
    second = decide(request, policies(), on.with_reservation(held), "validate")
    assert second.response.allowed
    assert second.plan is not None
    assert second.plan.placed[0].answer.assignments == held.assignments


def test_a_gang_that_must_not_be_queued_is_not_moved_off_its_running_pods() -> None:
    """More pods of the same size have no place beside it; the next rack would have room for all of them."""
    annotations = {
        "kai.scheduler/topology-required-placement": "rack",
        "bayplan.dev/on-unavailable": "reject",
    }
    old, on = started(ray(3, **annotations), of_others(TWO_RACKS, "r1-n4"))
    grown = o.changed(old, (*GROUPS, 0, "replicas"), 4)
    assert not asked(grown, on, old).response.allowed
