"""One pass of a request over the mutating or the validating policies: which policy runs on which target, and
at what cost.

A policy runs once for each binding, each target and each parameter object. A target is the object itself or,
for a policy that runs on templates, a pod template inside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import starmap
from operator import sub
from typing import Any, TypeVar

from webhook.cel import CelError, CostBudget
from webhook.cel.values.stand_in import StandIn
from webhook.policy.engine import parameters
from webhook.policy.engine.activation import Activation
from webhook.policy.engine.conditions import KnownConditions
from webhook.policy.engine.exemptions import Exemptions
from webhook.policy.engine.failures import Failure, failure
from webhook.policy.engine.forms.equal_objects import MAX_OUTCOMES, SharedForm
from webhook.policy.engine.forms.form import Form
from webhook.policy.engine.forms.no_effect import NoEffect
from webhook.policy.engine.inputs import FileParams, PolicyInputs, poll_policies
from webhook.policy.engine.object_cache import ObjectCache
from webhook.policy.engine.parameters import RequestParams
from webhook.policy.engine.sharing.shared_runs import OF_ONE_REQUEST, RUN_LIMIT, SharedRuns
from webhook.policy.engine.targets import Target
from webhook.policy.model.match import EVERY_REQUEST, MatchResources
from webhook.policy.model.policy import Expression, Policy, PolicyBinding, PolicySet
from webhook.wire.request import AdmissionRequest

Effect = TypeVar("Effect")


CONDITIONS_SHARE = 4
"""The cost limit of match conditions is a quarter (1 / 4) of the policies' limit, as in the API server."""


@dataclass(frozen=True, slots=True)
class PolicyRun:
    """One binding of a policy with one parameter object: None without a paramRef, or if there is none and the
    policy runs without it (see `PolicyPass.runs`).
    """

    policy: Policy
    binding: PolicyBinding
    params: Mapping[str, Any] | None


