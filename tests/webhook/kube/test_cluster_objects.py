"""Which objects of a cluster are listed for moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from planner.cluster.snapshot import Snapshot
from planner.model.pod import BoundPod
from planner.model.reservation import Book
from tests.builders import amounts, gang, racks
from tests.webhook.kube.worlds import booked
from webhook.admission.configuration.settings import default_settings
from webhook.kube.api.client import Api, ApiError
from webhook.kube.controller.world import no_namespace
from webhook.kube.moving.defragmenter import MOST_NAMESPACES, Defragmenter
from webhook.kube.runtime import ClusterRuntime


class OfPods(Api):
    """An API server with these pods, which serves no other kind."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.listed: list[str] = []

    async def get(self, path: str, **query: str) -> dict[str, Any]:
        """Discovery of no group."""
        if path != "/apis":
            raise ApiError(404, "NotFound", path)
        return {"groups": []}

    async def list(
        self, path: str, keep: Callable[[dict[str, Any]], Any] = dict, **query: str
    ) -> tuple[list[Any], str]:
        """The pods, all of which are in namespace ns."""
        self.listed.append(path)
        names = self.names if path in ("/api/v1/pods", "/api/v1/namespaces/ns/pods") else ()
        return [keep({"metadata": {"name": name, "namespace": "ns"}}) for name in names], "1"

    def now(self) -> float:
        """A moment."""
        return 1000.0


def leading(snapshot: Snapshot, api: OfPods) -> ClusterRuntime:
    """The runtime of a leader that sees this snapshot."""

    async def book(now: float) -> Book:
        return Book(0, snapshot.reservations)

    queue = SimpleNamespace(works=tuple, unbound=tuple, in_force=lambda: default_settings)
    runtime = SimpleNamespace(
        api=api, snapshot=lambda: snapshot, queue=queue, ledger=SimpleNamespace(book=book),
        observed=no_namespace,
    )  # fmt: skip
    return cast(ClusterRuntime, runtime)


async def test_only_pods_that_may_be_moved_are_kept_for_a_leaders_moves() -> None:
    """5,000 nodes have 50,000 pods of DaemonSets, which would take more than a gigabyte."""
    pod = BoundPod("ns/worker", "n1", amounts(gpu=1))
    snapshot = racks(1, 2).with_pod(pod).with_pod(replace(pod, name="ns/exporter", daemon=True))
    runtime = leading(snapshot, OfPods("worker", "exporter", "unbound"))
    seen, _ = await Defragmenter()._look(runtime)
    assert [obj["metadata"]["name"] for obj in seen.objects] == ["worker"]


async def test_moves_in_progress_list_the_namespaces_that_they_concern() -> None:
    """All pods of a large cluster were listed every 5 s. What moves, what has come to the nodes, and what
    holds a part of them is seen as before.
    """
    pod = BoundPod("ns/worker", "r1-n1", amounts(gpu=1))
    others = (
        BoundPod("other/worker", "r1-n2", amounts(gpu=1)),
        BoundPod("came/worker", "r1-n1", amounts(gpu=1)),
    )
    snapshot = booked(racks(1, 2), gang(1, name="holds/Job/a", gpu=4, reserve="nodes"))
    (held,) = snapshot.reservations
    for bound in (pod, *others):
        snapshot = snapshot.with_pod(bound)
    api = OfPods("worker")
    seen, _ = await Defragmenter()._look(leading(snapshot, api), ["r1-n1", *held.touched], ["ns/Pod/worker"])
    assert {path for path in api.listed if path.endswith("/pods")} == {
        f"/api/v1/namespaces/{name}/pods" for name in ("ns", "came", "holds")
    }
    assert [obj["apiVersion"] for obj in seen.objects] == ["v1"]


async def test_moves_that_concern_many_namespaces_list_each_kind_once() -> None:
    """Otherwise there would be more lists than before."""
    snapshot = racks(1, 2)
    for number in range(2 * MOST_NAMESPACES):
        snapshot = snapshot.with_pod(BoundPod(f"ns{number}/worker", "r1-n1", amounts(gpu=0)))
    api = OfPods()
    await Defragmenter()._look(leading(snapshot, api), ["r1-n1"], ["ns1/Pod/worker"])
    assert [path for path in api.listed if path.endswith("/pods")] == ["/api/v1/pods"]
