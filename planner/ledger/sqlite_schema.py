"""The book of reservations as SQLite tables: the schema, rows to reservations and back, and range queries.

The tables themselves prevent that two gangs hold the same place whole: no two rows can have the same domain
(the key of `held_domain`) or the same node (`held_node_whole`). `planner.ledger.conflicts` decides all other
conflicts. All functions run inside a transaction that `planner.ledger.sqlite` has begun.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.ledger.conflicts import RecordedReservation
from planner.manifests.reservation import traits_from, traits_json
from planner.model.errors import Where
from planner.model.podgroup import Assignment
from planner.model.reservation import Reservation, State
from planner.model.topology import Domain

APPLICATION_ID = 0x42415950
"""`BAYP`: marks the file as a Bayplan ledger, so that the database of another program is never changed."""


SCHEMA_VERSION = 1


SCHEMA = (
    "CREATE TABLE ledger (only INTEGER PRIMARY KEY CHECK (only = 1), revision INTEGER NOT NULL) STRICT",
    "INSERT INTO ledger VALUES (1, 0)",
    """CREATE TABLE reservation (
        id TEXT PRIMARY KEY,
        gang TEXT NOT NULL,
        topology TEXT NOT NULL,
        place TEXT NOT NULL,
        mode TEXT NOT NULL CHECK (mode IN ('domain', 'nodes')),
        fingerprint TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('held', 'claimed')),
        created REAL NOT NULL,
        expires REAL,
        owner_uid TEXT NOT NULL,
        since INTEGER NOT NULL,
        document TEXT NOT NULL
    ) STRICT""",
    "CREATE INDEX reservation_place ON reservation (topology, place)",
    "CREATE INDEX reservation_expires ON reservation (expires) WHERE expires IS NOT NULL",
    """CREATE TABLE held_domain (
        topology TEXT NOT NULL,
        path TEXT NOT NULL,
        reservation TEXT NOT NULL REFERENCES reservation (id) ON DELETE CASCADE,
        PRIMARY KEY (topology, path)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX held_domain_reservation ON held_domain (reservation)",
    """CREATE TABLE held_node (
        node TEXT NOT NULL,
        reservation TEXT NOT NULL REFERENCES reservation (id) ON DELETE CASCADE,
        whole INTEGER NOT NULL CHECK (whole IN (0, 1)),
        PRIMARY KEY (node, reservation)
    ) STRICT, WITHOUT ROWID""",
    "CREATE UNIQUE INDEX held_node_whole ON held_node (node) WHERE whole = 1",
    "CREATE INDEX held_node_reservation ON held_node (reservation)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)


_COLUMNS = "id, fingerprint, state, created, expires, owner_uid, document"


_SEPARATOR = "\x1f"  # never in a label value; ends every path, so that rack-10 is not inside rack-1


_AFTER = "\x20"  # the next character: the end of the range of paths with a common prefix


# Candidates for a conflict, found by the indexes: all reservations that `conflicts.judge` needs and few
# others, so that the cost does not grow with the book. "Ours" are the domains and nodes of the wanted
# reservation; CROSS JOIN makes SQLite start at these few. `:above`: the paths of its domains, of its whole
# placement, and of all domains around these. `:ranges`: the ranges of paths inside its domains.
_POSSIBLE_CONFLICTS = """
    SELECT :id AS id
    UNION
    -- What holds a domain that is one of ours or holds one, or our whole placement.
    SELECT d.reservation FROM json_each(:above) AS ours
    CROSS JOIN held_domain AS d ON d.topology = :topology AND d.path = ours.value
    UNION
    -- What holds a domain in one of ours.
    SELECT d.reservation FROM json_each(:ranges) AS ours
    CROSS JOIN held_domain AS d ON d.topology = :topology
      AND d.path >= json_extract(ours.value, '$[0]') AND d.path < json_extract(ours.value, '$[1]')
    UNION
    -- What is placed in one of ours, perhaps on a node that joined after we planned.
    SELECT r.id FROM json_each(:ranges) AS ours
    CROSS JOIN reservation AS r ON r.topology = :topology
      AND r.place >= json_extract(ours.value, '$[0]') AND r.place < json_extract(ours.value, '$[1]')
    UNION
    -- What is on one of our nodes.
    SELECT n.reservation FROM json_each(:nodes) AS ours CROSS JOIN held_node AS n ON n.node = ours.value
"""


Key = tuple[str, int, str, float | None, str]
"""The columns id, since (the revision at which the row was inserted), state, expires and owner_uid of a
reservation. Every change of a row changes one of these.
"""


class Unreadable(sqlite3.DatabaseError):
    """A row that cannot be decoded: the file was edited or is damaged."""


def revision(connection: sqlite3.Connection) -> int:
    """Returns the revision of the book: the number of changes so far."""
    return int(connection.execute("SELECT revision FROM ledger").fetchone()[0])


def advance(connection: sqlite3.Connection) -> int:
    """Increments the revision and returns it."""
    connection.execute("UPDATE ledger SET revision = revision + 1")
    return revision(connection)


def sweep(connection: sqlite3.Connection, now: float) -> None:
    """Removes expired holds."""
    if connection.execute("DELETE FROM reservation WHERE expires <= ?", (now,)).rowcount:
        advance(connection)


def read_all(connection: sqlite3.Connection, former: Mapping[Key, Reservation]) -> dict[Key, Reservation]:
    """Returns all reservations in the order of their ids, expired ones too.

    `former`: the result of the previous call, whose reservations are not decoded again, so that one change in
    a large book costs little; {} for the first call.
    """
    return _read(connection, "TRUE", {}, former)


def find(connection: sqlite3.Connection, reservation_id: str) -> Reservation | None:
    """Returns the reservation with this id, or None."""
    row = connection.execute(f"SELECT {_COLUMNS} FROM reservation WHERE id = ?", (reservation_id,)).fetchone()
    return None if row is None else _reservation(row)


def possible_conflicts(
    connection: sqlite3.Connection, wanted: Reservation, former: Mapping[Key, Reservation]
) -> list[RecordedReservation]:
    """Returns every reservation in the book that could conflict with `wanted`, and the one with the same id
    if there is one: the input of `judge`.

    `former`: as in `read_all`.
    """
    held = _held_domains(wanted)
    bindings = {
        "id": wanted.id,
        "topology": wanted.topology,
        "above": json.dumps(sorted({path for domain in (*held, wanted.domain) for path in _above(domain)})),
        "ranges": json.dumps([_within(domain) for domain in held]),
        "nodes": json.dumps(sorted(wanted.touched)),
    }
    reservations = _read(connection, f"id IN ({_POSSIBLE_CONFLICTS})", bindings, former)
    return [RecordedReservation(reservation, since) for (_, since, *_), reservation in reservations.items()]


def _read(
    connection: sqlite3.Connection,
    where: str,
    bindings: Mapping[str, object],
    former: Mapping[Key, Reservation],
) -> dict[Key, Reservation]:
    """Returns the reservations that match an SQL condition, in the order of their ids; those in `former` are
    not decoded again.
    """
    columns = "id, since, state, expires, owner_uid"
    keys = connection.execute(
        f"SELECT {columns} FROM reservation WHERE {where} ORDER BY id", bindings
    ).fetchall()
    unknown = json.dumps([key[0] for key in keys if key not in former])
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM reservation WHERE id IN (SELECT value FROM json_each(?))", (unknown,)
    )
    fresh = {row[0]: _reservation(row) for row in rows}
    return {key: former[key] if key in former else fresh[key[0]] for key in keys}


