"""An admission as a line of a journal, and what two decisions on it are compared by. Pure.

A line is JSON: the time, the phase, the request as the API server sends it (without secrets), and the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from webhook.admission.decision import PLAN, Decision, Phase
from webhook.admission.ledger_steps import ReservationClaim
from webhook.admission.modes import Outcome
from webhook.admission.settings import Mode
from webhook.journal.secrets import without_secrets
from webhook.server.decision_log import refusing
from webhook.wire.request import AdmissionRequest
from webhook.wire.review import API_VERSION, BadCall, decode

VERSION = 1
"""Of the journal's lines; a reader of another version says so, and reads none of them."""
HEAD = "bayplanJournal"
"""The key of a file's first line, with the version as its value."""
LONGEST = 2048
"""Characters of a message that are kept."""

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answered:
    """What a decision comes to, whatever the mode: the answer of enforce.

    `gangs`: by name the planner's decision and the place. `changes`: by policy the fields that it changes.
    `policy`: who refuses. `whole`: what the policies changed and the planner decided is known; an audit log
    tells only whether the object was let in.
    """

    allowed: bool
    outcome: Outcome = "unchanged"
    message: str = ""
    policy: str = ""
    mode: Mode = "enforce"
    gangs: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    changes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    whole: bool = True


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One admission. `time`: seconds since the epoch. `gone`: reservations that ended since the one before.

    `claims`: reservations that the object claimed. `stored`: it is known to be stored, so its reservations
    are claimed at once (an audit log has one event, a journal two calls).
    """

    time: float
    phase: Phase
    request: AdmissionRequest
    answer: Answered
    claims: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    stored: bool = False

    @property
    def name(self) -> str:
        """NAMESPACE/KIND/NAME of the object."""
        request = self.request
        obj = request.object or request.old_object or {}
        metadata = obj.get("metadata")
        own = metadata.get("name") or metadata.get("generateName") if isinstance(metadata, Mapping) else ""
        parts = (request.namespace, request.kind.kind, request.name or str(own or "(no name)"))
        return "/".join(part for part in parts if part)


def answered(decision: Decision) -> Answered:
    """What the decision is compared by."""
    response = decision.in_enforce
    changes: dict[str, set[str]] = {}
    for effect in decision.effects:
        if effect.policy != PLAN:
            changes.setdefault(effect.policy, set()).update(map(_operation, effect.patch))
    placed = decision.plan.placed if decision.plan is not None else ()
    gangs = {
        gang.answer.gang: (gang.answer.decision, _place(gang.answer.domain, gang.reservation))
        for gang in placed
    }
    policy = "" if response.allowed else next((name for name, _ in refusing(decision)), "")
    return Answered(
        response.allowed,
        decision.outcome,
        response.message[:LONGEST],
        policy,
        decision.mode,
        gangs,
        {name: tuple(sorted(operations)) for name, operations in changes.items()},
    )


def _operation(operation: Json) -> str:
    """What is done to which field; the value is left out, for it may be an environment's."""
    return f"{operation['op']} {operation['path']}"


def _place(domain: Iterable[str], reservation: Any) -> str:
    """The domain; where a gang is in none, its nodes."""
    path = "/".join(part for part in domain if part)
    if path or reservation is None:
        return path
    return ", ".join(sorted(reservation.touched))[:LONGEST]


def line_of(
    moment: float, phase: Phase, request: AdmissionRequest, decision: Decision, gone: Iterable[str] = ()
) -> bytes:
    """The admission as one line of JSON, with a line feed."""
    answer = answered(decision)
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
            "gangs": answer.gangs,
            "changes": answer.changes,
        },
        "claims": claims,
        "gone": list(gone),
        "revision": decision.revision,
    }
    return orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)


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
    """Seconds since 1970. Raises `ValueError` for what is no such time."""
    if not isinstance(seconds, (int, float)) or not 0 <= seconds < LATEST:
        raise ValueError(f"time is {seconds!r}, which is no number of seconds from 1970 to 2100")
    return float(seconds)


def entry_of(document: Json) -> JournalEntry:
    """The admission in a line. Raises `ValueError` where it is none."""
    try:
        review = {"apiVersion": API_VERSION, "kind": "AdmissionReview", "request": document["request"]}
        answer, phase = document["answer"], document["phase"]
        if phase not in ("mutate", "validate"):
            raise ValueError(f"no phase: {phase!r}")
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
                {str(name): (str(row[0]), str(row[1])) for name, row in answer["gangs"].items()},
                {str(name): tuple(map(str, row)) for name, row in answer["changes"].items()},
            ),
            tuple(map(str, document["claims"])),
            tuple(map(str, document["gone"])),
        )
    except (KeyError, TypeError, AttributeError, IndexError, BadCall) as error:
        raise ValueError(str(error) or type(error).__name__) from None
