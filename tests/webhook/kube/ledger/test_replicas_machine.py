"""Two replicas on one API server, compared by random walks in which each watch lags arbitrarily."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import combinations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from planner.ledger.ledger import Conflict
from planner.manifests.reservation import reservation_from
from planner.model.errors import Where
from planner.model.reservation import Reservation, reservation_id
from tests.planner.ledger.test_ledger_machine import GANGS, place, wanted
from tests.webhook.kube.ledger.api_server import ApiServer, VirtualTime
from tests.webhook.kube.ledger.replicas import started
from webhook.kube.ledger import documents

REPLICAS = st.sampled_from([0, 1])
LIVES = st.sampled_from([None, 3.0, 8.0])


class Machine(RuleBasedStateMachine):
    """What the server has stored is the book; the replicas are asked in turn, or both at once."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=VirtualTime)
        self.server = ApiServer()
        pairs = [self.do(started(self.server)) for _ in range(2)]
        self.ledgers = [ledger for ledger, _ in pairs]
        self.clients = [client for _, client in pairs]
        self.now = 0.0

    def do(self, call):
        return self.runner.run(call)

    def stored(self) -> dict[str, Reservation]:
        """The live reservations that the server has stored."""
        items = [item for path, item in self.server.objects.items() if documents.RESERVATIONS in path]
        held = [reservation_from(item, Where()) for item in items]
        return {
            reservation.id: reservation
            for reservation in held
            if reservation.expires is None or reservation.expires > self.now
        }

    async def taken(self, replica, want, back):
        """Reserve on a plan that is so many revisions old; whether it was granted."""
        ledger = self.ledgers[replica]
        planned_on = max(0, (await ledger.book(self.now)).revision - back)
        try:
            return await ledger.reserve(want, planned_on, self.now)
        except Conflict:
            return None

    def of(self, gang, want, lives):
        expires = None if lives is None else self.now + lives
        return replace(want, id=reservation_id(gang), gang=gang, created=self.now, expires=expires)

    @rule(replica=REPLICAS, gang=GANGS, want=wanted(), lives=LIVES, back=st.integers(0, 3))
    def reserve(self, replica, gang, want, lives, back):
        """What is granted is stored, at the place that was asked for."""
        want = self.of(gang, want, lives)
        if self.do(self.taken(replica, want, back)) is not None:
            assert place(self.stored()[want.id]) == place(want)

    @rule(gangs=st.tuples(GANGS, GANGS), wants=st.tuples(wanted(), wanted()), lives=LIVES)
    def ask_both(self, gangs, wants, lives):
        """Each replica is asked for something at the same time."""

        async def at_once():
            return await asyncio.gather(
                *(self.taken(n, self.of(gangs[n], wants[n], lives), 0) for n in (0, 1))
            )

        former = list(self.stored().values())
        granted = self.do(at_once())
        if gangs[0] != gangs[1]:
            for gang, want, held in zip(gangs, wants, granted, strict=True):
                assert held is None or place(self.stored()[held.id]) == place(want)
                left = self.stored().get(reservation_id(gang))
                assert held is not None or left is None or left in former

    @rule(replica=REPLICAS, gang=GANGS)
    def claim(self, replica, gang):
        """True only for what is stored; it stays."""
        is_stored = reservation_id(gang) in self.stored()
        assert self.do(self.ledgers[replica].claim(reservation_id(gang), "uid", self.now)) is is_stored
        assert not is_stored or self.stored()[reservation_id(gang)].expires is None

    @rule(replica=REPLICAS, gang=GANGS)
    def release(self, replica, gang):
        self.do(self.ledgers[replica].release(reservation_id(gang)))
        assert reservation_id(gang) not in self.stored()

    @rule(replica=REPLICAS)
    def lag(self, replica):
        self.clients[replica].hold()

    @rule(replica=REPLICAS, changes=st.sampled_from([1, 2, 3, 2**40]))
    def show(self, replica, changes):
        self.clients[replica].show(changes)
        self.do(asyncio.sleep(0.001))

    @rule(seconds=st.sampled_from([1.0, 4.0]))
    def wait(self, seconds):
        self.now += seconds
        self.do(asyncio.sleep(seconds))

    @invariant()
    def what_is_asked_for_by_name_is_as_it_is_stored(self):
        """Each book has what is stored, if it is asked for it: also what was released a moment ago, and
        without what was claimed just before it would have expired, which the ledger finds out when it is to
        be replaced."""
        held = {
            name: reservation for name, reservation in self.stored().items() if reservation.state == "held"
        }
        for ledger in self.ledgers:
            book = {
                reservation.id: reservation
                for reservation in self.do(ledger.book(self.now, held)).reservations
            }
            assert book.keys() >= held.keys()

    @invariant()
    def a_watch_that_has_told_all_shows_the_book(self):
        """Nothing is kept of what was withdrawn, moved or released."""
        for ledger, client in zip(self.ledgers, self.clients, strict=True):
            if client.shown >= self.server.version:
                client.wake()
                self.do(asyncio.sleep(0.001))
                book = {
                    reservation.id: reservation for reservation in self.do(ledger.book(self.now)).reservations
                }
                assert book == self.stored()

    @invariant()
    def no_proposal_is_left(self):
        """What lost was withdrawn: each object is what a gang holds."""
        assert not any(documents.is_next(name, held.gang) for name, held in self.stored().items())

    @invariant()
    def a_held_domain_has_one_holder(self):
        """No two reservations hold one node whole, or one whole that the other uses."""
        for reservation, other in combinations(self.stored().values(), 2):
            if "domain" in (reservation.mode, other.mode):
                assert not reservation.touched & other.touched

    def teardown(self):
        async def close():
            for ledger in self.ledgers:
                await ledger.close()

        self.do(close())
        self.runner.close()


TestReplicas = Machine.TestCase
TestReplicas.settings = settings(
    max_examples=60, stateful_step_count=30, suppress_health_check=list(HealthCheck), deadline=None
)
