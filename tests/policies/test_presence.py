"""What a user hears, and what is written, in a cluster that is watched: what was not seen is not there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.manifests.schedulers.systems import watched
from planner.model.schedulers import KAI, KUEUE
from tests.builders import cluster
from tests.policies.helpers import mutate
from webhook.admission.decision_record import Decision

Json = dict[str, Any]


def live(*schedulers: str) -> Snapshot:
    """Two nodes of one rack, as watched, with a pod that shows each of these schedulers."""
    drawn = cluster("r1: a b")
    seen = watched(drawn.base.schedulers, [("system/p", (name,)) for name in schedulers])
    return Snapshot(replace(drawn.base, schedulers=seen))


def job(scheduler: str = "", **labels: str) -> Json:
    """A Job of two pods of whole nodes."""
    container = {"name": "main", "image": "trainer", "resources": {"limits": {"nvidia.com/gpu": 8}}}
    spec: Json = {"restartPolicy": "Never", "containers": [container]}
    if scheduler:
        spec["schedulerName"] = scheduler
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "research", "labels": labels},
        "spec": {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "template": {"spec": spec}},
    }


def scheduler_of(decision: Decision) -> str:
    """The schedulerName of the pods."""
    assert decision.object is not None
    return str(decision.object["spec"]["template"]["spec"].get("schedulerName", ""))


def about_schedulers(decision: Decision) -> list[str]:
    """The warnings that name a scheduler or a queue."""
    return [
        warning
        for warning in decision.response.warnings
        if "scheduler-missing" in warning or "kai-lacks" in warning
    ]


def test_kube_scheduler_alone_serves_without_a_word() -> None:
    """No warning with each apply; the audit log has the note."""
    decision = mutate(job(), on=live())
    assert scheduler_of(decision) == ""
    assert decision.response.warnings == []
    assert "is not written" in decision.response.audit_annotations["scheduler-presence.not-written"]


def test_a_scheduler_that_nobody_runs_gets_a_warning_with_those_that_are_there() -> None:
    """The user's word stays."""
    decision = mutate(job("topology-aware-scheduler"), on=live("volcano"))
    assert scheduler_of(decision) == "topology-aware-scheduler"
    (warning,) = about_schedulers(decision)
    assert (
        "shows a scheduler topology-aware-scheduler, and pods that name it wait for ever. "
        "There are default-scheduler, volcano."
    ) in warning
    assert about_schedulers(mutate(job("volcano"), on=live("volcano"))) == []


def test_a_queue_of_kueue_where_there_is_no_kueue_gets_a_warning() -> None:
    """And nothing of Kueue's is written."""
    queued = job(**{"kueue.x-k8s.io/queue-name": "gpus"})
    decision = mutate(queued, on=live())
    assert "nothing in the cluster shows Kueue, for whose queue gpus" in about_schedulers(decision)[0]
    assert "podset" not in str(decision.object)
    assert "no LocalQueue gpus" in about_schedulers(mutate(queued, on=live(KUEUE)))[0]


def test_kai_without_any_queue_gets_a_warning_and_no_queue() -> None:
    """The scheduler is there, so the pods are its own."""
    decision = mutate(job(), on=live(KAI))
    assert scheduler_of(decision) == KAI
    assert decision.object is not None
    assert "kai.scheduler/queue" not in decision.object["metadata"]["labels"]
    assert "KAI has no queue default-queue" in about_schedulers(decision)[0]
