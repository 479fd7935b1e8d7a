"""What is above a pod, as the watches tell: who leaves the plan, and who has been seen at all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.ledger.sqlite import SqliteLedger
from tests.webhook.workloads import objects as o
from webhook.admission.configuration.settings import Settings
from webhook.cli.common.inputs import policy_store
from webhook.kube.api.client import Event
from webhook.kube.state.gangs import WATCHED, Unbound, Work
from webhook.kube.state.gathering import Gang, gangs_of
from webhook.kube.state.workload_watch import QueueWatch
from webhook.server.cluster_source import NoCluster
from webhook.server.service import Service
from webhook.wire.request import from_object
from webhook.workloads.keys.annotation_keys import PLACEMENT, QUEUED_GATE
from webhook.workloads.options import ReserveDefaults

Json = dict[str, Any]


def watch_of(*stored: Json) -> QueueWatch:
    """A watch that has seen these objects; nothing is called."""
    nobody: Any = None
    watch = QueueWatch(nobody, lambda: None)
    watch._served = {row: f"/apis/{row.group}/{row.versions[0]}/{row.resource}" for row in WATCHED}
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


async def test_a_pod_waits_until_its_owner_was_seen(tmp_path: Any) -> None:
    """The Job controller may be quicker than our watch; a pod without a controller waits for nobody."""
    cluster = LateCluster()
    service = Service(policy_store(()), SqliteLedger(tmp_path / "ledger.db"), cluster)
    for pod in (made_by(o.POD, o.JOB), o.POD):
        request = from_object(pod, uid="uid", namespace="team")
        assert (await service.answer(request, "mutate")).response.allowed
    assert cluster.looks == ["team/Job/demo"] * 3


def test_a_gang_that_waits_is_read_with_what_it_holds_by_the_settings_of_its_namespace() -> None:
    """Of the settings as they are now; what a workload says itself counts before them."""
    says = o.annotated(o.JOB, {"bayplan.dev/reserve": "domain"})
    silent, loud = watch_of(o.JOB), watch_of(says)
    none = Settings(reserve=ReserveDefaults("none"))
    chosen = {"team": Settings(reserve=ReserveDefaults("nodes"))}

    def reserves(watch: QueueWatch) -> list[str]:
        watch.in_force = lambda: lambda namespace: chosen.get(namespace, none)
        return [group.reserve for work in watch.works() for group in work.gangs]

    assert (reserves(silent), reserves(loud)) == (["nodes"], ["domain"])
    chosen.clear()
    assert (reserves(silent), reserves(loud)) == (["none"], ["domain"])


def test_the_queue_is_worked_out_anew_when_the_settings_change() -> None:
    """And the controller is notified."""
    queued = o.annotated(o.changed(o.JOB, ("spec", "suspend"), False), {PLACEMENT: '{"decision": "queued"}'})
    watch = watch_of(queued)
    watch.in_force = lambda: lambda namespace: Settings(reserve=ReserveDefaults("nodes"))
    assert [gang.group.reserve for gang in watch.queue()] == ["nodes"]
    watch.in_force = lambda: lambda namespace: Settings(reserve=ReserveDefaults("none"))
    watch.rechosen()
    assert [gang.group.reserve for gang in watch.queue()] == ["none"]


GROUP = {"metadata": {"name": "serve", "namespace": "team"}, "spec": {"minMember": 8}}
"""A PodGroup that the two Jobs of `member` make together."""


def member(name: str) -> Json:
    """A Job of 4 pods, whose template names the PodGroup."""
    job = o.changed(o.JOB, ("spec", "template", "metadata"), {"annotations": {"pod-group-name": "serve"}})
    return {**job, "metadata": {**job["metadata"], "name": name, "uid": name}}


def names(watch: QueueWatch) -> set[str]:
    """The gangs of what is stored."""
    return {group.name for work in watch.works() for group in work.gangs}


def test_a_pod_group_that_comes_after_its_jobs_makes_them_one_gang() -> None:
    """And a group that goes leaves each of them alone: the watches of two kinds are not in step."""
    watch = watch_of(member("left"), member("right"))
    assert names(watch) == {"team/Job/left", "team/Job/right"}
    groups: Json = {("team", "serve"): GROUP}
    watch._groups = lambda: groups
    assert names(watch) == {"team/PodGroup/serve"}
    groups = {}
    assert names(watch) == {"team/Job/left", "team/Job/right"}


def test_a_pod_group_that_a_scheduler_made_for_a_job_changes_no_gang() -> None:
    """KAI's podgrouper makes one for the pods of each Job, and writes its name onto them."""
    watch = watch_of(member("left"))
    group = {**GROUP, "metadata": {**GROUP["metadata"], "ownerReferences": [{"kind": "Job", "name": "left"}]}}
    groups: Json = {("team", "serve"): group}
    watch._groups = lambda: groups
    assert names(watch) == {"team/Job/left"}


