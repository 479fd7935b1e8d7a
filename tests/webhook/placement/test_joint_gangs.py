"""The jobs of a JobSet with a rack each start together or wait together.

r1: two free hosts    r2: two free hosts, or none
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import cluster, gang, topology
from tests.webhook.kube.worlds import waiting
from tests.webhook.workloads import objects as o
from webhook.kube.controller.steps import Admit, WaitAction
from webhook.kube.controller.waiting.queue import queue
from webhook.placement.planning import plan_workload
from webhook.workloads import read

EXCLUSIVE = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}
ONE_FREE = cluster("r1: a b\nr2: c d used=8")
BOTH_FREE = cluster("r1: a b\nr2: c d")


def job_set(order: str = "AnyOrder") -> dict[str, Any]:
    """Two jobs of two whole hosts, each in a rack of its own."""
    template = o.pod_template(8)
    spec = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "template": template}
    jobs = [{"name": "train", "replicas": 2, "template": {"spec": spec}}]
    startup = {"startupPolicyOrder": order}
    obj = o.obj("jobset.x-k8s.io/v1alpha2", "JobSet", {"startupPolicy": startup, "replicatedJobs": jobs})
    return o.annotated(obj, EXCLUSIVE)


def test_a_job_set_with_a_rack_for_one_of_its_jobs_waits_as_a_whole() -> None:
    """KAI starts none before all have room, so the rack that one of them could have is held for nobody."""
    plan = plan_workload(ONE_FREE, read(job_set()))
    assert plan.decision == "queued"
    assert plan.reservations == ()
    first, second = (gang_plan.answer for gang_plan in plan.placed)
    assert (first.decision, first.reason, second.decision) == ("queued", "WaitsForAll", "queued")
    assert first.message.startswith("1 of 2 Jobs has room, and they start together or not at all: ")
    assert second.reason == "NoRoomNow"
    assert second.message == first.message


def test_only_fewer_jobs_are_named_as_what_works() -> None:
    """One pod would fit in r2 for the second job, but the third, of the same template, finds no rack."""
    snapshot = cluster("r1: a b\nr2: c\nr2: d used=8\nr3: e f used=8")
    (message,) = {gang_plan.answer.message for gang_plan in plan_workload(snapshot, read(of_jobs(3))).placed}
    assert message.endswith("Would work now: 1 Job.")


def of_jobs(count: int) -> dict[str, Any]:
    """The JobSet with so many jobs of its template."""
    obj = job_set()
    (job,) = obj["spec"]["replicatedJobs"]
    return o.changed(obj, ("spec", "replicatedJobs"), [{**job, "replicas": count}])


@pytest.mark.parametrize("now", ["", " used=8"], ids=["free", "in use"])
def test_more_jobs_than_the_empty_cluster_has_racks_for_are_refused(now: str) -> None:
    """Each by itself has room in r1, so they waited for ever."""
    plan = plan_workload(cluster(f"r1: a b{now}\nr2: c"), read(of_jobs(3)))
    assert (plan.decision, plan.reservations) == ("rejected", ())
    (message,) = {gang_plan.answer.message for gang_plan in plan.placed}
    assert message == (
        "3 Jobs of 2 pods start together, each in a domain of its own at rack, and the empty cluster has "
        "room for 1 of them. Would work: 1 Job."
    )


def test_jobs_that_have_racks_in_two_topologies_are_not_refused() -> None:
    """Neither topology has a rack for both: r1 is in a zone, r2 in a lane. They wait while r2 is in use."""
    topologies = (topology("zone", "rack"), topology("lane", "rack", name="lanes"))
    nodes = "z1/r1: a b used=8\n/r2/l1: c d used=8"
    plan = plan_workload(cluster(nodes, ("zone", "rack", "lane"), topologies=topologies), read(of_jobs(2)))
    assert plan.decision == "queued"


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(2, 5))
def test_jobs_for_which_the_empty_cluster_has_racks_are_never_refused(hosts: list[int], count: int) -> None:
    """Whatever is in use now. A job takes two hosts of a rack of its own."""
    rows = (f"r{n}: {' '.join(f'n{n}{host}' for host in range(own))} used=8" for n, own in enumerate(hosts))
    plan = plan_workload(cluster("\n".join(rows)), read(of_jobs(count)))
    if sum(own >= 2 for own in hosts) >= count:
        assert plan.decision == "queued"
    elif sum(own // 2 for own in hosts) < count:
        assert plan.decision == "rejected"


def test_with_racks_for_all_each_job_holds_its_own() -> None:
    """Both racks are reserved, one for each Job."""
    plan = plan_workload(BOTH_FREE, read(job_set()))
    assert [held.domain for held in plan.reservations] == [("r1",), ("r2",)]


def test_jobs_that_start_in_order_need_not_wait_for_each_other() -> None:
    """The first runs before the second is created."""
    assert plan_workload(ONE_FREE, read(job_set("InOrder"))).decision == "admitted"


def test_jobs_that_depend_on_others_need_not_wait_for_each_other() -> None:
    """JobSet's controller creates the second when the first is ready: KAI must not wait for both."""
    obj = job_set()
    (job,) = obj["spec"]["replicatedJobs"]
    first, later = {**job, "replicas": 1}, {**job, "name": "later", "replicas": 1}
    jobs = [first, {**later, "dependsOn": [{"name": "train", "status": "Ready"}]}]
    together, in_order = (o.changed(obj, ("spec", "replicatedJobs"), part) for part in ([first, later], jobs))
    assert plan_workload(ONE_FREE, read(together)).decision == "queued"
    assert plan_workload(ONE_FREE, read(in_order)).decision == "admitted"


def test_the_controller_lets_them_in_together() -> None:
    """While one rack is free neither is let in; once both are, both."""
    gangs = [waiting(group) for group in read(job_set()).gangs]
    assert [type(action) for action in queue(ONE_FREE, gangs)] == [WaitAction, WaitAction]
    assert [type(action) for action in queue(BOTH_FREE, gangs)] == [Admit, Admit]


def test_others_behind_them_are_let_in() -> None:
    """A gang of another object gets the rest."""
    small = waiting(gang(1, name="default/Job/small", gpu=1, reserve="nodes"), created=1.0)
    snapshot = cluster("r1: a b\nr2: c d used=8\nr3: e used=4")
    acted = queue(snapshot, [*(waiting(group) for group in read(job_set()).gangs), small])
    assert [action.gang.name for action in acted if isinstance(action, Admit)] == ["default/Job/small"]
