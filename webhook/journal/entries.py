"""An admission as a line of a journal, and what two decisions on it are compared by. Pure.

A line is JSON: the time, the phase, the request as the API server sends it (without secrets), and the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from planner.manifests.reservation import reservation_from, reservation_manifest
from planner.model.errors import InputError, Where
from planner.model.reservation import Reservation
from webhook.admission.configuration.settings import Mode
from webhook.admission.decision_record import PLAN, Decision, Phase
from webhook.admission.ledger_steps import ReservationClaim, Reserve
from webhook.admission.modes import Outcome
from webhook.journal.changes import FieldChanges, field_changes
from webhook.journal.secrets import without_secrets
from webhook.wire.request import AdmissionRequest
from webhook.wire.review import API_VERSION, BadCall, decode

VERSION = 2
"""Of the journal's lines; a reader of another version says so, and reads none of them."""
HEAD = "bayplanJournal"
"""The key of a file's first line, with the version as its value."""
LONGEST = 2048
"""Characters of a message that are kept."""

Json = Mapping[str, Any]


class NotAnEntryError(ValueError):
    """A line is no admission; the message says why, in words for people."""


def as_json(value: object) -> str:
    """A value of a line as it stands there, its beginning."""
    return orjson.dumps(value).decode()[:40]


@contextmanager
def reading(form: str) -> Iterator[None]:
    """Read a line as `form`, in words. Raises `NotAnEntryError` for all that is not of it."""
    try:
        yield
    except NotAnEntryError:
        raise
    except KeyError as error:
        raise NotAnEntryError(f"{form} without `{error.args[0]}`") from None
    except (BadCall, InputError) as error:
        raise NotAnEntryError(str(error)) from None
    except (ValueError, TypeError, AttributeError, IndexError):
        raise NotAnEntryError(f"a value in it is not of the kind that {form} has there") from None


class GangAnswer(NamedTuple):
    """What was decided on a gang, its place in words ("" for none), and the GPUs that it asks for."""

    decision: str
    place: str = ""
    gpus: int = 0


