"""Runs rounds in the leading replica: reads the cluster, asks `reconcile` for actions, has them carried
out.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from planner.ledger.ledger import Conflict, LedgerUnavailable
from planner.model.reservation import Reservation
from webhook.kube.api.client import Api, ApiError
from webhook.kube.controller.actions.runner import ActionRunner
from webhook.kube.controller.gang_history import GangHistoryWriter
from webhook.kube.controller.node_taints import NodeTaints
from webhook.kube.controller.ownerless import ownerless, with_stored_owner
from webhook.kube.controller.reconcile import reconcile
from webhook.kube.controller.records import RoundRecords
from webhook.kube.controller.world import World, no_namespace, world_of
from webhook.kube.ledger.ledger import KubeLedger
from webhook.kube.state.cluster_watch import ClusterWatch
from webhook.kube.state.kueue_watch import KueueWatch
from webhook.kube.state.workload_watch import QueueWatch

SETTLE_SECONDS = 0.1
"""Minimum pause after a round, so that simultaneous changes are handled together."""

IDLE_SECONDS = 5.0
"""Maximum seconds between two rounds: waiting times end although nothing changes in the cluster."""

MOST_REST = 3.0
"""Maximum pause in seconds after a round that took long."""

log = logging.getLogger("bayplan")


class Controller:
    """Runs rounds: `lead` works until it is cancelled. `clock`: returns seconds since the epoch that never
    jump (default: `Api.now`). `fence`: taints the domains that gangs hold whole, None for no taints.
    `observed`: returns which of some namespaces are not enforced. `kueue`: creates the watch of Kueue's
    places for one term of leading, None to ignore them.
    """

    def __init__(
        self,
        api: Api,
        watch: ClusterWatch,
        queue: QueueWatch,
        ledger: KubeLedger,
        outcomes: GangHistoryWriter,
        clock: Callable[[], float] | None = None,
        *,
        fence: NodeTaints | None = None,
        observed: Callable[[Iterable[str]], frozenset[str]] = no_namespace,
        kueue: Callable[[], KueueWatch] | None = None,
    ) -> None:
        self._api = api
        self._watch = watch
        self._queue = queue
        self._ledger = ledger
        self._fence = fence
        self._observed = observed
        self._watch_kueue = kueue
        self._kueue: KueueWatch | None = None
        self._clock = clock or api.now
        self._outcomes = outcomes
        self._records = RoundRecords()
        self.recoveries = self._records.recoveries
        self._runner = ActionRunner(
            api,
            ledger,
            outcomes,
            self._records,
            self._clock,
            watch.news.set,
            tolerated=fence is not None,
        )

    async def lead(self) -> None:
        """Waits for the watches, and then runs rounds until cancelled."""
        await self._watch.synced()
        await self._queue.synced()
        self._records.begin_term()
        try:
            if self._fence is not None:
                await self._fence.start()
            if self._watch_kueue is not None:
                self._kueue = self._watch_kueue()
                await self._kueue.start()
                await self._kueue.looked()  # else the first round would plan gangs that Kueue has placed
            while True:
                await self._look()
        finally:
            if self._kueue is not None:
                await self._kueue.close()
            if self._fence is not None:
                await self._fence.close()

    async def _look(self) -> None:
        """Runs a round, and pauses until something changes, a hold expires, or `IDLE_SECONDS` have passed."""
        began = time.monotonic()
        await self._round()
        took = time.monotonic() - began
        with suppress(TimeoutError):
            rest = min(IDLE_SECONDS, self._ledger.next_expiry() - self._clock())
            async with asyncio.timeout(max(rest, 0.0)):  # `wait_for` of Python 3.11 may lose a cancellation
                await self._watch.news.wait()
        # A round over a long queue must leave the replica time for calls: rounds take about a third of the
        # time, unless one takes longer than half of `MOST_REST`.
        await asyncio.sleep(min(max(SETTLE_SECONDS, 2 * took), MOST_REST))

    async def _round(self) -> None:
        """Runs one round. An error is logged, and the next round tries again."""
        self._watch.news.clear()
        try:
            await self._reconcile()
        except (Conflict, ApiError, LedgerUnavailable) as error:
            log.info("controller: %s; looking again", error)
            self._watch.news.set()
            await asyncio.sleep(1)
        except Exception as error:  # one invalid object must not end the controller
            log.error("controller: %s", type(error).__name__, exc_info=error)
            await asyncio.sleep(IDLE_SECONDS)

    async def _reconcile(self) -> None:
        """Carries out the actions that `reconcile` returns for the current cluster, one after the other."""
        began, now = time.monotonic(), self._clock()
        await self._ledger.sweep(now)
        world = await self._world(now)
        if deleted := await self._deleted(world):
            world = await self._world(self._clock())  # with what the watches have shown since
        actions = await asyncio.to_thread(reconcile, world, self._records.memory(world, deleted))
        self._records.decided(world, actions, began)
        await self._runner.run(actions, world)
        await self._outcomes.write(world.snapshot)
        if self._fence is not None:
            book = await self._ledger.book(self._clock())
            if not await self._fence.sync(world.snapshot.with_book(book)):
                self._watch.news.set()

    async def _world(self, now: float) -> World:
        picture = self._watch.snapshot()
        assert picture is not None, "the watch is synced"
        book = await self._ledger.book(now)
        places = self._kueue.places() if self._kueue is not None else None
        return world_of(picture, book, self._queue, now, observed=self._observed, kueue=places)

    async def _deleted(self, world: World) -> dict[str, Reservation]:
        """Returns the reservations whose object is deleted, by id: no object in the watches needs the
        reservation, and the API server stores none that the watches do not show yet.
        """
        left = ownerless(world, self._records.seen)
        if not left:
            return {}
        bound = frozenset(pod.name for pod in world.snapshot.pods)

        def shows(kind: str, key: str, version: str) -> bool:
            # The queue's watch shows unbound pods only; a bound pod is in the snapshot.
            return self._queue.shows(kind, key, version) or (kind == "Pod" and key in bound)

        owned = await with_stored_owner(self._api, self._queue.paths(), shows, left)
        return {held.id: held for held in left if held.id not in owned}