@dataclass(slots=True)
class PolicyPass:
    """One request's pass over the mutating or the validating policies.

    As upstream, each run of a policy has the whole `conditions_budget` for its match conditions, and the
    whole `budget` for its validations, for each of its mutations, and for its audit annotations. How long all
    runs may take together is limited by the deadline of the request, which budgets poll.
    """

    inputs: PolicyInputs
    budget: CostBudget
    conditions_budget: CostBudget
    exemptions: Exemptions
    shared_runs: SharedRuns | None
    """The runs on a new object, whose outcomes equal objects share; None for any other request."""

    params: RequestParams
    cache: ObjectCache
    conditions: KnownConditions = field(default_factory=KnownConditions)
    match_results: dict[tuple[int, bool], bool] = field(default_factory=dict)
    """Whether the rules of a match apply, by the `id` of the match (which policies keep alive), and by
    whether the target is a template.
    """

    @classmethod
    def begin(cls, policies: PolicySet, request: AdmissionRequest, inputs: PolicyInputs) -> PolicyPass:
        """Returns a pass that has run nothing yet."""
        budget = inputs.new_budget()
        conditions = budget.separate(budget.limit // CONDITIONS_SHARE)
        exemptions = Exemptions.of(policies.exemptions, request, inputs.now, conditions)
        shared_runs = SharedRuns.of(request, inputs)
        params = RequestParams(inputs.params or FileParams(policies.params), request)
        cache = ObjectCache(request, inputs)
        return cls(inputs, budget, conditions, exemptions, shared_runs, params, cache)

    def targets(self, policy: Policy, obj: Mapping[str, Any] | None) -> list[Target]:
        """Returns the targets of a policy on this object; [] if the policy matches none."""
        own = self.cache.own_target(obj)
        targets = [own] if self._matches(policy.match, own) else []
        if policy.on_templates:
            templates = [target for target in self.cache.templates_of(obj) if target.raw is not None]
            if policy.match.selects_all:  # then it matches all of them or none
                targets += templates if templates and self._matches(policy.match, templates[0]) else []
            else:
                targets += (target for target in templates if self._matches(policy.match, target))
        return targets

    def _matches(self, match: MatchResources, target: Target, *, empty_rules_match: bool = False) -> bool:
        """Returns whether a match of a policy or binding applies to a target.

        Its rules apply to all templates of the object or to none, so they are checked once.
        `empty_rules_match`: a match without rules applies to every request, as in a binding.
        """
        poll_policies()  # once per target and policy
        key = id(match), bool(target.path)
        if key not in self.match_results:
            self.match_results[key] = match.concerns(target.matched, empty_rules_match=empty_rules_match)
        return self.match_results[key] and match.selects(target.matched, target.obj)

    def runs(self, policy: Policy, binding: PolicyBinding, target: Target) -> Iterator[PolicyRun | Failure]:
        """Yields a run for each parameter object of a binding that matches the target, or a failure if these
        are not as the binding requires.

        If there is no parameter object and the binding allows that, upstream does not run the policy. A
        bayplan.dev policy is run with `params` null, so that the defaults in its expressions apply:
        otherwise, a folder of policies that a user gives with `-p`, without parameters, would silently do
        nothing.
        """
        narrows = binding.match is not EVERY_REQUEST
        if narrows and not self._matches(binding.match, target, empty_rules_match=True):
            return
        if policy.param_kind is None or binding.param_ref is None:
            yield PolicyRun(policy, binding, None)
            return
        objects = self.params.objects(policy.param_kind, binding.param_ref, unbound=not binding.name)
        for params in objects:
            yield PolicyRun(policy, binding, params)
        if objects:
            return
        if reason := parameters.fault(policy, binding, target.request, self.params.source):
            yield failure(policy, binding, "", reason)
        elif policy.runs_without_params:
            yield PolicyRun(policy, binding, None)

    def form(self, target: Target, *, template: bool) -> Form | None:
        """Returns the form of a target, for which policies are run once; None if they are run separately.

        The form is that of equal templates of the object (see `template_forms.py`), or, for a new object and
        for its only template, that of equal objects (see `equal_objects.py`). `template`: see
        `ObjectCache.defaulted`.
        """
        templates, template = self.cache.templates, template and bool(target.path)
        is_only = len(templates) == 1 and target.old is None and target.inlined is None
        show = partial(self.cache.defaulted, template=template)
        if self.shared_runs is not None and (is_only or not target.path):
            return self.shared_runs.form(target, show, template=template)
        return self.cache.forms.form(target, templates, show)

    def outcome_on_equal_objects(
        self,
        run: PolicyRun,
        part: str | int,
        target: Target,
        whole: Mapping[str, Any],
        form: SharedForm,
        compute: Callable[[PolicyPass, Activation], Effect | None],
    ) -> Effect | None:
        """Returns the effect of a part of a policy on every target of a form; None if the policy must be run
        on the target itself.

        `part` distinguishes the parts of a policy. `whole`: the object that contains the target. `compute`
        runs a part on the form, in a pass and with an activation for it alone.
        """
        if self.shared_runs is None:
            return None
        outcome = self.shared_runs.outcome(
            (run.policy, run.params, part),
            target,
            whole,
            form,
            partial(self._on_form_alone, self.shared_runs.conditions, run, target, form, compute),
        )
        if outcome is None:
            return None
        effect, cost, conditions_cost = outcome
        if cost > self.budget.limit or conditions_cost > self.conditions_budget.limit:
            return None  # it is run on the target, which may end in the error
        self.budget.add(cost)
        self.conditions_budget.add(conditions_cost)
        return effect

    def _on_form_alone(
        self,
        conditions: KnownConditions,
        run: PolicyRun,
        target: Target,
        form: SharedForm,
        compute: Callable[[PolicyPass, Activation], Effect | None],
        variables: Mapping[str, Any],
    ) -> tuple[Effect, int, int] | None:
        """Returns the effect on a form, computed with budgets of its own, and the cost units of the run and
        of its match conditions; None if `compute` returns none.
        """
        budget, conditions_budget = (
            each.separate(min(RUN_LIMIT, each.limit)) for each in (self.budget, self.conditions_budget)
        )
        alone = replace(self, budget=budget, conditions_budget=conditions_budget, conditions=conditions)
        # `variables` belongs to this state of the object alone: a condition's value, which is cached by the
        # `id` of `variables`, is not taken over from a state with another `gang`.
        activation = Activation(
            run.policy,
            target,
            variables,
            lambda variables, _: variables or {},
            None,
            budget,
            form.shown,
            run.params,
        )
        activation.update(dict.fromkeys(OF_ONE_REQUEST, StandIn()))
        effect = compute(alone, activation)
        return None if effect is None else (effect, budget.used, conditions_budget.used)

    def known_no_effect(self, policy: Policy, obj: Mapping[str, Any] | None) -> NoEffect | None:
        """Returns the record of a policy that is known to do nothing to this object, and counts its cost;
        None if the policy must be run.
        """
        record = self._no_effects(obj)
        row = record.get(id(policy)) if record is not None else None
        if row is None or row.cost > self.budget.limit or row.conditions_cost > self.conditions_budget.limit:
            return None
        if not all(starmap(self.params.are_unchanged, row.params)):
            return None
        self.budget.add(row.cost)
        return row

    @property
    def used(self) -> tuple[int, int]:
        """The cost units of all runs so far: of their match conditions apart, as the second."""
        return self.budget.used, self.conditions_budget.used

    def record_no_effect(
        self,
        policy: Policy,
        obj: Mapping[str, Any] | None,
        used: tuple[int, int],
        ran: Iterable[str] = (),
        annotations: Iterable[tuple[str, str, str]] = (),
    ) -> None:
        """Records that a policy, which has just run, does nothing to this object nor to any other of its
        form. `used`: the cost units (see there) before it ran; `ran`, `annotations`: as in `NoEffect`.
        """
        record = self._no_effects(obj)
        matches = (policy.match, *(binding.match for binding in policy.bindings))
        if record is None or not all(match.reads_no_object for match in matches):
            return
        kind, refs = policy.param_kind, [(row.param_ref, not row.name) for row in policy.bindings]
        params = tuple(
            (kind, ref, unbound, objects)
            for ref, unbound in refs
            if kind is not None and ref is not None
            # No policy has asked for them yet: then this one has no target.
            if (objects := self.params.former(kind, ref, unbound=unbound)) is not None
        )
        cost, conditions_cost = map(sub, self.used, used)
        if len(record) >= MAX_OUTCOMES:
            record.clear()
        record[id(policy)] = NoEffect(policy, params, cost, conditions_cost, tuple(ran), tuple(annotations))

    def _no_effects(self, obj: Mapping[str, Any] | None) -> dict[int, NoEffect] | None:
        """Returns the record for this state of the object; None if it has none in common with others."""
        shared_runs = self.shared_runs
        if shared_runs is None or obj is None:
            return None
        if shared_runs.no_effects[0] is not obj:
            poll_policies()  # once per state of the object, as for one policy
            own = self.cache.own_target(obj)
            form = self.form(own, template=False)
            shared_runs.no_effects = obj, shared_runs.no_effects_of(own, form)
        return shared_runs.no_effects[1]

    def content(self, policy: Policy, run: PolicyRun, target: Target) -> tuple[object, ...] | None:
        """Returns a key: if two runs of a policy have the same key, they have the same effect.

        The key stands for the template's content, the binding and the parameters. None if the effect may
        depend on anything else, such as the template's PodSet.
        """
        content = self.cache.content(target) if policy.reads_no_pod_set else None
        return None if content is None else (id(run.binding), id(run.params), content)

    def activation(
        self, run: PolicyRun, target: Target, whole: Mapping[str, Any] | None, obj: Mapping[str, Any] | None
    ) -> Activation:
        """Returns the names that an expression may read, with the whole budget: `obj` is the current state of
        the target, with defaults.

        `gang`, `plan` and `cluster` are those of `whole`, the object that contains the target.
        """
        self.budget.renew()
        return Activation(
            run.policy,
            target,
            whole,
            self.cache.variables,
            self.inputs.authorizer,
            self.budget,
            obj,
            run.params,
        )

    def conditions_hold(self, run: PolicyRun, activation: Activation) -> Failure | bool:
        """Returns whether every match condition holds; if none is false, but some end in an error, the
        failure of the first of these.

        A false condition takes precedence over an error in another one, as upstream.
        """
        error: Failure | None = None
        self.conditions_budget.renew()
        for condition in run.policy.conditions:
            expression = condition.expression
            try:
                if self.conditions.evaluate(expression, activation, self.conditions_budget) is not True:
                    return False
            except CelError as reason:
                error = error or failure_of(run, expression, reason)
        return error if error is not None else True


def failure_of(run: PolicyRun, expression: Expression, error: CelError) -> Failure:
    """Returns an evaluation error as a failure of the run's policy, labelled with the expression that failed:
    the given one, or a variable that it reads.
    """
    label = error.origin.label if error.origin and error.origin.label else expression.label
    return failure(run.policy, run.binding, label, error.message)
