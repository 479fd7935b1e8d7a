"""A gang that holds a place is scaled up by `kubectl scale`, of which admission sees only the pods."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from planner.cluster.snapshot import Snapshot
from planner.model.errors import Where
from planner.model.pod import BoundPod
from tests.builders import racks
from tests.webhook.admission.updates.test_resized_gang import asked, ray, started
from tests.webhook.kube.worlds import NOW, world
from tests.webhook.workloads import objects as o
from webhook.kube.controller.reconcile import reconcile
from webhook.kube.controller.steps import Action, Admit, Beside, LetIn
from webhook.kube.state.gangs import Unbound, Work, unbound_from, work_from
from webhook.placement.hold_limits import HoldLimits
from webhook.workloads.keys.annotation_keys import POD_SET, QUEUED_GATE, RESERVATION

Json = dict[str, Any]
SET = o.obj(
    "apps/v1", "StatefulSet", {"replicas": 2, "template": o.pod_template(8)}, **{"bayplan.dev/gang": "demo"}
)


def stored(obj: Json, on: Snapshot) -> tuple[Json, Snapshot]:
    """The object as it is stored, and the cluster in which its pods run."""
    old, on = started(obj, on)
    old["metadata"]["uid"] = "uid-demo"
    return old, on


def pod_of(obj: Json, name: str, on: Snapshot) -> Json:
    """A pod that the object's controller creates, as it is stored."""
    owner = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": "demo", "uid": "uid-demo"}
    template = obj["spec"].get("template") or obj["spec"]["workerGroupSpecs"][0]["template"]
    metadata = {**template["metadata"], "name": name, "namespace": "team"}
    metadata["ownerReferences"] = [{**owner, "controller": True}]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    decision = asked(pod, on)
    assert decision.response.allowed
    return copy.deepcopy(dict(decision.object or {}))


def work_of(obj: Json) -> Work:
    """The object as the controller reads it."""
    work = work_from(obj, Where(), obj["apiVersion"], obj["kind"])
    assert work is not None, "it is a gang"
    return work


def unbound(pod: Json) -> Unbound:
    """The pod as the controller reads it."""
    pod["metadata"]["uid"] = f"uid-{pod['metadata']['name']}"
    read_pod = unbound_from(pod, Where())
    assert read_pod is not None, "it is not being deleted"
    return read_pod


def actions_of(obj: Json, on: Snapshot, *pods: Json, limits: HoldLimits | None = None) -> list[Action]:
    """What the controller does with the pods of the object."""
    state = world(on, works=(work_of(obj),), pods=tuple(map(unbound, pods)))
    if limits is not None:
        state = replace(state, limits=lambda namespace: limits)
    return [action for action in reconcile(state) if isinstance(action, (Admit, Beside, LetIn))]


def test_a_pod_beyond_the_seats_waits_free_of_its_gangs_place() -> None:
    """It was pinned to two full nodes, and waited there for ever."""
    old, on = stored(SET, racks(2, 2))
    pod = pod_of(old, "demo-2", on)
    assert pod["spec"]["schedulingGates"] == [{"name": QUEUED_GATE}]
    assert pod["spec"]["affinity"] == {}
    assert RESERVATION not in pod["metadata"]["annotations"]


def test_it_gets_a_seat_beside_those_of_the_gang() -> None:
    """The controller knows of how many pods the object is by now."""
    old, on = stored(SET, racks(2, 2))
    pods = [pod_of(old, f"demo-{index}", on) for index in (2, 3)]
    scaled = o.changed(old, ("spec", "replicas"), 4)
    (action,) = actions_of(scaled, on, *pods)
    assert isinstance(action, Admit)
    assert action.reservation is not None
    assert sorted(seat.node for seat in action.reservation.assignments) == [
        "r1-n1",
        "r1-n2",
        "r2-n1",
        "r2-n2",
    ]
    assert [pod.ref.name for pod in action.gang.pods] == ["demo-2", "demo-3"]


def test_a_gang_that_is_scaled_down_holds_what_it_uses() -> None:
    """It held a rack for as long as it existed. A reservation that is newer than the watch stays."""
    old, on = stored(o.changed(SET, ("spec", "replicas"), 4), racks(2, 4))
    scaled = o.changed(old, ("spec", "replicas"), 1)
    (action,) = actions_of(scaled, on)
    assert isinstance(action, Admit)
    assert action.reservation is not None
    assert [seat.node for seat in action.reservation.assignments] == ["r1-n1"]
    (held,) = on.reservations
    assert actions_of(scaled, on.with_reservation(replace(held, created=NOW - 1))) == []
    assert actions_of(old, on) == []


def test_without_room_it_waits_and_the_object_says_why() -> None:
    """A pod for which there is a seat does not wait with it."""
    old, on = stored(SET, racks(1, 2))
    pods = [pod_of(old, f"demo-{index}", on) for index in (2, 3)]
    scaled = o.changed(old, ("spec", "replicas"), 4)
    (action,) = actions_of(scaled, on, *pods)
    assert isinstance(action, Beside)
    assert action.answer.message.startswith("4 pods (32 GPUs) do not fit the empty cluster")
    (held,) = on.reservations
    (ended,) = (bound for bound in on.bound if bound.node == "r1-n2")
    beside, let_in = actions_of(scaled, on.without_pod(ended), *pods)
    assert isinstance(beside, Beside)
    assert isinstance(let_in, LetIn)
    assert (let_in.reservation, [pod.ref.name for pod in let_in.pods]) == (held, ["demo-2"])


