"""The decision: from a request, the policies and a snapshot of the cluster to one answer. Pure.

`decide` reads the object, runs the mutating policies in a fixed order, plans the gangs, applies the plan to
the object, runs the validating policies on the result, and makes one patch; last, the mode of the namespace
says what of it is done. No I/O, no clock, no randomness: a dry run is the same decision with nothing done
about it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from planner.cluster.snapshot import Snapshot
from planner.model.deadline import DeadlinePassed, watched
from planner.model.errors import InputError
from webhook.admission.configuration.settings import Mode
from webhook.admission.context import RequestContext
from webhook.admission.environment import Environment
from webhook.admission.evaluation import Evaluation
from webhook.admission.ledger_steps import (
    LedgerStep,
    claiming,
    confirming,
    releasing,
    releasing_suspended,
    reserving,
    sealed,
)
from webhook.admission.modes import ENFORCE, ModeInForce, Outcome, answer_in, outcome
from webhook.admission.reapply import with_applied, with_former_templates
from webhook.admission.response import completed, refusal, with_changes
from webhook.admission.too_long import took_too_long
from webhook.admission.unchanged import replacement_warning
from webhook.admission.used_topology import still_used
from webhook.jsontools.diff import patch_between
from webhook.jsontools.path import find
from webhook.placement.stamp import (
    PlacementAnnotation,
    annotate,
    calls_pods_a_gang,
    passing_own_fence,
    placement_annotation,
    policies_note,
)
from webhook.placement.workload_plan import WorkloadPlan
from webhook.policy.engine.exemptions import Exempted
from webhook.policy.engine.inputs import BareInputs
from webhook.policy.engine.model import PolicySet
from webhook.policy.engine.mutation.mutate import Effect, Mutated, MutatingPass, run_mutating
from webhook.policy.engine.validate import Findings, run_validating
from webhook.wire.request import AdmissionRequest
from webhook.wire.review import Response

Phase = Literal["mutate", "validate"]


Json = Mapping[str, Any]


PLAN = "plan"
"""The name under which the plan's own changes stand among the effects."""


_NO_ENVIRONMENT = Environment()


@dataclass(frozen=True, slots=True)
class Note:
    """What a person is told of an object's pods, though it is let in; `rule` is a CamelCase token."""

    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer, what is to be done in the ledger for it, and how it came about.

    `object` is the object as it leaves (as it arrived, where it is refused or nothing changed it).
    `plan` is None where nothing was planned. `effects` say which policy changed what, the plan's own changes
    among them under the name `plan`; `mutated` and `findings` are what the policy engine says, None where it
    was not asked. `malformed`: the object could not be read; `late`: it was not decided in time. `force`: the
    mode of the namespace; outside `enforce` only response, object and steps differ, and `enforced` is the
    answer that it would have given.
    """

    response: Response
    object: Json | None = None
    steps: tuple[LedgerStep, ...] = ()
    plan: WorkloadPlan | None = None
    mutated: Mutated | None = None
    effects: tuple[Effect, ...] = ()
    findings: Findings | None = None
    malformed: bool = False
    late: bool = False
    revision: str = ""
    tries: int = 1
    """How often it was decided: each time but the last for a place that others took meanwhile."""
    notes: tuple[Note, ...] = ()
    """What is told of its pods; the response warns of it too."""
    force: ModeInForce = ENFORCE
    enforced: Response | None = None
    unless_held: Response | None = None
    """The answer where the ledger refuses the steps."""

    @property
    def mode(self) -> Mode:
        """The mode of the namespace."""
        return self.force.mode

    @property
    def in_enforce(self) -> Response:
        """The answer of `enforce`, whatever the mode is."""
        return self.enforced or self.response

    @property
    def exempted(self) -> tuple[Exempted, ...]:
        """What exemptions did, for mutating and for validating policies."""
        of_mutations = self.mutated.exempted if self.mutated is not None else ()
        return (*of_mutations, *(self.findings.exempted if self.findings is not None else ()))

    @property
    def outcome(self) -> Outcome:
        """What `enforce` makes of the object."""
        return outcome(self.in_enforce, self.plan)

    def refusing(self) -> Iterator[str]:
        """The policies that refuse or that failed, in the order they ran, then `plan` for the planner."""
        if self.mutated is not None:
            yield from (failure.policy for failure in self.mutated.errors)
        if self.findings is not None:
            yield from (finding.policy for finding in self.findings.denials)
            yield from (failure.policy for failure in self.findings.errors)
        if self.plan is not None and self.plan.decision == "rejected":
            yield PLAN


def decide(
    request: AdmissionRequest,
    policies: PolicySet,
    snapshot: Snapshot | None,
    phase: Phase,
    environment: Environment = _NO_ENVIRONMENT,
) -> Decision:
    """Answer one request. Never raises for what an object holds: that is a refusal in words."""
    context = RequestContext.of(request, policies, snapshot, environment)
    decision = _in_its_mode(context, phase)
    used = still_used(request, snapshot, environment.waiting) if snapshot is not None else ""
    if not used:
        return decision
    warned = replace(decision.response, warnings=(*decision.response.warnings, used))
    return replace(decision, response=warned)


def _in_its_mode(context: RequestContext, phase: Phase) -> Decision:
    """The answer of the request's mode."""
    request, policies, snapshot = context.request, context.policies, context.snapshot
    force = context.environment.mode(request)
    if force.enforces:
        return in_mode(force, _decide(context, phase))
    # A validating call sees the object without what policies would have written: of that the mutating call
    # has told already, and on this object they would find what `enforce` mends.
    is_judged = phase == "mutate" or request.operation == "DELETE"
    blank = Decision(Response(True), revision=policies.revision)
    decision = _decide(context, phase) if is_judged and force.mode != "off" else blank
    released = releasing(request, snapshot) if phase == "validate" else ()
    return in_mode(force, replace(decision, object=request.object, steps=released))


