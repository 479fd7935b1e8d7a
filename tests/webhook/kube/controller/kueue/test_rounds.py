"""Rounds of the controller beside a Kueue whose Workloads are watched: the book follows what Kueue says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from planner.model.topology import HOSTNAME
from tests.builders import gang, racks
from tests.webhook.kube.controller.test_rounds import NOW, Seen, claimed, one_round
from tests.webhook.kube.kueue_worlds import slices, workload
from tests.webhook.kube.ledger.api_server import ApiServer, Client
from tests.webhook.kube.ledger.replicas import started
from tests.webhook.kube.worlds import pod, work
from webhook.kube.controller.controller import Controller
from webhook.kube.controller.gang_history import GangHistoryWriter
from webhook.kube.ledger.ledger import KubeLedger
from webhook.kube.state.kueue_watch import KueueWatch

GROUP = "/apis/kueue.x-k8s.io"
WORKLOADS = f"{GROUP}/v1beta2/workloads"
EVENTS = "/api/v1/namespaces/default/events"
JOB = gang(2, name="default/Job/a", required="rack")
PLACED = "default/KueueWorkload/w"


def serves_kueue(server: ApiServer) -> None:
    """Discovery tells of Workloads."""
    version = {"version": "v1beta2"}
    group = {"name": "kueue.x-k8s.io", "preferredVersion": version, "versions": [version]}
    server.objects["/apis"] = {"groups": [group]}
    server.objects[f"{GROUP}/v1beta2"] = {"resources": [{"name": "workloads"}]}


@asynccontextmanager
async def beside_kueue(seen: Seen) -> AsyncIterator[tuple[ApiServer, Client, KubeLedger]]:
    """A controller that leads once it is let, and another replica's ledger."""
    server = ApiServer()
    serves_kueue(server)
    (ledger, client), (other, _) = await started(server), await started(server)
    controller = Controller(
        client, seen, seen, ledger, GangHistoryWriter(client, "ns"), lambda: NOW,  # type: ignore[arg-type]
        kueue=lambda: KueueWatch(client, seen.news.set),
    )  # fmt: skip
    client.lead = controller.lead  # type: ignore[attr-defined]
    try:
        yield server, client, other
    finally:
        await ledger.close()
        await other.close()


async def held(ledger: KubeLedger) -> dict[str, dict[str, int]]:
    """By gang the seats that are claimed, as another replica sees them."""
    book = await ledger.book(NOW)
    return {
        entry.gang: {seat.node: seat.count for seat in entry.assignments}
        for entry in book.reservations
        if entry.state == "claimed"
    }


def stored(*nodes: str) -> dict[str, Any]:
    """A Workload of one pod on each of these nodes, or without quota."""
    assignment = slices(HOSTNAME, dict.fromkeys(nodes, 1)) if nodes else None
    document = workload("w", assignment, owner="a", pods=len(nodes))
    del document["metadata"]["uid"]  # the server gives it
    return document


async def test_the_book_follows_a_workload_from_its_assignment_to_its_end() -> None:
    """Assigned, moved to another node, preempted: nothing is held for it any more."""
    seen = Seen(racks(2, 2), ())
    async with beside_kueue(seen) as (server, client, other):
        server.call("POST", WORKLOADS, stored())
        task = asyncio.create_task(client.lead())  # type: ignore[attr-defined]
        try:
            async with asyncio.timeout(20):
                for nodes in (("r1-n1", "r1-n2"), ("r1-n1", "r2-n1"), ()):
                    server.call("PUT", f"{WORKLOADS}/w", stored(*nodes))
                    expected = {PLACED: dict.fromkeys(nodes, 1)} if nodes else {}
                    while await held(other) != expected:  # noqa: ASYNC110 - it is in a book
                        await asyncio.sleep(0.01)
        finally:
            task.cancel()
            await asyncio.wait([task])
        events = [body["message"] for path, body in server.objects.items() if path.startswith(EVENTS)]
        assert "Kueue has assigned r1-n1, r1-n2: held for 2 pods (Workload w)" in events


