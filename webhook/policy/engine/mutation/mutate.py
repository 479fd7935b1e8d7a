"""Runs the mutating policies over one object; each policy sees the changes of the previous ones. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from planner.model.words import listed
from webhook.cel.values.stand_in import StandInRead
from webhook.jsontools.diff import equal, patch_between
from webhook.jsontools.path import replaced
from webhook.policy.engine.activation import Activation
from webhook.policy.engine.exemptions import Exempted
from webhook.policy.engine.failures import Failure
from webhook.policy.engine.forms.equal_objects import SharedForm
from webhook.policy.engine.forms.form import Form, has_stand_in
from webhook.policy.engine.inputs import BareInputs, PolicyInputs, poll_policies
from webhook.policy.engine.mutation.apply_mutation import mutated_or_failure
from webhook.policy.engine.mutation.changes import Changes, carry, changes_between, new_values
from webhook.policy.engine.policy_pass import PolicyPass, PolicyRun
from webhook.policy.engine.sharing.template_forms import with_pod_set_hidden
from webhook.policy.engine.skipped import Skipped, runnable_policies
from webhook.policy.engine.targets import Target
from webhook.policy.model.policy import MutatingPolicy, Mutation, PolicySet
from webhook.wire.request import AdmissionRequest

Object = Mapping[str, Any]


MOST_TOLD = 4
"""Maximum number of names in a message: of fields that a policy would have changed, of policies."""


@dataclass(frozen=True, slots=True)
class Effect:
    """The changes of one run of a policy: RFC 6902 operations on the whole object as it was before that
    run.
    """

    policy: str
    binding: str
    patch: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Mutated:
    """The object after all policies, and the effects of each.

    `errors` are failures with failurePolicy Fail (the request is refused), `warnings` those with Ignore. If
    there are errors, `object` lacks the changes that failed, and must not be used. `skipped`, `exempted`,
    `cost`: as in `Findings`.
    """

    object: Object
    effects: tuple[Effect, ...] = ()
    errors: tuple[Failure, ...] = ()
    warnings: tuple[Failure, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    exempted: tuple[Exempted, ...] = ()
    cost: int = 0


@dataclass(frozen=True, slots=True)
class _Change:
    """The effect of a policy's run on each template of one form (see `forms/form.py`).

    `steps`: the changes by each mutation, in order. `form`: the common form of the changed templates.
    """

    steps: tuple[Changes, ...]
    form: Form


@dataclass(slots=True)
class _Outcomes:
    """The results of a policy's runs under one binding, which are reused for the object's other templates.

    `unchanged`: forms (see `forms/form.py`) whose templates no run changes. `changes`: the effect on all
    templates of a form, by the `id` of the binding, the `id` of the parameters, and the form; None if the
    policy must be run on each template. `results` is for such runs: the changed template, by
    `PolicyPass.content`; None for no change.
    """

    unchanged: set[Form] = field(default_factory=set)
    changes: dict[tuple[int, int, Form], _Change | None] = field(default_factory=dict)
    results: dict[tuple[object, ...], Object | None] = field(default_factory=dict)


def run_mutating(
    policies: PolicySet, request: AdmissionRequest, obj: Object, inputs: PolicyInputs | None = None
) -> Mutated:
    """Runs the mutating policies of a set in order, then once more those with reinvocationPolicy IfNeeded.

    `obj` is not modified. Never raises for an error of a policy or an object: see `Mutated.errors`.
    """
    mutating = MutatingPass.begin(policies, request, obj, inputs or BareInputs())
    mutating.run(using_plan=False)
    mutating.run(using_plan=True)
    mutating.reinvoke()
    return mutating.result()


@dataclass(slots=True)
class MutatingPass:
    """The mutating policies of one request, run step by step; `obj` is the current object.

    The caller runs the policies that do not use `plan`, may then make the plan, and runs those that use it.
    """

    policy_pass: PolicyPass
    policies: tuple[MutatingPolicy, ...]
    skipped: tuple[Skipped, ...]
    obj: Object
    effects: list[Effect] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    first_results: dict[str, Object] = field(default_factory=dict)
    """The object after each policy's first run; the policy is reinvoked if the object has changed since."""

    @classmethod
    def begin(
        cls, policies: PolicySet, request: AdmissionRequest, obj: Object, inputs: PolicyInputs
    ) -> MutatingPass:
        """Returns a pass that has run nothing yet."""
        runnable, skipped = runnable_policies(policies.mutating, inputs)
        return cls(PolicyPass.begin(policies, request, inputs), runnable, skipped, obj)

    @property
    def uses_plan(self) -> bool:
        """Whether any of the policies uses `plan`."""
        return any(policy.uses_plan for policy in self.policies)

    def run(self, *, using_plan: bool) -> None:
        """Runs the policies that use `plan`, or those that do not, in order."""
        for policy in self.policies:
            if policy.uses_plan == using_plan:
                self._run(policy)
                self.first_results[policy.name] = self.obj

    def reinvoke(self) -> None:
        """Runs again the policies with reinvocationPolicy IfNeeded, if the object has changed since their
        first run.
        """
        for policy in self.policies:
            if policy.reinvoke and not equal(self.first_results[policy.name], self.obj):
                self._run(policy)

    def result(self) -> Mutated:
        """Returns the result; the same failure of several runs is reported once."""
        failures = list(dict.fromkeys(self.failures))
        return Mutated(
            object=self.obj,
            effects=tuple(self.effects),
            errors=tuple(row for row in failures if row.fatal),
            warnings=tuple(row for row in failures if not row.fatal),
            skipped=self.skipped,
            exempted=self.policy_pass.exemptions.outcomes,
            cost=self.policy_pass.budget.used,
        )

    def _run(self, policy: MutatingPolicy) -> None:
        """Runs one policy; its changes are undone if the object is exempt from it."""
        policy_pass, obj = self.policy_pass, self.obj
        if policy_pass.known_no_effect(policy, obj) is not None:
            return
        effects, failures, used = len(self.effects), len(self.failures), policy_pass.used
        is_common = self._apply(policy)
        if len(self.effects) == effects and len(self.failures) == failures:
            if is_common and self.obj is obj:
                policy_pass.record_no_effect(policy, obj, used)
            return

        def outcome() -> str:
            failed = [f"would have failed: {row.message}" for row in self.failures[failures:]]
            paths = dict.fromkeys(str(step["path"]) for row in self.effects[effects:] for step in row.patch)
            return failed[0] if failed else f"would have changed {listed([*paths], MOST_TOLD)}"

        if self.policy_pass.exemptions.record_use(policy.name, outcome):
            self.obj = obj
            del self.effects[effects:], self.failures[failures:]

    def _apply(self, policy: MutatingPolicy) -> bool:
        """Runs each of the policy's bindings on each of its targets, with each of its parameter objects.

        Returns whether each run is known to do nothing to all new objects with these forms.
        """
        does_nothing = True
        for binding in policy.bindings:
            before = self.obj
            outcomes = _Outcomes()
            for target in self.policy_pass.targets(policy, before):
                poll_policies()
                form = self.policy_pass.form(target.as_in(self.obj), template=True)
                if form in outcomes.unchanged:
                    continue
                # Templates of one form may differ in labels: an object selector may select only some of them.
                has_effect = not binding.match.selects_all
                for run in self.policy_pass.runs(policy, binding, target):
                    if isinstance(run, Failure):
                        self.failures.append(run)
                        has_effect = True
                    else:
                        obj = self.obj
                        current = target.as_in(obj)
                        if current.raw is None and target.raw is not None:
                            break  # the policy has removed this template
                        is_known = self._mutate_by_form(run, policy, current, before, outcomes)
                        has_effect = has_effect or not is_known or self.obj is not obj
                if form is not None and not has_effect:
                    outcomes.unchanged.add(form)
                does_nothing = does_nothing and not has_effect and isinstance(form, SharedForm)
            if self.obj is not before:
                operations = tuple(patch_between(before, self.obj))
                if operations:
                    self.effects.append(Effect(policy.name, binding.name, operations))
        return does_nothing

    def _mutate_by_form(
        self, run: PolicyRun, policy: MutatingPolicy, target: Target, before: Object, outcomes: _Outcomes
    ) -> bool:
        """Runs the policy on one target, or applies the effect that is known from a template of the same
        form or content.

        Returns whether the effect is the same on all templates of the target's form.
        """
        form = self.policy_pass.form(target, template=True)
        if isinstance(form, SharedForm):
            if self._mutate_as_equal_objects(run, policy, target, before, form):
                return True
        elif form is not None:
            key = id(run.binding), id(run.params), form
            if key not in outcomes.changes:
                outcomes.changes[key] = self._change(run, policy, target, before, form)
            if (change := outcomes.changes[key]) is not None:
                self._follow(change, target)
                return True
        content = self.policy_pass.content(policy, run, target)
        if content is None or content not in outcomes.results:
            self._mutate(run, policy.mutations, target, before)
            if content is not None:
                raw = target.as_in(self.obj).raw
                outcomes.results[content] = None if raw is target.raw else raw
        elif (outcome := outcomes.results[content]) is not None:
            # Each template gets its own map, because the plan is later written into each PodSet's template.
            self.obj = replaced(self.obj, target.path, dict(outcome))
        return False

    def _mutate_as_equal_objects(
        self, run: PolicyRun, policy: MutatingPolicy, target: Target, before: Object, form: SharedForm
    ) -> bool:
        """Applies the effect of a policy on all new objects or templates of the target's form. Each mutation
        sees the target as the previous one changed it. Returns False if the policy must be run on the target
        itself; `self.obj` and the budgets are then unchanged.
        """
        obj = self.obj
        budgets = [
            (each, each.used) for each in (self.policy_pass.budget, self.policy_pass.conditions_budget)
        ]

        def conditions_hold(alone: PolicyPass, activation: Activation) -> bool | None:
            holds = alone.conditions_hold(run, activation)
            return None if isinstance(holds, Failure) else holds

        def change(
            mutation: Mutation, form: SharedForm, _: PolicyPass, activation: Activation
        ) -> tuple[Changes, ...] | None:
            mutated = mutated_or_failure(run, activation, mutation, form.shown)
            poll_policies()  # comparing a hundred containers takes long, as merging them does
            return None if isinstance(mutated, Failure) else _common_changes(form, mutated)

        outcome_of = self.policy_pass.outcome_on_equal_objects
        whole = before if target.path else obj
        holds = outcome_of(run, "conditions", target, whole, form, conditions_hold)
        if not holds:
            return holds is not None
        current: Form | None = form
        for index, mutation in enumerate(policy.mutations):
            poll_policies()
            effect = None
            if isinstance(current, SharedForm):  # a policy may have made the object too large for a form
                whole = before if target.path else self.obj
                effect = outcome_of(run, index, target, whole, current, partial(change, mutation, current))
            if effect is None:
                self.obj = obj
                for budget, used in budgets:
                    budget.forget(used)
                return False
            for changes in effect:
                self.obj = target.write_back(self.obj, changes.applied_to(target.obj or {}))
                target = target.as_in(self.obj)
                current = self.policy_pass.form(target, template=True)
        return True

    def _change(
        self, run: PolicyRun, policy: MutatingPolicy, target: Target, before: Object, form: Form
    ) -> _Change | None:
        """Returns the effect of one run on all templates of a form; `self.obj` is not changed.

        None if the run reads a stand-in or fails, or if the changed templates have no common form: the effect
        may then depend on the template.
        """
        # The PodSet's name need not be hidden from a policy that reads no value of the PodSet.
        seen = target if policy.reads_no_pod_set else with_pod_set_hidden(target)
        steps: list[Changes] = []
        try:
            activation = self.policy_pass.activation(run, seen, before, form.shown)
            holds = self.policy_pass.conditions_hold(run, activation)
            if holds is not True:
                return None if isinstance(holds, Failure) else _Change((), form)
            for mutation in policy.mutations:
                activation = self.policy_pass.activation(run, seen, before, form.shown)
                mutated = mutated_or_failure(run, activation, mutation, form.shown)
                common = None if isinstance(mutated, Failure) else _common_changes(form, mutated)
                if common is None:
                    return None
                for changes in common:
                    steps.append(changes)
                    # The next mutation sees the form of the changed template.
                    target = target.as_in(target.write_back(self.obj, changes.applied_to(target.obj or {})))
                    changed = self.policy_pass.form(target, template=True)
                    if changed is None:
                        return None
                    form = changed
        except StandInRead:
            return None
        return _Change(tuple(steps), form)

    def _follow(self, change: _Change, target: Target) -> None:
        """Applies the effect that is known for a template's form to this template."""
        poll_policies()
        raw = carried = target.obj or {}
        for changes in change.steps:
            carried = changes.applied_to(carried)
        if carried is not raw:
            self.obj = target.write_back(self.obj, carried)
            self.policy_pass.cache.forms.record(target.as_in(self.obj), change.form)

    def _mutate(self, run: PolicyRun, mutations: Sequence[Mutation], target: Target, before: Object) -> None:
        """Runs the policy on one target; `before`: the object before this binding of the policy.

        All templates of the object see the same `gang` and `plan`, those of `before`. Otherwise, after each
        of n changed templates, all n would be read again.
        """
        shown_object = self.policy_pass.cache.defaulted(target, template=bool(target.path))
        whole = before if target.path else self.obj
        activation = self.policy_pass.activation(run, target, whole, shown_object)
        holds = self.policy_pass.conditions_hold(run, activation)
        if isinstance(holds, Failure):
            self.failures.append(holds)
        if holds is not True:
            return
        for mutation in mutations:
            whole = before if target.path else self.obj
            activation = self.policy_pass.activation(run, target, whole, shown_object)
            mutated = mutated_or_failure(run, activation, mutation, shown_object)
            if isinstance(mutated, Failure):
                self.failures.append(mutated)
                continue
            poll_policies()  # merging and comparing a hundred containers takes long
            raw = target.obj or {}
            carried = carry(raw, shown_object, mutated)
            if carried is not raw:
                self.obj = target.write_back(self.obj, carried)
                target = target.as_in(self.obj)
                if target.raw is None:  # this mutation has removed the pod
                    return
                shown_object = self.policy_pass.cache.defaulted(target, template=bool(target.path))


def _common_changes(form: Form, mutated: Mapping[str, Any]) -> tuple[Changes, ...] | None:
    """Returns the changes from a form to its content after a mutation, none or one; None if they are not the
    same for all targets of the form.

    A container that got another name is written as a new one, which would have the stand-ins of the form.
    """
    if not form.still_common_to(mutated):
        return None
    changes = changes_between(form.shown, mutated)
    if changes is None:
        return ()
    return None if any(map(has_stand_in, new_values(changes))) else (changes,)
