"""What the book's objects say: `Reservation`s, and the one `Ledger` whose version orders all commits.

How N replicas write one book (docs/decisions/0030): a commit is one PUT of the Ledger, which the API server
takes only if nobody else's came in between. It carries what is committed whole, so whoever comes next can
finish it: a commit is applied (its Reservations written) before the next one is made. A Reservation that was
made but never committed has no `status.since`; it counts for nothing and is swept. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from planner.ledger.conflicts import RecordedReservation
from planner.manifests.reservation import API_VERSION, reservation_from, reservation_manifest
from planner.model.errors import InputError, Where
from planner.model.reservation import Reservation

Json = dict[str, Any]


RESERVATIONS = f"/apis/{API_VERSION}/reservations"


LEDGERS = f"/apis/{API_VERSION}/ledgers"


LEDGER = "reservations"
"""The name of the one Ledger object."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A Reservation object as it is stored. `since` 0: not committed; `reservation` None: unreadable."""

    name: str
    uid: str
    version: str
    since: int
    reservation: Reservation | None

    @property
    def kept(self) -> RecordedReservation | None:
        """The committed reservation, None where this is none."""
        return RecordedReservation(self.reservation, self.since) if self.since and self.reservation else None


@dataclass(frozen=True, slots=True)
class Intent:
    """One reservation of a commit: the object that it belongs into (name and UID), and its content."""

    name: str
    uid: str
    spec: Mapping[str, Any]
    status: Mapping[str, Any]

    def to_json(self) -> Json:
        """As it stands in the Ledger."""
        return {"name": self.name, "uid": self.uid, "spec": dict(self.spec), "status": dict(self.status)}


@dataclass(frozen=True, slots=True)
class LedgerTurn:
    """The Ledger object: the number of the last commit, what it says, and the version to commit on."""

    seq: int
    version: str
    intents: tuple[Intent, ...]


def entry_from(document: Mapping[str, Any]) -> tuple[Entry, str]:
    """The entry that an object stands for, and why it cannot be read ("" where it can)."""
    metadata = document["metadata"]
    status = document.get("status") or {}
    since = status.get("since")
    since = since if isinstance(since, int) else 0
    problem, reservation = "", None
    if since:
        try:
            reservation = reservation_from(document, Where(object=f"Reservation {metadata['name']}"))
        except InputError as error:
            problem = str(error)
    entry = Entry(
        metadata["name"],
        metadata.get("uid", ""),
        metadata.get("resourceVersion", ""),
        since,
        reservation,
    )
    return entry, problem


def placeholder(reservation: Reservation) -> Json:
    """The object before its commit: a name, whose UID the commit will point at, and no claim to anything."""
    manifest = reservation_manifest(reservation)
    spec = manifest["spec"]
    assert isinstance(spec, dict), "a manifest has a spec"
    return {**manifest, "spec": {"gang": spec["gang"], "mode": spec["mode"]}, "status": {}}


def intent_for(reservation: Reservation, uid: str, seq: int) -> Intent:
    """The reservation as the commit number `seq` will carry it."""
    manifest: Json = reservation_manifest(reservation)
    status = {**manifest["status"], **summary(reservation), "since": seq}
    return Intent(reservation.id, uid, manifest["spec"], status)


def summary(reservation: Reservation) -> Json:
    """What the printer columns show besides: the domain in one word, nodes used, GPUs."""
    requests = dict(reservation.requests)
    gpus = sum(
        amount * assignment.count
        for assignment in reservation.assignments
        for name, amount in requests.get(assignment.pod_set, {}).items()
        if name.endswith("/gpu") or name.startswith(("gpu.intel.com/", "habana.ai/"))
    )
    return {
        "where": "/".join(reservation.domain),
        "nodes": len({assignment.node for assignment in reservation.assignments}),
        "gpus": gpus,
    }


def applied(intent: Intent, version: str, current: Mapping[str, Any] | None) -> Json:
    """The whole object after the commit, to be written over `version`.

    A claim that came between commit and application (`current` is the object as it then stands) is kept.
    """
    status = dict(intent.status)
    now = (current or {}).get("status") or {}
    if now.get("since") and now.get("state") == "claimed" and status.get("state") == "held":
        status |= {"state": "claimed", "expires": None, "ownerUID": now.get("ownerUID", "")}
    return {
        "apiVersion": API_VERSION,
        "kind": "Reservation",
        "metadata": {"name": intent.name, "uid": intent.uid, "resourceVersion": version},
        "spec": dict(intent.spec),
        "status": status,
    }


def ledger_object(seq: int, version: str, intents: Iterable[Intent]) -> Json:
    """The Ledger after a commit, to be written over `version` ("" makes the first one)."""
    metadata = {"name": LEDGER, **({"resourceVersion": version} if version else {})}
    return {
        "apiVersion": API_VERSION,
        "kind": "Ledger",
        "metadata": metadata,
        "spec": {"commit": seq, "reservations": [intent.to_json() for intent in intents]},
    }


def turn_from(document: Mapping[str, Any]) -> LedgerTurn:
    """The Ledger object read back."""
    spec = document.get("spec") or {}
    intents = tuple(
        Intent(reservation["name"], reservation["uid"], reservation["spec"], reservation["status"])
        for reservation in spec.get("reservations") or []
    )
    return LedgerTurn(int(spec.get("commit", 0)), document["metadata"]["resourceVersion"], intents)


def claimed(reservation_version: str, owner_uid: str) -> Json:
    """The merge patch of a claim, on the condition that nothing changed since `reservation_version`."""
    return {
        "metadata": {"resourceVersion": reservation_version},
        "status": {"state": "claimed", "expires": None, "ownerUID": owner_uid},
    }
