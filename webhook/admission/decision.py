"""Decides one request by the policies and a snapshot of the cluster. Pure.

`decide` reads the object, runs the mutating policies in a fixed order, plans the gangs, applies the plan to
the object, runs the validating policies on the result, and makes one patch. Last, the mode of the namespace
decides what takes effect. There is no I/O, clock or randomness: for a dry run the decision is the same, and
the caller does not carry out its ledger steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model.effort.deadline import DeadlinePassed, watched
from planner.model.errors import InputError
from planner.model.words import listed
from webhook.admission.context import RequestContext
from webhook.admission.decision_record import PLAN, Decision, Note, Phase
from webhook.admission.environment import Environment
from webhook.admission.evaluation import Evaluation
from webhook.admission.ledger_steps import (
    LedgerStep,
    claiming,
    claims_of_all_gangs,
    releasing,
    releasing_suspended,
    reserving,
)
from webhook.admission.modes import ModeInForce, answer_in
from webhook.admission.own_keys import without_foreign_plan, without_gang_labels
from webhook.admission.response import completed, kept_off, refusal, with_changes
from webhook.admission.size import too_large_before
from webhook.admission.too_long import took_too_long
from webhook.admission.updates.reapply import with_applied, with_former_counts, with_former_templates
from webhook.admission.updates.unchanged import replacement_warning
from webhook.admission.used_topology import still_used
from webhook.jsontools.diff import equal, patch_between
from webhook.jsontools.path import find
from webhook.placement.gate import is_gated
from webhook.placement.stamp import (
    PlacementAnnotation,
    annotate,
    passing_own_fence,
    placement_annotation,
    policies_note,
    with_gang_name,
)
from webhook.placement.workload_plan import WorkloadPlan
from webhook.policy.engine.findings import Findings
from webhook.policy.engine.inputs import BareInputs
from webhook.policy.engine.mutation.mutate import MOST_TOLD, Effect, Mutated, MutatingPass, run_mutating
from webhook.policy.engine.validate import run_validating
from webhook.policy.model.policy import PolicySet
from webhook.wire.request import AdmissionRequest
from webhook.wire.review import Response

Json = Mapping[str, Any]


_NO_ENVIRONMENT = Environment()


def decide(
    request: AdmissionRequest,
    policies: PolicySet,
    snapshot: Snapshot | None,
    phase: Phase,
    environment: Environment = _NO_ENVIRONMENT,
) -> Decision:
    """Returns the decision on one request. Refuses an invalid object with the reason, and raises nothing."""
    context = RequestContext.of(request, policies, snapshot, environment)
    decision = _in_its_mode(context, phase)
    used = still_used(request, snapshot, environment.waiting) if snapshot is not None else ""
    if not used:
        return decision
    warned = replace(decision.response, warnings=(*decision.response.warnings, used))
    return replace(decision, response=warned)


def _in_its_mode(context: RequestContext, phase: Phase) -> Decision:
    """Returns the decision in the mode of the request's namespace."""
    request, policies, snapshot = context.request, context.policies, context.snapshot
    force = context.environment.mode(request)
    if force.enforces:
        return in_mode(force, _decide(context, phase))
    # In other modes, the validating call gets the object without the policies' changes, so validating
    # policies would report problems that these changes solve. The mutating call has reported everything
    # already.
    is_judged = phase == "mutate" or request.operation == "DELETE"
    blank = Decision(Response(True), revision=policies.revision)
    decision = _decide(context, phase) if is_judged and force.mode != "off" else blank
    # In each of these modes, `off` too: the object may hold a place from the time of mode `enforce`.
    released = releasing(request, snapshot) if phase == "validate" else ()
    return in_mode(force, replace(decision, object=request.object, steps=released))


def in_mode(force: ModeInForce, decision: Decision) -> Decision:
    """Returns a decision that was made for mode `enforce` with the response of the given mode; its ledger
    steps are unchanged.
    """
    mutated, findings = decision.mutated, decision.findings
    of_mutations = (*mutated.warnings, *mutated.exempted) if mutated is not None else ()
    policy_warnings = (*map(str, of_mutations), *(findings.warnings if findings is not None else ()))
    response = answer_in(force, decision.response, decision.plan, decision.effects, policy_warnings)
    return replace(decision, response=response, force=force, enforced=decision.response)


