"""An object whose gang runs is resized in place: its pods stay, others get a place beside them."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from planner.cluster.snapshot import Snapshot
from planner.ledger.conflicts import Wish
from planner.model.pod import BoundPod
from planner.model.reservation import Reservation
from tests.builders import cluster, racks
from tests.policies.helpers import policies
from tests.webhook.workloads import objects as o
from webhook.admission.configuration.settings import Settings
from webhook.admission.decision import decide
from webhook.admission.decision_record import Decision
from webhook.admission.environment import Environment
from webhook.jsontools.path import find
from webhook.placement.hold_limits import HoldLimits
from webhook.policy.model.policy import PolicySet
from webhook.wire.request import from_object
from webhook.workloads.keys.annotation_keys import PLACEMENT, RESERVATION

Json = dict[str, Any]
GROUPS = ("spec", "workerGroupSpecs")
AFFINITY = ("spec", "affinity")
REQUIRED = {"kai.scheduler/topology": "topo", "kai.scheduler/topology-required-placement": "rack"}


def ray(workers: int, **annotations: str) -> Json:
    """A RayCluster with a head and this many workers of a whole node."""
    group = {"groupName": "w", "replicas": workers, "maxReplicas": 100, "template": o.pod_template(8)}
    spec = {"headGroupSpec": {"template": o.pod_template(0)}, "workerGroupSpecs": [group]}
    return o.obj("ray.io/v1", "RayCluster", spec, **annotations)


def with_workers(obj: Json, workers: int) -> Json:
    """A copy with another number of workers, as `kubectl edit` sends it."""
    return o.changed(obj, (*GROUPS, 0, "replicas"), workers)


def asked(
    obj: Json, on: Snapshot, old: Json | None = None, by: PolicySet | None = None, **environment: Any
) -> Decision:
    """The decision of the mutating call on a new object, or on an update of the old one."""
    request = from_object(obj, uid="uid", operation="UPDATE" if old else "CREATE", old_object=old)
    return decide(request, by or policies(), on, "mutate", Environment(**environment))


def reserved(decision: Decision) -> list[Reservation]:
    """What a decision reserves."""
    return [step.reservation for step in decision.steps if isinstance(step, Wish)]


def nodes_of(reservation: Reservation) -> list[str]:
    """The node of each worker."""
    seats = [seat for seat in reservation.assignments if seat.pod_set != "head"]
    return sorted(seat.node for seat in seats for _ in range(seat.count))


def started(obj: Json, on: Snapshot) -> tuple[Json, Snapshot]:
    """The object as it is stored, and the cluster in which its pods run."""
    decision = asked(obj, on)
    assert decision.object is not None
    for held in reserved(decision):
        on = on.with_reservation(replace(held, state="claimed", expires=None))
        pods = [(seat, number) for seat in held.assignments for number in range(seat.count)]
        for seat, number in pods:
            name = f"team/{seat.pod_set}-{seat.node}-{number}"
            on = on.with_pod(BoundPod(name, seat.node, dict(held.requests)[seat.pod_set], held.id))
    return copy.deepcopy(dict(decision.object)), on


def updated(old: Json, obj: Json, on: Snapshot, **environment: Any) -> Decision:
    """The decision on an update, which is allowed."""
    decision = asked(obj, on, old, **environment)
    assert decision.response.allowed, decision.response.message
    return decision


@pytest.mark.parametrize("required", [{}, REQUIRED], ids=["no level", "one rack"])
def test_a_gang_grows_in_the_rack_that_it_holds(required: dict[str, str]) -> None:
    """Its running pods do not count twice: it was queued."""
    old, on = started(ray(2, **required), racks(2, 4))
    decision = updated(old, with_workers(old, 4), on)
    (held,) = reserved(decision)
    assert nodes_of(held) == ["r1-n1", "r1-n2", "r1-n3", "r1-n4"]
    assert held.domains == (("r1",),)
    assert decision.response.warnings == []


def test_a_gang_grows_beyond_the_place_to_which_its_own_affinity_pins_it() -> None:
    """It was refused: its templates are pinned to the full rack. They stay as they are."""
    old, on = started(ray(4), racks(2, 4))
    decision = updated(old, with_workers(old, 5), on)
    (held,) = reserved(decision)
    assert nodes_of(held) == ["r1-n1", "r1-n2", "r1-n3", "r1-n4", "r2-n1"]
    assert {operation["path"] for operation in decision.response.patch} == {
        f"/metadata/annotations/{PLACEMENT.replace('/', '~1')}"
    }


def test_a_gang_that_has_grown_grows_again() -> None:
    """The affinity in its templates is that of its first place, not of the place on the object."""
    old, on = started(ray(4), racks(3, 4))
    grown = updated(old, with_workers(old, 5), on)
    (held,) = reserved(grown)
    stored = dict(grown.object or {})
    again = updated(stored, with_workers(stored, 10), on.with_reservation(replace(held, state="claimed")))
    (held,) = reserved(again)
    assert nodes_of(held)[:5] == ["r1-n1", "r1-n2", "r1-n3", "r1-n4", "r2-n1"]
    assert len(nodes_of(held)) == 10


def test_a_pod_of_a_gang_that_has_grown_may_use_its_further_nodes() -> None:
    """The pod comes from a template that names the first rack only."""
    old, on = started(ray(4), racks(2, 4))
    (held,) = reserved(updated(old, with_workers(old, 5), on))
    template = find(old, (*GROUPS, 0, "template"))
    assert "r1" in str(template["spec"]["affinity"])
    owner = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "name": "demo",
        "uid": "1",
        "controller": True,
    }
    metadata = {**template["metadata"], "generateName": "demo-", "namespace": "team"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "ownerReferences": [owner]},
        "spec": template["spec"],
    }
    decision = asked(pod, on.with_reservation(replace(held, state="claimed")))
    terms = (decision.object or {})["spec"]["affinity"]["nodeAffinity"]
    (term,) = terms["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    (hosts,) = term["matchExpressions"]
    assert hosts["values"] == ["r1-n1", "r1-n2", "r1-n3", "r1-n4", "r2-n1"]


def test_a_gang_that_shrinks_keeps_seats_where_its_pods_are() -> None:
    """It was planned anew, away from its running pods."""
    old, on = started(ray(5), racks(2, 4))
    (held,) = reserved(updated(old, with_workers(old, 2), on))
    assert nodes_of(held) == ["r1-n1", "r1-n2"]


def test_a_gang_of_one_rack_stays_where_it_runs_though_another_rack_is_larger() -> None:
    """The update is allowed, and the warning says what would give all of it a place."""
    hall = cluster("r1: a b gpu=8\nr2: c d e f gpu=8")
    old, on = started(ray(2, **REQUIRED), hall)
    decision = updated(old, with_workers(old, 4), on)
    assert reserved(decision) == []
    assert decision.response.patch == []
    (warning,) = decision.response.warnings
    assert warning == (
        "team/RayCluster/demo keeps its place in r1, and has no place beside it for 2 more pods: its pods "
        "stay where they run. All of it would fit in r2, if deleted and applied again."
    )


def test_a_running_gang_is_never_refused_more_pods_than_the_cluster_has_room_for() -> None:
    """Its owner may do so without Bayplan; the warning has the numbers."""
    old, on = started(ray(2, **REQUIRED), racks(2, 4))
    decision = updated(old, with_workers(old, 6), on)
    (warning,) = decision.response.warnings
    assert warning.startswith(
        "team/RayCluster/demo keeps its place in r1, and has no place beside it for 4 more pods: 7 pods "
        "(48 GPUs) required in one rack do not fit the empty cluster: the largest rack, r1, has room for 5"
    )
    assert RESERVATION in (decision.object or {})["metadata"]["annotations"]


def test_a_gang_that_has_not_started_is_refused_what_can_never_run() -> None:
    """Nothing runs that the refusal could harm."""
    first = asked(ray(2), racks(1, 4))
    (held,) = reserved(first)
    old = dict(first.object or {})
    on = racks(1, 4).with_reservation(replace(held, state="claimed"))
    decision = asked(with_workers(old, 9), on, old)
    assert not decision.response.allowed
    assert "can never run: 10 pods (72 GPUs) do not fit the empty cluster" in decision.response.message
    assert "node affinity" not in decision.response.message


def test_a_gang_that_grows_where_there_is_no_room_now_keeps_its_place() -> None:
    """It is not queued, for it runs: the warning says what the further pods wait for."""
    _, on = started(o.changed(ray(2), ("metadata", "name"), "other"), racks(2, 4))
    old, on = started(ray(4), on)
    decision = updated(old, with_workers(old, 6), on)
    assert (reserved(decision), decision.response.patch) == ([], [])
    (warning,) = decision.response.warnings
    assert (
        "keeps its place in r2, and has no place beside it for 2 more pods: 7 pods (48 GPUs) fit" in warning
    )
    assert "reserved by team/RayCluster/other" in warning


def test_a_gang_that_wants_a_place_or_nothing_is_refused_further_pods_without_one() -> None:
    """It says so itself (`on-unavailable: reject`)."""
    hall = cluster("r1: a b gpu=8\nr2: c d e f gpu=8")
    old, on = started(ray(2, **REQUIRED, **{"bayplan.dev/on-unavailable": "reject"}), hall)
    decision = asked(with_workers(old, 4), on, old)
    assert not decision.response.allowed
    assert "All of it would fit in r2, if deleted and applied again" in decision.response.message


def test_a_gang_that_shrinks_is_not_refused_though_its_nodes_are_gone() -> None:
    """The rest of the cluster has less room than the gang asks for."""
    old, on = started(ray(4, **{"bayplan.dev/on-unavailable": "reject"}), racks(1, 4))
    for name in ("r1-n2", "r1-n3"):
        on = on.without_node(name)
    assert updated(old, with_workers(old, 3), on).response.warnings


def test_further_pods_count_towards_the_limit_of_the_namespace() -> None:
    """The gang keeps what it has; the warning has the numbers."""
    old, on = started(ray(2), racks(2, 4))
    settings = Settings(holds=HoldLimits(gpus=32))
    decision = updated(old, with_workers(old, 5), on, settings=lambda namespace: settings)
    (warning,) = decision.response.warnings
    assert "3 more pods: namespace team may hold 32 GPUs by parameter holds.gpus" in warning


def test_an_elastic_gang_gets_as_many_further_seats_as_fit() -> None:
    """Two workers are its minimum; it asks for five more, and has room for two."""
    elastic = o.changed(ray(2), (*GROUPS, 0, "minReplicas"), 2)
    _, on = started(o.changed(ray(4), ("metadata", "name"), "other"), racks(2, 4))
    old, on = started(elastic, on)
    (held,) = reserved(updated(old, with_workers(old, 7), on))
    assert nodes_of(held) == ["r2-n1", "r2-n2", "r2-n3", "r2-n4"]


def test_other_levels_leave_a_running_gang_where_it_is() -> None:
    """It spans two racks, and is to be in one: a plan would move its reservation away from its pods."""
    old, on = started(ray(5), racks(2, 8, gpu=8).without_node("r1-n8").without_node("r1-n7"))
    assert updated(old, o.annotated(old, REQUIRED), on).response.allowed
    old, on = started(ray(3), cluster("r1: a b gpu=8\nr2: c d gpu=8\nr3: e gpu=8"))
    decision = updated(old, o.annotated(old, REQUIRED), on)
    assert reserved(decision) == []
    assert any("which does not serve as asked" in warning for warning in decision.response.warnings)
