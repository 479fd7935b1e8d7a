"""A manifest is applied again with other numbers of pods: its templates stay, so that nothing restarts."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.builders import racks
from tests.policies.helpers import policies, with_parameters
from tests.webhook.admission.updates.test_resized_gang import (
    asked,
    ray,
    reserved,
    started,
    updated,
    with_workers,
)
from tests.webhook.workloads import objects as o
from webhook.admission.updates.reapply import with_former_counts
from webhook.jsontools.path import find
from webhook.workloads import read

Json = dict[str, Any]
HALL = racks(2, 4)
GROUP = ("workerGroupSpecs", 0, "replicas")
KINDS = [
    (ray(3), ("spec", *GROUP)),
    (
        o.obj("ray.io/v1", "RayService", {"rayClusterConfig": ray(3)["spec"]}),
        ("spec", "rayClusterConfig", *GROUP),
    ),
    (o.obj("ray.io/v1", "RayJob", {"rayClusterSpec": ray(3)["spec"]}), ("spec", "rayClusterSpec", *GROUP)),
    (o.PYTORCH_JOB, ("spec", "pytorchReplicaSpecs", "Worker", "replicas")),
    (o.MPI_JOB, ("spec", "mpiReplicaSpecs", "Worker", "replicas")),
    (o.changed(o.LWS, ("spec", "leaderWorkerTemplate", "size"), 2), ("spec", "replicas")),
    (o.changed(o.LWS, ("spec", "leaderWorkerTemplate", "size"), 2), ("spec", "leaderWorkerTemplate", "size")),
    (o.GROVE, ("spec", "template", "cliques", 0, "spec", "replicas")),
    (o.annotated(o.STATEFUL_SET, {"bayplan.dev/gang": "demo"}), ("spec", "replicas")),
]
each_kind = pytest.mark.parametrize(
    ("manifest", "path"), KINDS, ids=[f"{obj['kind']} {path[-1]}" for obj, path in KINDS]
)


def merged(stored: Json, manifest: Json) -> Json:
    """What `kubectl apply` of a manifest makes of the stored object of a custom kind: it merges maps, and
    replaces lists that differ."""
    result = dict(stored)
    for key, value in manifest.items():
        are_maps = isinstance(value, dict) and isinstance(stored.get(key), dict)
        result[key] = merged(stored[key], value) if are_maps else value
    return result


def templates(obj: Json) -> list[Any]:
    """The pods' specs and metadata."""
    return [
        find(obj, path)
        for template in (*read(obj).templates, *read(obj).inlined)
        for path in (template.spec_path, template.metadata_path)
        if path != template.path
    ]


@pytest.mark.parametrize("number", [1, 4])
@each_kind
def test_the_templates_stay_as_admission_left_them(
    manifest: Json, path: tuple[str | int, ...], number: int
) -> None:
    """Replaced, as GitOps tools do, or merged by kubectl. A RayService got a second cluster."""
    old, on = started(manifest, HALL)
    wanted = o.changed(manifest, path, number)
    for sent in (wanted, merged(old, wanted)):
        after = dict(updated(old, sent, on).object or {})
        assert templates(after) == templates(old)
        assert find(after, path) == number


def test_a_manifest_is_recognised_after_its_gang_has_grown() -> None:
    """Its templates name the first place only; a new object would be pinned to all of it."""
    old, on = started(ray(3), HALL)
    decision = updated(old, with_workers(old, 6), on)
    grown, on = dict(decision.object or {}), on.with_reservation(*reserved(decision))
    for sent in (ray(6), merged(grown, ray(6)), merged(grown, ray(7))):
        assert templates(dict(updated(grown, sent, on).object or {})) == templates(grown)


def test_a_manifest_is_recognised_after_its_gang_was_queued() -> None:
    """Its templates are pinned nowhere; a new object would be pinned to the place that it has by now."""
    _, full = started(o.changed(ray(8), ("metadata", "name"), "other"), HALL)
    old = copy.deepcopy(dict(asked(ray(3), full).object or {}))
    for on in (HALL, full):
        after = dict(updated(old, merged(old, ray(3)), on).object or {})
        assert templates(after) == templates(old)


def test_another_image_is_followed_with_another_number() -> None:
    """The digests of the first manifest do not match it."""
    old, on = started(ray(3), HALL)
    image = ("spec", "workerGroupSpecs", 0, "template", "spec", "containers", 0, "image")
    wanted = o.changed(ray(2), image, "trainer:2")
    for sent in (wanted, merged(old, wanted)):
        assert find(dict(updated(old, sent, on).object or {}), image) == "trainer:2"


def test_a_label_that_is_named_like_a_number_of_pods_is_no_number() -> None:
    """Only what stands beside the templates is."""
    labels = ("spec", "workerGroupSpecs", 0, "template", "metadata")
    manifest = o.changed(ray(3), labels, {"labels": {"size": "1"}})
    old, on = started(manifest, HALL)
    wanted = o.changed(manifest, (*labels, "labels", "size"), "2")
    assert find(dict(updated(old, wanted, on).object or {}), (*labels, "labels", "size")) == "2"


def test_former_numbers_are_those_of_the_stored_object() -> None:
    """In lists of equal length; what the stored object does not state is not stated."""
    assert with_former_counts(ray(5), ray(3), read(ray(5))) == ray(3)
    bare = copy.deepcopy(ray(3))
    del bare["spec"]["workerGroupSpecs"][0]["replicas"]
    assert with_former_counts(ray(5), bare, read(ray(5))) == bare
    none = o.changed(ray(3), ("spec", "workerGroupSpecs"), [])
    without = with_former_counts(ray(5), none, read(ray(5)))
    assert "replicas" not in without["spec"]["workerGroupSpecs"][0]


def test_other_policies_are_not_applied_to_what_was_replaced_with_more_pods() -> None:
    """They would restart it."""
    old, on = started(ray(3), HALL)
    for by in (policies("guaranteed-qos"), with_parameters(**{"scheduler-name.name": "volcano"})):
        assert templates(dict(updated(old, ray(2), on, by=by).object or {})) == templates(old)
