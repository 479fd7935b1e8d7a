"""Which gang an object belongs to: the pod's annotations, its owner's, and remains of a former gang."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from planner.manifests.pods.bound_pod import MOST_RESERVATIONS
from planner.model.errors import Where
from tests.webhook.workloads import objects as o
from webhook.kube.state.gangs import Unbound, Work, unbound_from, work_from
from webhook.kube.state.gathering import gangs_of
from webhook.workloads.keys.annotation_keys import GANG_OF, QUEUED_GATE, RESERVATION

Json = dict[str, Any]
NAME = "team/StatefulSet/demo"


def stamped(obj: Json, *, uid: str, owner: Json | None = None) -> Json:
    """A StatefulSet or Deployment whose template says that its pods are one gang."""
    name = f"team/{obj['kind']}/demo"
    body = o.changed(obj, ("spec", "template", "metadata"), {"annotations": {GANG_OF: name}})
    return with_uid(body, uid, owner)


def with_uid(body: Json, uid: str, owner: Json | None = None) -> Json:
    """The object as it is stored, under its controller."""
    metadata: Json = {**body["metadata"], "uid": uid}
    if owner is not None:
        metadata["ownerReferences"] = [
            {
                "apiVersion": owner["apiVersion"],
                "kind": owner["kind"],
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
                "controller": True,
            }
        ]
    return {**body, "metadata": metadata}


def work(stored: Json) -> Work | None:
    """The object as the controller watches it."""
    return work_from(copy.deepcopy(stored), Where(), stored["apiVersion"], stored["kind"])


def pod_of(owner: Json, name: str, gang: str) -> Unbound:
    """A gated pod that the object's template says is of this gang."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "team", "annotations": {GANG_OF: gang}},
        "spec": {**o.pod_template()["spec"], "schedulingGates": [{"name": QUEUED_GATE}]},
    }
    unbound = unbound_from(with_uid(pod, f"uid-{name}", owner), Where())
    assert unbound is not None
    return unbound


def waiting(works: list[Work | None], *pods: Unbound) -> dict[str, int]:
    """The gangs that wait, with the number of their pods."""
    gangs = gangs_of([work for work in works if work is not None], pods)
    return {name: len(gang.pods) for name, gang in gangs.items() if gang.queued}


def test_pods_of_an_annotated_set_wait_as_one_gang() -> None:
    """The set's template carries the annotation to its pods."""
    stored = stamped(o.annotated(o.STATEFUL_SET, {"bayplan.dev/gang": "demo"}), uid="1")
    pods = [pod_of(stored, f"demo-{number}", NAME) for number in range(2)]
    assert waiting([work(stored)], *pods) == {NAME: 2}


def test_pods_of_a_set_that_is_no_gang_any_more_wait_each_by_itself() -> None:
    """Removing the annotation changes no template, so the pods are still gated."""
    stored = stamped(o.STATEFUL_SET, uid="1")
    pods = [pod_of(stored, f"demo-{number}", NAME) for number in range(2)]
    assert waiting([work(stored)], *pods) == {"team/Pod/demo-0": 1, "team/Pod/demo-1": 1}


def test_pods_of_a_deployment_that_is_no_gang_any_more_wait_each_by_itself() -> None:
    """A ReplicaSet stands between."""
    stored = stamped(o.DEPLOYMENT, uid="1")
    between = stamped(o.REPLICA_SET, uid="2", owner=stored)
    pod = pod_of(between, "demo-x1", "team/Deployment/demo")
    assert waiting([work(stored), work(between)], pod) == {"team/Pod/demo-x1": 1}


@pytest.mark.parametrize("seen", [False, True], ids=["neither", "its ReplicaSet alone"])
def test_a_pod_whose_set_was_not_seen_yet_is_not_let_in_by_itself(seen: bool) -> None:
    """The watches of two kinds are not in step; and the pods of a set that is gone are about to go."""
    stored = stamped(o.DEPLOYMENT, uid="1")
    between = stamped(o.REPLICA_SET, uid="2", owner=stored)
    pod = pod_of(between, "demo-x1", "team/Deployment/demo")
    assert waiting([work(between)] if seen else [], pod) == {}


def test_a_pod_that_names_a_gang_of_another_namespace_waits_by_itself() -> None:
    """Anybody can write the annotation; the pod's gate must still be removed."""
    stored = with_uid(o.STATEFUL_SET, "1")
    pod = pod_of(stored, "demo-0", "other/StatefulSet/demo")
    assert waiting([], pod) == {"team/Pod/demo-0": 1}


@pytest.mark.parametrize("between", [False, True], ids=["the pod", "its ReplicaSet"])
def test_a_pod_is_in_no_gang_of_another_namespace_whatever_owner_it_names(between: bool) -> None:
    """The API server stores an owner with the UID of an object of another tenant: the pod would get into that
    tenant's place, or hold its gang back by another gate.
    """
    foreign = {**o.DEPLOYMENT, "metadata": {**o.DEPLOYMENT["metadata"], "namespace": "other"}}
    stored = stamped(o.annotated(foreign, {"bayplan.dev/gang": "demo"}), uid="1")
    own = stamped(o.REPLICA_SET, uid="2", owner=stored)
    pod = pod_of(own if between else stored, "demo-0", NAME)
    gangs = gangs_of([seen for seen in (work(stored), work(own)) if seen is not None], [pod])
    assert len(gangs["other/Deployment/demo"].pods) == 0


def test_an_unbound_pod_with_thousands_of_reservation_ids_has_none() -> None:
    """As a bound pod (`stated_reservations`): each round compares them with every reservation."""

    def ids(count: int) -> tuple[str, ...]:
        text = ",".join(f"bp-{n}" for n in range(count))
        pod = unbound_from(with_uid(o.annotated(o.POD, {RESERVATION: text}), "1"), Where())
        assert pod is not None
        return pod.ids

    assert ids(2) == ("bp-0", "bp-1")
    assert ids(MOST_RESERVATIONS + 1) == ()
