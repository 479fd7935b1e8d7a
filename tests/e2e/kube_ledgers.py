"""Reservations and ledgers for the tests of the ledger in the API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from planner.model.podgroup import Assignment
from planner.model.reservation import Reservation, reservation_id
from tests.e2e.kubectl import Kubectl
from webhook.kube.api.client import Api
from webhook.kube.api.kubeconfig import connect
from webhook.kube.ledger import documents
from webhook.kube.ledger.ledger import KubeLedger

CRDS = Path(__file__).parents[2] / "manifests" / "20-crds.yaml"


def install(kubectl: Kubectl) -> None:
    """Installs Bayplan's kinds and waits until they are served."""
    output = kubectl("apply", "-f", str(CRDS))
    assert output.status == 0, output.err
    kubectl.wait_for_kinds()


def rack(name: str, gang: str, *, hosts: int = 2, fingerprint: str = "f", lives: float = 1e12) -> Reservation:
    """A gang that holds a whole rack of `hosts` nodes and uses the first of them."""
    nodes = [f"{name}-n{place}" for place in range(1, hosts + 1)]
    return Reservation(
        id=reservation_id(gang),
        gang=gang,
        topology="t",
        level="rack",
        domain=("z", name),
        mode="domain",
        domains=(("z", name),),
        nodes=frozenset(nodes),
        assignments=(Assignment("worker", nodes[0], 1),),
        requests=(("worker", {"nvidia.com/gpu": 8, "pods": 1}),),
        fingerprint=fingerprint,
        created=0.0,
        expires=lives,
    )


def part(node: str, gang: str) -> Reservation:
    """A gang that uses part of a node."""
    return replace(
        rack(node.partition("-")[0], gang), mode="nodes", domains=(), nodes=frozenset({node}),
        domain=("z", node.partition("-")[0], node), assignments=(Assignment("worker", node, 1),),
    )  # fmt: skip


@asynccontextmanager
async def ledgers(kubeconfig: Path, count: int = 1) -> AsyncIterator[list[KubeLedger]]:
    """The ledgers of this many replicas, without reservations, each with its own client."""
    apis = [await connect(str(kubeconfig)) for _ in range(count)]
    replicas = [KubeLedger(api) for api in apis]
    try:
        await clear(apis[0])
        for ledger in replicas:
            await ledger.start()
        for ledger in replicas:
            await ready(ledger)
        yield replicas
    finally:
        for ledger, api in zip(replicas, apis, strict=True):
            await ledger.close()
            await api.close()


async def clear(api: Api) -> None:
    """Deletes all reservations."""
    for item in (await api.list(documents.RESERVATIONS))[0]:
        await api.delete(f"{documents.RESERVATIONS}/{item['metadata']['name']}")


async def ready(ledger: KubeLedger) -> None:
    """Waits until the ledger has read the reservations."""
    await until(lambda: not ledger.waiting())


async def books(*ledgers: KubeLedger, now: float, count: int) -> list[tuple[Reservation, ...]]:
    """The reservations in each ledger, once its watch has delivered this many."""
    result = []
    for ledger in ledgers:
        await until(lambda ledger=ledger: len(ledger.watched(now).reservations) == count)  # type: ignore[misc]
        result.append((await ledger.book(now)).reservations)
    return result


async def until(done: Callable[[], bool], seconds: float = 20.0) -> None:
    """Waits until the condition holds; fails after `seconds`."""
    async with asyncio.timeout(seconds):
        while not done():  # noqa: ASYNC110 - what is waited for happens in an API server
            await asyncio.sleep(0.02)
