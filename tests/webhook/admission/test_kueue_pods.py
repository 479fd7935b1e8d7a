"""Pods with Kueue's gate get a reservation once Kueue has admitted them, and none if Kueue places them.

Seen with Kueue ff69552e: a pod group that waited for quota held a rack, which a group with quota needed.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from planner.cluster.snapshot import Snapshot
from planner.ledger.conflicts import Wish
from planner.model.pod import BoundPod
from tests.policies.helpers import policies
from tests.webhook.admission.updates.test_unchanged import HALL, Json, asked, holding, stored
from tests.webhook.workloads import objects as o
from webhook.admission.decision import decide
from webhook.wire.request import from_object
from webhook.workloads.keys.annotation_keys import PLACEMENT, QUEUED_GATE, RESERVATION

QUEUE = "kueue.x-k8s.io/queue-name"


def with_kueue(**topologies: frozenset[str]) -> Snapshot:
    """The hall with Kueue; by LocalQueue of the namespace `team` the Topologies of its flavors."""
    seen = replace(
        HALL.base.schedulers,
        shown={**HALL.base.schedulers.shown, "kueue": "ClusterQueue all (kueue.x-k8s.io)"},
        queue_topologies={f"team/{queue}": names for queue, names in topologies.items()},
        topologies={"kueue": HALL.base.schedulers.topologies["kai-scheduler"]},
    )
    return Snapshot(replace(HALL.base, schedulers=seen))


PLAIN = with_kueue(quota=frozenset())
PLACES = with_kueue(quota=frozenset({"superpod"}))


def queued(obj: Json) -> Json:
    """In the LocalQueue `quota`."""
    return o.changed(obj, ("metadata", "labels"), {QUEUE: "quota"})


def member(number: int = 0) -> Json:
    """A pod of a group of two, that must be in one rack."""
    keys = {
        "kueue.x-k8s.io/pod-group-total-count": "2",
        "kai.scheduler/topology-required-placement": "cloud.provider.com/topology-rack",
    }
    pod = o.changed(o.annotated(o.POD, keys), ("metadata", "name"), f"demo-{number}")
    return o.changed(pod, ("metadata", "labels"), {QUEUE: "quota", "kueue.x-k8s.io/pod-group-name": "demo"})


def gates(pod: Json) -> list[str]:
    """Those of a pod."""
    return [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]


def reserved(decision: Any) -> list[str]:
    """The gangs for which a decision reserves a place."""
    return [step.reservation.gang for step in decision.steps if isinstance(step, Wish)]


def test_a_pod_in_kueues_queue_waits_at_our_gate_and_holds_nothing() -> None:
    """If the cluster has no Kueue, the label has no effect and the gang is reserved."""
    for number in range(2):
        decision = asked(member(number), on=PLAIN)
        assert decision.steps == ()
        assert gates(stored(decision)) == [QUEUED_GATE]
        assert '"queued"' in stored(decision)["metadata"]["annotations"][PLACEMENT]
        (warning,) = [text for text in decision.response.warnings if "Kueue has not admitted it yet" in text]
        assert "Now it would be admitted" in warning
    without = asked(member())
    assert reserved(without) == ["team/PodGroup/demo"]
    assert gates(stored(without)) == []


def test_a_pod_that_kueue_places_is_neither_planned_nor_gated() -> None:
    """Kueue's Topology-Aware Scheduling reads the pod as created and assigns its node."""
    decision = asked(member(), on=PLACES)
    assert decision.steps == ()
    assert decision.plan is None
    pod = stored(decision)
    assert gates(pod) == []
    assert "affinity" not in pod["spec"]
    assert not {PLACEMENT, RESERVATION} & pod["metadata"]["annotations"].keys()
    assert pod["metadata"]["annotations"]["kueue.x-k8s.io/podset-required-topology"]


@pytest.mark.parametrize("obj", [o.LWS, o.annotated(o.STATEFUL_SET, {"bayplan.dev/gang": "demo"})])
def test_a_set_in_kueues_queue_holds_nothing_when_it_is_made(obj: Json) -> None:
    """Kueue gates its pods instead of suspending it; outside the queue it is reserved at once."""
    outside = asked(obj, on=PLAIN)
    assert reserved(outside)
    for cluster in (PLAIN, PLACES):
        decision = asked(queued(obj), on=cluster)
        assert decision.steps == ()
        assert "nodeAffinity" not in str(stored(decision))