def _decide(context: RequestContext, phase: Phase) -> Decision:
    """Returns the decision in mode `enforce`; a refusal if the deadline passes."""
    request, policies = context.request, context.policies
    try:
        with watched(context.environment.late):
            return _in_time(context, phase)
    except DeadlinePassed as passed:
        return Decision(took_too_long(passed), request.object, late=True, revision=policies.revision)


def _in_time(context: RequestContext, phase: Phase) -> Decision:
    request, policies = context.request, context.policies
    if request.object is None or request.sub_resource:
        return _without_gang(context, phase)
    try:
        if warning := too_large_before(request):
            return Decision(Response(True, warnings=(warning,)), request.object, revision=policies.revision)
        return _mutate(context, request.object) if phase == "mutate" else _validate(context, request.object)
    except InputError as error:
        response = Response(False, code=422, reason="Invalid", message=str(error))
        if _had_error(context, error):
            kept = (
                f"{error}. It was so before, and its spec is unchanged: policies and plan leave it as it is"
            )
            response = Response(True, warnings=(kept,))
        return Decision(response, request.object, malformed=True, revision=policies.revision)


def _had_error(context: RequestContext, error: InputError) -> bool:
    """Returns whether the request is an update that leaves the spec unchanged, and the old object has the
    same error.

    Such an update is allowed: otherwise nobody could remove the finalizers of an object that was stored
    unchecked, and its deletion would never end.
    """
    old, obj = context.request.old_object, context.request.object or {}
    if old is None or not equal(obj.get("spec"), old.get("spec")):
        return False
    try:
        Evaluation(context, old)
    except InputError as former:
        return str(former) == str(error)
    return False


def _mutate(context: RequestContext, obj: Json) -> Decision:
    """Returns the decision of the mutating call on `obj`. If an update asks for the same pod templates as
    before (a second `kubectl apply`), it is made on `obj` with the stored templates, so that they stay as
    admission changed them (`updates.reapply`).
    """
    evaluation = Evaluation(context, obj)

    def as_created() -> Json | None:
        counted = with_former_counts(obj, old or {}, evaluation.original)
        return _result_as_created(context.as_created(), planless(counted))

    old, planless = context.request.old_object, evaluation.without_plan
    restored = with_former_templates(obj, old, evaluation.original, as_created, planless)
    return _admit(context, evaluation if restored is obj else Evaluation(context, restored), restored)


def _result_as_created(context: RequestContext, obj: Json) -> Json | None:
    """Returns the object as admission would change it if it were created now; None if it would be refused."""
    try:
        decision = _admit(context, Evaluation(context, obj), obj)
    except InputError:
        return None
    return decision.object if decision.response.allowed else None


def _admit(context: RequestContext, evaluation: Evaluation, obj: Json) -> Decision:
    """Runs all steps of a decision: mutating policies, plan, writing the plan, validating policies, patch."""
    mutated = _mutating_policies(context, evaluation, obj)
    plan = _planned(evaluation, mutated.object, mutated.effects)
    result, effects = _apply_plan(context, evaluation, mutated)
    findings = run_validating(context.policies, replace(context.request, object=result), result, evaluation)
    decision = _patched(context, plan, mutated, result, effects, findings)
    if not effects or not decision.response.allowed:
        return decision
    replaced = replacement_warning(evaluation.original, evaluation.changeable, effects)
    return _noting(
        decision,
        *([Note("Replaced", replaced)] if replaced else []),
        *(Note("FewerReplicas", sentence) for sentence in evaluation.fewer_replicas(obj, result)),
    )


