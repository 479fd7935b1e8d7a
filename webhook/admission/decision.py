"""The decision: from a request, the policies and a picture of the cluster to one answer. Pure.

Copy the object; run the mutating policies in a fixed order, each seeing what the former did; plan; write the
plan onto the object; run the validating policies on the result; make one patch. No I/O, no clock, no chance,
so a dry run is the same decision with nothing done about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import orjson

from planner.cluster.snapshot import Snapshot
from planner.model.errors import InputError
from planner.model.reservation import Reservation
from webhook.admission.environment import Environment
from webhook.admission.evaluation import Evaluation
from webhook.admission.reapply import as_before
from webhook.jsontools.diff import patch_between
from webhook.jsontools.sentences import joined
from webhook.placement.bandwidth_words import given_up
from webhook.placement.stamp import annotate, policies_note
from webhook.placement.workload_plan import WorkloadPlan
from webhook.policy.engine.context import EvaluationContext
from webhook.policy.engine.model import PolicySet
from webhook.policy.engine.mutate import Effect, Mutated, run_mutating
from webhook.policy.engine.session import Failure
from webhook.policy.engine.validate import Findings, run_validating
from webhook.wire.request import AdmissionRequest
from webhook.wire.review import Response
from webhook.workloads import Workload
from webhook.workloads.annotation_keys import POD_GANGS, kind_of

Phase = Literal["mutate", "validate"]


Json = Mapping[str, Any]


PLAN = "plan"
"""The name under which the plan's own writing stands among the effects."""


CHANGED = "changed"
"""The audit annotation that tells which policy changed what: JSON, policy name to JSON pointers."""


CHANGES_TOLD = 16
"""Pointers told of each policy there; an audit log is no place for more."""


_NOTHING_AROUND = Environment()


@dataclass(frozen=True, slots=True)
class Reserve:
    """Take this reservation; it was planned on the book's revision `planned_on`."""

    reservation: Reservation
    planned_on: int


@dataclass(frozen=True, slots=True)
class ReservationClaim:
    """The workload exists: its hold no longer expires."""

    reservation: str
    owner_uid: str


@dataclass(frozen=True, slots=True)
class ReservationRelease:
    """The workload is gone: give its reservation back."""

    reservation: str


Step = Reserve | ReservationClaim | ReservationRelease


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer, what is to be done in the ledger for it, and how it came about.

    `object` is the object as it shall be (as it came, where it is refused or nothing changed it).
    `plan` is None where nothing was planned. `effects` say which policy changed what, the plan's own writing
    among them under the name `plan`; `mutated` and `findings` are what the policy engine says, None where it
    was not asked. `malformed`: the object could not be read.
    """

    response: Response
    object: Json | None = None
    steps: tuple[Step, ...] = ()
    plan: WorkloadPlan | None = None
    mutated: Mutated | None = None
    effects: tuple[Effect, ...] = ()
    findings: Findings | None = None
    malformed: bool = False
    revision: str = ""


def decide(
    request: AdmissionRequest,
    policies: PolicySet,
    snapshot: Snapshot | None,
    phase: Phase,
    around: Environment = _NOTHING_AROUND,
) -> Decision:
    """Answer one request. Never raises for what an object holds: that is a refusal in words."""
    request = around.placed(request)
    looked_up = EvaluationContext(
        params=around.params_beside(policies), authorizer=around.authorizer(request.user_info)
    )
    if request.object is None or request.sub_resource:
        return _aside(request, policies, snapshot, phase, looked_up)
    sight = Evaluation(request, snapshot, around.podgroups, around.members, around.waiting, around.fenced)
    try:
        workload = sight.workload(request.object)
        host = _host(looked_up, request, workload, sight, snapshot is not None)
        if phase == "mutate":

            def as_new() -> Json | None:
                new = replace(request, operation="CREATE", old_object=None)
                made = decide(new, policies, snapshot, phase, around)
                return made.object if made.response.allowed else None

            before = as_before(request.object, request.old_object, workload, as_new)
            return _mutate(request, before, workload, policies, sight, host)
        return _validate(request, policies, sight, host)
    except InputError as error:
        response = Response(False, code=422, reason="Invalid", message=str(error))
        return Decision(response, request.object, malformed=True, revision=policies.revision)


def _mutate(
    request: AdmissionRequest,
    obj: Json,
    workload: Workload,
    policies: PolicySet,
    sight: Evaluation,
    host: EvaluationContext,
) -> Decision:
    """The first look: `obj` is the request's object, or that with the templates which it had before."""
    original: Json = request.object or {}
    mutated = Mutated(obj) if workload.skip else run_mutating(policies, request, sight.freed(obj), host)
    effects = list(mutated.effects)
    result: Json = mutated.object
    plan = sight.plan(result)
    if plan is not None:
        note = policies_note(result, (effect.policy for effect in effects), policies.revision)
        result = annotate(result, sight.workload(result), plan, note, fenced=sight.fenced)
    result = sight.fenced_off(result, plan)
    if written := patch_between(mutated.object, result):
        effects.append(Effect(PLAN, "", tuple(written)))
    findings = run_validating(policies, replace(request, object=result), result, host)
    refusal = _refusal(mutated.errors, findings, plan)
    patch = patch_between(original, result) if refusal is None else []
    response = _response(
        refusal or Response(True, patch), mutated.warnings, findings, plan, policies.revision
    )
    if effects and refusal is None:
        response = replace(
            response, audit_annotations={**response.audit_annotations, CHANGED: _changed(effects)}
        )
    return Decision(
        response,
        result if refusal is None else original,
        _reserving(plan, sight) if refusal is None else (),
        plan,
        mutated,
        tuple(effects),
        findings,
        revision=policies.revision,
    )