@pytest.mark.parametrize("cluster", [PLAIN, PLACES], ids=["Kueue counts quota", "Kueue places pods too"])
def test_what_can_never_run_is_refused_whoever_queues_it(cluster: Snapshot) -> None:
    """A pod requests more GPUs than any node has."""
    limits = {"limits": {"nvidia.com/gpu": 64}}
    large = queued(o.changed(o.POD, ("spec", "containers", 0, "resources"), limits))
    request = from_object(large, uid="uid", operation="CREATE")
    response = decide(request, policies(), cluster, "mutate").response
    assert not response.allowed
    assert "can never run" in response.message


def test_a_pod_that_an_owner_creates_is_not_checked_again_where_kueue_places_it() -> None:
    """Its owner was refused or admitted as a whole; refusing the pod would leave the owner without an end."""
    pod = o.changed(o.POD, ("spec", "containers", 0, "resources"), {"limits": {"nvidia.com/gpu": 64}})
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "demo", "uid": "u", "controller": True}
    assert asked(queued(o.changed(pod, ("metadata", "ownerReferences"), [owner])), on=PLACES).plan is None


def with_its_place(*nodes: str) -> Snapshot:
    """Kueue has admitted the group before, which holds its place; so many of its pods run on these nodes."""
    (held,) = holding(asked(member())).reservations
    seen = Snapshot(replace(HALL.base, schedulers=PLAIN.base.schedulers)).with_reservation(held)
    for number, node in enumerate(nodes, 1):
        requests = dict(held.requests)["main"]
        seen = seen.with_pod(BoundPod(f"team/demo-{number}", node, requests, held.id))
    return seen


def test_a_pod_that_comes_again_goes_where_its_gang_has_its_place() -> None:
    """Kueue admitted the group before; one pod was evicted and the other still runs."""
    (place,) = with_its_place().reservations
    again = asked(member(), on=with_its_place(place.assignments[0].node))
    assert gates(stored(again)) == []
    assert RESERVATION in stored(again)["metadata"]["annotations"]


def test_a_group_that_comes_again_is_not_pinned_before_kueue_has_admitted_it() -> None:
    """Kueue has evicted all of it and may choose another flavor: it goes to its place when its gate is
    open, and nothing is planned or held twice."""
    again = asked(member(), on=with_its_place())
    assert gates(stored(again)) == [QUEUED_GATE]
    assert "nodeAffinity" not in str(stored(again)["spec"].get("affinity"))
    assert reserved(again) == []
    assert any("when Kueue has admitted it" in text for text in again.response.warnings)


API_OF = {
    "StatefulSet": "apps/v1",
    "Job": "batch/v1",
    "ReplicationController": "v1",
    "Workflow": "argoproj.io/v1alpha1",
}


def made_for(kind: str, first: Json) -> Json:
    """A pod with the label of Kueue's queue that such an object makes for the first gang of a set."""
    labels = {
        QUEUE: "quota",
        "leaderworkerset.sigs.k8s.io/name": "demo",
        "leaderworkerset.sigs.k8s.io/group-index": "0",
    }
    pod = o.changed(o.annotated(o.POD, {}), ("metadata", "labels"), labels)
    pod["metadata"]["annotations"] = dict(first["metadata"]["annotations"])
    pod["metadata"]["ownerReferences"] = [
        {"apiVersion": API_OF[kind], "kind": kind, "name": "demo", "uid": "u", "controller": True}
    ]
    pod["spec"] = copy.deepcopy(first["spec"])
    return pod


@pytest.mark.parametrize(("kind", "waits"), [(kind, kind != "Job") for kind in API_OF])
def test_a_new_pod_of_a_set_is_not_pinned_before_kueue_has_admitted_it(kind: str, waits: bool) -> None:
    """Kueue may choose another flavor for it; pods of a Job are not gated by Kueue."""
    first = asked(o.LWS)
    template = stored(first)["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    for path in ("affinity", "schedulingGates"):
        template["spec"].pop(path, None)
    seen = Snapshot(replace(HALL.base, schedulers=PLAIN.base.schedulers))
    for held in holding(first).reservations:
        seen = seen.with_reservation(held)
    pod = made_for(kind, template)
    decision = asked(pod, on=seen)
    new = stored(decision)
    assert gates(new) == ([QUEUED_GATE] if waits else [])
    assert ("nodeAffinity" in str(new["spec"].get("affinity"))) is not waits
    assert decision.steps == () or not reserved(decision)
    labelled = o.changed(pod, ("metadata", "labels"), {**pod["metadata"]["labels"], "team": "a"})
    assert QUEUED_GATE not in str(asked(labelled, old=pod, on=seen).object), "no update may add a gate"
