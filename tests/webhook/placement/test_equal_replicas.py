"""Equal replicas without a place are searched for once: each counts what all others of its object reserve."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.cluster.snapshot import Snapshot
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import racks
from tests.effort import calls
from tests.webhook.workloads import objects as o
from webhook.placement.planning import plan_workload
from webhook.workloads import read

RACK = {"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"}


def groups(replicas: int, size: int = 1, gpus: int = 8, **annotations: str) -> dict[str, Any]:
    """A LeaderWorkerSet."""
    template = {"size": size, "workerTemplate": o.pod_template(gpus)}
    spec = {"replicas": replicas, "leaderWorkerTemplate": template}
    return o.obj("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec, **annotations)


LIMIT = " The empty cluster has room for 2 of 9 replicas, each in a domain of its own at rack."


@pytest.mark.parametrize(
    ("workload", "limit"),
    [
        (groups(9, size=2), ""),
        (groups(9, size=2, gpus=4, **RACK), LIMIT),
        (groups(4, gpus=16), ""),
        (groups(4, size=5, **RACK), ""),
        (groups(9, size=2, **{"bayplan.dev/reserve": "none"}), ""),
    ],
    ids=["no room now", "no free rack", "no such node", "no such rack", "nothing reserved"],
)
def test_each_replica_gets_the_answer_that_it_would_get_by_itself(
    workload: dict[str, Any], limit: str
) -> None:
    """On what the replicas before it leave, with its own name; those that wait hear the limit of all."""
    snapshot = racks(2, 4)
    for gang_plan in plan_workload(snapshot, read(workload)).placed:
        alone = plan(snapshot, gang_plan.group)
        addition = limit if alone.decision == "queued" else ""
        assert gang_plan.answer == replace(alone, message=alone.message + addition)
        reservation = reservation_for(snapshot, gang_plan.group, alone)
        assert gang_plan.reservation == reservation
        snapshot = snapshot if reservation is None else snapshot.with_reservation(reservation)


def test_a_replica_that_holds_a_place_keeps_it_after_one_without() -> None:
    """The first has lost its place."""
    snapshot: Snapshot = racks(1, 2)
    first, second = plan_workload(snapshot, read(groups(2))).reservations
    other = replace(first, gang="other/Job/a", id="other")
    full = snapshot.with_reservation(other).with_reservation(second)
    decisions = [placed.answer.decision for placed in plan_workload(full, read(groups(3))).placed]
    assert decisions == ["queued", "admitted", "queued"]


def test_the_work_grows_linearly_with_the_replicas() -> None:
    """Half of them have a place: each of the others counted the reservations of these."""

    def planned(replicas: int) -> int:
        snapshot, workload = racks(replicas // 8, 4), read(groups(replicas))
        return calls(lambda: plan_workload(snapshot, workload), builtins=True)

    planned(16)
    work = {replicas: planned(replicas) for replicas in (100, 200, 400)}
    assert max(work[200] / work[100], work[400] / work[200]) < 2.4, work