def _mutating_policies(context: RequestContext, evaluation: Evaluation, obj: Json) -> Mutated:
    """Returns the result of the mutating policies. Policies that read the plan run after the others, when it
    has been made."""
    if evaluation.original.skip:
        return Mutated(obj)
    free = evaluation.without_former_place(obj)
    mutating = MutatingPass.begin(context.policies, context.request, free, evaluation)
    mutating.run(using_plan=False)
    if mutating.uses_plan:
        _planned(evaluation, mutating.obj, mutating.effects)
        mutating.run(using_plan=True)
    mutating.reinvoke()
    return evaluation.changeable.restored(obj, mutating.result())


def _planned(evaluation: Evaluation, obj: Json, effects: Sequence[Effect]) -> WorkloadPlan | None:
    """Returns the plan of the object after these effects of policies. Raises `InputError` as `make_plan`
    does; if the effects made the object malformed, the error names their policies.
    """
    try:
        evaluation.workload(obj)  # the object of the request has been read without an error
    except InputError as error:
        names = [*dict.fromkeys(effect.policy for effect in effects)]
        if not names:
            raise
        which = f"{'policy' if len(names) == 1 else 'policies'} {listed(names, MOST_TOLD)}"
        raise InputError(f"{error.message}, after changes by the {which}", error.where) from error
    return evaluation.make_plan(obj)


def _apply_plan(
    context: RequestContext, evaluation: Evaluation, mutated: Mutated
) -> tuple[Json, tuple[Effect, ...]]:
    """Returns the object with its plan written onto it, and all effects, that of the plan last."""
    obj, plan, changeable = mutated.object, evaluation.plan, evaluation.changeable
    workload = evaluation.workload(obj)
    workload = replace(workload, templates=changeable.among(workload))
    if plan is not None:
        changed_by = (effect.policy for effect in mutated.effects)
        note = policies_note(obj, changed_by, context.policies.revision)
        obj = annotate(obj, workload, plan, note, fenced=context.environment.fenced)
    elif context.snapshot is not None:
        obj = without_foreign_plan(obj, context.request.old_object, workload.templates)
        obj = with_gang_name(obj, workload)
    if context.snapshot is not None:
        obj = without_gang_labels(obj, workload)
    obj = evaluation.kept_off_reserved(obj)
    if context.environment.fenced:
        obj = passing_own_fence(obj, workload)
    # Without a cluster only policies change the object: Bayplan's own annotations are not written.
    if context.snapshot is not None and (changeable.templates or changeable.inlined):
        obj = with_applied(obj, context.request.object or {}, evaluation.original)
    written = tuple(patch_between(mutated.object, obj))
    return obj, (*mutated.effects, Effect(PLAN, "", written)) if written else mutated.effects


def _patched(
    context: RequestContext,
    plan: WorkloadPlan | None,
    mutated: Mutated,
    result: Json,
    effects: tuple[Effect, ...],
    findings: Findings,
) -> Decision:
    """Returns the decision with one patch from the received object to `result`, or with the refusal."""
    original: Json = context.request.object or {}
    refused = refusal(mutated.errors, findings, plan)
    response = refused or Response(True, patch_between(original, result))
    response = completed(
        response, mutated.warnings, mutated.exempted, findings, plan, context.policies.revision
    )
    return Decision(
        with_changes(response, effects) if effects and refused is None else response,
        result if refused is None else original,
        reserving(context.request, plan, context.snapshot, claimed=True) if refused is None else (),
        plan,
        mutated,
        effects,
        findings,
        revision=context.policies.revision,
    )


def _noting(decision: Decision, *notes: Note) -> Decision:
    """Returns the decision with these notes, which the response has as warnings too."""
    response = decision.response
    warnings = [*response.warnings, *(note.message for note in notes)]
    return replace(decision, response=replace(response, warnings=warnings), notes=notes)


