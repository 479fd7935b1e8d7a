"""Annotations that Bayplan writes and reads are written by tenants: a copy of another's gains nothing."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import orjson
import pytest

from planner.cluster.snapshot import Snapshot
from planner.model.pod import BoundPod
from planner.model.reservation import Book, Reservation, reservation_id
from tests.attack.storm import review_of
from tests.builders import amounts, racks
from tests.effort import cpu_seconds
from tests.webhook.workloads import objects as o
from webhook.admission.decision import Decision, decide
from webhook.admission.environment import Environment
from webhook.admission.size import MOST_ENTRIES
from webhook.cli.common.inputs import policy_store
from webhook.placement.pod_gang import INDEX
from webhook.placement.schedulers.evictions import before_evictions
from webhook.wire.review import decode
from webhook.workloads.keys.annotation_keys import GANG_OF, PLACEMENT, POD_SET, RESERVATION

Json = dict[str, Any]
POLICIES = policy_store([]).current
OWNERS = {
    "no owner": None,
    "ReplicationController": {"apiVersion": "v1", "kind": "ReplicationController", "name": "rc"},
    "a kind of the tenant's": {"apiVersion": "example.com/v1", "kind": "Job", "name": "train"},
    "another group's JobSet": {"apiVersion": "example.com/v1", "kind": "JobSet", "name": "train"},
    "Volcano's Job": {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train"},
    "Pod": {"apiVersion": "v1", "kind": "Pod", "name": "train"},
    "TrainJob": {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "train"},
    "PodGroup": {"apiVersion": "scheduling.run.ai/v2", "kind": "PodGroup", "name": "train"},
}
"""Controllers into whose templates Bayplan writes nothing: they have none, or it does not read them."""


def asked(obj: Json, snapshot: Snapshot, *, old: Json | None = None) -> Decision:
    """The mutating decision on an object of its namespace."""
    review = review_of(obj, obj["metadata"]["name"])
    request = {**review["request"], "namespace": obj["metadata"]["namespace"], "object": obj}
    if old is not None:
        request |= {"operation": "UPDATE", "oldObject": old}
    body = orjson.dumps({**review, "request": request})
    return decide(decode(body), POLICIES, snapshot, "mutate", Environment(fenced=True))


def pod(annotations: Json, owner: Json | None = None) -> Json:
    """A pod of one GPU in the namespace of the thief, with the label of an Indexed Job's pods."""
    metadata: Json = {"name": "thief", "generateName": "thie", "namespace": "storm", "labels": {INDEX: "0"}}
    metadata["annotations"] = annotations
    if owner is not None:
        metadata["ownerReferences"] = [{**owner, "uid": "1", "controller": True}]
    containers = copy.deepcopy(o.pod_template(1)["spec"]["containers"])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}


@pytest.fixture(scope="module")
def held() -> tuple[Snapshot, Json]:
    """Two racks of two nodes, one of which a gang of another namespace holds whole; its pods' annotations."""
    snapshot = racks(2, 2)
    template = copy.deepcopy(o.pod_template(8))
    template["spec"]["restartPolicy"] = "Never"
    annotations = {
        "bayplan.dev/reserve": "domain",
        "kai.scheduler/topology": "topo",
        "kai.scheduler/topology-required-placement": "rack",
    }
    spec = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "template": template}
    job = o.obj("batch/v1", "Job", spec)
    job["metadata"] = {"name": "train", "namespace": "research", "annotations": annotations}
    decision = asked(job, snapshot)
    assert decision.plan is not None
    assert decision.object is not None
    (reservation,) = decision.plan.reservations
    assert reservation.mode == "domain"
    return snapshot.with_reservation(reservation), decision.object["spec"]["template"]["metadata"][
        "annotations"
    ]


