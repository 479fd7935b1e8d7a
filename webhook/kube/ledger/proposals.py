"""Takes places: each is proposed, judged against all earlier proposals, and then kept or withdrawn.

Each proposal is one write, and the only order is that in which etcd stores them (docs/decisions/0103):

    replica 1: POST a, stored as 41   the watch shows 41   nothing before 41 blocks it: a is held
    replica 2: POST b, stored as 42   the watch shows 42   a blocks it: b is withdrawn, and planned again
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from planner.ledger.conflicts import Blocked, RecordedReservation, Wish, in_the_way, judge, with_former_owner
from planner.ledger.ledger import Conflict, LedgerUnavailable, Occupied, ReserveResult
from planner.model.reservation import Reservation, reservation_id
from webhook.kube.api.client import ApiError, Unreachable
from webhook.kube.api.tasks import SharedTasks
from webhook.kube.ledger import documents
from webhook.kube.ledger.documents import Entry
from webhook.kube.ledger.expired_holds import ExpiredHolds, meets
from webhook.kube.ledger.owners import Owners
from webhook.kube.ledger.view import BookView, ChangedMeanwhile

COMMIT_SECONDS = 3.5
"""Seconds for which a call tries to take its places: less than the webhook's own deadline (`http.DEADLINE`),
and in proportion to it if `bayplan serve --deadline` sets another.
"""


NEXT_SECONDS = 30.0
"""Time to live in seconds of the proposal of another place, which is accepted within milliseconds unless its
writer dies.
"""


FIRST_PAUSE, LONGEST_PAUSE = 0.005, 0.2
"""Seconds between attempts if another replica was faster, or no answer came; the pause doubles each time."""


Keeps = Callable[[Reservation, Reservation], bool]
"""Returns whether a gang's existing place (the first) may not be replaced by the wanted one (the second)."""


def keeps_none(former: Reservation, wanted: Reservation) -> bool:
    """Returns False: every gang may be given another place."""
    return False


_NEWEST = 2**62
"""An order after all objects, for reservations that are not written yet."""


@dataclass(slots=True, eq=False)
class _Call:
    """A call for several wishes: all are reserved or none. `wanted`: what it is about to write, which other
    calls of this replica count; `written`: what it has written, by object name; `settled`: set at its end.
    """

    wishes: tuple[Wish, ...]
    now: float
    keeps: Keeps
    wanted: tuple[Reservation, ...] = ()
    written: dict[str, Reservation] = field(default_factory=dict)
    settled: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class _ProposedPlace:
    """The place for a wish. `entry`: the object that proposes or holds it; None if it is not written yet."""

    wish: Wish
    entry: Entry | None
    reservation: Reservation