@dataclass(frozen=True, slots=True)
class Answered:
    """What a decision comes to, whatever the mode: the answer of enforce.

    `gangs`: by name. `changes`: by policy the fields that it changes, with their values. `policy`: who
    refuses. `whole`: what the policies changed and the planner decided is known; an audit log tells only
    whether the object was let in.
    """

    allowed: bool
    outcome: Outcome = "unchanged"
    message: str = ""
    policy: str = ""
    mode: Mode = "enforce"
    gangs: Mapping[str, GangAnswer] = field(default_factory=dict)
    changes: Mapping[str, FieldChanges] = field(default_factory=dict)
    whole: bool = True


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One admission. `time`: seconds since the epoch. `gone`: reservations that ended since the one before;
    `came`: those that were made since, by this one too.

    `claims`: reservations that the object claimed. `stored`: it is known to be stored, so its reservations
    are claimed at once (an audit log has one event, a journal two calls).
    """

    time: float
    phase: Phase
    request: AdmissionRequest
    answer: Answered
    claims: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    came: tuple[Reservation, ...] = ()
    stored: bool = False

    def begun(self, held: Reservation) -> float:
        """When a reservation began of which this one tells. It says so itself: a place that the controller
        gave is told by the next admission only."""
        return held.created if 0 < held.created < self.time else self.time

    @property
    def name(self) -> str:
        """NAMESPACE/KIND/NAME of the object."""
        request = self.request
        obj = request.object or request.old_object or {}
        metadata = obj.get("metadata")
        own = metadata.get("name") or metadata.get("generateName") if isinstance(metadata, Mapping) else ""
        parts = (request.namespace, request.kind.kind, request.name or str(own or "(no name)"))
        return "/".join(part for part in parts if part)


def answered(decision: Decision, kind: str) -> Answered:
    """What the decision on an object of this kind is compared by."""
    response = decision.in_enforce
    changes: dict[str, dict[str, str]] = {}
    for effect in decision.effects:
        if effect.policy != PLAN:
            changes.setdefault(effect.policy, {}).update(field_changes(effect.patch, kind))
    placed = decision.plan.placed if decision.plan is not None else ()
    gangs = {
        gang.answer.gang: GangAnswer(
            gang.answer.decision, _place(gang.answer.domain, gang.reservation), gang.asked.gpus
        )
        for gang in placed
    }
    policy = "" if response.allowed else next(decision.refusing(), "")
    return Answered(
        response.allowed,
        decision.outcome,
        response.message[:LONGEST],
        policy,
        decision.mode,
        gangs,
        changes,
    )


def _place(domain: Iterable[str], reservation: Any) -> str:
    """The domain; where a gang is in none, its nodes."""
    path = "/".join(part for part in domain if part)
    if path or reservation is None:
        return path
    return ", ".join(sorted(reservation.touched))[:LONGEST]


def line_of(
    moment: float,
    phase: Phase,
    request: AdmissionRequest,
    decision: Decision,
    gone: Iterable[str] = (),
    came: Iterable[Reservation] = (),
) -> bytes:
    """The admission as one line of JSON, with a line feed; `came`: reservations that others made."""
    answer = answered(decision, request.kind.kind)
    claims = [step.reservation for step in decision.steps if isinstance(step, ReservationClaim)]
    document = {
        "time": round(moment, 3),
        "phase": phase,
        "request": _request(request),
        "answer": {
            "allowed": answer.allowed,
            "outcome": answer.outcome,
            "message": answer.message,
            "policy": answer.policy,
            "mode": answer.mode,
            "gangs": {name: list(gang) for name, gang in answer.gangs.items()},
            "changes": answer.changes,
        },
        "claims": claims,
        "gone": list(gone),
        "came": [reservation_manifest(held) for held in (*came, *reserved(request, decision))],
        "revision": decision.revision,
    }
    return orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)


def reserved(request: AdmissionRequest, decision: Decision) -> tuple[Reservation, ...]:
    """What the decision reserves, unless it is only shown."""
    if request.dry_run or decision.mode != "enforce":
        return ()
    return tuple(step.reservation for step in decision.steps if isinstance(step, Reserve))


def _request(request: AdmissionRequest) -> dict[str, Any]:
    """The request as the API server sends it, without secrets, and without what asks the API server."""
    return {
        **request.as_cel(),
        "object": without_secrets(request.object),
        "oldObject": without_secrets(request.old_object),
        "options": {},
    }


LATEST = 4_102_444_800.0
"""Seconds from 1970 to 2100: what is later is told in another unit."""


def _time(seconds: object) -> float:
    """Seconds since 1970. Raises `NotAnEntryError` for what is no such time."""
    if not isinstance(seconds, (int, float)) or not 0 <= seconds < LATEST:
        raise NotAnEntryError(f"time is {as_json(seconds)}, which is no number of seconds from 1970 to 2100")
    return float(seconds)


def entry_of(document: Json) -> JournalEntry:
    """The admission in a line. Raises `NotAnEntryError` where it is none."""
    with reading("a journal's line"):
        review = {"apiVersion": API_VERSION, "kind": "AdmissionReview", "request": document["request"]}
        answer, phase = document["answer"], document["phase"]
        if phase not in ("mutate", "validate"):
            raise NotAnEntryError(f"no phase: {as_json(phase)}")
        return JournalEntry(
            _time(document["time"]),
            phase,
            decode(orjson.dumps(review)),
            Answered(
                bool(answer["allowed"]),
                answer["outcome"],
                str(answer["message"]),
                str(answer["policy"]),
                answer["mode"],
                {
                    str(name): GangAnswer(str(row[0]), str(row[1]), int(row[2]))
                    for name, row in answer["gangs"].items()
                },
                {
                    str(name): {str(field): str(value) for field, value in fields.items()}
                    for name, fields in answer["changes"].items()
                },
            ),
            tuple(map(str, document["claims"])),
            tuple(map(str, document["gone"])),
            tuple(reservation_from(held, Where("came")) for held in document["came"]),
        )