def in_mode(force: ModeInForce, decision: Decision) -> Decision:
    """The decision of `enforce`, answered as the mode says. What it does in the ledger is left as it is."""
    mutated, findings = decision.mutated, decision.findings
    of_mutations = (*mutated.warnings, *mutated.exempted) if mutated is not None else ()
    policy_warnings = (*map(str, of_mutations), *(findings.warnings if findings is not None else ()))
    response = answer_in(force, decision.response, decision.plan, decision.effects, policy_warnings)
    return replace(decision, response=response, force=force, enforced=decision.response)


def _decide(context: RequestContext, phase: Phase) -> Decision:
    """What `enforce` makes of the request, as long as the environment says that there is time."""
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
        return _mutate(context, request.object) if phase == "mutate" else _validate(context, request.object)
    except InputError as error:
        response = Response(False, code=422, reason="Invalid", message=str(error))
        return Decision(response, request.object, malformed=True, revision=policies.revision)


def _mutate(context: RequestContext, obj: Json) -> Decision:
    """The mutating call: the whole way, on the object with the templates that it had before."""
    evaluation = Evaluation(context, obj)

    def as_created() -> Json | None:
        return _result_as_created(context.as_created(), obj)

    restored = with_former_templates(obj, context.request.old_object, evaluation.original, as_created)
    return _admit(context, evaluation if restored is obj else Evaluation(context, restored), restored)


def _result_as_created(context: RequestContext, obj: Json) -> Json | None:
    """What a new object would become; None where it would be refused."""
    try:
        decision = _admit(context, Evaluation(context, obj), obj)
    except InputError:
        return None
    return decision.object if decision.response.allowed else None


def _admit(context: RequestContext, evaluation: Evaluation, obj: Json) -> Decision:
    """Mutating policies, plan, apply the plan, validating policies, one patch."""
    mutated = _mutating_policies(context, evaluation, obj)
    plan = evaluation.make_plan(mutated.object)
    result, effects = _apply_plan(context, evaluation, mutated)
    findings = run_validating(context.policies, replace(context.request, object=result), result, evaluation)
    decision = _patched(context, plan, mutated, result, effects, findings)
    if not effects or not decision.response.allowed:
        return decision
    replaced = replacement_warning(evaluation.original, evaluation.mendable, effects)
    return _noting(
        decision,
        *([Note("Replaced", replaced)] if replaced else []),
        *(Note("FewerReplicas", sentence) for sentence in evaluation.fewer_replicas(obj, result)),
    )


