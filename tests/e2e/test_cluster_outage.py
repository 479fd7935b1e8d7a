"""The API server is killed and restarted: replicas keep their state, and what was written is still stored."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.ledger.ledger import LedgerUnavailable
from tests.e2e.api import Api
from tests.e2e.binaries import find
from tests.e2e.controlplane import ControlPlane
from tests.e2e.kube_ledgers import install, rack, until
from tests.e2e.kubectl import Kubectl
from tests.e2e.processes import Process
from tests.e2e.real_kinds import SHARED, define
from webhook.kube.api import client
from webhook.kube.api.client import ApiError
from webhook.kube.api.discovery import served_path
from webhook.kube.api.kubeconfig import connect
from webhook.kube.controller.leader import Leader
from webhook.kube.ledger.ledger import KubeLedger
from webhook.kube.state.cluster_watch import ClusterWatch

NOW = 1_000_000.0
CRD = "reservations.bayplan.dev"


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[tuple[ControlPlane, Process]]:
    """A separate etcd and API server with Bayplan's kinds."""
    programs = find()
    plane = ControlPlane(programs, tmp_path)
    try:
        plane.start_etcd()
        server = plane.start_apiserver()
        install(Kubectl(programs["kubectl"], plane.kubeconfig))
        yield plane, server
    finally:
        plane.stop()