def insert(connection: sqlite3.Connection, reservation: Reservation) -> None:
    """Writes the reservation with its domains and nodes; replaces an existing reservation of the same id."""
    delete(connection, reservation.id)
    since = advance(connection)
    connection.execute(
        "INSERT INTO reservation VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            reservation.id,
            reservation.gang,
            reservation.topology,
            _path(reservation.domain),
            reservation.mode,
            reservation.fingerprint,
            reservation.state,
            reservation.created,
            reservation.expires,
            reservation.owner_uid,
            since,
            _document(reservation),
        ),
    )
    connection.executemany(
        "INSERT INTO held_domain VALUES (?, ?, ?)",
        {(reservation.topology, _path(domain), reservation.id) for domain in _held_domains(reservation)},
    )
    connection.executemany(
        "INSERT INTO held_node VALUES (?, ?, ?)",
        [(node, reservation.id, reservation.mode == "domain") for node in sorted(reservation.touched)],
    )


def claim(connection: sqlite3.Connection, reservation: Reservation, owner_uid: str) -> None:
    """Makes the hold permanent for this owner; changes nothing if the owner has claimed it already."""
    claimed = replace(reservation, state="claimed", expires=None, owner_uid=owner_uid)
    if claimed != reservation:
        connection.execute(
            "UPDATE reservation SET state = ?, expires = ?, owner_uid = ? WHERE id = ?",
            (claimed.state, claimed.expires, claimed.owner_uid, claimed.id),
        )
        advance(connection)


