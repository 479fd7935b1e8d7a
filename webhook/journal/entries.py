"""Converts an admission to a line of the journal and back. Pure.

A line is a JSON object: time, phase, the request as the API server sends it (without secrets), the answer,
and which reservations began and ended since the line before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, get_args

import orjson

from planner.ledger.conflicts import Wish
from planner.manifests.reservation import reservation_from, reservation_manifest
from planner.model.errors import InputError, Where
from planner.model.reservation import Reservation
from webhook.admission.configuration.settings import MODES, Mode
from webhook.admission.decision_record import PLAN, Decision, Phase
from webhook.admission.ledger_steps import ReservationClaim
from webhook.admission.modes import Outcome
from webhook.journal.changes import FieldChanges, field_changes
from webhook.journal.secrets import without_secrets
from webhook.wire.request import AdmissionRequest
from webhook.wire.review import API_VERSION, BODY_LIMIT, BadCall, decode

VERSION = 2
"""Version of the journal's lines. A reader rejects other versions."""
HEAD = "bayplanJournal"
"""The key in a file's first line; its value is the version."""
LINE_LIMIT = 2 * BODY_LIMIT
"""Maximum length of a line in bytes, enough for an object and its old object. It is limited so that a file
without line feeds does not fill the memory.
"""
LONGEST = 2048
"""Maximum length of a recorded message in characters."""

Json = Mapping[str, Any]


class NotAnEntryError(ValueError):
    """A line is not a valid admission. The message says why."""


def as_json(value: object) -> str:
    """Returns the first 40 characters of a value as JSON, for error messages."""
    return orjson.dumps(value).decode()[:40]


@contextmanager
def reading(form: str) -> Iterator[None]:
    """A context that converts every error of reading a line to `NotAnEntryError`. `form`: what the line
    should be, for the message, such as "an audit event".
    """
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
    """The decision on a gang ("admitted", "queued" or "rejected"), its place as text ("" for none), and the
    number of GPUs that it requests.
    """

    decision: str
    place: str = ""
    gpus: int = 0


@dataclass(frozen=True, slots=True)
class Answered:
    """The part of a decision that a replay compares: what mode `enforce` answers, whatever the mode was.

    `policy`: the first policy that refuses, `plan` for the planner, "" for none. `mode`: that of the
    namespace. `gangs`: the answers by gang name. `changes`: the changed fields and their values, by policy.
    `whole`: all fields are known; False for an audit log, which only says whether the object was admitted.
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
    """One admission. `time`: seconds since the epoch. `claims`: ids of the object's reservations that this
    call made permanent. `gone`: ids of reservations that ended since the entry before. `came`: reservations
    that were made since the entry before, including those of this admission.

    `stored`: the object is known to be stored, so a replay claims its reservations at once. True for entries
    of an audit log, which has one event per stored object. False for entries of a journal, in which the
    validating call of an object claims them.
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
        """Returns when a reservation in `came` began, in seconds since the epoch. It may be earlier than this
        entry, because the controller's reservations are recorded with the next admission.
        """
        return held.created if 0 < held.created < self.time else self.time

    @property
    def name(self) -> str:
        """The object as NAMESPACE/KIND/NAME."""
        request = self.request
        obj = request.object or request.old_object or {}
        metadata = obj.get("metadata")
        own = metadata.get("name") or metadata.get("generateName") if isinstance(metadata, Mapping) else ""
        parts = (request.namespace, request.kind.kind, request.name or str(own or "(no name)"))
        return "/".join(part for part in parts if part)


def answered(decision: Decision, kind: str) -> Answered:
    """Returns the part of a decision that a replay compares. `kind`: the kind of the object."""
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
    """Returns a gang's domain as text; its nodes if it is not in a single domain; "" if it has no place."""
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
    """Returns the admission as a line of JSON, with a line feed. `moment`: seconds since the epoch. `gone`:
    ids of reservations that ended since the line before. `came`: reservations that the controller or other
    replicas made since that line. The line's `revision` is that of the policies.
    """
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
    """Returns the reservations that the decision makes (its steps of type `Wish`); none for a dry run, or in
    modes other than `enforce`.
    """
    if request.dry_run or decision.mode != "enforce":
        return ()
    return tuple(step.reservation for step in decision.steps if isinstance(step, Wish))


def _request(request: AdmissionRequest) -> dict[str, Any]:
    """Returns the request as the API server sends it, without secrets and options."""
    return {
        **request.as_cel(),
        "object": without_secrets(request.object),
        "oldObject": without_secrets(request.old_object),
        "options": {},
    }


LATEST = 4_102_444_800.0
"""The year 2100, in seconds since the epoch. A larger number is in another unit, for example milliseconds."""


def time_of(seconds: object) -> float:
    """Returns the time in seconds since the epoch. Raises `NotAnEntryError` if it is not a number from 1970
    to 2100 (`LATEST`).
    """
    if not isinstance(seconds, (int, float)) or not 0 <= seconds < LATEST:
        raise NotAnEntryError(f"time is {as_json(seconds)}, which is no number of seconds from 1970 to 2100")
    return float(seconds)


def _choice(answer: Json, name: str, choices: Iterable[Any]) -> Any:
    """Returns the value of a field. Raises `NotAnEntryError` if it is none of the `choices`."""
    if answer[name] not in choices:
        raise NotAnEntryError(f"no {name}: {as_json(answer[name])}")
    return answer[name]


def entry_of(document: Json) -> JournalEntry:
    """Returns the admission in a line. Raises `NotAnEntryError` for anything else."""
    with reading("a journal's line"):
        review = {"apiVersion": API_VERSION, "kind": "AdmissionReview", "request": document["request"]}
        answer, phase = document["answer"], document["phase"]
        if phase not in ("mutate", "validate"):
            raise NotAnEntryError(f"no phase: {as_json(phase)}")
        return JournalEntry(
            time_of(document["time"]),
            phase,
            decode(orjson.dumps(review)),
            Answered(
                bool(answer["allowed"]),
                _choice(answer, "outcome", get_args(Outcome)),
                str(answer["message"]),
                str(answer["policy"]),
                _choice(answer, "mode", MODES),
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
