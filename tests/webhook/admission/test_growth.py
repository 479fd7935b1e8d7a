"""Gangs that wait for nodes of an autoscaled pool are admitted without a gate and reserve nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from planner.manifests.growth import pools_from_text
from planner.model.errors import Where
from tests.builders import racks
from webhook.admission.configuration.settings import Settings
from webhook.admission.decision import decide
from webhook.admission.decision_record import Decision
from webhook.admission.environment import Environment
from webhook.placement.stamp import placement_annotation
from webhook.policy import load
from webhook.wire.request import from_object

Json = dict[str, Any]
POOL = "h100: nodes=4 nvidia.com/gpu=8 cpu=64 memory=512Gi"
NO_POLICIES = load([])


def job(pods: int, image: str = "busybox", **annotations: str) -> Json:
    """A Job that is a gang of whole nodes."""
    limits = {"limits": {"nvidia.com/gpu": "8"}}
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": image, "resources": limits}]}
    metadata = {
        "name": "train",
        "namespace": "default",
        "annotations": {"bayplan.dev/gang": "train", **annotations},
    }
    run = {"parallelism": pods, "completions": pods, "completionMode": "Indexed", "template": {"spec": spec}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": run}


def mutate(obj: Json, stated: str = POOL) -> Decision:
    """The decision in a cluster of two nodes of 8 GPUs with these pools as a parameter."""
    chosen = Settings(growing=pools_from_text(stated, Where()))
    environment = replace(Environment(), settings=lambda namespace: chosen)
    return decide(from_object(obj, uid="uid"), NO_POLICIES, racks(1, 2), "mutate", environment)


def gates(obj: Json | None) -> list[Json]:
    """The scheduling gates of a Job's template."""
    assert obj is not None
    scheduling_gates: list[Json] = obj["spec"]["template"]["spec"].get("schedulingGates", [])
    return scheduling_gates


def test_a_gang_that_waits_for_nodes_is_admitted_without_gate_or_placement() -> None:
    """Autoscalers add nodes for unschedulable pods and ignore gated ones."""
    decision = mutate(job(4))
    assert decision.response.allowed
    assert gates(decision.object) == []
    assert decision.steps == ()
    (warning,) = (text for text in decision.response.warnings if "h100" in text)
    assert warning.startswith(
        "default/Job/train is admitted without a place, so that an autoscaler adds nodes: "
        "4 pods (32 GPUs) wait for 2 more nodes of pool h100"
    )
    assert decision.object is not None
    annotations = decision.object["metadata"]["annotations"]
    assert json.loads(annotations["bayplan.dev/placement"]) == {"decision": "queued", "waitsFor": "nodes"}
    assert not placement_annotation(annotations).in_queue, "the controller does not queue it either"


def test_pods_of_such_a_gang_are_not_held_back() -> None:
    """The pods have the Job's template and the Job as their controller."""
    stored = mutate(job(4)).object
    assert stored is not None
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u", "controller": True}
    template = stored["spec"]["template"]
    index = {"batch.kubernetes.io/job-completion-index": "0"}
    metadata = {
        **template["metadata"],
        "name": "train-0",
        "namespace": "default",
        "ownerReferences": [owner],
        "labels": index,
    }
    decision = mutate({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
    assert decision.response.allowed
    assert decision.object is not None
    assert "schedulingGates" not in decision.object["spec"]
    assert decision.steps == ()


def test_without_a_growing_pool_it_can_never_run() -> None:
    """The same gang in the same cluster is rejected."""
    decision = mutate(job(4), "")
    assert not decision.response.allowed
    assert "can never run" in decision.response.message


def test_a_gang_that_wants_a_place_or_nothing_is_refused() -> None:
    """With `on-unavailable: reject` the refusal names the pool, and does not say "can never run"."""
    decision = mutate(job(4, **{"bayplan.dev/on-unavailable": "reject"}))
    assert not decision.response.allowed
    assert "wait for 2 more nodes of pool h100" in decision.response.message
    assert "can never run" not in decision.response.message


def test_asked_again_it_is_answered_the_same() -> None:
    """The annotations of the first answer do not change the second."""
    first = mutate(job(4))
    assert first.object is not None
    again = mutate(dict(first.object))
    assert again.response.allowed
    assert again.response.patch == []


@pytest.mark.parametrize(
    ("image", "alone"),
    [
        ("registry.k8s.io/pause:3.10", True),
        ("602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/pause@sha256:0a1b", True),
        ("registry.k8s.io/pause-amd64:3.2", True),
        ("pause", True),
        ("example.com/pause/train:1", False),
        ("example.com/pausetrain:1", False),
    ],
)
def test_placeholders_are_left_alone(image: str, alone: bool) -> None:
    """Pods that only reserve nodes are neither planned nor changed nor gated."""
    decision = mutate(job(9, image=image), "")
    assert decision.response.allowed == alone
    if alone:
        assert decision.plan is None
        assert "bayplan.dev/placement" not in json.dumps(decision.response.patch)
