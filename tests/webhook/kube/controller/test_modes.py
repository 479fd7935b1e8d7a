"""The controller in namespaces that are not, or no longer, enforced: it releases everything."""

from __future__ import annotations

from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.model.pod import BoundPod
from planner.model.podgroup import PodGroup
from planner.model.reservation import reservation_id
from tests.builders import amounts, gang, racks
from tests.webhook.kube.controller.test_rounds import leading, one_round
from tests.webhook.kube.worlds import booked, pod, work, world
from webhook.kube.controller.reconcile import reconcile
from webhook.kube.controller.steps import Action, Admit, Release, Ungate
from webhook.kube.controller.world import World
from webhook.workloads.keys.annotation_keys import PLACEMENT

OBSERVED = frozenset({"default"})


def job(name: str, namespace: str = "default") -> PodGroup:
    """A gang of two whole nodes in one rack."""
    return gang(2, name=f"{namespace}/Job/{name}", required="rack")


def observed(former: World) -> list[Action]:
    """What is done where the namespace `default` is not enforced."""
    return reconcile(replace(former, observed=OBSERVED))


def with_pod_of(snapshot: Snapshot, group: PodGroup) -> Snapshot:
    """A pod of the gang runs."""
    reservation = reservation_id(group.name)
    running = BoundPod("default/p", "r1-n1", amounts(gpu=8, pods=1), reservation=reservation)
    return replace(snapshot, pods=(running,))


def test_a_waiting_gang_is_admitted_without_a_placement():
    """Nothing waits in a namespace that has left enforce."""
    full = booked(racks(1, 2), job("other", "elsewhere"))
    pods = (pod("a-1", "a"), pod("a-2", "a"), pod("a-3", "a", gated=False))
    seen = world(full, works=(work(job("a"), queued=True),), pods=pods)
    (action,) = [step for step in observed(seen) if not isinstance(step, Release)]
    assert isinstance(action, Ungate)
    assert (action.ref.name, [gated.ref.name for gated in action.pods]) == ("a", ["a-1", "a-2"])


def test_it_is_not_admitted_where_a_place_is_free():
    """Nothing is reserved for it."""
    seen = world(racks(1, 2), works=(work(job("a"), queued=True),), pods=(pod("a-1", "a"),))
    assert [type(step) for step in reconcile(seen)] == [Admit]
    assert [type(step) for step in observed(seen)] == [Ungate]


def test_a_gated_pod_of_no_gang_is_let_go_too():
    """Its Job is gone, or skips the plan now."""
    (action,) = observed(world(racks(1, 2), pods=(pod("alone", "nobody"),)))
    assert isinstance(action, Ungate)
    assert action.ref.name == "alone"


def test_what_no_running_pod_uses_is_released():
    """The place is for namespaces that are enforced; with a running pod it is used anyway."""
    held = booked(racks(2, 2), job("a"))
    seen = world(held, works=(work(job("a")),))
    (action,) = observed(seen)
    assert isinstance(action, Release)
    assert action.why == "its namespace is not enforced"
    assert observed(replace(seen, snapshot=with_pod_of(held, job("a")))) == []


def test_a_reservation_made_by_hand_stays():
    """It is in no namespace, so the mode of a cluster where few namespaces are enforced does not end it."""
    own = booked(racks(2, 2), job("a")).reservations[0]
    seen = world(racks(2, 2).with_reservation(replace(own, id="mine", gang="Reservation/mine")))
    assert reconcile(replace(seen, observed=frozenset({"Reservation"}))) == []


def test_gangs_that_lost_a_node_are_not_moved():
    """Bayplan changes nothing in such a namespace."""
    held = with_pod_of(booked(racks(2, 2), job("a")), job("a"))
    lost = replace(held.base.nodes["r1-n1"], ready=False)
    snapshot = replace(held, base=replace(held.base, nodes={**held.base.nodes, "r1-n1": lost}))
    seen = world(snapshot, works=(work(job("a")),))
    assert reconcile(seen) != []
    assert observed(seen) == []


def test_gangs_of_other_namespaces_pass_those_that_are_not_enforced():
    """No placement is kept for an older gang of an audited namespace."""
    waiting = replace(work(job("new", "elsewhere"), queued=True, created=9.0))
    works = (work(job("old"), queued=True, created=1.0), waiting)
    gangs = [step.gang.name for step in observed(world(racks(1, 2), works=works)) if isinstance(step, Admit)]
    assert gangs == ["elsewhere/Job/new"]


def test_what_is_enforced_is_as_it_was():
    """If no namespace is audited, none of this happens."""
    seen = world(booked(racks(2, 2), job("a")), works=(work(job("a")),))
    assert reconcile(seen) == []


async def test_a_workload_that_was_let_go_says_no_more_that_it_waits():
    """It would wait again, for the nodes of its own pods, once its namespace is enforced again."""
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    waits = {PLACEMENT: '{"decision":"queued"}', "own": "stays"}
    works, pods = (work(job("a"), queued=True),), (pod("a-1", "a"),)
    async with leading(racks(1, 1), *works, observed=OBSERVED, pods=pods) as (client, _, _):
        await client.create(jobs, {"metadata": {"name": "a", "annotations": waits}})

        async def annotations() -> object:
            return (await client.get(f"{jobs}/a"))["metadata"]["annotations"]

        async def ended() -> bool:
            return await annotations() != waits

        await one_round(client, ended)
        assert await annotations() == {"own": "stays"}
