"""A gang in a KAI queue with too low a GPU limit is admitted with a warning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.manifests.cluster import read
from planner.model.errors import InputError
from tests.builders import cluster
from tests.policies.helpers import policies
from tests.webhook.workloads import objects as o
from webhook.admission.decision import decide
from webhook.wire.request import from_object


def queue(name: str, limit: Any, parent: str = "") -> Any:
    """A Queue of KAI's."""
    spec = {"parentQueue": parent, "resources": {"gpu": {"quota": 1, "limit": limit}}}
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }


def warnings_for(*queues: Any, label: str = "train", runtime_class: str = "", **labels: str) -> str:
    """The warnings of a Job for 16 GPUs in a queue."""
    snapshot = cluster("r1: a b c d")
    base = read(("queues.yaml", item) for item in queues).base
    snapshot = replace(
        snapshot,
        base=replace(
            snapshot.base,
            schedulers=base.schedulers,
            priorities=base.priorities,
            runtime_classes=base.runtime_classes,
        ),
    )
    spec = {
        "parallelism": 2,
        "completions": 2,
        "completionMode": "Indexed",
        "template": o.pod_template(8, limits={"cpu": "2"}),
    }
    job = o.obj("batch/v1", "Job", spec)
    job["metadata"]["labels"] = {"kai.scheduler/queue": label, **labels}
    job["spec"]["template"]["spec"]["schedulerName"] = "kai-scheduler"
    if runtime_class:
        job["spec"]["template"]["spec"]["runtimeClassName"] = runtime_class
    decision = decide(from_object(job, uid="1"), policies("node-affinity"), snapshot, "mutate")
    assert decision.response.allowed
    return " ".join(decision.response.warnings)


def test_a_gang_above_the_limit_of_its_queue_hears_the_numbers() -> None:
    """Its GPUs, the queue and the limit."""
    assert "asks for 16 GPUs, and KAI's queue train may use 8: KAI does not start it" in warnings_for(
        queue("train", 8)
    )


def test_the_lowest_limit_above_a_queue_counts() -> None:
    """The message names that queue."""
    words = warnings_for(queue("train", 32, "team"), queue("team", 12, "all"), queue("all", 64))
    assert "KAI's queue train may use 12 (by the limit of team above it)" in words


@pytest.mark.parametrize("limit", [16, -1, None])
def test_a_limit_that_suffices_or_is_none_says_nothing(limit: Any) -> None:
    """In KAI, -1 is no limit."""
    assert "may use" not in warnings_for(queue("train", limit))


def test_the_limit_of_another_queue_says_nothing() -> None:
    """Only that which the workload names."""
    assert "may use" not in warnings_for(queue("train", 8), label="other")


def test_a_limit_that_is_no_number_names_its_field() -> None:
    """As for any malformed field."""
    with pytest.raises(InputError, match=r"spec\.resources\.gpu\.limit: expected a number of GPUs"):
        warnings_for(queue("train", "eight"))


def quotas(name: str, gpu: float, cpu: float = -1, parent: str = "") -> Any:
    """A Queue without limits; quotas in GPUs and thousandths of a CPU."""
    amounts = {"gpu": gpu, "cpu": cpu, "memory": -1}
    resources = {resource: {"quota": amount, "limit": -1} for resource, amount in amounts.items()}
    manifest = queue(name, -1, parent)
    manifest["spec"]["resources"] = resources
    return manifest


BUILD = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "build"},
    "value": 100,
}


def test_a_gang_that_kai_evicts_for_nobody_hears_of_a_quota_that_it_exceeds() -> None:
    """As in the queues of KAI's own chart, whose quotas are 0: seen to wait there for ever."""
    words = warnings_for(BUILD, quotas("train", 0), priorityClassName="build")
    assert "is of class build, so that KAI evicts no pod of it. It asks for 16 GPUs" in words
    assert "KAI's queue train has a quota of 0 GPUs: KAI does not start it" in words
    assert "label it kai.scheduler/preemptibility: preemptible" in words


def test_the_lowest_quota_above_a_queue_counts_and_so_does_that_of_cpus() -> None:
    """Of the first resource that is short the numbers are told."""
    listed = (quotas("train", 16, 2000, "team"), quotas("team", -1, 1000))
    words = warnings_for(BUILD, *listed, **{"kai.scheduler/preemptibility": "non-preemptible"})
    assert "is labelled non-preemptible" in words
    assert "has a quota of 1 cpu (by the quota of team above it)" in words


@pytest.mark.parametrize(
    ("quota", "labels"),
    [
        (16, {"priorityClassName": "build"}),
        (-1, {"priorityClassName": "build"}),
        (0, {}),
        (0, {"priorityClassName": "nowhere"}),
        (0, {"priorityClassName": "build", "kai.scheduler/preemptibility": "preemptible"}),
    ],
    ids=[
        "enough",
        "no bound",
        "of class train",
        "of an unknown class",
        "says that it may be evicted",
    ],
)
def test_a_quota_that_does_not_count_says_nothing(quota: float, labels: dict[str, str]) -> None:
    """KAI lends GPUs beyond the quota to gangs that it may evict."""
    assert "quota" not in warnings_for(BUILD, quotas("train", quota), **labels)


KATA = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "kata"},
    "handler": "kata",
    "overhead": {"podFixed": {"cpu": "500m"}},
}


def test_the_overhead_of_the_runtime_class_counts_in_the_quota() -> None:
    """Two pods of two CPUs: KAI adds the overhead of each pod to its requests."""
    listed, label = (BUILD, KATA, quotas("train", 16, 4000)), {"priorityClassName": "build"}
    assert "quota" not in warnings_for(*listed, **label)
    words = warnings_for(*listed, runtime_class="kata", **label)
    assert "It asks for 5 cpu; KAI's queue train has a quota of 4 cpu" in words
