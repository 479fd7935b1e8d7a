"""Gangs that wait and are to hold nothing (`bayplan.dev/reserve: none`) leave the queue when they start."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson

from planner.model.topology import HOSTNAME
from tests.builders import gang, racks
from tests.webhook.kube.controller.test_rounds import NOW, leading, one_round
from tests.webhook.kube.worlds import pod, ref, work, world
from webhook.jsontools.path import find
from webhook.kube.controller.reconcile import reconcile
from webhook.kube.controller.steps import LetIn
from webhook.kube.state.gathering import gangs_of
from webhook.placement.stamp import PlacementAnnotation
from webhook.workloads.keys.annotation_keys import PLACEMENT
from webhook.workloads.node_affinity import REQUIRED

PODS = "/api/v1/namespaces/default/pods"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
ADVISED = gang(2, name="default/Job/a", required="rack", reserve="none")
QUEUED = PlacementAnnotation("queued", in_queue=True)


async def test_the_workload_of_a_gang_that_starts_says_no_more_that_it_waits() -> None:
    """It has no reservation that would show it: by its annotation it would wait for ever, before others."""
    waits = '{"decision":"queued"}'
    async with leading(racks(1, 2), work(ADVISED, queued=True)) as (client, _, _):
        await client.create(JOBS, {"metadata": {"name": "a", "annotations": {PLACEMENT: waits}}})

        async def note() -> dict[str, object]:
            job = await client.get(f"{JOBS}/a")
            return dict(orjson.loads(job["metadata"]["annotations"][PLACEMENT]))

        async def ended() -> bool:
            return (await note())["decision"] != "queued"

        await one_round(client, ended)
        assert await note() == {
            "decision": "admitted",
            "topology": "topo",
            "level": "rack",
            "domain": ["r1"],
            "reserves": [],
        }


def test_a_pod_that_is_made_again_starts_at_once() -> None:
    """Its template, which never changes, says that the gang waits, so admission has given it the gate."""
    started = replace(work(ADVISED), notes=(PlacementAnnotation("admitted"), QUEUED))
    (action,) = reconcile(world(racks(1, 1), works=(started,), pods=(pod("a-1", "a"),)))
    assert isinstance(action, LetIn)
    assert (action.reservation, action.pods) == (None, (pod("a-1", "a"),))


def test_it_delays_nobody_once_it_has_started() -> None:
    """Neither for the controller nor for admission, which reads the same."""
    again = (pod("a-1", "a"),)
    started = replace(work(ADVISED), notes=(PlacementAnnotation("admitted"), QUEUED))
    resumed = replace(work(ADVISED, queued=True), notes=(QUEUED, PlacementAnnotation("admitted")))
    for job, waits in ((started, False), (resumed, True)):
        (gang_now,) = gangs_of((job,), again).values()
        assert gang_now.waits is waits


async def test_its_pods_are_kept_off_what_gangs_hold_whole_also_since_this_round() -> None:
    """As admission keeps pods without a place off it: no scheduler knows what is reserved."""
    whole = gang(1, name="default/Job/b", reserve="domain")
    works = (work(whole, queued=True), work(ADVISED, queued=True, created=1.0))
    gated = replace(pod("a-0", "a"), ref=replace(ref("a-0", "Pod"), uid="uid-0"))
    async with leading(racks(2, 2), *works, pods=(gated,)) as (client, _, other):
        await client.create(PODS, {"metadata": {"name": "a-0"}, "spec": {"schedulingGates": []}})

        async def terms() -> list[dict[str, Any]]:
            spec = (await client.get(f"{PODS}/a-0"))["spec"]
            return list(find(spec, ("affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")) or ())

        async def ended() -> bool:
            return bool(await terms())

        await one_round(client, ended)
        (held,) = (await other.book(NOW)).reservations
        assert await terms() == [
            {"matchExpressions": [{"key": HOSTNAME, "operator": "NotIn", "values": sorted(held.touched)}]}
        ]
