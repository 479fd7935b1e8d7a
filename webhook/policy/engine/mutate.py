"""Run the mutating policies over one object, each seeing what the former did. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from webhook.cel import CelError, to_json
from webhook.cel.values import schema as schemas
from webhook.cel.values.values import JSONPatch, ObjectValue
from webhook.jsontools import patch
from webhook.jsontools.diff import equal, patch_between
from webhook.policy.engine.activation import Activation
from webhook.policy.engine.apply_merge import MergeError, merge
from webhook.policy.engine.context import EvaluationContext
from webhook.policy.engine.defaults import carry
from webhook.policy.engine.model import MutatingPolicy, Mutation, Policy, PolicySet
from webhook.policy.engine.schema_check import check_shape
from webhook.policy.engine.session import Failure, PolicyRun, Session, failure, failure_of
from webhook.policy.engine.targets import Target
from webhook.wire.request import AdmissionRequest

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Effect:
    """What one run of a policy changed: RFC 6902 operations on the whole object as it was before that run."""

    policy: str
    binding: str
    patch: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A policy that was left out, because the caller has no such variables."""

    policy: str
    lacks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mutated:
    """The object after all policies, and how it came about.

    `errors` are failures under failurePolicy Fail (the request is refused), `warnings` those under Ignore.
    The object holds what the policies changed before a failure; a caller that refuses does not use it.
    """

    object: Object
    effects: tuple[Effect, ...] = ()
    errors: tuple[Failure, ...] = ()
    warnings: tuple[Failure, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    cost: int = 0


def run_mutating(
    policies: PolicySet, request: AdmissionRequest, obj: Object, host: EvaluationContext | None = None
) -> Mutated:
    """Run the mutating policies of a set in their order, then once more those that ask for it.

    `obj` is not changed. Never raises for what a policy or an object does wrong: see `Mutated.errors`.
    """
    session = Session.begin(policies, request, host or EvaluationContext())
    able, skipped = able_policies(policies.mutating, session.host)
    state = _State(obj)
    seen: dict[str, Object] = {}
    for policy in able:
        state.run(session, policy)
        seen[policy.name] = state.obj
    for policy in able:
        if policy.reinvoke and not equal(seen[policy.name], state.obj):
            state.run(session, policy)
    failures = list(dict.fromkeys(state.failures))
    return Mutated(
        object=state.obj,
        effects=tuple(state.effects),
        errors=tuple(row for row in failures if row.fatal),
        warnings=tuple(row for row in failures if not row.fatal),
        skipped=skipped,
        cost=session.budget.used,
    )


def able_policies(policies: Sequence[Any], host: EvaluationContext) -> tuple[list[Any], tuple[Skipped, ...]]:
    """The policies whose variables the caller has, and the others."""
    lacking = {policy.name: tuple(sorted(host.lacks(policy))) for policy in policies}
    able = [policy for policy in policies if not lacking[policy.name]]
    return able, tuple(Skipped(name, lacks) for name, lacks in lacking.items() if lacks)


class _State:
    """The object on its way through the policies."""

    __slots__ = ("effects", "failures", "obj")

    def __init__(self, obj: Object) -> None:
        self.obj = obj
        self.effects: list[Effect] = []
        self.failures: list[Failure] = []

    def run(self, session: Session, policy: MutatingPolicy) -> None:
        """One policy: each of its bindings, on each of its targets, with each of its parameter objects."""
        for binding in policy.bindings:
            before = self.obj
            for target in session.targets(policy, self.obj):
                for run in session.runs(policy, binding, target):
                    if isinstance(run, Failure):
                        self.failures.append(run)
                    else:
                        self._mutate(session, run, policy.mutations, target.on(self.obj))
            if self.obj is not before:
                patch = tuple(patch_between(before, self.obj))
                if patch:
                    self.effects.append(Effect(policy.name, binding.name, patch))

    def _mutate(
        self, session: Session, run: PolicyRun, mutations: Sequence[Mutation], target: Target
    ) -> None:
        seen = session.seen(target, template=bool(target.path))
        holds = session.conditions_hold(run, session.activation(run, target, seen))
        if isinstance(holds, Failure):
            self.failures.append(holds)
        if holds is not True:
            return
        for mutation in mutations:
            activation = session.activation(run, target, seen)
            try:
                after = _mutated(activation, mutation, seen)
            except CelError as error:
                self.failures.append(failure_of(run, mutation.expression, error))
                continue
            except ValueError as error:
                label = mutation.expression.label
                self.failures.append(failure(run.policy, run.binding, label, str(error)))
                continue
            raw = target.obj or {}
            changed = carry(raw, seen, after)
            if changed is not raw:
                self.obj = target.write_back(changed)
                target = target.on(self.obj)
                seen = session.seen(target, template=bool(target.path))


def _mutated(activation: Activation, mutation: Mutation, obj: dict[str, Any]) -> dict[str, Any]:
    """The object after one mutation; the same one where a `test` of its patch does not hold.

    Raises CelError where the expression has no value, MergeError or PatchError where the value cannot be
    applied, ShapeError where what comes out does not fit the object's kind.
    """
    value = activation.evaluate(mutation.expression)
    if mutation.patch_type == "JSONPatch":
        try:
            after = patch.apply(obj, list(_operations(value)))
        except patch.TestFailedError:
            return obj
    else:
        if not isinstance(value, ObjectValue):
            raise MergeError("the expression must give an Object{}")
        schema = schemas.lookup(str(obj.get("apiVersion", "")), str(obj.get("kind", "")))
        after = merge(schema, obj, to_json(value))
    check_shape(obj, after)
    return after  # type: ignore[no-any-return]


def _operations(value: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(value, (list, tuple)):
        raise patch.PatchError("the expression must give a list of JSONPatch{}")
    for row in value:
        if not isinstance(row, JSONPatch):
            raise patch.PatchError("the expression must give a list of JSONPatch{}")
        operation: dict[str, Any] = {"op": row.op, "path": row.path}
        if row.source:
            operation["from"] = row.source
        if row.has_value:
            operation["value"] = to_json(row.value)
        yield operation


def skipped_notice(policies: Sequence[Policy], skipped: Sequence[Skipped]) -> str:
    """One line for a person about what was left out, "" where nothing was."""
    if not skipped:
        return ""
    names = ", ".join(row.policy for row in skipped)
    lacks = ", ".join(sorted({name for row in skipped for name in row.lacks}))
    return f"{len(skipped)} of {len(policies)} policies left out, for lack of {lacks}: {names}"
