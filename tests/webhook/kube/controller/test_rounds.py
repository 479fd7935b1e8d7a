"""Rounds of the controller while others change the reservations: no place is given to two gangs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from planner.cluster.snapshot import Snapshot
from planner.manifests.growth import pools_from_text
from planner.model.errors import Where
from planner.model.reservation import Reservation, reservation_id
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import gang, racks
from tests.webhook.kube.ledger.api_server import ApiServer, Client
from tests.webhook.kube.ledger.replicas import started
from tests.webhook.kube.worlds import pod, work
from webhook.admission.configuration.settings import Settings, default_settings, same_in_all_namespaces
from webhook.kube.api.client import ApiError
from webhook.kube.controller.controller import Controller
from webhook.kube.controller.gang_history import GangHistoryWriter
from webhook.kube.ledger.documents import RESERVATIONS, proposed
from webhook.kube.ledger.ledger import KubeLedger
from webhook.kube.state.gangs import Unbound, Work

NOW = 10_000.0


@dataclass
class Seen:
    """What watches have shown: the nodes, and the workloads."""

    cluster: Snapshot
    jobs: tuple[Work, ...]
    pods: tuple[Unbound, ...] = ()
    settings: Callable[[str], Settings] = default_settings
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def synced(self) -> None:
        """All of it."""

    def snapshot(self) -> Snapshot:
        """The cluster."""
        return self.cluster

    def in_force(self) -> Callable[[str], Settings]:
        """The settings of each namespace."""
        return self.settings

    def paths(self) -> dict[str, list[str]]:
        """Where Jobs are served."""
        return {"Job": ["/apis/batch/v1/jobs"]}

    def shows(self, kind: str, key: str, version: str) -> bool:
        """Nothing that is stored elsewhere."""
        return False

    def works(self) -> tuple[Work, ...]:
        """The workloads."""
        return self.jobs

    def unbound(self) -> tuple[Unbound, ...]:
        """The pods without a node."""
        return self.pods


def part(name: str, gpus: int = 8):
    """A gang of one pod that holds no more than it uses."""
    return gang(1, name=f"default/Job/{name}", gpu=gpus, reserve="nodes")


def claimed(cluster: Snapshot, group) -> Reservation:
    """Its place, claimed by its Job."""
    reservation = reservation_for(cluster, group, plan(cluster, group))
    assert reservation is not None, "it has a place"
    return replace(
        reservation, created=NOW - 100, state="claimed", owner_uid=f"uid-{group.name.split('/')[2]}"
    )


@asynccontextmanager
async def leading(
    cluster: Snapshot,
    *jobs: Work,
    observed: frozenset[str] = frozenset(),
    clock: Callable[[], float] = lambda: NOW,
    **fields: Any,
) -> AsyncIterator[tuple[Client, KubeLedger, KubeLedger]]:
    """A controller that leads once it is let: its client, its ledger, and another replica's ledger.
    `observed`: the namespaces that are not enforced. `fields` are those of `Seen`."""
    server = ApiServer()
    (ledger, client), (other, _) = await started(server), await started(server)
    seen = Seen(cluster, jobs, **fields)
    controller = Controller(
        client, seen, seen, ledger, GangHistoryWriter(client, "ns"), clock,  # type: ignore[arg-type]
        observed=lambda _: observed,
    )  # fmt: skip
    client.lead, client.seen = controller.lead, seen  # type: ignore[attr-defined]
    try:
        yield client, ledger, other
    finally:
        await ledger.close()
        await other.close()


async def one_round(client: Client, ended: Callable[[], Awaitable[bool]]) -> None:
    """The controller leads until the round has come so far."""
    task = asyncio.create_task(client.lead())  # type: ignore[attr-defined]
    async with asyncio.timeout(20):
        while not await ended():  # noqa: ASYNC110 - what is waited for is in a book
            await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task])


def after(event: asyncio.Event) -> Callable[[], Awaitable[bool]]:
    """Whether a round has ended, some time after something happened in it."""

    async def ended() -> bool:
        happened = event.is_set()
        await asyncio.sleep(0.5)  # what would come after it in the round has come
        return happened

    return ended


async def test_a_place_that_could_not_be_given_back_is_given_to_nobody() -> None:
    """The finished gang's reservation changed under the controller: the gang that waits has to wait."""
    cluster = racks(1, 1)
    first, second = part("a"), part("b")
    works = (work(first, finished=True), work(second, queued=True))
    async with leading(cluster, *works) as (client, ledger, other):
        await ledger.reserve(claimed(cluster, first), 0, NOW)
        changed = asyncio.Event()

        async def replaced(method: str, path: str) -> None:
            """Another replica claims it for a new Job of the name, just before it is deleted."""
            if method == "DELETE" and path.endswith(reservation_id("default/Job/a")) and not changed.is_set():
                await other.claim(reservation_id("default/Job/a"), "uid-new", NOW)
                changed.set()

        client.before = replaced

        await one_round(client, after(changed))
        assert [held.gang for held in (await other.book(NOW)).reservations] == ["default/Job/a"]


