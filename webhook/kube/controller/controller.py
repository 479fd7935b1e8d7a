"""Runs rounds in the leading replica: reads the cluster, asks `reconcile` for actions, carries them out."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial

from planner.ledger.conflicts import NO_HEADROOM, Wish
from planner.ledger.ledger import Conflict, LedgerUnavailable
from planner.model.answer import Answer
from planner.model.reservation import Reservation
from planner.model.words import counted
from webhook.kube.api.client import Api, ApiError
from webhook.kube.controller import evictions, steps
from webhook.kube.controller.admitted_pods import let_in_pods
from webhook.kube.controller.events import Recorder
from webhook.kube.controller.gang_history import GangHistoryWriter
from webhook.kube.controller.gated_pods import let_in
from webhook.kube.controller.memory import (
    Claim,
    Memory,
    alive,
    claim_of,
    gangs_without_reservation,
    patience,
    unused,
)
from webhook.kube.controller.node_taints import NodeTaints
from webhook.kube.controller.ownerless import ownerless, with_stored_owner
from webhook.kube.controller.pace import NEAR, Lasting, PositionPace
from webhook.kube.controller.place_notes import assigned_words, held_places, holds_words, place_words
from webhook.kube.controller.pod_patches import patch_pods
from webhook.kube.controller.reconcile import reconcile
from webhook.kube.controller.recovery_metrics import recovery_histogram
from webhook.kube.controller.scheduler_words import UnboundEvents
from webhook.kube.controller.workload_notes import annotate, note_place
from webhook.kube.controller.world import World, no_namespace, world_of
from webhook.kube.ledger.ledger import KubeLedger
from webhook.kube.state.cluster_watch import ClusterWatch
from webhook.kube.state.gangs import Unbound
from webhook.kube.state.gathering import Gang
from webhook.kube.state.kueue_watch import KueueWatch
from webhook.kube.state.workload_watch import QueueWatch
from webhook.placement.hold import hold_of
from webhook.workloads.keys.annotation_keys import PLACEMENT
from webhook.workloads.layouts import BATCH_MIN_MEMBER

SETTLE_SECONDS = 0.1
"""Minimum pause after a round, so that simultaneous changes are handled together."""

IDLE_SECONDS = 5.0
"""Maximum seconds between two rounds: waiting times end although nothing changes in the cluster."""

VANISHED_SECONDS = 8.0
"""Seconds for which the reservation of an admitted gang must be missing before it is restored: if the gang
was deleted, the reservation may be gone before the watch shows the deletion.
"""

MOST_REST = 3.0
"""Maximum pause in seconds after a round that took long."""

OF_ALL_CALLS = (0, 401, 429)
"""HTTP statuses (0: no answer) that end a round, because other calls would get them too. After another one,
the round goes on: for example, a policy or a broken webhook refuses all writes in one tenant's namespace.
"""

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
        self._recorder = Recorder(api)
        self._outcomes = outcomes
        self.recoveries = recovery_histogram()
        """The metric of how long gangs that lost a node waited for another place."""
        self._broken: dict[str, float] = {}
        """By gang: since when it lacks a node or its reservation, in monotonic seconds."""
        self._moved_off: dict[str, frozenset[str]] = {}
        """By gang: the nodes that it was moved off. Its pods may stay there until they are evicted, and the
        reservation must not follow them back. Cordoned nodes are left out: it may follow after an uncordon.
        """
        self._unnoted: set[str] = set()
        """The gangs whose place could not be written onto their workloads."""
        self._unbound = UnboundEvents(api, self._recorder, self._clock)
        self._seen: frozenset[Claim] = frozenset()
        self._pace = PositionPace()
        self._rounds = 0
        self._unused, self._missing = Lasting(), Lasting()
        """Since when no bound pod uses a gang's place; since when a gang's reservation is not in the book."""

    async def lead(self) -> None:
        """Waits for the watches, and then runs rounds until cancelled."""
        await self._watch.synced()
        await self._queue.synced()
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
        actions = await asyncio.to_thread(reconcile, world, self._memory(world, deleted))
        self._remember(world, actions, began)
        for action in actions:
            try:
                await self._do(action, world)
            except ApiError as error:
                if error.status in OF_ALL_CALLS:
                    raise
                log.warning("controller: %s: %s; other gangs go on", type(action).__name__, error)
        for ref, text in held_places(world):  # `tell` writes each text once
            await self._recorder.tell(ref, "Reserved", text)
        await self._outcomes.write(world.snapshot)
        if self._fence is not None:
            book = await self._ledger.book(self._clock())
            if not await self._fence.sync(world.snapshot.with_book(book)):
                self._watch.news.set()

    def _remember(self, world: World, actions: Iterable[steps.Action], began: float) -> None:
        """Records which gangs were seen, lack a node or their reservation, or wait; forgets the others."""
        held, broken, waiting = set(map(claim_of, world.snapshot.reservations)), set(), set()
        for action in actions:
            if isinstance(action, (steps.MoveTo, steps.Stuck)):
                broken.add(action.gang.name)
            elif isinstance(action, steps.PACED):
                waiting.add(action.gang.name)
        self._seen = (self._seen & held) | alive(world)
        self._broken = {name: self._broken.get(name, began) for name in broken}
        self._rounds += 1
        self._pace.forget_all_but(waiting)

    async def _world(self, now: float) -> World:
        picture = self._watch.snapshot()
        assert picture is not None, "the watch is synced"
        book = await self._ledger.book(now)
        places = self._kueue.places() if self._kueue is not None else None
        return world_of(picture, book, self._queue, now, observed=self._observed, kueue=places)

    def _memory(self, world: World, deleted: dict[str, Reservation]) -> Memory:
        """Returns what this and former rounds have shown."""
        gangs = {held.gang for held in world.snapshot.reservations}
        self._unbound.forget_all_but(gangs)
        self._moved_off = {name: nodes for name, nodes in self._moved_off.items() if name in gangs}
        self._unnoted &= gangs
        gone, now = dict.fromkeys(gangs_without_reservation(world), world.now), world.now
        return Memory(
            deleted,
            missing=self._missing.overdue(gone, now, lambda _: VANISHED_SECONDS),
            idle=self._unused.overdue(unused(world), now, partial(patience, world)),
            moved_off=dict(self._moved_off),
            unnoted=frozenset(self._unnoted),
            rounds=self._rounds,
        )

    async def _deleted(self, world: World) -> dict[str, Reservation]:
        """Returns the reservations whose object is deleted, by id: no object in the watches needs the
        reservation, and the API server stores none that the watches do not show yet.
        """
        left = ownerless(world, self._seen)
        if not left:
            return {}
        bound = frozenset(pod.name for pod in world.snapshot.pods)

        def shows(kind: str, key: str, version: str) -> bool:
            # The queue's watch shows unbound pods only; a bound pod is in the snapshot.
            return self._queue.shows(kind, key, version) or (kind == "Pod" and key in bound)

        owned = await with_stored_owner(self._api, self._queue.paths(), shows, left)
        return {held.id: held for held in left if held.id not in owned}

    async def _do(self, action: steps.Action, world: World) -> None:
        match action:
            case steps.Release(reservation, why, gang):
                if await self._given_back(reservation):
                    log.info("released %s: %s", reservation.gang, why)
                    if gang is not None:
                        if gang.finished:
                            self._outcomes.note(world.snapshot, reservation, well=not gang.failed)
                        await self._recorder.tell(
                            gang.ref, "Released", f"{place_words(reservation)} is free: {why}"
                        )
            case steps.ClaimFor(reservation, gang):
                await self._ledger.claim(reservation.id, gang.ref.uid, self._clock())
            case steps.MoveTo():
                await self._move(action, world)
            case steps.NotePlace(gang, reservation):
                if self._pace.is_due(gang.name, NEAR + 1, self._clock()):  # it may be refused for ever
                    await self._note(gang, reservation, world)
            case steps.LeftUnbound(gang, pods):
                await self._unbound.tell(gang, pods)
            case steps.Follow(gang, reservation):
                await self._follow(gang, reservation, world)
            case steps.LetIn(gang, reservation, pods, pins):
                await self._let_in(world, gang, reservation, pods, pins=pins)
            case evictions.LetInForEvictions():
                await evictions.let_in_all(action, self._api, self._recorder)
            case evictions.BehindUnstarted(gang):
                if self._pace.is_due(gang.name, NEAR + 1, self._clock()):
                    await self._recorder.tell(gang.ref, "Queued", action.answer.message)
            case steps.Adopt():
                await self._adopt(action, world)
            case steps.NotAdopted(_, why, tell):
                text = f"Kueue has assigned nodes that are not all free: {why}. That is not held for it"
                await self._recorder.tell(tell, "NotAdopted", text, warning=True)
            case steps.TellSize(ref, size):
                await annotate(self._api, [ref], {BATCH_MIN_MEMBER: str(size)})
            case steps.Ungate(ref, pods, refs):
                await patch_pods(self._api, pods, lambda _, stored: let_in(stored, (), (), {}))
                let_go = counted(len(pods), "pod is", "pods are")
                text = f"{let_go} let go: namespace {ref.namespace} is not enforced"
                log.info("let go %s: its namespace is not enforced", ref.key)
                await self._recorder.tell(ref, "Admitted", text)
                await annotate(self._api, refs, {PLACEMENT: None})  # else it would wait again later
            case steps.Admit():
                await self._admit(action, world)
            case steps.Restore():
                await self._restore(action, world)
            case steps.Stuck(gang, why, answer):
                text = f"lost {why}, and has no other place now: {answer.message}"
                await self._recorder.tell(gang.ref, "Replanned", text, warning=True)
            case steps.Beside(gang, member, answer):
                if self._pace.is_due(gang.name, 1, self._clock()):
                    text = f"{member} waits for room beside what its gang holds: {answer.message}"
                    await self._recorder.tell(gang.ref, "Queued", text)
            case steps.WaitAction(gang, position, of, answer, _):
                if self._pace.is_due(gang.name, position, self._clock()):
                    waits = f"; waits for: {answer.message}" if answer is not None else ""
                    await self._recorder.tell(gang.ref, "Queued", f"position {position} of {of}{waits}")

    async def _given_back(self, reservation: Reservation) -> bool:
        """Releases the reservation if it is still as given; returns False if it is gone already. Raises
        `Conflict` if it has changed: later actions of this round were planned on a place that is not free.
        """
        if await self._ledger.give_back(reservation):
            return True
        book = await self._ledger.book(self._clock())
        if any(held.id == reservation.id for held in book.reservations):
            raise Conflict(reservation.gang)
        return False

    async def _move(self, action: steps.MoveTo, world: World) -> None:
        gang, move = action.gang, action.move
        wish = Wish(move.reservation, world.snapshot.revision, action.headroom)
        await self._ledger.reserve_all([wish], self._clock())
        nodes = world.snapshot.nodes
        gone = (name for name in move.gone if name not in nodes or not nodes[name].cordoned)
        self._moved_off[gang.name] = self._moved_off.get(gang.name, frozenset()).union(gone)
        self.recoveries.observe(time.monotonic() - self._broken.pop(gang.name, time.monotonic()))
        text = (
            f"lost {action.why}: {move.moved} of {counted(gang.group.size, 'pod')} go to {', '.join(move.to)}"
        )
        log.info("replanned %s: %s", gang.name, text)
        await self._recorder.tell(gang.ref, "Replanned", f"{text}, in {place_words(move.reservation)}")
        await self._note(gang, move.reservation, world)

    async def _note(self, gang: Gang, place: Reservation | Answer, world: World) -> None:
        """Writes the place onto the gang's workloads. If that fails, later rounds do it (rule 2)."""
        self._unnoted.add(gang.name)
        await note_place(self._api, gang, place, world)
        self._unnoted.discard(gang.name)

    async def _follow(self, gang: Gang, reservation: Reservation, world: World) -> None:
        """Reserves the seats where pods were bound. Free amounts are not checked, because these very pods may
        have filled the nodes. Raises `Conflict` if another gang has reserved these nodes since the snapshot.
        """
        wish = Wish(reservation, world.snapshot.revision, NO_HEADROOM)
        await self._ledger.reserve_all([wish], self._clock())
        nodes = ", ".join(sorted({seat.node for seat in reservation.assignments}))
        text = f"bound elsewhere than planned: it holds {place_words(reservation)}, with pods on {nodes}"
        log.info("followed %s: %s", gang.name, text)
        await self._recorder.tell(gang.ref, "Followed", text)
        await self._note(gang, reservation, world)

    async def _restore(self, action: steps.Restore, world: World) -> None:
        gang, reservation = action.gang, action.reservation
        hold = await self._hold(gang, Wish(reservation, world.snapshot.revision, action.headroom))
        text = f"its reservation was gone: {holds_words(gang)} {place_words(reservation)} again"
        log.info("restored %s: %s", gang.name, text)
        await self._recorder.tell(gang.ref, "Replanned", text)
        await self._note(gang, hold, world)

    async def _admit(self, action: steps.Admit, world: World) -> None:
        """Reserves the place, then admits the pods. If the latter fails, the next round does it (rule 4)."""
        gang, hold = action.gang, action.reservation
        if hold is not None:
            hold = await self._hold(gang, Wish(hold, world.snapshot.revision, action.headroom))
        await self._note(gang, hold or action.answer, world)
        log.info("admitted %s", gang.name)
        await self._let_in(world, gang, action.reservation, gang.pods, pins=True)

    async def _let_in(
        self, world: World, gang: Gang, held: Reservation | None, pods: Iterable[Unbound], *, pins: bool
    ) -> None:
        snapshot, tolerated = world.snapshot, self._fence is not None
        if held is None:  # it is kept off what earlier actions of the round have reserved, too
            snapshot = snapshot.with_book(self._ledger.watched(self._clock()))
        await let_in_pods(self._recorder, snapshot, gang, held, pods, pins=pins, tolerated=tolerated)

    async def _hold(self, gang: Gang, wish: Wish) -> Reservation:
        """Reserves the place, claims it for the workload, and returns the hold. Raises `Conflict`."""
        now = self._clock()
        hold = hold_of(wish.reservation, now)
        await self._ledger.reserve_all([replace(wish, reservation=hold)], now)
        if not await self._ledger.claim(hold.id, gang.ref.uid, now):
            raise Conflict(gang.name)
        self._seen |= {(hold.id, gang.ref.uid)}  # a Job deleted before the next round is `ownerless` at once
        return hold

    async def _adopt(self, action: steps.Adopt, world: World) -> None:
        """Reserves Kueue's assignment. If another gang holds it by now, the next round reports that."""
        now, wanted = self._clock(), action.reservation
        held = wanted if wanted.state == "claimed" else hold_of(wanted, now)
        try:
            await self._ledger.reserve_all([Wish(held, world.snapshot.revision, action.headroom)], now)
        except Conflict as error:
            log.info("controller: %s is in the way of what Kueue assigned; looking again", error)
            self._watch.news.set()
            return
        if held.state != "claimed" and not await self._ledger.claim(held.id, action.place.ref.uid, now):
            raise Conflict(held.gang)
        text = f"Kueue has assigned {assigned_words(wanted)} (Workload {action.place.ref.name})"
        log.info("adopted %s: %s", wanted.gang, text)
        await self._recorder.tell(action.tell, "Adopted", text)
