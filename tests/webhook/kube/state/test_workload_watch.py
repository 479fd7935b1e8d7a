"""What is above a pod, as the watches tell: who leaves the plan, and who has been seen at all."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from planner.ledger.sqlite import SqliteLedger
from tests.webhook.workloads import objects as o
from webhook.cli.inputs import policy_store
from webhook.kube.api.client import Event
from webhook.kube.state.gangs import WATCHED
from webhook.kube.state.workload_watch import QueueWatch
from webhook.server.cluster_source import NoCluster
from webhook.server.service import Service
from webhook.wire.request import from_object

Json = dict[str, Any]


def watch_of(*stored: Json) -> QueueWatch:
    """A watch that has seen these objects; nothing is called."""
    nobody: Any = None
    watch = QueueWatch(nobody, lambda: None)
    watch._served = {row.name: f"/apis/{row.group}/{row.versions[0]}/{row.resource}" for row in WATCHED}
    for obj in stored:
        item = {**obj, "metadata": {"uid": obj["kind"], "resourceVersion": "1", **obj["metadata"]}}
        (store,) = watch._by_kind[obj["kind"]]
        store.changed(Event("ADDED", item))
    return watch


def made_by(obj: Json, owner: Json) -> Json:
    """A copy that another object made."""
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": "demo",
        "uid": owner["kind"],
    }
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": [{**reference, "controller": True}]}}


def test_what_a_workload_that_leaves_the_plan_makes_leaves_it_too() -> None:
    """A CronJob says so on itself alone; its Job and the Job's pods carry nothing."""
    leaves = o.annotated(o.CRON_JOB, {"bayplan.dev/skip": "true"})
    assert watch_of(leaves, made_by(o.JOB, leaves)).skips("team/Job/demo")
    assert not watch_of(o.CRON_JOB, made_by(o.JOB, leaves)).skips("team/Job/demo")
    assert not watch_of().skips("team/Job/demo")


def test_owners_in_a_ring_end_the_climb() -> None:
    """Anybody can write owner references by hand."""
    assert not watch_of(made_by(o.JOB, o.JOB)).skips("team/Job/demo")


def test_an_owner_is_known_once_it_was_seen_or_is_never_watched() -> None:
    """Seen counts, be it that nothing of it is kept; of a kind that nobody watches nothing ever is."""
    plain = o.changed(o.JOB, ("spec", "template", "spec", "containers", 0, "resources"), {})
    assert watch_of(plain).knows("team/Job/demo")
    assert not watch_of().knows("team/Job/demo")
    assert watch_of().knows("team/Trial/demo")


@dataclass
class LateCluster(NoCluster):
    """A cluster in which an owner is seen at the third look."""

    looks: list[str] = field(default_factory=list)

    def knows_owner(self, owner: str) -> bool:
        """The third time."""
        self.looks.append(owner)
        return len(self.looks) > 2


def test_a_pod_waits_until_its_owner_was_seen(tmp_path: Any) -> None:
    """The Job controller may be quicker than our watch; a pod without a controller waits for nobody."""
    cluster = LateCluster()
    service = Service(policy_store(()), SqliteLedger(tmp_path / "ledger.db"), cluster)
    for pod in (made_by(o.POD, o.JOB), o.POD):
        request = from_object(pod, uid="uid", namespace="team")
        assert asyncio.run(service.answer(request, "mutate")).response.allowed
    assert cluster.looks == ["team/Job/demo"] * 3
