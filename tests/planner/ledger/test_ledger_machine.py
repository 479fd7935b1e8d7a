"""Compares the ledger with a simple model by random walks: both hold the same after every step."""

import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from planner.ledger.ledger import Conflict
from planner.ledger.sqlite import SqliteLedger
from planner.model.podgroup import Assignment
from planner.model.reservation import Reservation, reservation_id

GANGS = st.sampled_from(["a", "b", "c", "d"])
HOSTS = {"r1": ["n1", "n2"], "r2": ["n3", "n4"]}
PATHS = {node: ("z", rack, node) for rack, nodes in HOSTS.items() for node in nodes}


def under(domain, topology):
    """The nodes of a domain. The second topology has the same racks under another zone."""
    return frozenset(n for n, path in PATHS.items() if _in(topology, path)[: len(domain)] == domain)


def _in(topology, path):
    return path if topology == "t" else ("y", *path[1:])


@st.composite
def wanted(draw):
    """A request for a whole rack, node or zone, for both racks, or for part of one or two nodes."""
    topology = draw(st.sampled_from(["t", "u"]))
    zone = _in(topology, ("z",))
    if draw(st.booleans()):
        domains = draw(
            st.sampled_from(
                [(zone,), ((*zone, "r1"),), ((*zone, "r2"),), ((*zone, "r1"), (*zone, "r2"))]
                + [(_in(topology, path),) for path in PATHS.values()]
            )
        )
        nodes = frozenset().union(*(under(domain, topology) for domain in domains))
        used, mode = sorted(nodes)[:1], "domain"
        domain = domains[0] if len(domains) == 1 else zone
    else:
        used = sorted(draw(st.sets(st.sampled_from(sorted(PATHS)), min_size=1, max_size=2)))
        domains, nodes, mode = (), frozenset(used), "nodes"
        paths = [_in(topology, PATHS[node]) for node in used]
        domain = tuple(values[0] for values in zip(*paths, strict=True) if len(set(values)) == 1)
    return Reservation(
        id="",
        gang="",
        topology=topology,
        level="",
        domain=domain,
        mode=mode,
        domains=domains,
        nodes=nodes,
        assignments=tuple(Assignment("w", node, 1) for node in used),
        requests=(("w", {"cpu": 1}),),
        fingerprint=draw(st.sampled_from(["f", "g"])),
    )


def place(reservation):
    """The place of a gang and what it holds."""
    return reservation.topology, reservation.mode, set(reservation.domains), set(reservation.assignments)


def overlap(domains, other):
    """Returns whether two sets of domains overlap: a path contains every path that begins with it."""
    return any(a[: len(b)] == b or b[: len(a)] == a for a in domains for b in other)


class Machine(RuleBasedStateMachine):
    """The model of the ledger: a dictionary of reservations with their times."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "bayplan.db"
        self.runner = asyncio.Runner()
        self.ledger = SqliteLedger(self.path)
        self.model = {}
        self.seen = [0]
        self.now = 0.0

    def do(self, call):
        return self.runner.run(call)

    def live(self):
        self.model = {key: entry for key, entry in self.model.items() if (entry[0].expires or 1e9) > self.now}
        return self.model

    def holder(self, want, planned_on):
        """The first gang in conflict, by the rule in the docstring of `reserve`."""
        return min(
            (r.gang for r, since in self.live().values() if self._meet(want, r, since > planned_on)),
            default=None,
        )

    def _meet(self, want, other, newer):
        if other.id == want.id:
            return False
        if want.topology == other.topology and (
            overlap(want.domains, other.domains)
            or any(other.domain[: len(held)] == held for held in want.domains)
            or any(want.domain[: len(held)] == held for held in other.domains)
        ):
            return True
        exclusive = "domain" in (want.mode, other.mode)
        return bool(want.touched & other.touched) and (exclusive or newer)

    @rule(gang=GANGS, want=wanted(), lives=st.sampled_from([None, 3.0, 8.0]), back=st.integers(0, 3))
    def reserve(self, gang, want, lives, back):
        expires = None if lives is None else self.now + lives
        want = replace(want, id=reservation_id(gang), gang=gang, created=self.now, expires=expires)
        planned_on = self.seen[max(0, len(self.seen) - 1 - back)]
        entry = self.live().get(want.id)
        again = entry is not None and entry[0].fingerprint == want.fingerprint
        if again and entry[1] <= planned_on and place(entry[0]) != place(want):
            again = False
            if entry[0].state == "claimed":
                want = replace(want, state="claimed", expires=None, owner_uid=entry[0].owner_uid)
        is_moved = again and place(entry[0]) != place(want)
        holder = gang if is_moved else None if again else self.holder(want, planned_on)
        if holder is not None:
            with pytest.raises(Conflict, match=f"^already held by {holder}$"):
                self.do(self.ledger.reserve(want, planned_on, self.now))
            return
        got = self.do(self.ledger.reserve(want, planned_on, self.now))
        assert got == (entry[0] if again else want)
        if not again:
            self.model[want.id] = (want, self.do(self.ledger.book(self.now)).revision)

    @rule(gang=GANGS, owner=st.sampled_from(["u1", "u2"]))
    def claim(self, gang, owner):
        entry = self.live().get(reservation_id(gang))
        assert self.do(self.ledger.claim(reservation_id(gang), owner, self.now)) is (entry is not None)
        if entry is not None:
            claimed = replace(entry[0], state="claimed", expires=None, owner_uid=owner)
            self.model[claimed.id] = (claimed, entry[1])

    @rule(gang=GANGS)
    def release(self, gang):
        entry = self.live().pop(reservation_id(gang), None)
        assert self.do(self.ledger.release(reservation_id(gang))) is (entry is not None)

    @rule(seconds=st.sampled_from([1.0, 4.0]))
    def wait(self, seconds):
        self.now += seconds

    @rule()
    def restart(self):
        self.do(self.ledger.close())
        self.ledger = SqliteLedger(self.path)

    @invariant()
    def the_book_is_the_model(self):
        """No reservation is lost, none outlives its time, and a gang is stored completely or not at all."""
        book = self.do(self.ledger.book(self.now))
        assert {r.id: r for r in book.reservations} == {key: r for key, (r, _) in self.live().items()}
        assert book.revision >= self.seen[-1]
        self.seen.append(book.revision)

    @invariant()
    def a_held_domain_has_one_holder(self):
        """No two reservations hold the same node whole, and none uses a node that another holds whole."""
        reservations = self.do(self.ledger.book(self.now)).reservations
        for reservation in reservations:
            for other in reservations:
                if reservation.gang < other.gang and "domain" in (reservation.mode, other.mode):
                    assert not reservation.touched & other.touched

    def teardown(self):
        self.do(self.ledger.close())
        self.runner.close()
        self.folder.cleanup()


TestLedger = Machine.TestCase
TestLedger.settings = settings(
    max_examples=60, stateful_step_count=30, suppress_health_check=list(HealthCheck)
)
