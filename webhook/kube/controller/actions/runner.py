"""Carries out the actions of a round: writes the book, pods, workloads and events."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from planner.ledger.conflicts import NO_HEADROOM, Wish
from planner.ledger.ledger import Conflict
from planner.model.reservation import Reservation
from planner.model.words import counted
from webhook.kube.api.client import OF_ALL_CALLS, Api, ApiError
from webhook.kube.controller import steps
from webhook.kube.controller.actions.admitted_pods import let_in_for_evictions, let_in_pods
from webhook.kube.controller.actions.events import Recorder
from webhook.kube.controller.actions.gated_pods import let_in
from webhook.kube.controller.actions.place_notes import assigned_words, held_places, holds_words, place_words
from webhook.kube.controller.actions.pod_patches import patch_pods
from webhook.kube.controller.actions.scheduler_words import UnboundEvents
from webhook.kube.controller.actions.workload_notes import annotate, note_place
from webhook.kube.controller.evictions import BehindUnstarted, LetInForEvictions
from webhook.kube.controller.gang_history import GangHistoryWriter
from webhook.kube.controller.pace import NEAR, PositionPace
from webhook.kube.controller.records import RoundRecords
from webhook.kube.controller.world import World
from webhook.kube.ledger.ledger import KubeLedger
from webhook.kube.state.gangs import Ref, Unbound
from webhook.kube.state.gathering import Gang
from webhook.placement.hold import hold_of
from webhook.workloads.keys.annotation_keys import PLACEMENT
from webhook.workloads.layouts.kubernetes import BATCH_MIN_MEMBER

MOST_TOLD = 100
"""Maximum number of held places that one round reports. A new leader reports those of all gangs, and
thousands of calls would keep gangs that come meanwhile waiting for a minute.
"""

log = logging.getLogger("bayplan")


class ActionRunner:
    """Carries out actions, and records in `records` what later rounds need to know of them.

    `clock`: returns seconds since the epoch. `tolerated`: domains that gangs hold whole are tainted, so their
    pods need tolerations. `look_again`: asks for another round.
    """

    def __init__(
        self,
        api: Api,
        ledger: KubeLedger,
        outcomes: GangHistoryWriter,
        records: RoundRecords,
        clock: Callable[[], float],
        look_again: Callable[[], None],
        *,
        tolerated: bool,
    ) -> None:
        self._api = api
        self._ledger = ledger
        self._outcomes = outcomes
        self._records = records
        self._clock = clock
        self._look_again = look_again
        self._tolerated = tolerated
        self._recorder = Recorder(api)
        self._unbound = UnboundEvents(api, self._recorder, clock)
        self._pace = PositionPace()
        self._told_places: set[tuple[Ref, str]] = set()
        """The held places that were reported, as `held_places` yields them. The recorder remembers fewer
        events than there may be places.
        """

    async def run(self, actions: Sequence[steps.Action], world: World) -> None:
        """Carries out the actions of one round, one after the other.

        Raises `Conflict` and `LedgerUnavailable`, and `ApiError` if other calls would fail as well; the next
        round then decides anew. Any other `ApiError` is logged, and the other gangs' actions go on.
        """
        self._pace.begin_round({action.gang.name for action in actions if isinstance(action, steps.PACED)})
        left = {action.gang.name for action in actions if isinstance(action, steps.LeftUnbound)}
        self._unbound.forget_all_but(left | {held.gang for held in world.snapshot.reservations})
        for action in actions:
            try:
                await self._do(action, world)
            except ApiError as error:
                if error.status in OF_ALL_CALLS:
                    raise
                log.warning("controller: %s: %s; other gangs go on", type(action).__name__, error)
        await self._tell_places(world)

    async def _tell_places(self, world: World) -> None:
        """Reports each held place once; leaves those beyond `MOST_TOLD` to the next rounds."""
        places = dict.fromkeys(held_places(world))
        self._told_places.intersection_update(places)
        news = [place for place in places if place not in self._told_places]
        for ref, text in news[:MOST_TOLD]:
            await self._recorder.tell(ref, "Reserved", text)
            self._told_places.add((ref, text))
        if len(news) > MOST_TOLD:
            self._look_again()

    async def _do(self, action: steps.Action, world: World) -> None:  # noqa: C901 - a line for each action
        match action:
            case steps.Release():
                await self._release(action, world)
            case steps.ClaimFor(reservation, gang):
                await self._ledger.claim(reservation.id, gang.ref.uid, self._clock())
            case steps.MoveTo():
                await self._move(action, world)
            case steps.Follow(gang, reservation):
                await self._follow(gang, reservation, world)
            case steps.Restore():
                await self._restore(action, world)
            case steps.Adopt():
                await self._adopt(action, world)
            case steps.Admit():
                await self._admit(action, world)
            case steps.LetIn(gang, reservation, pods, pins):
                await self._let_in(world, gang, reservation, pods, pins=pins)
            case LetInForEvictions():
                await let_in_for_evictions(self._recorder, action)
            case steps.Ungate():
                await self._ungate(action)
            case steps.NotePlace(gang, reservation):
                if self._pace.is_due(gang.name, NEAR + 1, self._clock()):  # it may be refused for ever
                    await note_place(self._api, gang, reservation, world)
            case steps.TellSize(ref, size):
                await annotate(self._api, [ref], {BATCH_MIN_MEMBER: str(size)})
            case steps.LeftUnbound(gang, pods, outdated):
                await self._unbound.tell(gang, pods, outdated)
            case steps.Stuck() | steps.NotAdopted():
                await self._warn(action)
            case steps.Beside() | steps.WaitAction() | BehindUnstarted():
                await self._tell_waiting(action)

    async def _release(self, action: steps.Release, world: World) -> None:
        reservation, gang = action.reservation, action.gang
        if not await self._given_back(reservation):
            return
        log.info("released %s: %s", reservation.gang, action.why)
        if gang is not None:
            if gang.finished:
                self._outcomes.note(world.snapshot, reservation, well=not gang.failed)
            text = f"{place_words(reservation)} is free: {action.why}"
            await self._recorder.tell(gang.ref, "Released", text)

    async def _warn(self, action: steps.Stuck | steps.NotAdopted) -> None:
        if isinstance(action, steps.Stuck):
            text = f"lost {action.why}, and has no other place now: {action.answer.message}"
            await self._recorder.tell(action.gang.ref, "Replanned", text, warning=True)
        else:
            text = f"Kueue has assigned nodes that are not all free: {action.why}. That is not held for it"
            await self._recorder.tell(action.tell, "NotAdopted", text, warning=True)

    async def _tell_waiting(self, action: steps.Beside | steps.WaitAction | BehindUnstarted) -> None:
        match action:
            case steps.WaitAction(_, position, of, answer):
                waits = f"; waits for: {answer.message}" if answer is not None else ""
                text = f"position {position} of {of}{waits}"
            case steps.Beside(_, member, answer):
                position = 1
                text = f"{member} waits for room beside what its gang holds: {answer.message}"
            case BehindUnstarted():
                position, text = NEAR + 1, action.answer.message
        if self._pace.is_due(action.gang.name, position, self._clock()):
            await self._recorder.tell(action.gang.ref, "Queued", text)

    async def _ungate(self, action: steps.Ungate) -> None:
        ref, pods = action.ref, action.pods
        await patch_pods(self._api, pods, lambda _, stored: let_in(stored, (), (), {}))
        let_go = counted(len(pods), "pod is", "pods are")
        log.info("let go %s: its namespace is not enforced", ref.key)
        text = f"{let_go} let go: namespace {ref.namespace} is not enforced"
        await self._recorder.tell(ref, "Admitted", text)
        await annotate(self._api, action.refs, {PLACEMENT: None})  # else it would wait again later

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
        self._records.moved(gang.name)
        text = (
            f"lost {action.why}: {move.moved} of {counted(gang.group.size, 'pod')} go to {', '.join(move.to)}"
        )
        log.info("replanned %s: %s", gang.name, text)
        await self._recorder.tell(gang.ref, "Replanned", f"{text}, in {place_words(move.reservation)}")
        await note_place(self._api, gang, move.reservation, world)

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
        await note_place(self._api, gang, reservation, world)

    async def _restore(self, action: steps.Restore, world: World) -> None:
        gang, reservation = action.gang, action.reservation
        hold = await self._hold(gang, Wish(reservation, world.snapshot.revision, action.headroom))
        text = f"its reservation was gone: {holds_words(gang)} {place_words(reservation)} again"
        log.info("restored %s: %s", gang.name, text)
        await self._recorder.tell(gang.ref, "Replanned", text)
        await note_place(self._api, gang, hold, world)

    async def _admit(self, action: steps.Admit, world: World) -> None:
        """Reserves the place, then admits the pods. If the latter fails, the next round does it (rule 4)."""
        gang, hold = action.gang, action.reservation
        if hold is not None:
            hold = await self._hold(gang, Wish(hold, world.snapshot.revision, action.headroom))
        await note_place(self._api, gang, hold or action.answer, world)
        log.info("admitted %s", gang.name)
        await self._let_in(world, gang, action.reservation, gang.pods, pins=True)

    async def _let_in(
        self, world: World, gang: Gang, held: Reservation | None, pods: Iterable[Unbound], *, pins: bool
    ) -> None:
        snapshot = world.snapshot
        if held is None:  # it is kept off what earlier actions of the round have reserved, too
            snapshot = snapshot.with_book(self._ledger.watched(self._clock()))
        await let_in_pods(self._recorder, snapshot, gang, held, pods, pins=pins, tolerated=self._tolerated)

    async def _hold(self, gang: Gang, wish: Wish) -> Reservation:
        """Reserves the place, claims it for the workload, and returns the hold. Raises `Conflict`."""
        now = self._clock()
        hold = hold_of(wish.reservation, now)
        await self._ledger.reserve_all([replace(wish, reservation=hold)], now)
        if not await self._ledger.claim(hold.id, gang.ref.uid, now):
            raise Conflict(gang.name)
        # A Job that is deleted before the next round is `ownerless` at once.
        self._records.seen |= {(hold.id, gang.ref.uid)}
        return hold

    async def _adopt(self, action: steps.Adopt, world: World) -> None:
        """Reserves Kueue's assignment. If another gang holds it by now, the next round reports that."""
        now, wanted = self._clock(), action.reservation
        held = wanted if wanted.state == "claimed" else hold_of(wanted, now)
        try:
            await self._ledger.reserve_all([Wish(held, world.snapshot.revision, action.headroom)], now)
        except Conflict as error:
            log.info("controller: %s is in the way of what Kueue assigned; looking again", error)
            self._look_again()
            return
        if held.state != "claimed" and not await self._ledger.claim(held.id, action.place.ref.uid, now):
            raise Conflict(held.gang)
        text = f"Kueue has assigned {assigned_words(wanted)} (Workload {action.place.ref.name})"
        log.info("adopted %s: %s", wanted.gang, text)
        await self._recorder.tell(action.tell, "Adopted", text)
