"""Which objects of a cluster are listed for moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from planner.model.pod import BoundPod
from planner.model.reservation import Book
from tests.builders import amounts, racks
from webhook.admission.configuration.settings import default_settings
from webhook.kube.api.client import Api, ApiError
from webhook.kube.controller.world import no_namespace
from webhook.kube.moving.defragmenter import Defragmenter
from webhook.kube.runtime import ClusterRuntime


class OfPods(Api):
    """An API server with these pods, which serves no other kind."""

    def __init__(self, *names: str) -> None:
        self.names = names

    async def get(self, path: str, **query: str) -> dict[str, Any]:
        """Discovery of no group."""
        if path != "/apis":
            raise ApiError(404, "NotFound", path)
        return {"groups": []}

    async def list(
        self, path: str, keep: Callable[[dict[str, Any]], Any] = dict, **query: str
    ) -> tuple[list[Any], str]:
        """The pods."""
        names = self.names if path == "/api/v1/pods" else ()
        return [keep({"metadata": {"name": name, "namespace": "ns"}}) for name in names], "1"

    def now(self) -> float:
        """A moment."""
        return 1000.0


async def test_only_pods_that_may_be_moved_are_kept_for_a_leaders_moves() -> None:
    """5,000 nodes have 50,000 pods of DaemonSets, which would take more than a gigabyte."""
    pod = BoundPod("ns/worker", "n1", amounts(gpu=1))
    snapshot = racks(1, 2).with_pod(pod).with_pod(replace(pod, name="ns/exporter", daemon=True))

    async def book(now: float) -> Book:
        return Book(0, ())

    queue = SimpleNamespace(works=tuple, unbound=tuple, in_force=lambda: default_settings)
    runtime = SimpleNamespace(
        api=OfPods("worker", "exporter", "unbound"), snapshot=lambda: snapshot, queue=queue,
        ledger=SimpleNamespace(book=book), observed=no_namespace,
    )  # fmt: skip
    seen, _ = await Defragmenter()._look(cast(ClusterRuntime, runtime))
    assert [obj["metadata"]["name"] for obj in seen.objects] == ["worker"]