def delete(connection: sqlite3.Connection, reservation_id: str) -> bool:
    """Removes the reservation and everything that it holds. Returns False if there is none."""
    removed = connection.execute("DELETE FROM reservation WHERE id = ?", (reservation_id,)).rowcount > 0
    if removed:
        advance(connection)
    return removed


def _held_domains(reservation: Reservation) -> tuple[Domain, ...]:
    return reservation.domains if reservation.mode == "domain" else ()


def _path(domain: Domain) -> str:
    return "".join(value + _SEPARATOR for value in domain)


def _above(domain: Domain) -> list[str]:
    """Returns the paths of the domain and of every domain that contains it, up to the whole topology."""
    return [_path(domain[:depth]) for depth in range(len(domain) + 1)]


def _within(domain: Domain) -> tuple[str, str]:
    """Returns the range (end excluded) of the paths of the domain and of all domains inside it; for the whole
    topology, of all paths.
    """
    path = _path(domain)
    return path, path[:-1] + _AFTER if path else chr(0x10FFFF)


def _document(reservation: Reservation) -> str:
    return json.dumps(
        {
            "gang": reservation.gang,
            "topology": reservation.topology,
            "level": reservation.level,
            "domain": reservation.domain,
            "mode": reservation.mode,
            "domains": reservation.domains,
            "nodes": sorted(reservation.nodes),
            "assignments": [(a.pod_set, a.node, a.count) for a in reservation.assignments],
            "requests": [(pod_set, dict(requests)) for pod_set, requests in reservation.requests],
            "traits": [(pod_set, traits_json(traits)) for pod_set, traits in reservation.traits],
            "left_nodes": sorted(reservation.left_nodes),
        },
        separators=(",", ":"),
    )


def _reservation(row: tuple[Any, ...]) -> Reservation:
    try:
        return _decode(*row)
    except (ValueError, KeyError, TypeError) as error:
        raise Unreadable(f"reservation {row[0]} cannot be read") from error


def _decode(
    reservation_id: str,
    fingerprint: str,
    state: State,
    created: float,
    expires: float | None,
    owner_uid: str,
    document: str,
) -> Reservation:
    data = json.loads(document)
    return Reservation(
        id=reservation_id,
        gang=data["gang"],
        topology=data["topology"],
        level=data["level"],
        domain=tuple(data["domain"]),
        mode=data["mode"],
        domains=tuple(tuple(domain) for domain in data["domains"]),
        nodes=frozenset(data["nodes"]),
        assignments=tuple(Assignment(*assignment) for assignment in data["assignments"]),
        requests=tuple((pod_set, requests) for pod_set, requests in data["requests"]),
        fingerprint=fingerprint,
        created=created,
        expires=expires,
        state=state,
        owner_uid=owner_uid,
        traits=tuple((pod_set, traits_from(traits, Where())) for pod_set, traits in data.get("traits", ())),
        left_nodes=frozenset(data.get("left_nodes", ())),
    )
