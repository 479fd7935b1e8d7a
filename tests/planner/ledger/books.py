"""Reservations for the tests of the ledger.

zone z
├── rack r1: n1 n2
├── rack r2: n3 n4
└── rack r10: n5 n6
"""

from dataclasses import replace

from planner.model.podgroup import Assignment
from planner.model.reservation import Reservation, reservation_id

RACKS = {"r1": ("n1", "n2"), "r2": ("n3", "n4"), "r10": ("n5", "n6")}


def whole(gang, *racks, topology="t", expires=100.0, nodes=None):
    """A gang that holds whole racks and uses every node in them."""
    domains = tuple(("z", rack) for rack in racks)
    nodes = nodes or tuple(node for rack in racks for node in RACKS[rack])
    return Reservation(
        id=reservation_id(gang),
        gang=gang,
        topology=topology,
        level="rack",
        domain=domains[0] if len(domains) == 1 else ("z",),
        mode="domain",
        domains=domains,
        nodes=frozenset(nodes),
        assignments=tuple(Assignment("worker", node, 2) for node in nodes),
        requests=(("worker", {"nvidia.com/gpu": 4, "cpu": 8000}),),
        fingerprint="f1",
        created=1.0,
        expires=expires,
    )


def part(gang, node, rack="r1", expires=100.0):
    """A gang that uses part of one node and holds no whole domain."""
    return replace(
        whole(gang, rack, expires=expires),
        domain=("z", rack, node),
        mode="nodes",
        domains=(),
        nodes=frozenset({node}),
        assignments=(Assignment("worker", node, 1),),
    )


async def held(ledger, now=1.0):
    """The gangs with a reservation at `now`."""
    return {reservation.gang for reservation in (await ledger.book(now)).reservations}
