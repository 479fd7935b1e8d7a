"""Objects whose owners, namespaces, claims or volumes do not exist: each gives a clear message, or none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.model.volumes import StorageClass, VolumeClaim, Volumes
from planner.node.runtime_class import RuntimeClasses
from tests.builders import racks
from webhook.admission.decision import decide
from webhook.admission.decision_record import Decision
from webhook.admission.environment import Environment
from webhook.policy import load
from webhook.wire.request import from_object

Json = dict[str, Any]


def pod(namespace: str = "research", owner: tuple[str, str] | None = None, claim: str = "") -> Json:
    """A pod of eight GPUs whose controller has this apiVersion and kind and is unknown."""
    metadata: Json = {"name": "p-0", "namespace": namespace}
    if owner:
        reference = {"apiVersion": owner[0], "kind": owner[1], "name": "gone", "uid": "u", "controller": True}
        metadata["ownerReferences"] = [reference]
    limits = {"limits": {"nvidia.com/gpu": "8"}}
    spec: Json = {"containers": [{"name": "main", "image": "busybox", "resources": limits}]}
    if claim:
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def answer(obj: Json, environment: Environment | None = None, volumes: Volumes | None = None) -> Decision:
    """The decision on a new object in a cluster of two nodes."""
    snapshot = racks(1, 2)
    if volumes is not None:
        snapshot = snapshot.with_claims(snapshot.base.claims, volumes)
    return decide(from_object(obj, uid="uid"), load([]), snapshot, "mutate", environment or Environment())


@pytest.mark.parametrize(
    "owner", [("batch/v1", "Job"), ("apps/v1", "ReplicaSet"), ("example.com/v1", "Robot"), ("", "")]
)
def test_a_pod_whose_controller_does_not_exist_is_admitted(owner):
    """The owner was just deleted, or is invented; the garbage collector deletes such pods."""
    decision = answer(pod(owner=owner))
    assert decision.response.allowed
    assert decision.object is not None
    assert "schedulingGates" not in decision.object["spec"]


def test_a_namespace_that_is_gone_counts_as_one_without_labels():
    """It was deleted during the call; the settings for all namespaces apply."""
    namespace = {"metadata": {"name": "other", "labels": {"a": "b"}}}
    environment = Environment(namespaces={"other": namespace})
    assert answer(pod("vanished"), environment).response.allowed
    assert answer(pod("vanished"), environment).plan == answer(pod("vanished")).plan


def test_a_claim_that_is_gone_is_a_warning():
    """The scheduler waits for the claim."""
    volumes = Volumes(classes={"fast": StorageClass("fast", waits=True)})
    decision = answer(pod(claim="gone"), volumes=volumes)
    assert decision.response.allowed
    assert any("the claim gone is not known" in text for text in decision.response.warnings)


@pytest.mark.parametrize(
    ("claim", "warning"),
    [
        (
            VolumeClaim("research/data", "fast", "pv-gone", bound=True),
            "the volume pv-gone of claim data is not known",
        ),
        (VolumeClaim("research/data", "gone"), "the claim data (no class that is known) has no volume yet"),
        (VolumeClaim("research/data"), "the claim data (no class that is known) has no volume yet"),
    ],
)
def test_a_volume_or_class_that_is_gone_is_a_warning(claim, warning):
    """A bound claim without its volume, a deleted class, and a missing default class."""
    decision = answer(pod(claim="data"), volumes=replace(Volumes(), claims={claim.name: claim}))
    assert decision.response.allowed
    assert any(warning in text for text in decision.response.warnings)


def test_a_runtime_class_that_is_gone_is_a_warning():
    """The API server creates no pod of such a template; the object itself may be stored."""
    template = {"spec": {**pod()["spec"], "runtimeClassName": "kata"}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template}}
    snapshot = racks(1, 2)
    base = replace(snapshot.base, runtime_classes=RuntimeClasses(complete=True))
    snapshot = snapshot.evolve(base=base, changed_nodes=frozenset())
    decision = decide(from_object(job, uid="uid"), load([]), snapshot, "mutate", Environment())
    assert decision.response.allowed
    assert any(
        "RuntimeClass 'kata' is not in this cluster, so the API server refuses the pods; leave "
        "runtimeClassName out" in warning
        for warning in decision.response.warnings
    ), decision.response.warnings