@pytest.mark.parametrize("owner", OWNERS.values(), ids=OWNERS)
@pytest.mark.parametrize(
    "forged",
    [
        {},
        {RESERVATION: "", POD_SET: ""},
        {GANG_OF: "research/Job/train"},
        {PLACEMENT: json.dumps({"decision": "queued", "waitsFor": "eviction"})},
        {PLACEMENT: json.dumps({"decision": "admitted", "nodes": ["r1-n1"], "reserves": [["r1"]]})},
        {PLACEMENT: "[" * 2000},
    ],
    ids=["copied", "placement alone", "gang", "says it evicts", "says it has nodes", "no JSON"],
)
def test_a_pod_with_a_copy_of_anothers_annotations_is_planned_for_itself(
    held: tuple[Snapshot, Json], forged: Json, owner: Json | None
) -> None:
    """It is placed outside the reserved rack and gets no toleration of its fence."""
    snapshot, annotations = held
    decision = asked(pod({**annotations, **forged}, owner), snapshot)
    assert decision.plan is not None
    assert decision.object is not None
    assert [placed.group.name.partition("/")[0] for placed in decision.plan.placed] == ["storm"]
    assert decision.plan.decision == "admitted"
    nodes = {a.node for placed in decision.plan.placed for a in placed.answer.assignments}
    assert nodes <= {"r2-n1", "r2-n2"}
    spec = decision.object["spec"]
    assert "r1-n" not in json.dumps(spec.get("affinity"))
    assert not spec.get("tolerations")
    assert decision.object["metadata"]["annotations"][RESERVATION] != annotations[RESERVATION]


@pytest.mark.parametrize("owner", ["a kind of the tenant's", "Volcano's Job", "Pod"])
def test_a_pod_has_no_place_of_a_gang_that_its_controller_is_only_named_like(
    held: tuple[Snapshot, Json], owner: str
) -> None:
    """In the gang's own namespace too: a Job of another API group is another object."""
    snapshot, _ = held
    copy_of_name = pod({}, OWNERS[owner])
    copy_of_name["metadata"]["namespace"] = "research"
    if owner == "Pod":  # a driver that makes its executors, as Spark's does
        copy_of_name["metadata"]["ownerReferences"][0]["name"] = "driver"
        driver = pod({})
        driver["metadata"] |= {"name": "driver", "namespace": "research"}
        plan = asked(driver, snapshot).plan
        assert plan is not None
        snapshot = plan.snapshot
    decision = asked(copy_of_name, snapshot)
    assert decision.plan is not None
    assert [placed.group.name for placed in decision.plan.placed] == ["research/Pod/thief"]
    assert [held.gang for held in decision.plan.reservations] == ["research/Pod/thief"]


def neighbour(held: tuple[Snapshot, Json], changes: Json) -> Decision:
    """The decision on a pod without a controller in the namespace of the gang that holds rack r1."""
    snapshot, annotations = held
    obj = pod(annotations)
    obj["metadata"] |= {"namespace": "research", **changes}
    return asked(obj, snapshot)


@pytest.mark.parametrize("changes", [{}, {"name": ""}, {"uid": "2"}], ids=["named", "generated", "stored"])
def test_a_pod_without_controller_has_no_place_by_a_copied_id_in_the_gangs_own_namespace(
    held: tuple[Snapshot, Json], changes: Json
) -> None:
    """It is no pod of the gang, and would use GPUs on the gang's nodes without being counted."""
    decision = neighbour(held, changes)
    assert decision.plan is not None
    assert decision.object is not None
    (placed,) = decision.plan.placed
    assert placed.group.name.startswith("research/Pod/thie")
    assert {a.node for a in placed.answer.assignments} <= {"r2-n1", "r2-n2"}
    assert decision.object["metadata"]["annotations"][RESERVATION] != held[1][RESERVATION]


def test_a_pod_without_controller_has_no_place_by_the_labels_of_a_replica() -> None:
    """JobSet's labels count on pods of its Jobs alone."""
    held, reservation = _pod_that_holds("train", gang="research/JobSet/train/0")
    labels = {"jobset.sigs.k8s.io/jobset-name": "train", "jobset.sigs.k8s.io/job-global-index": "0"}
    obj = pod({RESERVATION: reservation.id})
    obj["metadata"] |= {"namespace": "research", "labels": labels}
    plan = asked(obj, held).plan
    assert plan is not None
    assert [placed.group.name for placed in plan.placed] == ["research/Pod/thief"]
    controller = {"apiVersion": "batch/v1", "kind": "Job", "name": "train-0", "uid": "1", "controller": True}
    obj["metadata"]["ownerReferences"] = [controller]
    plan = asked(obj, held).plan
    assert plan is not None
    assert [placed.group.name for placed in plan.placed] == [reservation.gang]


