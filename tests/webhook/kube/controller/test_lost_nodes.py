"""A gang whose node is lost for a while: its reservation goes away and comes back as a whole."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.model.pod import BoundPod
from planner.model.reservation import reservation_id
from tests.builders import amounts, gang, racks
from tests.webhook.kube.controller.test_rounds import NOW, claimed, leading, one_round
from tests.webhook.kube.worlds import work

GANG = "default/Job/a"


def running(*unready: str) -> Snapshot:
    """Two racks of two nodes, with the pods of the gang on both nodes of the first."""
    state = racks(2, 2)
    nodes = [replace(node, ready=node.name not in unready) for node in state.nodes.values()]
    used = amounts(gpu=8, pods=1)
    pods = [BoundPod(f"default/{node}", node, used, reservation_id(GANG)) for node in ("r1-n1", "r1-n2")]
    return replace(snapshot(nodes, state.topologies), pods=tuple(pods))


async def test_a_gang_whose_node_is_not_ready_for_a_minute_holds_its_rack_again() -> None:
    """Meanwhile it holds the other rack whole, and never parts of both: all of its pods have to be in one."""
    group, news = gang(2, name=GANG, required="rack", gpu=8), asyncio.Event()
    async with leading(running("r1-n1"), work(group), news=news) as (client, ledger, _):

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
        client.seen.cluster = running()  # type: ignore[attr-defined]
        await one_round(client, lambda: holds("r1"))
