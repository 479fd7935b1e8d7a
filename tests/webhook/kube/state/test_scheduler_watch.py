"""Which schedulers a watched cluster shows, as kinds and pods come and go."""

from __future__ import annotations

from typing import Any

import pytest

from planner.model.schedulers import KAI, KUEUE
from tests.webhook.kube.state.test_cluster_watch import tell, watch
from webhook.kube.api.client import Api
from webhook.kube.state.cluster_watch import EXTRAS, ClusterWatch
from webhook.kube.state.findings import findings_of

Json = dict[str, Any]
QUEUES = next(kind for kind in EXTRAS if kind.resource == "queues")
NODES, PODS = 0, 1


def shown(cluster_watch: ClusterWatch) -> dict[str, str]:
    """What the picture tells of schedulers."""
    snapshot = cluster_watch.snapshot()
    assert snapshot is not None
    return dict(snapshot.base.schedulers.shown)


def bound(name: str, scheduler: str) -> Json:
    """A pod that a scheduler has bound."""
    metadata = {"name": name, "namespace": "research", "resourceVersion": "2"}
    return {"metadata": metadata, "spec": {"nodeName": "n1", "schedulerName": scheduler}}


def run_pods(cluster_watch: ClusterWatch, *pods: Json) -> None:
    """These are all pods now."""
    handler = cluster_watch.reflectors[PODS].handler
    handler.replaced([handler.read(pod) for pod in pods], 3)


class Serving(Api):
    """An API server that serves one group, or none."""

    def __init__(self, group: str, *resources: str) -> None:
        self.group, self.resources = group, resources

    async def get(self, path: str, **query: str) -> Json:
        """Discovery."""
        if path == "/apis":
            return {"groups": [{"name": self.group, "preferredVersion": {"version": "v1"}, "versions": []}]}
        return {"resources": [{"name": name} for name in self.resources]}


def test_a_queue_shows_kai_and_is_known_by_name() -> None:
    """Before, it was known that there is no queue."""
    cluster_watch = watch()
    assert shown(cluster_watch) == {}
    assert cluster_watch.snapshot().base.schedulers.queues == {KAI: frozenset(), KUEUE: frozenset()}  # type: ignore[union-attr]
    tell(cluster_watch, QUEUES, {"metadata": {"name": "research", "resourceVersion": "2"}, "spec": {}})
    assert shown(cluster_watch) == {KAI: "Queue research (scheduling.run.ai)"}
    assert cluster_watch.snapshot().base.schedulers.queues[KAI] == {"research"}  # type: ignore[union-attr]


async def test_a_kind_that_is_served_shows_its_system_until_it_is_gone() -> None:
    """Without any object of it."""
    cluster_watch = watch()
    assert await cluster_watch.find(Serving(QUEUES.group, "queues"), QUEUES) != ""
    assert shown(cluster_watch) == {KAI: "CustomResourceDefinition queues.scheduling.run.ai"}
    assert await cluster_watch.find(Serving(QUEUES.group, "others"), QUEUES) == ""
    assert shown(cluster_watch) == {}


def test_the_last_pod_of_a_scheduler_takes_it_along() -> None:
    """Other pods that come and go have no effect."""
    cluster_watch = watch()
    run_pods(cluster_watch, bound("a", "second"), bound("b", "second"), bound("c", "default-scheduler"))
    assert shown(cluster_watch) == {"second": "pod research/a"}
    run_pods(cluster_watch, bound("b", "second"))
    assert set(shown(cluster_watch)) == {"second"}
    run_pods(cluster_watch)
    assert shown(cluster_watch) == {}


def test_the_doctor_tells_what_is_there_and_by_what() -> None:
    """KAI without a queue schedules nothing, and that is a warning."""
    cluster_watch = watch()
    snapshot = cluster_watch.snapshot()
    assert snapshot is not None
    (finding,) = [reported for reported in findings_of(snapshot) if reported.subject == "schedulers"]
    assert (finding.grade, finding.message) == (
        "ok",
        "only kube-scheduler is there, and nothing is written for another one",
    )
    run_pods(cluster_watch, bound("a", KAI))
    snapshot = cluster_watch.snapshot()
    assert snapshot is not None
    (finding,) = [reported for reported in findings_of(snapshot) if reported.subject == "schedulers"]
    assert finding.grade == "warn"
    assert finding.message == (
        "kai-scheduler (by pod research/a; 0 queues, 0 Topology objects); KAI has no Queue"
    )


@pytest.mark.parametrize(
    ("resource", "offers"),
    [("habana.ai/gaudi", True), ("nvidia.com/mig-1g.10gb", True), ("example.com/gpu-license", False)],
)
def test_the_doctor_counts_the_gpus_that_are_planned(resource: str, offers: bool) -> None:
    """Not what has the letters in its name."""
    cluster_watch = watch()
    node = {
        "metadata": {"name": "n1", "resourceVersion": "2"},
        "status": {
            "allocatable": {"cpu": "8", "memory": "8Gi", "pods": "9", resource: "8"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    handler = cluster_watch.reflectors[NODES].handler
    handler.replaced([handler.read(node)], 2)
    snapshot = cluster_watch.snapshot()
    assert snapshot is not None
    (finding,) = [reported for reported in findings_of(snapshot) if reported.subject == "GPU nodes"]
    assert finding.grade == ("ok" if offers else "warn")