def test_it_counts_towards_the_limit_of_the_namespace() -> None:
    """As further pods do in admission."""
    old, on = stored(SET, racks(2, 2))
    pod = pod_of(old, "demo-2", on)
    (action,) = actions_of(o.changed(old, ("spec", "replicas"), 3), on, pod, limits=HoldLimits(gpus=16))
    assert isinstance(action, Beside)
    assert "namespace team may hold 16 GPUs" in action.answer.message


def test_a_pod_that_replaces_one_which_still_ends_is_let_in_by_the_controller() -> None:
    """The gang has a seat for each of its pods."""
    old, on = stored(ray(2), racks(2, 2))
    pod = pod_of(old, "demo-w-x", on)
    assert pod["spec"]["schedulingGates"] == [{"name": QUEUED_GATE}]
    assert pod["metadata"]["annotations"][POD_SET] == "w"
    (action,) = actions_of(old, on, pod)
    assert isinstance(action, LetIn)


def test_a_pod_that_comes_again_under_its_name_has_its_seat() -> None:
    """The pod of a StatefulSet is in the snapshot until its end is seen."""
    old, on = stored(SET, racks(2, 2))
    (held,) = on.reservations
    on = on.with_pod(BoundPod("team/demo-1", "r1-n2", dict(held.requests)["main"], held.id))
    (other,) = (bound for bound in on.bound if bound.node == "r1-n2" and bound.name != "team/demo-1")
    pod = pod_of(old, "demo-1", on.without_pod(other))
    assert "schedulingGates" not in pod["spec"]


@pytest.mark.parametrize(
    "obj", [o.JOB, o.changed(o.LWS, ("spec", "leaderWorkerTemplate", "size"), 2)], ids=["Job", "LWS"]
)
def test_pods_of_kinds_that_do_not_grow_do_not_wait(obj: Json) -> None:
    """A Job starts a pod as soon as another has ended; a replica has its size."""
    old, on = started(obj, racks(2, 4))
    template = find_template(old)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "demo", "uid": "1", "controller": True}
    labels = {"batch.kubernetes.io/job-completion-index": "9"}
    if obj["kind"] == "LeaderWorkerSet":
        owner = {**owner, "apiVersion": "apps/v1", "kind": "StatefulSet"}
        labels = {"leaderworkerset.sigs.k8s.io/name": "demo", "leaderworkerset.sigs.k8s.io/group-index": "0"}
    metadata = {
        **template["metadata"],
        "name": "demo-9",
        "namespace": "team",
        "ownerReferences": [owner],
        "labels": labels,
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    assert "schedulingGates" not in (asked(pod, on).object or {})["spec"]


def find_template(obj: Json) -> Json:
    """The template of a Job, or of the workers of a LeaderWorkerSet."""
    spec = obj["spec"]
    return (
        spec["leaderWorkerTemplate"]["workerTemplate"] if "leaderWorkerTemplate" in spec else spec["template"]
    )


DEPLOYMENT = {**SET, "kind": "Deployment"}


def test_a_pod_that_a_rolling_update_starts_gets_a_seat_of_its_own() -> None:
    """It was pinned to the full nodes of the old pods, which end only once it is ready."""
    old, on = stored(DEPLOYMENT, racks(2, 2))
    pod = pod_of(old, "demo-new", on)
    (action,) = actions_of(old, on, pod)
    assert isinstance(action, Admit)
    assert action.reservation is not None
    assert sorted(seat.node for seat in action.reservation.assignments) == ["r1-n1", "r1-n2", "r2-n1"]
    assert [pod.ref.name for pod in action.gang.pods] == ["demo-new"]


def test_the_seat_of_an_old_pod_is_released_once_it_has_ended() -> None:
    """After a step of the update the gang has as many pods as replicas again."""
    old, on = stored(DEPLOYMENT, racks(2, 2))
    (grown,) = actions_of(old, on, pod_of(old, "demo-new", on))
    assert isinstance(grown, Admit)
    assert grown.reservation is not None
    held = replace(grown.reservation, created=0.0, expires=None)
    (ended,) = (bound for bound in on.bound if bound.node == "r1-n1")
    new = BoundPod("team/demo-new", "r2-n1", ended.requests, held.id)
    (action,) = actions_of(old, on.with_reservation(held).without_pod(ended).with_pod(new))
    assert isinstance(action, Admit)
    assert action.reservation is not None
    assert sorted(seat.node for seat in action.reservation.assignments) == ["r1-n2", "r2-n1"]


def test_without_room_the_pod_of_a_rolling_update_waits_until_an_old_one_has_ended() -> None:
    """It waits at the gate, where the gang says what it lacks."""
    old, on = stored(DEPLOYMENT, racks(1, 2))
    pod = pod_of(old, "demo-new", on)
    (action,) = actions_of(old, on, pod)
    assert isinstance(action, Beside)
    (ended,) = (bound for bound in on.bound if bound.node == "r1-n1")
    (let_in,) = actions_of(old, on.without_pod(ended), pod)
    assert isinstance(let_in, LetIn)


def test_the_pod_in_place_of_one_on_a_lost_node_has_its_seat() -> None:
    """The pod on the lost node ends, if ever; it is not one more."""
    old, on = stored(DEPLOYMENT, racks(1, 3))
    (held,) = on.reservations
    seats = tuple(replace(seat, node="r1-n3") if seat.node == "r1-n1" else seat for seat in held.assignments)
    nodes = frozenset({"r1-n2", "r1-n3"}) if held.nodes else held.nodes
    on = on.with_reservation(replace(held, assignments=seats, nodes=nodes))
    lost = {name: replace(n, ready=name != "r1-n1") for name, n in on.nodes.items()}
    on = replace(on, base=replace(on.base, nodes=lost))
    (action,) = actions_of(old, on, pod_of(old, "demo-new", on))
    assert isinstance(action, LetIn)