@pytest.mark.parametrize(
    ("uid", "claimed_by", "is_own"),
    [("1", "", True), ("1", "1", True), ("2", "1", False), ("", "", False)],
    ids=["its hold", "it claimed", "another claimed", "before it has a UID"],
)
def test_a_pod_under_a_generated_name_has_the_reservation_that_it_claims(
    uid: str, claimed_by: str, *, is_own: bool
) -> None:
    """A pod without a name has the reservation of its id, until another pod has claimed it."""
    held, reservation = _pod_that_holds("thie1234", claimed_by=claimed_by)
    obj = pod({RESERVATION: reservation.id})
    obj["metadata"] |= {"namespace": "research", "uid": uid}
    plan = asked(obj, held).plan
    assert plan is not None
    (placed,) = plan.placed
    assert placed.group.name == (reservation.gang if is_own else "research/Pod/thief")


def _pod_that_holds(name: str, *, gang: str = "", claimed_by: str = "") -> tuple[Snapshot, Reservation]:
    """Two racks, in which a pod of one GPU holds its place; for `gang` if given."""
    obj = pod({})
    obj["metadata"] |= {"name": name, "namespace": "research"}
    plan = asked(obj, racks(2, 2)).plan
    assert plan is not None
    (reservation,) = plan.reservations
    gang = gang or reservation.gang
    reservation = replace(reservation, id=reservation_id(gang), gang=gang, owner_uid=claimed_by)
    return racks(2, 2).with_reservation(reservation), reservation


def test_a_bound_pod_with_a_copy_of_anothers_reservation_starts_nothing(held: tuple[Snapshot, Json]) -> None:
    """A gang has started where a pod of its own namespace is bound; only then may schedulers evict it."""
    snapshot, annotations = held
    waiting: Json = {"spec": {}}
    fence = before_evictions(waiting, snapshot)
    (reservation,) = snapshot.reservations

    def beside(name: str) -> Snapshot:
        return snapshot.with_pod(
            BoundPod(name, "r1-n1", amounts(pods=1), reservation=annotations[RESERVATION])
        )

    assert before_evictions(waiting, beside("storm/thief")) == fence
    assert not beside("storm/thief").runs(reservation)
    assert beside("research/train-0").runs(reservation)
    assert before_evictions(waiting, beside("research/train-0")) != fence


def test_a_placement_that_is_nested_too_deeply_counts_as_none() -> None:
    """JSON may be nested deeper than Python can show it as text."""
    obj = pod({PLACEMENT: f'{{"topology": {"[" * 1010}{"]" * 1010}}}'})
    decision = asked(obj, racks(2, 2))
    assert decision.plan is not None
    assert decision.plan.decision == "admitted"


def test_managed_fields_do_not_count_as_a_large_object() -> None:
    """The API server writes an entry for each in a list; clients may send any."""
    obj = pod({})
    obj["metadata"]["managedFields"] = [{"manager": str(n)} for n in range(MOST_ENTRIES + 1)]
    assert asked(obj, racks(2, 2)).response.allowed


def test_a_pod_that_does_not_name_a_group_has_no_place_by_its_id() -> None:
    """The id of a gang that pods join counts on pods that name the group."""
    held, reservation = _pod_that_holds("ring", gang="research/PodGroup/ring")
    obj = pod({RESERVATION: reservation.id})
    obj["metadata"] |= {"namespace": "research", "name": "", "generateName": "thief-"}
    plan = asked(obj, held).plan
    assert plan is not None
    assert [placed.group.name.rpartition("/")[0] for placed in plan.placed] == ["research/Pod"]


def test_thousands_of_reservation_ids_cost_no_time(held: tuple[Snapshot, Json]) -> None:
    """They are compared with the reservations of the whole cluster, and a tenant may write as many as fit."""
    snapshot, _ = held
    (reservation,) = snapshot.reservations
    others = [f"research/Job/other-{n}" for n in range(1500)]
    holds = (replace(reservation, id=reservation_id(gang), gang=gang) for gang in others)
    crowded = snapshot.with_book(Book(1, tuple(holds)))
    job = {"apiVersion": "batch/v1", "kind": "Job", "name": "train"}
    forged = pod({RESERVATION: ",".join(f"bp-{n}" for n in range(30_000))}, job)
    plain = cpu_seconds(lambda: asked(pod({}, job), crowded), tries=3)
    assert cpu_seconds(lambda: asked(forged, crowded), tries=3) < plain + 0.15
