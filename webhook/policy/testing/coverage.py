"""Records which expressions of a policy set were evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from webhook.cel import CostBudget
from webhook.policy.model.policy import (
    Expression,
    MutatingPolicy,
    NamedExpression,
    Policy,
    PolicySet,
    ValidatingPolicy,
)

Key = tuple[str, str]
"""Policy name and the field path of an expression in it."""


@dataclass(frozen=True, slots=True)
class RecordedExpression(Expression):
    """An expression that calls `tell` when it is evaluated."""

    tell: Callable[[Key], None]

    @property
    def equality_key(self) -> tuple[object, ...]:
        """A unique key: this expression itself must be evaluated, not an equal one of another policy."""
        return self.policy, self.label

    def evaluate(self, bindings: Mapping[str, Any], budget: CostBudget) -> Any:
        """Returns the value. `tell` is called first, so that an expression that fails counts as reached."""
        self.tell((self.policy, self.label))
        return self.program.evaluate(bindings, budget)


def expressions_of(policy: Policy) -> Iterator[Expression]:
    """Yields every expression of a policy, in the order of its fields."""
    yield from (row.expression for row in (*policy.conditions, *policy.variables))
    if isinstance(policy, MutatingPolicy):
        yield from (row.expression for row in policy.mutations)
    if isinstance(policy, ValidatingPolicy):
        for row in policy.validations:
            yield row.expression
            if row.message_expression is not None:
                yield row.message_expression
        yield from (row.expression for row in policy.audit_annotations)


def watch(policies: PolicySet, tell: Callable[[Key], None]) -> PolicySet:
    """Returns the same set, whose expressions call `tell` each time they are evaluated."""
    return replace(
        policies,
        mutating=tuple(_mutating(policy, tell) for policy in policies.mutating),
        validating=tuple(_validating(policy, tell) for policy in policies.validating),
    )


def _watched(expression: Expression, tell: Callable[[Key], None]) -> RecordedExpression:
    policy, label, program = expression.policy, expression.label, expression.program
    return RecordedExpression(policy, label, program, expression.ours, expression.reads, tell)


def _rows(rows: tuple[NamedExpression, ...], tell: Callable[[Key], None]) -> tuple[NamedExpression, ...]:
    return tuple(NamedExpression(row.name, _watched(row.expression, tell)) for row in rows)


def _mutating(policy: MutatingPolicy, tell: Callable[[Key], None]) -> MutatingPolicy:
    return replace(
        policy,
        conditions=_rows(policy.conditions, tell),
        variables=_rows(policy.variables, tell),
        mutations=tuple(replace(row, expression=_watched(row.expression, tell)) for row in policy.mutations),
    )


def _validating(policy: ValidatingPolicy, tell: Callable[[Key], None]) -> ValidatingPolicy:
    return replace(
        policy,
        conditions=_rows(policy.conditions, tell),
        variables=_rows(policy.variables, tell),
        audit_annotations=_rows(policy.audit_annotations, tell),
        validations=tuple(
            replace(
                row,
                expression=_watched(row.expression, tell),
                message_expression=_watched(row.message_expression, tell) if row.message_expression else None,
            )
            for row in policy.validations
        ),
    )
