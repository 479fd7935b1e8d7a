"""`bayplan doctor` on schedulers beside Bayplan: they run, have what is named, and no two queue the same."""

from __future__ import annotations

from typing import Any

import pytest

from planner.model.schedulers import KAI, KUEUE, SchedulersSeen
from webhook.kube.state.scheduling_findings import SchedulingObjects, scheduling_findings

SEEN = SchedulersSeen(
    {
        KAI: "CustomResourceDefinition queues.scheduling.run.ai",
        KUEUE: "CustomResourceDefinition workloads.kueue.x-k8s.io",
    },
    topologies={KAI: {"racks": ("rack", "kubernetes.io/hostname")}},
)


def running(image: str, name: str = "scheduler", phase: str = "Running") -> dict[str, Any]:
    """A pod with one container."""
    return {
        "metadata": {"namespace": "system", "name": name},
        "spec": {"containers": [{"name": "main", "image": image}]},
        "status": {"phase": phase},
    }


def document(name: str, namespace: str = "research", **spec: Any) -> dict[str, Any]:
    """Any object."""
    return {"metadata": {"namespace": namespace, "name": name}, "spec": spec}


KAI_POD = running("ghcr.io/kai-scheduler/kai-scheduler/scheduler:v0.17.0", "kai-default")
KUEUE_POD = running("registry.k8s.io/kueue/kueue:v0.15.0@sha256:aa", "kueue")
FLAVORS = [{"flavors": [{"name": "h100"}]}]
WELL = {
    "pods": (KAI_POD, KUEUE_POD),
    "kueue_topologies": (document("racks"),),
    "flavors": (document("h100", topologyName="racks"),),
    "cluster_queues": (document("gpus", resourceGroups=FLAVORS),),
    "local_queues": (document("team", clusterQueue="gpus"),),
    "kai_queues": (document("all"), document("default-queue", parentQueue="all")),
}


def messages(seen: SchedulersSeen = SEEN, **changes: Any) -> tuple[list[str], list[str]]:
    """What is well and what is not, where all is well but for the changes."""
    findings = scheduling_findings(seen, SchedulingObjects(**{**WELL, **changes}))
    assert all(finding.mend for finding in findings if finding.grade == "warn")
    return (
        [finding.message for finding in findings if finding.grade == "ok"],
        [finding.message for finding in findings if finding.grade == "warn"],
    )


def test_what_runs_is_told_with_its_version_and_the_one_that_was_tried() -> None:
    """One line for each system."""
    well, bad = messages()
    assert bad == []
    assert well == [
        (
            "kai-scheduler runs as system/kai-default, version v0.17.0"
            " (tried: KAI-Scheduler d5bc503a (August 2026))"
        ),
        "kueue runs as system/kueue, version v0.15.0 (tried: Kueue v0.19.2 (August 2026))",
    ]


@pytest.mark.parametrize(
    "pods", [(KUEUE_POD,), (running("kai-scheduler/scheduler:v1", phase="Pending"), KUEUE_POD)]
)
def test_kinds_without_a_running_scheduler_keep_what_is_left_to_it_waiting(pods: Any) -> None:
    """CustomResourceDefinitions alone start no pods."""
    (text,) = messages(pods=pods)[1]
    assert "kai-scheduler is there by CustomResourceDefinition queues.scheduling.run.ai" in text
    assert "no pod that runs it is running: what is left to it waits" in text


def test_a_kai_that_does_not_read_the_gang_size_of_jobs_is_told() -> None:
    """The recipe pins such a version."""
    old = running("kai-scheduler/scheduler:v0.12.4", "kai-default")
    assert "KAI v0.12.4 does not read kai.scheduler/batch-min-member" in messages(pods=(old, KUEUE_POD))[1][0]


def test_a_kai_without_a_topology_is_told() -> None:
    """KAI does not know the levels of the plan then."""
    assert "KAI has no Topology" in messages(SchedulersSeen(SEEN.shown))[1][0]


@pytest.mark.parametrize(
    ("queues", "words"),
    [
        ((), "KAI has no Queue"),
        (
            (document("team", parentQueue="gone"),),
            "KAI's Queue team is below the Queue gone, which is not there: KAI leaves it out",
        ),
    ],
)
def test_queues_that_kai_does_not_have_are_told(queues: Any, words: str) -> None:
    """KAI reports them only in its log."""
    (text,) = messages(kai_queues=queues)[1]
    assert words in text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"local_queues": ()}, "Kueue has no LocalQueue"),
        (
            {"local_queues": (document("team", clusterQueue="gone"),)},
            "LocalQueue research/team is of the ClusterQueue gone",
        ),
        ({"flavors": ()}, "ClusterQueue gpus has the flavor h100, which is not there"),
        ({"kueue_topologies": ()}, "ResourceFlavor h100 names the Topology racks, which is not there"),
        (
            {"flavors": (document("h100", tolerations=[{"operator": "Exists"}]),)},
            "ResourceFlavor h100 tolerates bayplan.dev/reserved",
        ),
    ],
)
def test_what_kueues_queues_lack_is_told(change: Any, words: str) -> None:
    """Each fault keeps workloads waiting without a message."""
    assert words in messages(**change)[1][0]


def test_racks_that_kueue_may_use_beside_their_holders_are_told() -> None:
    """Where it places by topology, a gang holds a rack whole, and no node carries the taint of a fence."""
    held = document("bp-1", gang="research/Job/train", mode="domain")
    (text,) = messages(reservations=(held,), nodes=(document("r1-n1"),))[1]
    assert "of ResourceFlavor h100 by topology, and may use nodes that 1 gang holds unused" in text
    fenced = document("r1-n1", taints=[{"key": "bayplan.dev/reserved", "value": "x", "effect": "NoSchedule"}])
    assert messages(reservations=(held,), nodes=(fenced,))[1] == []
    assert messages(reservations=(document("bp-1", gang="research/Job/train", mode="nodes"),))[1] == []
    assert messages(reservations=(held,), flavors=(document("h100"),))[1] == []


def test_two_that_would_queue_the_same_workload_are_told() -> None:
    """Kueue takes every Job, or a Job in its queue is for KAI's scheduler; never where Kueue is alone."""
    config = "apiVersion: config.kueue.x-k8s.io/v1beta1\nmanageJobsWithoutQueueName: true\n"
    assert "Kueue queues every workload" in messages(kueue_config=config)[1][0]
    assert messages(kueue_config=config.replace("true", "false"))[1] == []
    job = document("train", template={"spec": {"schedulerName": KAI}})
    assert (
        "1 Jobs are queued by Kueue and kai-scheduler, as research/train"
        in messages(queued_jobs=(job,))[1][0]
    )
    assert messages(queued_jobs=(document("train", template={"spec": {}}),))[1] == []
    alone = SchedulersSeen({KUEUE: "a kind"})
    assert messages(alone, kueue_config=config, queued_jobs=(job,))[1] == []