def _validate(
    request: AdmissionRequest, policies: PolicySet, sight: Evaluation, host: EvaluationContext
) -> Decision:
    """The second look, at the object as it will be stored: no patch; the hold is claimed by its owner."""
    obj: Json = request.object or {}
    plan = sight.plan(obj)
    findings = run_validating(policies, request, obj, host)
    refusal = _refusal((), findings, plan)
    return Decision(
        _response(refusal or Response(True), (), findings, None, policies.revision),
        obj,
        _claiming(request, plan) if refusal is None else (),
        plan,
        findings=findings,
        revision=policies.revision,
    )


def _aside(
    request: AdmissionRequest,
    policies: PolicySet,
    snapshot: Snapshot | None,
    phase: Phase,
    host: EvaluationContext,
) -> Decision:
    """A deletion or a subresource: there is no gang to plan, so those policies speak that need none."""
    obj = request.object
    mutated = run_mutating(policies, request, obj, host) if phase == "mutate" and obj is not None else None
    result = mutated.object if mutated is not None else obj
    findings = run_validating(policies, request, result, host)
    refusal = _refusal(mutated.errors if mutated is not None else (), findings, None)
    patch = patch_between(obj, result) if obj is not None and result is not None else []
    ignored = mutated.warnings if mutated is not None else ()
    return Decision(
        _response(refusal or Response(True, patch), ignored, findings, None, policies.revision),
        result if refusal is None else obj,
        _farewell(request, snapshot) if refusal is None and phase == "validate" else (),
        mutated=mutated,
        effects=mutated.effects if mutated is not None else (),
        findings=findings,
        revision=policies.revision,
    )


def _host(
    base: EvaluationContext, request: AdmissionRequest, workload: Workload, sight: Evaluation, cluster: bool
) -> EvaluationContext:
    """The engine's view: facts, and the templates that a policy may mend.

    The templates of an object that exists and whose kind does not let them change are left alone: a patch
    there would make the API server refuse an update that has nothing to do with them.
    """
    fixed = request.operation == "UPDATE" and workload.template_immutable
    places = [] if fixed else [(one.path, one.pod_set) for one in workload.templates]
    known = frozenset({"gang", "cluster", "plan"} if cluster else {"gang", "cluster"})
    inlined = () if fixed else workload.inlined
    return replace(
        base, facts_for=sight.facts, known=known, templates=lambda _: places, inlined=lambda _: inlined
    )


def _refusal(errors: Iterable[Failure], findings: Findings, plan: WorkloadPlan | None) -> Response | None:
    """The no, with every reason for it; None where there is none. The first reason gives the code."""
    reasons = [Response(False, code=422, reason="Invalid", message=str(error)) for error in errors]
    if not findings.allowed:
        said = Response(False, code=findings.code, reason=findings.reason, message=findings.message)
        reasons.append(said)
    if not reasons:
        # The planner comes last: what a policy has refused it would often refuse too, in other words.
        return _plan_refusal(plan) if plan is not None else None
    return replace(reasons[0], message=joined(reason.message for reason in reasons))


