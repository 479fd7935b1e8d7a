"""Makes the response of a decision: the reasons of a refusal, warnings, and audit annotations. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

import orjson

from planner.bandwidth.preferred_level import bandwidth_warning
from planner.cluster.snapshot import Snapshot
from planner.model.names import object_of
from planner.model.words import counted, joined
from webhook.placement.workload_plan import GangPlan, WorkloadPlan
from webhook.policy.engine.exemptions import Exempted
from webhook.policy.engine.failures import Failure
from webhook.policy.engine.findings import Findings, message_of
from webhook.policy.engine.mutation.mutate import Effect
from webhook.policy.engine.validate import ANNOTATION_LIMIT
from webhook.wire.review import Response
from webhook.workloads.options import ON_UNAVAILABLE

CHANGED = "changed"
"""The audit annotation with what each policy changed: a JSON object of JSON pointers by policy name."""

EXEMPT = "exempt"
"""The audit annotation with the exemptions that undid what policies did, and with expired exemptions."""

MAX_POINTERS = 16
"""Maximum number of JSON pointers per policy: people read audit annotations, and the API server limits their
size."""


def refusal(errors: Iterable[Failure], findings: Findings, plan: WorkloadPlan | None) -> Response | None:
    """Returns the refusal with the first reasons, and the code of the first; None if nothing refuses the
    object.
    """
    failed = tuple(errors)
    if not failed and findings.allowed:
        # The planner's reason is given only if no policy refuses: it often refuses the same in other words.
        return _plan_refusal(plan) if plan is not None else None
    code, reason = (422, "Invalid") if failed else (findings.code, findings.reason)
    return Response(False, code=code, reason=reason, message=message_of((*failed, *findings.refusals)))


def kept_off(plan: WorkloadPlan, snapshot: Snapshot | None) -> Response:
    """Returns the refusal of a pod that asks not to be queued, and may use only nodes that gangs hold whole:
    its affinity excludes these, and cannot change once the pod is stored."""
    held = counted(len(snapshot.holders), "node") if snapshot is not None else "nodes"
    message = (
        f"{plan.first.group.name} asks not to be queued, and all nodes that it may use are among the "
        f"{held} that gangs hold whole now: its node affinity would keep it off them for good. Would work: "
        f"{ON_UNAVAILABLE}: queue, or to apply it again once these gangs have ended."
    )
    return Response(False, code=403, reason="Forbidden", message=message)


def completed(
    response: Response,
    ignored: Iterable[Failure],
    exempted: Iterable[Exempted],
    findings: Findings,
    plan: WorkloadPlan | None,
    revision: str,
) -> Response:
    """Returns the response with its warnings, and with the policies' revision as an audit annotation."""
    used = tuple(exempted)
    audit = {"revision": revision, **(findings.audit_annotations or {})}
    if exemptions := joined(map(str, (*used, *findings.exempted))):
        audit[EXEMPT] = exemptions[:ANNOTATION_LIMIT]
    warnings = [*map(str, (*ignored, *used)), *findings.warnings]
    if plan is not None:
        warnings += _plan_warnings(plan, allowed=response.allowed)
    return replace(response, warnings=list(dict.fromkeys(warnings)), audit_annotations=audit)


def with_changes(response: Response, effects: Iterable[Effect]) -> Response:
    """Returns the response with the audit annotation `CHANGED`."""
    return replace(response, audit_annotations={**response.audit_annotations, CHANGED: _pointers(effects)})


def _plan_refusal(plan: WorkloadPlan) -> Response | None:
    name = _name_of(plan)
    if plan.decision == "rejected":
        verb = "can never run" if plan.proves_never else "cannot run on the nodes that the cluster has now"
        return Response(False, code=422, reason="Invalid", message=f"{name} {verb}: {plan.message()}")
    if plan.decision == "queued" and not plan.preview and plan.first.group.on_unavailable == "reject":
        text = f"{name} cannot run now, and asks not to be queued: {plan.message()}"
        return Response(False, code=403, reason="Forbidden", message=text)
    return None


def _plan_warnings(plan: WorkloadPlan, *, allowed: bool) -> Iterator[str]:
    """Yields the planner's warnings about the request and, if the object is allowed, what its place costs and
    what its gangs wait for."""
    if plan.preview:
        yield from [_preview(plan)] if allowed else []
        return
    for gang_plan in plan.placed:
        yield from gang_plan.answer.warnings
    if allowed:
        costs = plan.by_text(lambda placed: bandwidth_warning(plan.snapshot, placed.asked, placed.answer))
        yield from (f"{plan.each(gangs)}: {cost}" for cost, gangs in costs)
        yield from notices_of_waiting(plan, gated=plan.gated)


def notices_of_waiting(plan: WorkloadPlan, *, gated: bool) -> Iterator[str]:
    """Yields the warnings about gangs that are admitted without a place, gated or not: one for all that wait
    for the same.
    """
    for notice, gangs in plan.by_text(partial(_notice, gated=gated)):
        yield f"{plan.listed(gangs)} {'is' if len(gangs) == 1 else 'are each'} {notice}"


def _notice(gang_plan: GangPlan, *, gated: bool) -> str:
    group, answer = gang_plan.group, gang_plan.answer
    if answer.decision != "queued" or group.on_unavailable == "reject":
        return ""
    verb = "queued" if group.on_unavailable == "queue" else "admitted without a place, as requested"
    if answer.waits_for_nodes and not gated:
        verb = "admitted without a place, so that an autoscaler adds nodes"
    elif answer.waits_for_eviction and not gated:
        verb = "admitted without a place, for KAI to evict gangs of lower priority"
    return f"{verb}: {answer.message}"


def _name_of(plan: WorkloadPlan) -> str:
    """Returns the name of the object if its gangs are replicas, otherwise that of its gang; "" for none."""
    gang = plan.first.group.name if plan.placed else ""
    return object_of(gang) or gang


def _preview(plan: WorkloadPlan) -> str:
    name = _name_of(plan) or "it"
    outcome = f"Now it would be {plan.decision}: {plan.message()}"
    return f"{name} is suspended, and holds nothing until it is resumed. {outcome}"


def _pointers(effects: Iterable[Effect]) -> str:
    by_policy: dict[str, list[str]] = {}
    for effect in effects:
        by_policy.setdefault(effect.policy, []).extend(str(operation["path"]) for operation in effect.patch)
    return orjson.dumps({policy: paths[:MAX_POINTERS] for policy, paths in by_policy.items()}).decode()