def _validate(context: RequestContext, obj: Json) -> Decision:
    """Returns the decision of the validating call, on the object as it will be stored. It has no patch.

    The object claims its reservation. If the reservation has expired or was released since the mutating call,
    it is made again.
    """
    evaluation = Evaluation(context, obj)
    plan = evaluation.make_plan(obj)
    findings = run_validating(context.policies, context.request, obj, evaluation)
    refused = refusal((), findings, plan)
    if (
        refused is not None
        and plan is not None
        and findings.allowed
        and _is_admitted(context.request, obj, plan)
    ):
        refused = kept_off(plan, context.snapshot)
    lost = _place_lost(context.request, obj, plan) if refused is None else None
    steps = _validated_steps(context, evaluation, obj, plan) if refused is None else ()
    return Decision(
        completed(refused or Response(True), (), (), findings, None, context.policies.revision),
        obj,
        claims_of_all_gangs(context.request, plan) if lost is not None else steps,
        plan,
        findings=findings,
        revision=context.policies.revision,
        unless_held=lost,
    )


def _is_admitted(request: AdmissionRequest, obj: Json, plan: WorkloadPlan) -> bool:
    """Returns whether the mutating call has let in a new pod without a place, as it requests. The pod got an
    affinity then that excludes the nodes which gangs hold whole.
    """
    asks = plan.first.group.on_unavailable == "admit"
    is_new_pod = request.kind.kind == "Pod" and request.operation == "CREATE"
    return asks and is_new_pod and _placement(obj).decision == "queued" and not is_gated(obj)


def _place_lost(request: AdmissionRequest, obj: Json, plan: WorkloadPlan | None) -> Response | None:
    """Returns the refusal of a new object whose place another gang took after the mutating call; else None.

    If the object were stored, its pods would be pinned to nodes that another gang holds. Objects with an
    owner are not refused: their gang is admitted later. The refusal counts only if the ledger confirms it:
    another replica may have answered the mutating call, and this replica may not know the reservation yet. A
    dry run uses no ledger and holds nothing, so it is never refused for this.
    """
    created = request.operation == "CREATE" and not find(obj, ("metadata", "ownerReferences"))
    annotated_decision = _placement(obj).decision
    if (
        plan is None
        or plan.preview
        or not created
        or (annotated_decision, plan.decision) != ("admitted", "queued")
    ):
        return None
    message = f"the place that it was given was taken before it was stored; apply again: {plan.message()}"
    return Response(False, code=409, reason="Conflict", message=message)


def _validated_steps(
    context: RequestContext, evaluation: Evaluation, obj: Json, plan: WorkloadPlan | None
) -> tuple[LedgerStep, ...]:
    if evaluation.original.suspended:
        return releasing_suspended(obj, context.snapshot.reservations if context.snapshot is not None else ())
    if context.request.operation == "CREATE" and not _placement(obj).decision:
        # The mutating call planned nothing: the namespace had another mode than `enforce` at that time, or
        # there was no mutating call. The object is pinned to no place, so a reservation would be of no use.
        return ()
    return (*reserving(context.request, plan, context.snapshot), *claiming(context.request, plan))


def _placement(obj: Json) -> PlacementAnnotation:
    """Returns the placement annotation that the mutating call wrote onto the object; empty without one."""
    return placement_annotation(find(obj, ("metadata", "annotations")))


def _without_gang(context: RequestContext, phase: Phase) -> Decision:
    """Returns the decision on a deletion or a subresource. There is no gang, so only policies that use none
    of Bayplan's variables run."""
    request, policies = context.request, context.policies
    inputs = BareInputs(context.params, context.authorizer, now=context.environment.now)
    obj = request.object
    mutated = run_mutating(policies, request, obj, inputs) if phase == "mutate" and obj is not None else None
    result = mutated.object if mutated is not None else obj
    findings = run_validating(policies, request, result, inputs)
    refused = refusal(mutated.errors if mutated is not None else (), findings, None)
    patch = patch_between(obj, result) if obj is not None and result is not None else []
    exempted = mutated.exempted if mutated is not None else ()
    warnings = mutated.warnings if mutated is not None else ()
    return Decision(
        completed(refused or Response(True, patch), warnings, exempted, findings, None, policies.revision),
        result if refused is None else obj,
        releasing(request, context.snapshot) if refused is None and phase == "validate" else (),
        mutated=mutated,
        effects=mutated.effects if mutated is not None else (),
        findings=findings,
        revision=policies.revision,
    )
