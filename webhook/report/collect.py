"""Converts decisions into the results of policies and of the plan. Pure.

The result of a mutating policy that changes the object is a pass that lists the changed fields. The result
of a validating policy is a pass, a failure or a warning; that of the plan is a pass if the gang is
admitted, a warning if it is queued, and a failure if it is rejected. Policies that need a cluster are
skipped if there is none. In a namespace whose mode is not `enforce`, a refusal becomes a warning, and
messages name the effect that the mode prevents, such as `not refused`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from typing import Any

from planner.bandwidth.preferred_level import bandwidth_warning
from planner.bandwidth.words import place_worth, properties_of, sentence
from planner.cluster.snapshot import Snapshot
from planner.model.errors import InputError
from planner.model.names import replicas_of
from planner.model.words import joined, listed
from webhook.admission.configuration.settings import Mode
from webhook.admission.decision_record import PLAN, Decision, Effect, Exempted, Findings, GangPlan, Skipped
from webhook.report.lines import line_of
from webhook.report.model import EXEMPTION, GANGS, MUTATION, Outcome, Result
from webhook.report.offender import fields_named, offending_field, warned_field

_PLACE = re.compile(r"(?P<file>.*?)(?::(?P<line>\d+):\d+)?", re.DOTALL)
"""Matches the location in an `InputError` (`where.file`): a file, followed by line and column if the file
does not parse.
"""
_FIELD = re.compile(r"\b(?:metadata|spec)(?:\.[\w/-]+|\[[^\]\s]+\])+")
_EFFECTS = {"mutation": "changed", "admitted": "held", "queued": "queued"}
"""The effect that mode `enforce` would have: by the rule for a result of a policy, by the decision on the
gang for a result of the plan. `held`: the gang would hold its nodes.
"""


_PLAN_OUTCOME: dict[str, Outcome] = {"admitted": "pass", "queued": "warn", "rejected": "fail"}
FIELDS_TOLD = 6
"""The maximum number of changed fields that a result names; `bayplan mutate -o patch` prints the whole
patch.
"""


PODS = "pods"
"""The policy name of results about an object's pods: pods would be replaced, or too few pods fit."""


@dataclass(frozen=True, slots=True)
class Subject:
    """An object of a report, and the decision on it.

    `name`: NAMESPACE/KIND/NAME. `file`: "" if the object is not from a file. `document`: the index of the
    object's document in the file, from 0. `text`: the content of the file, "" if unknown. `item`: where the
    object is in a List, as in `webhook.files.reader.Document`.
    """

    name: str
    api_version: str
    file: str
    document: int
    text: str
    decision: Decision
    item: tuple[int, ...] = ()

    def line(self, field: str) -> int:
        """Returns the line (from 1) of a field in the file, or of the object if `field` is ""; 0 if there is
        no file, or its text is unknown.
        """
        return line_of(self.text, self.document, field, self.item) if self.text else 0


def results(
    subjects: Iterable[Subject], is_wanted: Callable[[Result], bool] = lambda _: True
) -> tuple[Result, ...]:
    """Returns the results of all objects in their order; for each object, those of policies before the
    plan's.

    `is_wanted`: returns whether to include a result. It is called before the file, the line and (for
    policies) the field are found, because that takes longer than anything else here.
    """
    return tuple(
        _placed(result, subject)
        for subject in subjects
        for result in map(partial(_in_mode, mode=subject.decision.mode), _of(subject))
        if is_wanted(result)
    )


def unreadable_files(errors: Iterable[InputError]) -> tuple[Result, ...]:
    """Returns a result for each file that cannot be read, in place of the results of its objects."""
    return tuple(map(_unread, errors))


def _unread(error: InputError) -> Result:
    place = _PLACE.fullmatch(error.where.file)
    assert place is not None, "the pattern matches any text"
    file, line = place.group("file", "line")
    name = PurePath(file).name
    return Result(name, "error", "policy", "input", "unreadable", _about(error), file, int(line or 0))


def _about(error: InputError) -> str:
    """Returns the error's object, field and message, without the file, which the result has in a field."""
    return ": ".join(part for part in (error.where.object, error.where.field, error.message) if part)


def _in_mode(result: Result, mode: Mode) -> Result:
    """Returns the result as a namespace of this mode reports it: unchanged in `enforce`; in other modes, a
    failure or an error becomes a warning, and the message names the effect that the mode prevents, such as
    `not refused`.
    """
    if mode == "enforce":
        return result
    refused = result.result in ("fail", "error")
    effect = "refused" if refused else _EFFECTS.get(result.properties.get("decision", result.rule), "")
    message = f"{result.message} (mode {mode}: not {effect})" if effect else result.message
    properties = {**result.properties, "mode": mode}
    outcome: Outcome = "warn" if refused else result.result
    return replace(result, result=outcome, message=message, properties=properties)


def _placed(result: Result, subject: Subject) -> Result:
    """Returns the result with file, field and line. If it has no field, takes one that its message names;
    without any, the line is that of the object.
    """
    match = _FIELD.search(result.message)
    field = result.field or (match.group() if match else "")
    if not field and result.result != "pass":
        field = next(fields_named(subject.decision.object or {}, result.message), "")
    return replace(result, file=subject.file, line=subject.line(field), field=field)


