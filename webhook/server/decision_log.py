"""Formats log lines as JSON. The line of a decision does not contain the object."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import orjson

from planner.model.words import shortened
from webhook.admission.decision_record import PLAN, Decision, Phase
from webhook.wire.request import AdmissionRequest

LONGEST_MESSAGE = 4096
"""The maximum number of characters of a message in the log: log collectors cut long lines, and a cut line is
invalid JSON.
"""


LONGEST_NAME = 253
"""The maximum number of characters of an object's name in the log. Kubernetes allows no longer one, but the
API server checks names after admission.
"""


def log_line(phase: Phase, request: AdmissionRequest, decision: Decision, seconds: float) -> str:
    """Returns the log line of a decision: user, object, verdict, its cause, and a summary of the plan.

    `uid` is that of the request, as in the API server's audit log. `policy` is the first policy that refuses
    the object, or would refuse it in mode `enforce` (`plan` for the planner). `changedBy` lists the policies
    that change the object.
    """
    response, in_enforce = decision.response, decision.in_enforce
    plan = decision.plan.first.answer if decision.plan is not None else None
    return json_line(
        event="decision",
        phase=phase,
        uid=request.uid,
        operation=request.operation,
        kind=request.kind.kind,
        namespace=request.namespace,
        name=shortened(request.name or _generated(request), LONGEST_NAME),
        user=request.user_info.username,
        dryRun=request.dry_run,
        mode=decision.mode,
        outcome=decision.outcome,
        allowed=response.allowed,
        reason=response.reason,
        message=shortened(in_enforce.message, LONGEST_MESSAGE),
        policy=None if in_enforce.allowed else next(decision.refusing(), None),
        changedBy=list(dict.fromkeys(effect.policy for effect in decision.effects)),
        patches=len(response.patch),
        warnings=len(response.warnings),
        plan=decision.plan.decision if decision.plan is not None else None,
        planReason=plan.reason if plan is not None else None,
        domain="/".join(plan.domain) if plan is not None else None,
        reservations=[r.id for r in decision.plan.reservations] if decision.plan is not None else [],
        revision=decision.revision,
        tries=decision.tries,
        seconds=round(seconds, 6),
    )


def answers(decision: Decision) -> Iterator[tuple[str, str]]:
    """Yields each evaluated policy with its result, without duplicates: `changed`, `passed`, `refused`,
    `warned`, `failed`, `exempt`, or `exemption-ended` if an exemption has expired.
    """
    by_policy = [(effect.policy, "changed") for effect in decision.effects if effect.policy != PLAN]
    if decision.mutated is not None:
        failures = (*decision.mutated.errors, *decision.mutated.warnings)
        by_policy += [(failure.policy, "failed") for failure in failures]
    if decision.findings is not None:
        findings = decision.findings
        by_policy += [(finding.policy, "refused") for finding in findings.denials]
        by_policy += [(finding.policy, "warned") for finding in (*findings.warned, *findings.audited)]
        by_policy += [(failure.policy, "failed") for failure in (*findings.errors, *findings.ignored)]
        by_policy += [(name, "passed") for name in findings.passed]
    by_policy += [(row.policy, "exemption-ended" if row.over else "exempt") for row in decision.exempted]
    yield from dict.fromkeys(by_policy)


def json_line(**fields: object) -> str:
    """Returns the fields as one line of JSON; the first field is `time`, the current time in RFC 3339."""
    now = datetime.fromtimestamp(time.time(), UTC)
    moment = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return orjson.dumps({"time": moment, **fields}).decode()


def _generated(request: AdmissionRequest) -> str:
    metadata = (request.object or {}).get("metadata")
    name = metadata.get("name") or metadata.get("generateName") if isinstance(metadata, dict) else ""
    return name if isinstance(name, str) else ""
