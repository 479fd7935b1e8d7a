"""A gang whose node is lost for a while: its reservation goes away and comes back as a whole."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.model.pod import BoundPod
from planner.model.reservation import reservation_id
from tests.builders import amounts, gang, racks
from tests.webhook.kube.controller.test_rounds import NOW, claimed, leading, one_round
from tests.webhook.kube.worlds import work

GANG = "default/Job/a"


def running(gpus: int = 8, **change: Any) -> Snapshot:
    """Two racks of two nodes, with pods of the gang on both nodes of the first, of which one is changed.

    On a node of which a GPU fails, a pod ends.
    """
    state = racks(2, 2)
    nodes = [replace(node, **change) if node.name == "r1-n1" else node for node in state.nodes.values()]
    used = amounts(gpu=gpus, pods=1)
    pods = [
        BoundPod(f"default/{node}-{number}", node, used, reservation_id(GANG))
        for node in ("r1-n1", "r1-n2")
        for number in range(8 // gpus)
    ]
    return replace(
        snapshot(nodes, state.topologies), pods=tuple(pods[1:] if "allocatable" in change else pods)
    )


@pytest.mark.parametrize("gpus", [8, 4])
@pytest.mark.parametrize(
    "change", [{"ready": False}, {"allocatable": amounts(gpu=7, pods=110)}], ids=["not ready", "a GPU failed"]
)
async def test_a_gang_whose_node_is_lost_for_a_minute_holds_its_rack_again(
    change: dict[str, Any], gpus: int
) -> None:
    """Meanwhile it holds the other rack whole, and never parts of both: all of its pods have to be in one."""
    group, news = gang(16 // gpus, name=GANG, required="rack", gpu=gpus), asyncio.Event()
    async with leading(running(gpus, **change), work(group), news=news) as (client, ledger, _):

        async def holds(rack: str) -> bool:
            """Whether it holds this rack alone, two rounds after it did so first."""
            for _ in range(3):
                news.set()
                await asyncio.sleep(0.5)
                (held,) = (await ledger.book(NOW)).reservations
                if held.domains != ((rack,),):
                    return False
            return True

        await ledger.reserve(claimed(racks(2, 2), group), 0, NOW)
        await one_round(client, lambda: holds("r2"))
        client.seen.cluster = running(gpus)  # type: ignore[attr-defined]
        await one_round(client, lambda: holds("r1"))