def test_the_members_of_a_gang_are_those_that_may_still_start() -> None:
    """A Job that has ended or is being deleted starts no pod, and a pod of one of the Jobs is no member."""
    ended = o.changed(member("ended"), ("status",), {"conditions": [{"type": "Complete", "status": "True"}]})
    leaving = member("leaving")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    watch = watch_of(member("left"), member("right"), ended, leaving, made_by(o.JOB, o.JOB_SET))
    groups: Json = {("team", "serve"): GROUP}
    watch._groups = lambda: groups
    watch._pods.changed(Event("ADDED", pod_of(member("left"), "left-0")))
    watch._pods.changed(Event("ADDED", pod_of(None, "serve-8")))
    members = watch.members("team/PodGroup/serve")
    assert [workload.name for workload in members] == ["team/Job/left", "team/Job/right", "team/Pod/serve-8"]
    assert watch.members("other/PodGroup/serve") == watch.members("team/PodGroup/another") == ()


def pod_of(job: Json | None, name: str) -> Json:
    """An unbound pod of the PodGroup, created by a Job or by its user."""
    pod = o.changed(o.annotated(o.POD, {"pod-group-name": "serve"}), ("metadata", "name"), name)
    pod["metadata"] |= {"uid": name, "resourceVersion": "1"}
    if job is not None:
        owner = {"apiVersion": "batch/v1", "kind": "Job", "controller": True}
        own = {"name": job["metadata"]["name"], "uid": job["metadata"]["uid"]}
        pod["metadata"]["ownerReferences"] = [{**owner, **own}]
    return pod


def test_a_hold_of_a_pod_group_stands_for_a_job_that_is_stored() -> None:
    """Its claim once waited for a bound pod."""
    watch = watch_of(member("left"))
    assert watch.is_stored("team/PodGroup/serve", "left")
    assert not watch.is_stored("team/PodGroup/serve", "another")
    assert not watch.is_stored("other/PodGroup/serve", "left")


def test_nothing_is_gathered_into_gangs_while_no_object_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each of many pods that come at once would make all of them be read again."""
    gathered: list[int] = []

    def counted(works: Iterable[Work], pods: Iterable[Unbound]) -> dict[str, Gang]:
        gathered.append(1)
        return gangs_of(works, pods)

    monkeypatch.setattr("webhook.kube.state.workload_watch.gangs_of", counted)
    watch = watch_of(o.JOB)
    assert (watch.queue(), gathered) == ((), [])
    waiting = o.annotated(o.JOB, {PLACEMENT: '{"decision": "queued", "gang": "team/Job/demo"}'})
    (store,) = watch._by_kind["Job"]
    store.changed(
        Event(
            "MODIFIED", {**waiting, "metadata": {**waiting["metadata"], "uid": "Job", "resourceVersion": "2"}}
        )
    )
    assert [gang.group.name for gang in watch.queue()] == ["team/Job/demo"]
    assert gathered == [1]


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["ADDED", "MODIFIED", "DELETED"]),
        st.sampled_from([("Job", "a"), ("Job", "b"), ("Pod", "a")]),
        st.sampled_from(["u1", "u2"]),  # an object of the same name that is created again has another UID
        st.booleans(),
    ),
    max_size=12,
)


@given(EVENTS)
def test_what_is_known_by_uid_and_what_waits_is_what_is_stored(events: list[Any]) -> None:
    """Whatever comes and goes, in whatever order, as if all stored objects were searched."""
    watch = watch_of()
    for version, (event, (kind, name), uid, waits) in enumerate(events, start=1):
        note = {PLACEMENT: '{"decision": "queued"}'} if waits else {}
        manifest = o.annotated(o.JOB if kind == "Job" else o.POD, note)
        if kind == "Pod" and waits:
            manifest = {**manifest, "spec": {**manifest["spec"], "schedulingGates": [{"name": QUEUED_GATE}]}}
        state = {"name": name, "uid": f"{kind}-{name}-{uid}", "resourceVersion": str(version)}
        store = watch._pods if kind == "Pod" else watch._by_kind[kind][0]
        store.changed(Event(event, {**manifest, "metadata": {**manifest["metadata"], **state}}))
    stored = [entry for each in (watch._pods, *watch._works) for entry in each.items.values()]
    waiting = [entry for entry in stored if (entry.gated if isinstance(entry, Unbound) else entry.queued)]
    assert watch._say_they_wait == len(waiting)
    for kind, name, uid in product(("Job", "Pod"), ("a", "b"), ("u1", "u2")):
        is_stored = any(entry.ref.uid == f"{kind}-{name}-{uid}" for entry in stored)
        assert watch.is_stored(f"team/{kind}/{name}", f"{kind}-{name}-{uid}") is is_stored
        assert not watch.is_stored(f"other/{kind}/{name}", f"{kind}-{name}-{uid}")
