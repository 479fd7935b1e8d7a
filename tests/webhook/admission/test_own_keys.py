"""Keys by which pods say that they are planned already stay in no template that was not planned."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from planner.cluster.snapshot import Snapshot
from tests.builders import racks
from tests.webhook.admission.test_forged_annotations import asked
from tests.webhook.workloads import objects as o
from webhook.jsontools.path import Path, find, replaced
from webhook.placement.pod_gang import INDEX
from webhook.workloads import pod_templates
from webhook.workloads.keys.annotation_keys import GANG_OF, PLACEMENT, POD_SET, RESERVATION

Json = dict[str, Any]
EVICTS = json.dumps({"decision": "queued", "waitsFor": "eviction"})
FORGED = {PLACEMENT: EVICTS, RESERVATION: "bp-0123456789abcdef", POD_SET: "w", GANG_OF: "storm/Job/x"}
AT_NONE: dict[str, tuple[Json, Path]] = {
    "Deployment": (o.DEPLOYMENT, ("spec", "replicas")),
    "Deployment that is a gang": (o.annotated(o.DEPLOYMENT, {"bayplan.dev/gang": "g"}), ("spec", "replicas")),
    "ReplicaSet": (o.REPLICA_SET, ("spec", "replicas")),
    "StatefulSet": (o.STATEFUL_SET, ("spec", "replicas")),
    "LeaderWorkerSet": (o.LWS, ("spec", "replicas")),
    "Job": (o.BAG, ("spec", "parallelism")),
    "Indexed Job": (o.JOB, ("spec", "parallelism")),
}


def in_storm(obj: Json) -> Json:
    """The object in the namespace of the thief."""
    return replaced(obj, ("metadata",), {**obj["metadata"], "namespace": "storm"})  # type: ignore[no-any-return]


def with_template_metadata(obj: Json, field: str, entries: Json) -> Json:
    """The object with these entries in the metadata of each template."""
    for template in pod_templates(obj):
        metadata = find(obj, template.metadata_path) or {}
        filled = {**metadata, field: {**(metadata.get(field) or {}), **entries}}
        holder = {**find(obj, template.path), "metadata": filled}
        obj = replaced(obj, template.path, holder)
    return obj


def annotations_of(obj: Json | None) -> list[Json]:
    """The annotations of each template."""
    assert obj is not None
    return [find(obj, (*part.metadata_path, "annotations")) or {} for part in pod_templates(obj)]


def forged_in(obj: Json | None) -> list[Json]:
    """What is left of the forged annotations in each template."""
    return [
        {key: value for key, value in FORGED.items() if annotations.get(key) == value}
        for annotations in annotations_of(obj)
    ]


@pytest.mark.parametrize(
    ("kind", "operation"),
    [
        *((kind, "CREATE") for kind in AT_NONE),
        # The API server lets nobody change the template of a Job.
        *((kind, "UPDATE") for kind in AT_NONE if not kind.endswith("Job")),
    ],
)
def test_a_template_that_makes_no_pods_yet_says_nothing_of_a_plan(kind: str, operation: str) -> None:
    """When it is scaled up, its pods would be trusted although nothing was planned."""
    obj, path = AT_NONE[kind]
    plain = in_storm(replaced(obj, path, 0))
    forged = with_template_metadata(plain, "annotations", FORGED)
    result = asked(forged, racks(2, 2), old=plain if operation == "UPDATE" else None).object
    assert not any(forged_in(result))


@pytest.mark.parametrize("obj", [obj for obj in o.EVERY if obj is not o.POD], ids=lambda obj: obj["kind"])
def test_what_skips_the_plan_brings_none_in_its_templates(obj: Json) -> None:
    """When the skip annotation is removed, the pods are planned; for every kind."""
    skipping = o.annotated(in_storm(obj), {"bayplan.dev/skip": "true"})
    result = asked(with_template_metadata(skipping, "annotations", FORGED), racks(2, 2)).object
    assert not any(forged_in(result))


def test_pods_of_a_deployment_that_is_scaled_from_none_are_planned() -> None:
    """The pod comes with the annotations that its template was left."""
    obj, path = AT_NONE["Deployment"]
    forged = with_template_metadata(in_storm(replaced(obj, path, 0)), "annotations", FORGED)
    result = asked(forged, racks(2, 2)).object
    assert result is not None
    metadata = {**result["spec"]["template"]["metadata"], "name": "p", "namespace": "storm"}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "demo-5f", "uid": "1", "controller": True}
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": result["spec"]["template"]["spec"]}
    plan = asked(pod | {"metadata": metadata | {"ownerReferences": [owner]}}, racks(2, 2)).plan
    assert plan is not None
    assert plan.decision == "admitted"


def admitted(obj: Json) -> tuple[Json, Snapshot]:
    """The object as admission leaves it, and the cluster with what it holds."""
    decision = asked(obj, racks(2, 2))
    assert decision.object is not None
    assert decision.plan is not None
    assert decision.plan.decision == "admitted"
    return decision.object, decision.plan.snapshot


RUNNING = {
    "LeaderWorkerSet": o.LWS,
    "Deployment that is a gang": o.annotated(o.DEPLOYMENT, {"bayplan.dev/gang": "g"}),
    "Deployment": o.DEPLOYMENT,
}


def with_image(obj: Json, image: str) -> Json:
    """The object with another image in each container."""
    changed = copy.deepcopy(obj)
    for template in pod_templates(changed):
        for container in find(changed, (*template.spec_path, "containers")):
            container["image"] = image
    return changed


@pytest.mark.parametrize("kind", RUNNING)
def test_an_update_that_leaves_the_gangs_leaves_their_plan_in_the_templates(kind: str) -> None:
    """Another image: there is no other plan, and the pods find theirs as before."""
    old, snapshot = admitted(in_storm(RUNNING[kind]))
    assert all(PLACEMENT in annotations for annotations in annotations_of(old))
    decision = asked(with_image(old, "trainer:2"), snapshot, old=old)
    assert annotations_of(decision.object) == annotations_of(old)


@pytest.mark.parametrize("kind", RUNNING)
def test_a_rollback_brings_no_former_plan(kind: str) -> None:
    """The old template has annotations of an earlier plan."""
    old, snapshot = admitted(in_storm(RUNNING[kind]))
    former = {PLACEMENT: '{"decision": "admitted", "nodes": ["r9-n9"], "reserves": []}'}
    rolled = with_template_metadata(with_image(old, "trainer:0"), "annotations", former)
    assert annotations_of(asked(rolled, snapshot, old=old).object) == annotations_of(old)


@pytest.mark.parametrize("kind", RUNNING)
def test_an_update_that_leaves_the_gangs_brings_no_plan_of_its_own(kind: str) -> None:
    """The update changes the image and adds annotations that a user wrote."""
    old, snapshot = admitted(in_storm(RUNNING[kind]))
    forged = with_template_metadata(with_image(old, "trainer:2"), "annotations", FORGED)
    assert not any(forged_in(asked(forged, snapshot, old=old).object))


GANG_LABELS = {
    "Indexed Job": {INDEX: "0"},
    "JobSet": {"jobset.sigs.k8s.io/jobset-name": "js", "jobset.sigs.k8s.io/job-global-index": "0"},
}


@pytest.mark.parametrize("field", ["labels", "annotations"])
@pytest.mark.parametrize("entries", GANG_LABELS.values(), ids=GANG_LABELS)
@pytest.mark.parametrize(
    "obj", [o.BAG, replaced(o.BAG, ("spec", "parallelism"), 0), o.CRON_JOB], ids=["Job", "of none", "CronJob"]
)
def test_the_template_of_a_job_that_is_not_indexed_names_no_gang(
    obj: Json, entries: Json, field: str
) -> None:
    """Its pods would be of a gang that was planned: so none would be planned."""
    mode = ("spec", "jobTemplate", "spec") if obj["kind"] == "CronJob" else ("spec",)
    plain = {key: value for key, value in find(obj, mode).items() if key != "completionMode"}
    own = {"team": "blue", **entries}
    forged = with_template_metadata(in_storm(replaced(obj, mode, plain)), field, own)
    result = asked(forged, racks(2, 2)).object
    assert result is not None
    (template,) = pod_templates(result)
    kept = find(result, (*template.metadata_path, field))
    assert kept["team"] == "blue"
    assert not entries.keys() & kept.keys()


def test_an_indexed_jobs_template_keeps_its_labels() -> None:
    """Its controller writes the index of each pod over them."""
    job = with_template_metadata(in_storm(o.JOB), "labels", {INDEX: "0"})
    result = asked(job, racks(2, 2)).object
    assert result is not None
    assert result["spec"]["template"]["metadata"]["labels"] == {INDEX: "0"}