async def test_a_held_gang_is_moved_and_its_gated_pods_pass_without_a_pin() -> None:
    """One write of its own reservation; the pods name it, and have no node affinity of ours."""
    cluster = racks(2, 2)
    gated = pod("a-0", "a")
    seen = Seen(cluster, (work(JOB),), (gated,))
    async with beside_kueue(seen) as (server, client, other):
        await other.reserve(claimed(cluster, JOB), 0, NOW)
        server.call("POST", WORKLOADS, stored("r2-n1", "r2-n2"))
        path = "/api/v1/namespaces/default/pods/a-0"
        gates = [{"name": "bayplan.dev/queued"}, {"name": "kueue.x-k8s.io/topology"}]
        server.objects[path] = {
            "metadata": {"name": "a-0", "uid": gated.ref.uid, "resourceVersion": "1"},
            "spec": {"schedulingGates": gates},
        }

        async def ended() -> bool:
            open_ = "annotations" in server.objects[path]["metadata"]
            return open_ and await held(other) == {"default/Job/a": {"r2-n1": 1, "r2-n2": 1}}

        await one_round(client, ended)
        let_in = server.objects[path]
        assert let_in["spec"]["schedulingGates"] == [{"name": "kueue.x-k8s.io/topology"}]
        assert "affinity" not in let_in["spec"]
        assert let_in["metadata"]["annotations"]["bayplan.dev/reservation"]


async def test_a_pod_at_kueues_gate_is_never_pinned() -> None:
    """Kueue is about to write its node, and we may not know yet which: it passes our gate as it is."""
    cluster = racks(2, 2)
    gated = pod("a-0", "a")
    async with beside_kueue(Seen(cluster, (work(JOB),), (gated,))) as (server, client, other):
        await other.reserve(claimed(cluster, JOB), 0, NOW)
        for gate, pinned in (("kueue.x-k8s.io/topology", False), ("example.com/other", True)):
            path = "/api/v1/namespaces/default/pods/a-0"
            server.objects[path] = {
                "metadata": {"name": "a-0", "uid": gated.ref.uid, "resourceVersion": "1"},
                "spec": {"schedulingGates": [{"name": "bayplan.dev/queued"}, {"name": gate}]},
            }

            async def ended(path: str = path) -> bool:
                return "annotations" in server.objects[path]["metadata"]

            await one_round(client, ended)
            assert ("affinity" in server.objects[path]["spec"]) is pinned


async def test_a_workload_that_cannot_be_read_changes_nothing() -> None:
    """It is left out; the others are held."""
    seen = Seen(racks(1, 2), ())
    async with beside_kueue(seen) as (server, client, other):
        broken = stored("r1-n1")
        broken["metadata"]["name"] = "broken"
        broken["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"]["slices"] = [{}]
        server.call("POST", WORKLOADS, broken)
        server.call("POST", WORKLOADS, stored("r1-n2"))

        async def ended() -> bool:
            return await held(other) == {PLACED: {"r1-n2": 1}}

        await one_round(client, ended)


async def test_while_kueues_workloads_are_not_known_their_places_stay() -> None:
    """The watch is broken, or has not been read: who may come back keeps what it has."""
    seen = Seen(racks(1, 2), ())
    async with beside_kueue(seen) as (server, client, other):
        server.call("POST", WORKLOADS, stored("r1-n1"))

        async def ended() -> bool:
            return PLACED in await held(other)

        await one_round(client, ended)
        watch = KueueWatch(client, seen.news.set)
        assert watch.places() is None
        del server.objects[f"{WORKLOADS}/w"]
        watch.reflectors[0].problem = "forbidden"
        watch.reflectors[0].synced.set()
        assert watch.places() is None
        watch.reflectors[0].problem = ""
        assert watch.places() == {}
