"""A round that fails between the reservation of a place and its annotation: a later round writes it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import orjson
import pytest

from planner.model.reservation import reservation_id
from tests.builders import racks
from tests.webhook.kube.controller.test_rounds import NOW, claimed, leading, one_round, part
from tests.webhook.kube.ledger.api_server import Client
from tests.webhook.kube.worlds import work
from webhook.kube.api.client import ApiError, Unreachable
from webhook.kube.ledger.documents import RESERVATIONS
from webhook.placement.stamp import PlacementAnnotation
from webhook.workloads.keys.annotation_keys import PLACEMENT

JOB = "/apis/batch/v1/namespaces/default/jobs/a"
ERRORS = [ApiError(500, "", "etcd has no leader"), Unreachable("reset")]


async def noted_after_a_failure(client: Client, news: asyncio.Event, path: str, error: ApiError) -> list[str]:
    """The nodes in the Job's annotation, after the first PATCH of a path has failed."""
    collection, _, name = JOB.rpartition("/")
    await client.create(collection, {"metadata": {"name": name, "annotations": {}}})
    failed = False

    async def failing(method: str, called: str) -> None:
        nonlocal failed
        if (method, called) == ("PATCH", path) and not failed:
            failed = True
            news.set()  # the next round begins at once
            raise error

    async def note() -> str:
        annotations = (await client.get(JOB))["metadata"].get("annotations") or {}
        return str(annotations.get(PLACEMENT, ""))

    async def ended() -> bool:
        return bool(await note())

    client.before = failing
    await one_round(client, ended)
    assert failed
    return list(orjson.loads(await note())["nodes"])


@pytest.mark.parametrize("error", ERRORS, ids=str)
@pytest.mark.parametrize("path", [JOB, f"{RESERVATIONS}/{reservation_id('default/Job/a')}"])
async def test_the_workload_of_an_admitted_gang_says_so_after_a_failure(error: ApiError, path: str) -> None:
    """Of its annotation, or before it, of the claim. Otherwise it would say for ever that it waits."""
    news = asyncio.Event()
    async with leading(racks(1, 1), work(part("a"), queued=True), news=news) as (client, _, _):
        assert await noted_after_a_failure(client, news, path, error) == ["r1-n1"]


@pytest.mark.parametrize("error", ERRORS, ids=str)
async def test_the_workload_of_a_gang_that_moved_names_its_nodes_after_a_failure(error: ApiError) -> None:
    """Its node is gone; otherwise it would name that one."""
    held, left, news = claimed(racks(1, 2), part("a")), racks(1, 2), asyncio.Event()
    (gone,) = held.touched
    left = replace(left, base=replace(left.base, nodes={n: m for n, m in left.nodes.items() if n != gone}))
    on_it = replace(work(part("a")), note=PlacementAnnotation("admitted", nodes=frozenset({gone})))
    async with leading(left, on_it, news=news) as (client, ledger, _):
        await ledger.reserve(held, 0, NOW)
        assert await noted_after_a_failure(client, news, JOB, error) == list(left.nodes)
