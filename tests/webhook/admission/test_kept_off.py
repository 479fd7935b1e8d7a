"""A pod that is not to be queued is kept off nodes that gangs hold whole, or refused if it has no other."""

from __future__ import annotations

from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.ledger.conflicts import Wish
from planner.model.pod import BoundPod
from tests.builders import cluster
from tests.policies.helpers import policies
from tests.webhook.admission.updates.test_unchanged import Json, asked, stored
from tests.webhook.workloads import objects as o
from webhook.admission.decision import decide
from webhook.wire.request import from_object
from webhook.wire.review import Response

EIGHT = {"limits": {"nvidia.com/gpu": 8}}


def held_by_a_gang(on: Snapshot) -> Snapshot:
    """The cluster in which a Job of two pods holds a rack of two nodes whole."""
    job = o.annotated(o.JOB, {"bayplan.dev/gang": "true"})
    job["spec"] |= {"parallelism": 2, "completions": 2}
    job["spec"]["template"]["spec"]["containers"][0]["resources"] = EIGHT
    (wish,) = [step for step in asked(job, on=on).steps if isinstance(step, Wish)]
    return on.with_reservation(replace(wish.reservation, state="claimed", expires=None))


def pod(mode: str) -> Json:
    """A pod that needs a whole node."""
    obj = o.annotated(o.POD, {"bayplan.dev/on-unavailable": mode})
    obj["metadata"]["name"] = "other"
    obj["spec"]["containers"][0]["resources"] = EIGHT
    return obj


def validated(mode: str, on: Snapshot) -> Response:
    """The response to the validating call about the pod as the mutating call has changed it."""
    request = from_object(stored(asked(pod(mode), on=on)), uid="uid", operation="CREATE")
    return decide(request, policies(), on, "validate").response


def test_it_is_refused_if_gangs_hold_all_nodes_that_it_may_use() -> None:
    """Its affinity cannot change once it is stored. It was said that it can never run, by that affinity."""
    response = validated("admit", held_by_a_gang(cluster("r1: a b")))
    assert (response.allowed, response.code) == (False, 403)
    assert response.message == (
        "team/Pod/other asks not to be queued, and all nodes that it may use are among the 2 nodes that "
        "gangs hold whole now: its node affinity would keep it off them for good. Would work: "
        "bayplan.dev/on-unavailable: queue, or to apply it again once these gangs have ended."
    )


def test_it_is_let_in_if_another_node_may_become_free() -> None:
    """A pod without a gang uses that node now."""
    on = held_by_a_gang(cluster("r1: a b\nr2: c"))
    full = on.with_pod(BoundPod("team/busy", "c", {"nvidia.com/gpu": 8}))
    assert validated("admit", full).allowed


def test_a_pod_that_is_queued_waits_for_the_held_nodes() -> None:
    """It has no such affinity."""
    assert validated("queue", held_by_a_gang(cluster("r1: a b"))).allowed
