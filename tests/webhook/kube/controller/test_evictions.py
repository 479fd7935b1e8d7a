"""Gangs for which their scheduler evicts others: at the gate while too many nodes are about to be used.

r1: a b    r2: c d    each rack is held by a gang that runs, or that has not started yet
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from planner.cluster.snapshot import Snapshot
from planner.model.pod import BoundPod
from planner.model.reservation import reservation_id
from tests.builders import amounts, cluster, gang
from tests.webhook.kube.worlds import NOW, booked, pod, work, world
from webhook.kube.controller.actions.admitted_pods import let_in_for_evictions
from webhook.kube.controller.actions.events import Recorder
from webhook.kube.controller.evictions import BehindUnstarted, LetInForEvictions
from webhook.kube.controller.reconcile import reconcile
from webhook.kube.controller.steps import Action, Admit
from webhook.kube.state.gangs import Unbound
from webhook.kube.state.gathering import gangs_of
from webhook.placement.stamp import PlacementAnnotation

NOTE = PlacementAnnotation("queued", waits_for_eviction=True)
KEEPS = "team-gate.example/ready"


def holders(*running: str) -> Snapshot:
    """Two racks, each held by a gang: default/Job/one holds r1 and default/Job/two r2."""
    snapshot = booked(
        cluster("r1: a b\nr2: c d"),
        *(gang(2, name=f"default/Job/{name}", required="rack") for name in ("one", "two")),
    )
    for held in snapshot.reservations:
        if held.gang.split("/")[2] in running:
            node = held.assignments[0].node
            snapshot = snapshot.with_pod(BoundPod(f"default/{node}", node, amounts(gpu=8, pods=1), held.id))
    return snapshot


def of_high(count: int) -> tuple[Unbound, ...]:
    """The gated pods of the gang default/Job/high."""
    return tuple(pod(f"high-{index}", "high", notes=(NOTE,)) for index in range(count))


def actions(snapshot: Snapshot, count: int) -> list[Action]:
    """What is due for a gang of so many nodes, whose pods wait at the gate."""
    groups = [gang(2, name=f"default/Job/{name}", required="rack") for name in ("one", "two")]
    works = (*map(work, groups), work(gang(count, name="default/Job/high")))
    return reconcile(world(snapshot, works=works, pods=of_high(count)))


def test_it_is_let_in_where_the_other_rack_is_enough():
    """Only nodes of the gang that has not started are excluded."""
    (action,) = actions(holders("one"), 2)
    assert isinstance(action, LetInForEvictions)
    assert [(row.key, row.operator, row.values) for row in action.excluded] == [
        ("kubernetes.io/hostname", "NotIn", ("c", "d"))
    ]
    assert [held.gang for held in action.tolerated] == ["default/Job/one"]
    assert len(action.pods) == 2


def test_it_waits_where_the_other_nodes_are_too_few_for_all_of_it():
    """Three nodes do not fit in one rack, whatever its scheduler evicts there."""
    (action,) = actions(holders("one"), 3)
    assert action == BehindUnstarted(action.gang, ("default/Job/two",))


def test_it_is_let_in_everywhere_once_all_have_started():
    """Nothing is left to be protected."""
    (action,) = actions(holders("one", "two"), 3)
    assert isinstance(action, LetInForEvictions)
    assert action.excluded == ()


def test_it_gets_no_place_in_the_queue():
    """Its scheduler chooses the nodes: a place for its pods at the gate would be beside those that run."""
    free = cluster("r1: a b\nr2: c d")
    (action,) = reconcile(world(free, works=(work(gang(2, name="default/Job/high")),), pods=of_high(2)))
    assert not isinstance(action, Admit)
    assert isinstance(action, LetInForEvictions)


class Stored:
    """An API server with one pod, which keeps the patches and events that it is sent."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec, self.patches, self.events = spec, list[Any](), list[str]()

    async def get(self, path: str) -> Any:
        """The pod."""
        name = path.rpartition("/")[2]
        return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "7"}, "spec": self.spec}

    async def merge(self, path: str, patch: Any) -> None:
        """Kept."""
        self.patches.append(patch)

    async def create(self, path: str, body: Any) -> None:
        """Kept: reason and message of the event."""
        self.events.append(f"{body['reason']}: {body['message']}")


def carried_out(action: Action, spec: dict[str, Any]) -> Stored:
    """What the API server is sent."""
    assert isinstance(action, LetInForEvictions)
    api = Stored(spec)
    asyncio.run(let_in_for_evictions(Recorder(api), action))  # type: ignore[arg-type]
    return api


def test_the_patch_opens_the_gate_and_excludes_the_nodes_in_each_term():
    """The affinity of a gated pod may only be tightened; gates of others and its own tolerations stay."""
    ssd = {"key": "disk", "operator": "In", "values": ["ssd"]}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    spec = {
        "schedulingGates": [{"name": "bayplan.dev/queued"}, {"name": KEEPS}],
        "tolerations": [{"key": "own", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {required: {"nodeSelectorTerms": [{"matchExpressions": [ssd]}]}}},
    }
    (action,) = actions(holders("one"), 2)
    api = carried_out(action, spec)
    assert len(api.patches) == 2
    patch = api.patches[0]["spec"]
    assert patch["schedulingGates"] == [{"name": KEEPS}]
    (term,) = patch["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        ssd,
        {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["c", "d"]},
    ]
    own, running = patch["tolerations"]
    assert own == {"key": "own", "operator": "Exists"}
    assert running["value"] == reservation_id("default/Job/one")
    assert api.events == [
        "Admitted: 2 pods are let in without a place, for the scheduler to evict gangs of lower priority"
    ]


def test_a_gang_that_waits_is_told_for_whom():
    """By name: it waits for nothing else."""
    (action,) = actions(holders(), 3)
    assert isinstance(action, BehindUnstarted)
    assert action.answer.message.startswith("waits for gangs that hold whole nodes to start")
    assert action.answer.message.endswith("These gangs are default/Job/one, default/Job/two")


def test_its_pods_are_let_in_together():
    """Those that are let in apart may exclude different nodes, and fit nowhere together."""
    group = gang(2, name="default/Job/high")
    first, second = (replace(own, created=NOW - 1) for own in of_high(2))
    for pods, due in (((first,), 0), ((first, second), 1), ((replace(first, created=NOW - 6),), 1)):
        assert len(reconcile(world(holders("one", "two"), works=(work(group),), pods=pods))) == due


@pytest.mark.parametrize("on_unavailable", ["admit", "reject"])
def test_what_its_author_wants_without_room_changes_nothing(on_unavailable: str) -> None:
    """Its gate opens in one way: what was promised to others stays excluded."""
    group = replace(gang(2, name="default/Job/high"), on_unavailable=on_unavailable)
    free = booked(cluster("r1: a b\nr2: c d"), gang(2, name="default/Job/one", required="rack"))
    others = work(gang(2, name="default/Job/one", required="rack"))
    (action,) = reconcile(world(free, works=(others, work(group)), pods=of_high(2)))
    assert isinstance(action, LetInForEvictions)
    assert action.excluded


def test_it_is_not_in_the_queue_that_delays_others():
    """Not for the controller, and not for admission, which reads the same."""
    (gang_now,) = gangs_of((work(gang(2, name="default/Job/high")),), of_high(2)).values()
    assert gang_now.awaits_evictions
    assert not gang_now.waits