def _mutating_policies(context: RequestContext, evaluation: Evaluation, obj: Json) -> Mutated:
    """The object after the mutating policies; the plan is made before the first of them that uses it."""
    if evaluation.original.skip:
        return Mutated(obj)
    free = evaluation.without_former_place(obj)
    mutating = MutatingPass.begin(context.policies, context.request, free, evaluation)
    mutating.run(using_plan=False)
    if mutating.uses_plan:
        evaluation.make_plan(mutating.obj)
        mutating.run(using_plan=True)
    mutating.reinvoke()
    return evaluation.mendable.restored(obj, mutating.result())


def _apply_plan(
    context: RequestContext, evaluation: Evaluation, mutated: Mutated
) -> tuple[Json, tuple[Effect, ...]]:
    """The object that carries its plan, and all effects, the plan's own the last of them."""
    obj, plan, may = mutated.object, evaluation.plan, evaluation.mendable
    workload = replace(evaluation.workload(obj), templates=(*may.templates, *may.noted))
    if plan is not None:
        changed_by = (effect.policy for effect in mutated.effects)
        note = policies_note(obj, changed_by, context.policies.revision)
        obj = annotate(obj, workload, plan, note, fenced=context.environment.fenced)
    elif context.snapshot is not None:
        obj = calls_pods_a_gang(obj, workload)
    obj = evaluation.kept_off_reserved(obj)
    if context.environment.fenced:
        obj = passing_own_fence(obj, workload)
    # Policies alone, without a cluster, write nothing of Bayplan's own.
    if context.snapshot is not None and (may.templates or may.inlined):
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
    """One patch from the object as it came to the result, or the refusal."""
    original: Json = context.request.object or {}
    before = context.snapshot.reservations if context.snapshot is not None else ()
    refused = refusal(mutated.errors, findings, plan)
    response = refused or Response(True, patch_between(original, result))
    response = completed(
        response, mutated.warnings, mutated.exempted, findings, plan, context.policies.revision
    )
    return Decision(
        with_changes(response, effects) if effects and refused is None else response,
        result if refused is None else original,
        reserving(context.request, plan, sealed(before)) if refused is None else (),
        plan,
        mutated,
        effects,
        findings,
        revision=context.policies.revision,
    )


def _noting(decision: Decision, *notes: Note) -> Decision:
    """The decision with these notes, which its response warns of."""
    response = decision.response
    warnings = [*response.warnings, *(note.message for note in notes)]
    return replace(decision, response=replace(response, warnings=warnings), notes=notes)


def _validate(context: RequestContext, obj: Json) -> Decision:
    """The validating call, on the object as it will be stored: no patch; its owner claims the reservation,
    which is made again where it expired, or was given back, since the mutating call."""
    evaluation = Evaluation(context, obj)
    plan = evaluation.make_plan(obj)
    findings = run_validating(context.policies, context.request, obj, evaluation)
    refused = refusal((), findings, plan)
    lost = _place_lost(context.request, obj, plan) if refused is None else None
    steps = _validated_steps(context, evaluation, obj, plan) if refused is None else ()
    return Decision(
        completed(refused or Response(True), (), (), findings, None, context.policies.revision),
        obj,
        confirming(context.request, plan) if lost is not None else steps,
        plan,
        findings=findings,
        revision=context.policies.revision,
        unless_held=lost,
    )


def _place_lost(request: AdmissionRequest, obj: Json, plan: WorkloadPlan | None) -> Response | None:
    """The refusal of a new object that was given a place by the mutating call and has none any more: stored,
    it would be pinned to what is another's. Pods of a controller are left: their gang is let in later.

    It is the answer only where the ledger confirms it: another replica may have made the mutating call, and
    what this one knows may be older than that. A dry run asks no ledger and holds nothing that could be lost
    between its calls, so it is never refused for this.
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
    before = context.snapshot.reservations if context.snapshot is not None else ()
    if evaluation.original.suspended:
        return releasing_suspended(obj, before)
    if context.request.operation == "CREATE" and not _placement(obj).decision:
        # The mutating call planned nothing: its namespace was not enforced a moment ago, or no mutating call
        # was made. What is stored is pinned to no place, and a hold on one would keep others out for nothing.
        return ()
    return (*reserving(context.request, plan, before), *claiming(context.request, plan))


def _placement(obj: Json) -> PlacementAnnotation:
    """What the mutating call wrote on the object."""
    return placement_annotation(find(obj, ("metadata", "annotations")))


def _without_gang(context: RequestContext, phase: Phase) -> Decision:
    """A deletion or a subresource: there is no gang to plan, and only policies that need none run."""
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
