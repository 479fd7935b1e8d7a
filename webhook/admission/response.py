"""The response of a decision: the reasons of a refusal, warnings, and audit annotations. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import orjson

from planner.bandwidth.preferred_level import bandwidth_warning
from planner.model.words import joined
from webhook.placement.workload_plan import GangPlan, WorkloadPlan
from webhook.policy.engine.exemptions import Exempted
from webhook.policy.engine.mutation.mutate import Effect
from webhook.policy.engine.policy_pass import Failure
from webhook.policy.engine.validate import ANNOTATION_LIMIT, Findings
from webhook.wire.review import Response

CHANGED = "changed"
"""The audit annotation that tells which policy changed what: JSON, policy name to JSON pointers."""


EXEMPT = "exempt"
"""The audit annotation that tells which policies an exemption left out, and which ended."""


MAX_POINTERS = 16
"""The most JSON pointers for each policy: people read audit annotations, and the API server limits their
size."""


def refusal(errors: Iterable[Failure], findings: Findings, plan: WorkloadPlan | None) -> Response | None:
    """The refusal with every reason for it; None where there is none. The first reason gives the code."""
    reasons = [Response(False, code=422, reason="Invalid", message=str(error)) for error in errors]
    if not findings.allowed:
        denied = Response(False, code=findings.code, reason=findings.reason, message=findings.message)
        reasons.append(denied)
    if not reasons:
        # The planner comes last: what a policy has refused it would often refuse too, in other words.
        return _plan_refusal(plan) if plan is not None else None
    return replace(reasons[0], message=joined(reason.message for reason in reasons))


def completed(
    response: Response,
    ignored: Iterable[Failure],
    exempted: Iterable[Exempted],
    findings: Findings,
    plan: WorkloadPlan | None,
    revision: str,
) -> Response:
    """The response with its warnings and with the revision of the policies that gave it."""
    used = tuple(exempted)
    audit = {"revision": revision, **(findings.audit_annotations or {})}
    if exemptions := joined(map(str, (*used, *findings.exempted))):
        audit[EXEMPT] = exemptions[:ANNOTATION_LIMIT]
    warnings = [*map(str, (*ignored, *used)), *findings.warnings]
    if plan is not None:
        warnings += _plan_warnings(plan, allowed=response.allowed)
    return replace(response, warnings=list(dict.fromkeys(warnings)), audit_annotations=audit)


def with_changes(response: Response, effects: Iterable[Effect]) -> Response:
    """The response that also tells the audit log which policy changed what."""
    return replace(response, audit_annotations={**response.audit_annotations, CHANGED: _pointers(effects)})


def _plan_refusal(plan: WorkloadPlan) -> Response | None:
    name = plan.first.group.name if plan.placed else ""
    if plan.decision == "rejected":
        verb = "can never run" if plan.proves_never else "cannot run on the nodes that the cluster has now"
        return Response(False, code=422, reason="Invalid", message=f"{name} {verb}: {plan.message()}")
    if plan.decision == "queued" and not plan.preview and plan.first.group.on_unavailable == "reject":
        text = f"{name} cannot run now, and asks not to be queued: {plan.message()}"
        return Response(False, code=403, reason="Forbidden", message=text)
    return None


def _plan_warnings(plan: WorkloadPlan, *, allowed: bool) -> Iterator[str]:
    """What is wrong with the request, and, for an object that is stored, where it goes and what it waits for:
    one that is refused goes nowhere."""
    if plan.preview:
        yield from [_preview(plan)] if allowed else []
        return
    for gang_plan in plan.placed:
        yield from gang_plan.answer.warnings
        if allowed and (cost := bandwidth_warning(plan.snapshot, gang_plan.asked, gang_plan.answer)):
            yield cost
        if allowed and (notice := notice_of_waiting(gang_plan, gated=plan.gated)):
            yield notice


def notice_of_waiting(gang_plan: GangPlan, *, gated: bool) -> str:
    """What is said of a gang that has no place now and is let in, behind a gate or not; "" for others."""
    group, answer = gang_plan.group, gang_plan.answer
    if answer.decision != "queued" or group.on_unavailable == "reject":
        return ""
    verb = "is queued" if group.on_unavailable == "queue" else "is admitted without a place, as it requests"
    if answer.grows and not gated:
        verb = "is admitted without a place, so that an autoscaler adds nodes for it"
    elif answer.evicts and not gated:
        verb = "is admitted without a place, for KAI to evict gangs of lower priority"
    return f"{group.name} {verb}: {answer.message}"


def _preview(plan: WorkloadPlan) -> str:
    name = plan.first.group.name if plan.placed else "it"
    outcome = f"Now it would be {plan.decision}: {plan.message()}"
    return f"{name} is suspended, and holds nothing until it is resumed. {outcome}"


def _pointers(effects: Iterable[Effect]) -> str:
    by_policy: dict[str, list[str]] = {}
    for effect in effects:
        by_policy.setdefault(effect.policy, []).extend(str(operation["path"]) for operation in effect.patch)
    return orjson.dumps({policy: paths[:MAX_POINTERS] for policy, paths in by_policy.items()}).decode()