def make_node(plane: ControlPlane, name: str) -> None:
    """Creates a node in a rack of the same name."""
    labels = {"kubernetes.io/hostname": name, "example.com/rack": f"rack-{name}"}
    # A client of its own: a kept connection is none any more after a restart.
    Api(plane.kubeconfig).create("/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})


async def test_an_api_server_that_was_away_is_taken_up_where_it_was_left(
    plane: tuple[ControlPlane, Process],
) -> None:
    """The picture stays while it is away, the book says so in words, and both go on by themselves."""
    control_plane, server = plane
    make_node(control_plane, "n1")
    api = await connect(str(control_plane.kubeconfig))
    watch, ledger = ClusterWatch(api), KubeLedger(api)
    await watch.start()
    await ledger.start()
    try:
        await until(lambda: not watch.waiting() and not ledger.waiting())
        held = await ledger.reserve(rack("r1", "research/Job/before"), 0, NOW)

        await asyncio.to_thread(server.stop, signal.SIGKILL)
        await until(lambda: bool(watch.problem() and ledger.problem()))
        snapshot = watch.snapshot()
        assert snapshot is not None
        assert set(snapshot.nodes) == {"n1"}
        with pytest.raises(LedgerUnavailable, match="does not answer"):
            await ledger.book(NOW)
        waiting = asyncio.create_task(ledger.reserve(rack("r2", "research/Job/during"), 0, NOW))
        with pytest.raises(LedgerUnavailable):
            await waiting

        await asyncio.to_thread(control_plane.start_apiserver)
        back = time.monotonic()
        make_node(control_plane, "n2")
        await until(lambda: "n2" in getattr(watch.snapshot(), "nodes", ()), 30)
        await until(lambda: not watch.problem(), 30)
        print(f"\nthe picture was whole {time.monotonic() - back:.1f} s after the API server was back")
        await until(lambda: not ledger.problem(), 30)
        assert (await ledger.book(NOW)).reservations == (held,)
        await ledger.reserve(rack("r2", "research/Job/after"), 0, NOW)
        gangs = {reservation.gang for reservation in (await ledger.book(NOW)).reservations}
        assert gangs == {"research/Job/before", "research/Job/after"}
    finally:
        await ledger.close()
        await watch.close()
        await api.close()


async def test_a_starting_api_server_does_not_show_that_a_kind_is_absent(
    plane: tuple[ControlPlane, Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From its first answer on, lookups fail or have a path: its list of groups is incomplete for seconds,
    and it answers 404 for versions for milliseconds.
    """
    monkeypatch.setattr(client, "SHARED_SECONDS", 0.0)
    control_plane, server = plane
    kubectl = Kubectl(control_plane.programs["kubectl"], control_plane.kubeconfig)
    await asyncio.to_thread(define, kubectl, *SHARED)
    await asyncio.to_thread(server.stop, signal.SIGKILL)
    answers, kinds, over = Counter[str](), [name.partition(".") for name in SHARED], asyncio.Event()
    kinds += [("jobs", ".", "batch"), ("reservations", ".", "bayplan.dev")]

    api = await connect(str(control_plane.kubeconfig))

    async def look(resource: str, group: str) -> None:
        while not over.is_set():
            try:
                path = await served_path(api, group, resource)
                answers[f"{resource}.{group}: {'served' if path else 'absent'}"] += 1
            except ApiError as error:
                answers[f"{resource}.{group}: {error.status}"] += 1
            await asyncio.sleep(0.002)

    looks = [asyncio.create_task(look(resource, group)) for resource, _, group in kinds]
    try:
        await asyncio.to_thread(control_plane.start_apiserver)
        over.set()
        await asyncio.gather(*looks)
    finally:
        await api.close()
    assert [answer for answer in answers if answer.endswith("absent")] == []
    assert all(answers[f"{resource}.{group}: served"] for resource, _, group in kinds), answers
    assert answers["topologies.kai.scheduler: 503"], "it was asked while it started"


async def test_a_kind_that_is_installed_later_is_noticed(plane: tuple[ControlPlane, Process]) -> None:
    """Without KAI's CRD there is no topology of its kind; with it the next one counts."""
    control_plane, _ = plane
    make_node(control_plane, "n1")
    api = await connect(str(control_plane.kubeconfig))
    watch = ClusterWatch(api)
    await watch.start()
    try:
        await until(lambda: not watch.waiting())
        assert [topology.name for topology in watch.snapshot().topologies] == [""]  # type: ignore[union-attr]
        kubectl = Kubectl(control_plane.programs["kubectl"], control_plane.kubeconfig)
        await asyncio.to_thread(define, kubectl, "topologies.kai.scheduler")
        body = {
            "apiVersion": "kai.scheduler/v1alpha1",
            "kind": "Topology",
            "metadata": {"name": "racks"},
            "spec": {"levels": [{"nodeLabel": "example.com/rack"}]},
        }
        control_plane.api.create("/apis/kai.scheduler/v1alpha1/topologies", body)
        await until(
            lambda: [topology.name for topology in watch.snapshot().topologies] == ["racks"],  # type: ignore[union-attr]
            30,
        )
    finally:
        await watch.close()
        await api.close()


async def test_without_the_crd_of_reservations_the_book_is_unknown(
    plane: tuple[ControlPlane, Process],
) -> None:
    """Until it is installed no replica is ready; once it is deleted, nothing is reserved on an empty book."""
    control_plane, _ = plane
    kubectl = Kubectl(control_plane.programs["kubectl"], control_plane.kubeconfig)
    await asyncio.to_thread(kubectl, "delete", "crd", CRD)
    api = await connect(str(control_plane.kubeconfig))
    ledger = KubeLedger(api)
    await ledger.start()
    unserved = "reservations: the API server does not serve it; is its CRD installed?"
    try:
        await until(lambda: unserved in ledger.waiting(), 30)
        with pytest.raises(LedgerUnavailable, match="is its CRD installed"):
            await ledger.book(NOW)
        await asyncio.to_thread(install, kubectl)
        await until(lambda: not ledger.waiting(), 30)
        await ledger.reserve(rack("r1", "research/Job/before"), 0, NOW)
        await asyncio.to_thread(kubectl, "delete", "crd", CRD)
        await until(lambda: unserved in ledger.problem(), 30)
        with pytest.raises(LedgerUnavailable):
            await ledger.reserve(rack("r1", "research/Job/after"), 0, NOW)
    finally:
        await ledger.close()
        await api.close()


async def test_a_leader_that_loses_the_api_server_stops_before_another_may_lead(
    plane: tuple[ControlPlane, Process],
) -> None:
    """Its work is cancelled within the Lease's time, and begins again when the server is back."""
    control_plane, server = plane
    api = await connect(str(control_plane.kubeconfig))
    working = asyncio.Event()

    async def work() -> None:
        working.set()
        try:
            await asyncio.Event().wait()
        finally:
            working.clear()

    leader = Leader(api, "default", work)
    election = asyncio.create_task(leader.run())
    try:
        await until(working.is_set)
        await asyncio.to_thread(server.stop, signal.SIGKILL)
        away = time.monotonic()
        await until(lambda: not working.is_set(), 12)
        assert time.monotonic() - away < 10
        await asyncio.to_thread(control_plane.start_apiserver)
        await until(working.is_set, 30)
    finally:
        election.cancel()
        await asyncio.gather(election, return_exceptions=True)
        await api.close()
