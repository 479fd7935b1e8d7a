"""Replicas that are queued, and more than the empty cluster has room for, are told how many fit there.

r1: two hosts, one of them free
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import cluster
from tests.webhook.workloads import objects as o
from webhook.placement.planning import plan_workload
from webhook.workloads import read

ONE_FREE = cluster("r1: a\nr1: b used=8")
LIMIT = "All {} replicas: {} pods ({} GPUs) do not fit the empty cluster: the whole cluster has room for 2 of"


def groups(replicas: int, size: int = 1, gpus: int = 8, **annotations: str) -> dict[str, Any]:
    """A LeaderWorkerSet."""
    template = {"size": size, "workerTemplate": o.pod_template(gpus)}
    spec = {"replicas": replicas, "leaderWorkerTemplate": template}
    return o.obj("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec, **annotations)


def messages(obj: dict[str, Any]) -> list[str]:
    """The message of each replica."""
    return [gang_plan.answer.message for gang_plan in plan_workload(ONE_FREE, read(obj)).placed]


def test_of_three_replicas_on_two_hosts_the_queued_ones_are_told() -> None:
    """The first has a place, and needs to know nothing."""
    first, *queued = messages(groups(3))
    assert "empty cluster" not in first
    assert [LIMIT.format(3, 3, 24) in message for message in queued] == [True, True]


def test_two_replicas_on_two_hosts_only_wait() -> None:
    """Both fit the empty cluster."""
    assert "All 2 replicas" not in messages(groups(2))[1]


def test_a_level_that_each_replica_requires_is_not_one_for_all_of_them() -> None:
    """Each requires one host, and all together would not be required there."""
    wish = {"leaderworkerset.sigs.k8s.io/exclusive-topology": "kubernetes.io/hostname"}
    assert LIMIT.format(3, 3, 24) in messages(groups(3, **wish))[2]


@pytest.mark.parametrize(("replicas", "size"), [(3, 2), (1, 1)])
def test_no_other_gang_is_told(replicas: int, size: int) -> None:
    """Replicas of several pods each, and a single replica."""
    assert not [message for message in messages(groups(replicas, size, 4)) if "All " in message]


def test_jobs_of_different_pods_are_not_counted_together() -> None:
    """A JobSet whose Jobs start in order: one with eight GPUs, and two with four."""
    jobs = [
        {
            "name": name,
            "replicas": count,
            "template": {"spec": {"parallelism": 1, "completions": 1, "template": o.pod_template(gpus)}},
        }
        for name, count, gpus in (("large", 1, 8), ("small", 2, 4))
    ]
    spec = {"startupPolicy": {"startupPolicyOrder": "InOrder"}, "replicatedJobs": jobs}
    obj = o.obj("jobset.x-k8s.io/v1alpha2", "JobSet", spec)
    alone = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "kubernetes.io/hostname"}
    of_jobs = messages(o.annotated(obj, alone))
    assert len(of_jobs) == 3
    assert not [message for message in of_jobs if "All " in message]


def test_the_message_of_all_replicas_counts_those_that_are_planned() -> None:
    """Of 1,001 pods of a Deployment, which are one gang each."""
    spec = {"replicas": 1001, "selector": {"matchLabels": {"app": "a"}}, "template": o.pod_template(8)}
    workload = read(o.obj("apps/v1", "Deployment", spec))
    plan = plan_workload(ONE_FREE, replace(workload, holds=True))
    assert plan.message().startswith("of the first 1000 of 1001 replicas 1 admitted, 999 queued: ")