def _of(subject: Subject) -> Iterator[Result]:
    decision = subject.decision
    blank = Result(subject.name, "pass", "policy", "", api_version=subject.api_version)
    if decision.force.warning:
        yield replace(blank, result="warn", policy="mode", rule="label", message=decision.force.warning)
    if decision.findings is None:
        if not decision.in_enforce.allowed:
            yield replace(blank, result="error", policy="input", message=decision.in_enforce.message)
        if decision.mode == "off":
            yield replace(blank, result="skip", policy="mode", message="the namespace has mode off")
        return
    mutated = decision.mutated
    if mutated is not None:
        yield from (_changed(blank, effect) for effect in decision.effects if effect.policy != PLAN)
        for failure in (*mutated.errors, *mutated.warnings):
            outcome: Outcome = "error" if failure.fatal else "warn"
            yield replace(
                blank, result=outcome, policy=failure.policy, rule=failure.label, message=failure.message
            )
        yield from (_left_out(blank, row) for row in mutated.skipped)
        yield from (_exempted(blank, row) for row in mutated.exempted)
    for note in decision.notes:
        yield replace(
            blank, result="warn", policy=PODS, rule=note.rule, message=note.message, severity="medium"
        )
    yield from _of_findings(blank, decision.findings)
    if decision.plan is not None:
        yield from _together(
            (
                _planned(blank, placed, decision.plan.snapshot, decision.object or {})
                for placed in decision.plan.placed
            ),
            decision.plan.total,
        )


def _together(planned: Iterable[Result], total: int) -> Iterator[Result]:
    """Yields the plan's results for the gangs of one object, which has `total` gangs. Results with the same
    message become one, which counts them in its message and in its property `GANGS`.
    """
    by_message: dict[tuple[str, str], list[Result]] = {}
    for result in planned:
        by_message.setdefault((result.result, result.message), []).append(result)
    for equal_results in by_message.values():
        first, count = equal_results[0], len(equal_results)
        if count > 1:
            part = "All" if count == total else f"{count} of"
            words = f"{part} {replicas_of(first.properties['gang'], total)}, each: {first.message}"
            first = replace(first, message=words, properties={**first.properties, GANGS: str(count)})
        yield first


def _changed(blank: Result, effect: Effect) -> Result:
    fields = list(dict.fromkeys(str(op["path"]) for op in effect.patch))
    message = f"would change {listed(fields, FIELDS_TOLD)}"
    return replace(blank, policy=effect.policy, rule=MUTATION, message=message, severity="info")


def _left_out(blank: Result, row: Skipped) -> Result:
    return replace(
        blank, result="skip", policy=row.policy, message=f"needs a cluster: {', '.join(row.lacks)}"
    )


def _exempted(blank: Result, row: Exempted) -> Result:
    """Returns the result for a PolicyException that matches the object: a skip, as in Kyverno's reports, or a
    warning if the exception has ended.
    """
    return replace(
        blank,
        result="warn" if row.over else "skip",
        policy=row.policy,
        rule=EXEMPTION,
        message=str(row),
        severity="medium" if row.over else "info",
        properties={"exception": row.exemption.name, "until": row.exemption.ended},
    )


def _of_findings(blank: Result, findings: Findings) -> Iterator[Result]:
    for denial in findings.denials:
        yield replace(
            blank,
            result="fail",
            policy=denial.policy,
            rule=denial.label,
            message=denial.message,
            severity="high",
        )
    for finding in (*findings.warned, *findings.audited):
        yield replace(
            blank,
            result="warn",
            policy=finding.policy,
            rule=finding.label,
            message=finding.message,
            severity="medium",
        )
    for failure in (*findings.errors, *findings.ignored):
        outcome: Outcome = "error" if failure.fatal else "warn"
        yield replace(
            blank, result=outcome, policy=failure.policy, rule=failure.label, message=failure.message
        )
    yield from (replace(blank, policy=name) for name in findings.passed)
    yield from (_left_out(blank, row) for row in findings.skipped)
    yield from (_exempted(blank, row) for row in findings.exempted)


def _planned(blank: Result, placed: GangPlan, snapshot: Snapshot, obj: Mapping[str, Any]) -> Result:
    answer = placed.answer
    admitted = answer.decision == "admitted"
    value = place_worth(snapshot, placed.asked, answer)
    warnings = [
        warning
        for warning in (*answer.warnings, bandwidth_warning(snapshot, placed.asked, answer))
        if warning
    ]
    properties = {
        "gang": answer.gang,
        "decision": answer.decision,
        "topology": answer.topology,
        "level": answer.level,
        "domain": "/".join(part for part in answer.domain if part),
        "reserves": ", ".join("/".join(part for part in domain if part) for domain in answer.reserves),
        **(properties_of(value) if value else {}),
    }
    sentences = (
        answer.message,
        sentence(value) if value else "",
        *(f"warning: {warning}" for warning in warnings),
    )
    return replace(
        blank,
        result="warn" if admitted and warnings else _PLAN_OUTCOME[answer.decision],
        field=warned_field(placed.group, warnings)
        if admitted
        else offending_field(placed.group, answer.reason, answer.message, obj),
        source="plan",
        policy=PLAN,
        rule=answer.reason,
        message=joined(sentences),
        severity="high" if answer.decision == "rejected" else "",
        properties={key: value for key, value in properties.items() if value},
    )