@pytest.mark.parametrize("is_stored", [True, False], ids=["stored", "deleted"])
async def test_a_job_that_the_watch_does_not_show_is_deleted_only_if_the_api_server_says_so(
    is_stored: bool,
) -> None:
    """The watch is behind: its place would be given to the gang that waits, and two would have it."""
    cluster = racks(1, 1)
    async with leading(cluster, work(part("b"), queued=True)) as (client, ledger, other):
        await ledger.reserve(claimed(cluster, part("a")), 0, NOW)
        if is_stored:
            await client.create(
                "/apis/batch/v1/namespaces/default/jobs", {"metadata": {"name": "a", "namespace": "default"}}
            )
        informed = asyncio.Event()

        async def noted(method: str, path: str) -> None:
            """What the waiting gang is told ends the round."""
            if path.endswith("/events"):
                informed.set()

        client.before = noted

        await one_round(client, after(informed))
        holder = "default/Job/a" if is_stored else "default/Job/b"
        assert [held.gang for held in (await other.book(NOW)).reservations] == [holder]


async def test_what_came_to_a_node_since_the_look_is_heeded_when_a_gang_is_let_in() -> None:
    """Another replica put a gang there meanwhile: with 8 GPUs taken, one of 8 waits."""
    cluster = racks(1, 1)
    works = (work(part("b"), queued=True), work(part("rival")))
    async with leading(cluster, *works) as (client, _, other):
        rival = claimed(cluster, part("rival"))
        reached = asyncio.Event()

        async def overtaken(method: str, path: str) -> None:
            """The rival comes between the look and the commit."""
            if method == "POST" and path.endswith("/reservations") and not reached.is_set():
                await other.reserve(rival, 99, NOW)
                reached.set()

        client.before = overtaken

        await one_round(client, after(reached))
        assert [held.gang for held in (await other.book(NOW)).reservations] == ["default/Job/rival"]


async def test_small_gangs_are_let_in_beside_what_came_since_and_fits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Another replica put a gang of 2 GPUs onto the node; one of 1 GPU is let in at the first try."""
    cluster = racks(1, 1)
    works = (work(part("b", 1), queued=True), work(part("rival", 2)))
    async with leading(cluster, *works) as (client, _, other):
        rival = claimed(cluster, part("rival", 2))
        refused: list[str] = []

        async def overtaken(method: str, path: str) -> None:
            if method == "POST" and path.endswith("/reservations") and not refused:
                refused.append(path)
                await other.reserve(rival, 99, NOW)

        client.before = overtaken

        async def ended() -> bool:
            return len((await other.book(NOW)).reservations) == 2

        with caplog.at_level("INFO", "bayplan"):
            await one_round(client, ended)
        assert "looking again" not in caplog.text


async def test_a_pool_that_the_parameter_says_may_grow_opens_the_gates_of_who_waits_for_it() -> None:
    """As decisions see it. No autoscaler adds a node for a gated pod."""
    gated = pod("b-1", "b")
    pools = Settings(growing=pools_from_text("h100: nvidia.com/gpu=8", Where()))
    works = (work(gang(2, name="default/Job/b", reserve="nodes"), queued=True),)
    for settings, first in ((default_settings, "events"), (same_in_all_namespaces(pools), "b-1")):
        calls: list[str] = []

        async def noted(method: str, path: str, calls: list[str] = calls) -> None:
            """The event that tells its position, or the read of the pod whose gate is to be opened."""
            if path.startswith("/api/v1/namespaces/default/"):
                calls.append(path.rpartition("/")[2])

        async def ended(calls: list[str] = calls) -> bool:
            return bool(calls)

        async with leading(racks(1, 1), *works, pods=(gated,), settings=settings) as (client, _, _):
            client.before = noted
            await one_round(client, ended)
        assert calls[0] == first


async def test_what_a_replica_has_proposed_is_not_swept_by_a_clock_that_was_set() -> None:
    """The object was made an hour ago by the API server's clock, and seen for a moment: it stays."""
    cluster = racks(1, 1)
    async with leading(cluster) as (client, ledger, _):
        hold = replace(claimed(cluster, part("a")), state="held", owner_uid="", expires=NOW + 30)
        document = proposed(hold)
        document["metadata"]["creationTimestamp"] = datetime.fromtimestamp(NOW - 3600, UTC).isoformat()
        await client.create(RESERVATIONS, document)
        deleted: list[str] = []

        async def noted(method: str, path: str) -> None:
            if method == "DELETE":
                deleted.append(path)

        client.before = noted

        async def ended() -> bool:
            await asyncio.sleep(0.5)
            return bool((await ledger.book(NOW)).reservations)

        await one_round(client, ended)
        assert (deleted, (await ledger.book(NOW)).reservations) == ([], (hold,))