class Proposals:
    """Takes places for any number of concurrent calls."""

    def __init__(self, view: BookView, seconds: float, owners: Owners) -> None:
        self._view = view
        self._seconds = seconds
        self._owners = owners
        self._open: dict[_Call, None] = {}
        """Calls that are about to take or withdraw places, the oldest first. A call that they block waits for
        their end, so of many calls for one rack, a replica writes only one at a time.
        """
        self._looking: SharedTasks[None] = SharedTasks()
        self.expired_holds = ExpiredHolds(view, self.is_held)
        self.undoing: set[asyncio.Task[None]] = set()
        """Tasks that withdraw the proposals of calls that ended before they had all of their places."""

    async def take(self, wishes: Sequence[Wish], now: float, keeps: Keeps = keeps_none) -> ReserveResult:
        """Takes a place for each wish. If one cannot be taken, the call withdraws its proposals and raises
        `Conflict`, `LedgerUnavailable` or, for a place that `keeps` protects, `Occupied`.
        """
        call = _Call(tuple(wishes), now, keeps)
        pause, why = FIRST_PAUSE, "the API server is too slow; retry"
        try:
            async with asyncio.timeout(self._seconds):
                while True:
                    try:
                        return await self._attempt(call)
                    except ChangedMeanwhile:
                        why = "other replicas were faster for too long; retry"
                    except Unreachable as error:  # whether the write succeeded is unknown: read it
                        why = str(error)
                        await self._look_again(call)
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, LONGEST_PAUSE)
        except BaseException as error:
            if call.written:
                undoing = asyncio.create_task(self._undo(call))
                self.undoing.add(undoing)
                undoing.add_done_callback(self.undoing.discard)
            else:
                self._settle(call)
            if isinstance(error, TimeoutError):
                raise LedgerUnavailable(why) from None
            raise

    async def is_held(self, entry: Entry) -> bool:
        """Returns whether the entry's place is held: no earlier reservation that still exists blocks it."""
        assert entry.reservation is not None, "an entry that is claimed has a reservation"
        try:
            await self._judge_proposal(
                _ProposedPlace(Wish(entry.reservation, entry.order), entry, entry.reservation)
            )
        except Conflict:
            return False
        return True

    async def _attempt(self, call: _Call) -> ReserveResult:
        """Tries once to take all places. It withdraws what it has proposed after `Conflict`, `Occupied` and
        `ChangedMeanwhile`, but not after other errors.
        """
        self._view.check()
        owner = self._owners()
        for entry in self._view.expired(call.now):
            if any(meets(entry, wish.reservation) for wish in call.wishes):
                await self.expired_holds.end(entry, call.now, owner)
        places = await self._judged(call)
        call.wanted = tuple(place.reservation for place in places if place.entry is None)
        self._open[call] = None
        new = {place.reservation.id for place in places if self._is_new(call, place)}
        try:
            written = await self._written(call, places)
            own = frozenset(call.written)
            for place in written:
                await self._judge_proposal(place, own)
            held = [await self._settled(call, place) for place in written]
        except (Conflict, Occupied, ChangedMeanwhile):
            await self._withdraw(call)
            self._settle(call)
            raise
        self._settle(call)
        return ReserveResult(tuple(held), frozenset(new))

    def _settle(self, call: _Call) -> None:
        """Ends the call, so that the calls that wait for it continue."""
        self._open.pop(call, None)
        call.settled.set()
        call.settled = asyncio.Event()  # for the call's next attempt

    def _is_new(self, call: _Call, place: _ProposedPlace) -> bool:
        """Returns whether the call adds the reservation to the book. This includes a reservation that an
        earlier attempt of the call wrote, and whose answer was lost.
        """
        if place.entry is None:
            return self._view.readable_entry(place.reservation.id) is None
        return call.written.get(place.reservation.id) == place.reservation

    async def _judged(self, call: _Call) -> list[_ProposedPlace]:
        """Returns the places that the call can have as far as this replica knows; raises `Conflict`.

        Reservations that block the call, or that its gangs hold already, are read again, because the watch
        may not have shown their release yet.
        """
        looked_at: set[str] = set()
        while True:
            places, holder = self._judged_here(call)
            if before := self._before(call, holder):
                await before.settled.wait()
                continue
            doubtful = {place.reservation.gang for place in places if place.entry is not None}
            doubtful = (doubtful | ({holder} if holder else set())) - looked_at
            if not doubtful:
                if holder:
                    raise Conflict(holder)
                return places
            await asyncio.gather(*map(self._look_up, doubtful))
            looked_at |= doubtful

    def _before(self, call: _Call, holder: str) -> _Call | None:
        """Returns another open call of this replica that writes a place for the gang `holder`, which blocks
        `call`, or for a gang of `call` itself; None if there is none.
        """
        if call in self._open:  # `call` has begun to write: two calls could wait for each other forever
            return None
        gangs = {holder, *(wish.reservation.gang for wish in call.wishes)}
        return next((other for other in self._open if any(r.gang in gangs for r in other.wanted)), None)

    def _judged_here(self, call: _Call) -> tuple[list[_ProposedPlace], str]:
        """Returns the places of a call up to the first that is blocked, and the gang that blocks it ("" for
        none). Each is judged as if the places before it were reserved already.
        """
        places: list[_ProposedPlace] = []
        taken = {
            wanted.id: RecordedReservation(wanted, _NEWEST)
            for other in self._open
            if other is not call
            for wanted in other.wanted
        }
        for wish in call.wishes:
            around = {
                kept.reservation.id: kept for kept in self._view.possible_blockers(wish.reservation)
            } | taken
            verdict = judge(wish.reservation, wish.planned_on, around.values(), wish.headroom)
            if isinstance(verdict, Blocked):
                return places, verdict.holder
            if isinstance(verdict, RecordedReservation):
                entry = self._view.readable_entry(verdict.reservation.id)
                places.append(_ProposedPlace(wish, entry, verdict.reservation))
            else:
                taken[verdict.id] = RecordedReservation(verdict, _NEWEST)
                places.append(_ProposedPlace(wish, None, verdict))
        return places, ""

    async def _look_up(self, gang: str) -> None:
        """Reads the objects of a gang into the view. Concurrent callers for the same gang share one read."""
        await self._looking.run(gang, partial(self._read, gang))

    async def _read(self, gang: str) -> None:
        name = reservation_id(gang)
        await self._view.look(name)
        if self._view.readable_entry(documents.next_name(name)) is not None:
            await self._view.look(documents.next_name(name))

    async def _written(self, call: _Call, places: Sequence[_ProposedPlace]) -> list[_ProposedPlace]:
        """Writes the proposals, and returns the places with their objects. Raises the first error, after all
        writes have ended.
        """
        results = await asyncio.gather(
            *(self._propose(call, place) for place in places), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return [
            _ProposedPlace(place.wish, entry, place.reservation)
            for place, entry in zip(places, results, strict=True)
            if not isinstance(entry, BaseException)
        ]

    async def _propose(self, call: _Call, place: _ProposedPlace) -> Entry:
        """Writes the proposal of a place, if the gang does not hold the place yet, and returns its object. A
        gang that holds another place proposes this one in a second object (`documents.as_next`).
        """
        if place.entry is not None:
            return place.entry
        wanted, view = place.reservation, self._view
        former = view.objects.entries.get(wanted.id)
        if former is not None and former.reservation is not None:
            _check_kept(call, former.reservation, place.wish.reservation)
            wanted = documents.as_next(wanted, call.now + NEXT_SECONDS)
        call.written[wanted.id] = wanted
        if former is not None and former.reservation is None:  # an object that is ignored: overwrite it
            return await view.merge(wanted.id, documents.moved(wanted, 0, former))  # 0: a new proposal
        try:
            document = await view.api.create(documents.RESERVATIONS, documents.proposed(wanted))
        except ApiError as error:
            if error.status != 409:
                raise
            del call.written[wanted.id]
            await view.look(wanted.id)
            raise ChangedMeanwhile from None
        return view.objects.stored(document)

    async def _judge_proposal(self, place: _ProposedPlace, own: frozenset[str] = frozenset()) -> None:
        """Raises `Conflict` if a reservation that was written earlier, and is not in `own`, is in the way."""
        entry, wish = place.entry, place.wish
        assert entry is not None, "what is judged was written"
        if entry.since:
            return  # it was claimed, prolonged or moved, and judged before that
        await self._view.reach(entry.order)
        looked_at: set[str] = set()
        while True:
            earlier = self._view.possible_blockers(place.reservation, entry.order)
            others = [kept for kept in earlier if kept.reservation.id not in own]
            holder = in_the_way(place.reservation, wish.planned_on, others, wish.headroom)
            if holder is None:
                return
            if holder in looked_at:
                raise Conflict(holder)
            await self._look_up(holder)
            looked_at.add(holder)

    async def _settled(self, call: _Call, place: _ProposedPlace) -> Reservation:
        """Returns the reservation as it is in the book. If it was proposed in a second object, the gang's own
        object gets the place, and the second one is deleted.

        The former place may have been claimed since the proposal. The write applies only to the version that
        was read, so a place that `keeps` protects is never overwritten.
        """
        entry, wanted = place.entry, place.reservation
        assert entry is not None, "what is settled was written"
        while documents.is_next(entry.name, wanted.gang):
            former = self._view.readable_entry(wanted.id)
            if former is None or former.reservation is None:
                raise ChangedMeanwhile  # released meanwhile
            _check_kept(call, former.reservation, place.wish.reservation)
            wanted = with_former_owner(former.reservation, place.wish.reservation)
            # If `former` has changed, for example was claimed, it is read again, and that is kept.
            with suppress(ChangedMeanwhile):
                await self._view.merge(wanted.id, documents.moved(wanted, entry.order, former))
                with suppress(ApiError, ChangedMeanwhile):
                    await self._view.delete(entry)
                break
        return wanted

    async def _withdraw(self, call: _Call) -> None:
        """Deletes the call's proposals, except those that were claimed meanwhile."""
        for name, content in list(call.written.items()):
            entry = await self._view.find(name)
            if entry is not None and entry.reservation == content and not entry.since:
                with suppress(ChangedMeanwhile):
                    await self._view.delete(entry)
            del call.written[name]

    async def _undo(self, call: _Call) -> None:
        """Withdraws the proposals of a call that has ended. Those that cannot be deleted expire later."""
        try:
            with suppress(ApiError):
                await self._look_again(call)
                await self._withdraw(call)
        finally:
            self._settle(call)

    async def _look_again(self, call: _Call) -> None:
        """Reads the objects that the call has written: a lost answer leaves open whether they were stored."""
        with suppress(Unreachable):
            for name in call.written:
                await self._view.look(name)


def _check_kept(call: _Call, former: Reservation, wanted: Reservation) -> None:
    """Raises `Occupied` if the call may not replace a gang's place. `wanted`: as the caller asked for it."""
    if call.keeps(former, wanted):
        raise Occupied(former.gang, "/".join(former.domain))