def _response(
    response: Response,
    ignored: Iterable[Failure],
    findings: Findings,
    plan: WorkloadPlan | None,
    revision: str,
) -> Response:
    """The answer with its warnings and with the revision of the policies that gave it."""
    audit = {"revision": revision, **(findings.audit_annotations or {})}
    return replace(response, warnings=_warnings(ignored, findings, plan), audit_annotations=audit)


def _plan_refusal(plan: WorkloadPlan) -> Response | None:
    name = plan.first.group.name if plan.placed else ""
    if plan.decision == "rejected":
        return Response(False, code=422, reason="Invalid", message=f"{name} can never run: {plan.message()}")
    if plan.decision == "queued" and plan.first.group.on_unavailable == "reject":
        text = f"{name} cannot run now, and asks not to be queued: {plan.message()}"
        return Response(False, code=403, reason="Forbidden", message=text)
    return None


def _warnings(ignored: Iterable[Failure], findings: Findings, plan: WorkloadPlan | None) -> list[str]:
    warnings = [*map(str, ignored), *findings.warnings]
    for placed in plan.placed if plan is not None else ():
        warnings += placed.answer.warnings
        if plan is not None and (costs := given_up(plan.snapshot, placed)):
            warnings.append(costs)
        if placed.answer.decision == "queued" and placed.group.on_unavailable != "reject":
            waits = placed.group.on_unavailable == "queue"
            word = "is queued" if waits else "is let in without a place, as it asks"
            warnings.append(f"{placed.group.name} {word}: {placed.answer.message}")
    return list(dict.fromkeys(warnings))


def _changed(effects: Iterable[Effect]) -> str:
    told: dict[str, list[str]] = {}
    for effect in effects:
        told.setdefault(effect.policy, []).extend(str(op["path"]) for op in effect.patch)
    return orjson.dumps({policy: paths[:CHANGES_TOLD] for policy, paths in told.items()}).decode()


def _reserving(plan: WorkloadPlan | None, sight: Evaluation) -> tuple[Step, ...]:
    """What the plan newly holds; a replayed gang holds just that already."""
    if plan is None:
        return ()
    booked = [promise(held) for held in sight.booked]
    return tuple(
        Reserve(held, plan.snapshot.revision) for held in plan.reservations if promise(held) not in booked
    )


def promise(held: Reservation) -> tuple[object, ...]:
    """What makes two reservations the same promise: whose it is, of what, and where."""
    return held.id, held.fingerprint, held.assignments, held.domains


def _claiming(request: AdmissionRequest, plan: WorkloadPlan | None) -> tuple[Step, ...]:
    """The object's own holds. A pod of a larger gang claims nothing: the place is its workload's, and that
    of a gang without a workload belongs to the pod that came first."""
    metadata = (request.object or {}).get("metadata")
    uid = metadata.get("uid") if isinstance(metadata, Mapping) else None
    if plan is None or not isinstance(uid, str) or not uid:
        return ()
    kind = request.kind.kind
    return tuple(
        ReservationClaim(held.id, uid)
        for held in plan.reservations
        if kind_of(held.gang) == kind or (held.expires is not None and kind_of(held.gang) in POD_GANGS)
    )


def _farewell(request: AdmissionRequest, snapshot: Snapshot | None) -> tuple[Step, ...]:
    """A workload that is deleted gives back what its gangs hold (its own, or one of its replicas')."""
    if snapshot is None or request.sub_resource or request.operation != "DELETE":
        return ()
    own = f"{request.namespace}/{request.kind.kind}/{request.name}"
    metadata = (request.old_object or {}).get("metadata")
    uid = metadata.get("uid") if isinstance(metadata, Mapping) else None
    kin = f"{request.namespace}/{request.kind.kind}/"
    # What was made by generateName is booked under a name of its own; the UID that claimed it tells whose. A
    # pod of a larger gang may have claimed that gang's place too, and takes nothing with it when it goes.
    return tuple(
        ReservationRelease(held.id)
        for held in snapshot.reservations
        if held.gang == own
        or held.gang.startswith(own + "/")
        or (held.gang.startswith(kin) and held.owner_uid and held.owner_uid == uid)
    )