async def test_a_controller_that_is_stopped_in_the_moment_of_news_stops() -> None:
    """Else it would go on beside the leader that comes after it."""
    news = asyncio.Event()
    async with leading(racks(1, 1), news=news) as (client, _, _):
        task = asyncio.create_task(client.lead())  # type: ignore[attr-defined]
        await asyncio.sleep(0.3)  # a round of nothing, and it waits for news
        news.set()
        task.cancel()
        ended, _ = await asyncio.wait([task], timeout=5)
        assert ended == {task}


async def test_a_place_to_which_its_scheduler_brings_no_pod_is_free_after_the_namespaces_patience() -> None:
    """By `reserve.unbound-seconds`, which is half an hour where nobody chose: here it is a minute."""
    group, cluster = part("idle"), racks(1, 1)
    left = pod("idle-0", "idle", gated=False, verdict="kai-scheduler says: OverLimit")
    impatient = same_in_all_namespaces(Settings(unbound_seconds=60))
    async with leading(cluster, work(group), pods=(left,), settings=impatient) as (client, ledger, other):
        await ledger.reserve(claimed(cluster, group), 0, NOW)

        async def given_back() -> bool:
            return not (await other.book(NOW)).reservations

        await one_round(client, given_back)


@pytest.mark.parametrize("status", [403, 422, 500])
async def test_a_gang_whose_pods_cannot_be_written_does_not_keep_others_from_their_place(status: int) -> None:
    """A policy refuses each write of the first Job's pod, or the webhook of a policy is down: the second gets
    its place.
    """
    works = (work(part("a"), queued=True), work(part("b"), queued=True, created=1.0))
    pods = (pod("a-0", "a"),)
    async with leading(racks(1, 2), *works, pods=pods) as (client, ledger, other):
        await ledger.reserve(claimed(racks(1, 2), part("a")), 0, NOW)

        async def refusing(method: str, path: str) -> None:
            if path.endswith("/pods/a-0"):
                raise ApiError(status, "", "denied the request: pods of this team may not be changed")

        client.before = refusing

        async def ended() -> bool:
            return len((await other.book(NOW)).reservations) == 2

        await one_round(client, ended)


@pytest.mark.parametrize("status", [403, 422, 500])
async def test_a_gang_whose_reservation_cannot_be_written_does_not_keep_others_from_their_place(
    status: int,
) -> None:
    """For example, it is larger than an object may be."""
    works = (work(part("a"), queued=True), work(part("b"), queued=True, created=1.0))
    async with leading(racks(1, 2), *works) as (client, _, other):

        async def refusing(method: str, path: str) -> None:
            if method != "GET" and path.endswith(reservation_id("default/Job/a")):
                raise ApiError(status, "", "denied the request")

        client.before = refusing

        async def ended() -> bool:
            return "default/Job/b" in {held.gang for held in (await other.book(NOW)).reservations}

        await one_round(client, ended)


async def is_told_while_the_job_may_not_change(client: Client) -> None:
    """A policy refuses each write of the Job, and the event on it says where its pods go."""

    async def refusing(method: str, path: str) -> None:
        if path.endswith("/jobs/a"):
            raise ApiError(422, "", "denied the request: Jobs of this team may not be changed")

    client.before = refusing

    async def has_event() -> bool:
        reasons, _ = await client.list("/api/v1/namespaces/default/events", lambda event: event["reason"])
        return "Replanned" in reasons

    await one_round(client, has_event)


async def test_a_gang_that_moves_is_told_although_its_workload_cannot_be_annotated() -> None:
    """The Job's node is gone."""
    held = claimed(racks(1, 2), part("a"))
    (node,) = held.touched
    left = racks(1, 2)
    left = replace(left, base=replace(left.base, nodes={n: m for n, m in left.nodes.items() if n != node}))
    async with leading(left, work(part("a"))) as (client, ledger, _):
        await ledger.reserve(held, 0, NOW)
        await is_told_while_the_job_may_not_change(client)


async def test_a_gang_whose_reservation_is_made_again_is_told_although_its_workload_cannot_be_annotated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its templates name a reservation that is not in the book."""
    monkeypatch.setattr("webhook.kube.controller.records.VANISHED_SECONDS", 0.0)
    lacking = replace(work(part("a")), ids=frozenset({reservation_id("default/Job/a")}))
    async with leading(racks(1, 2), lacking) as (client, _, _):
        await is_told_while_the_job_may_not_change(client)
