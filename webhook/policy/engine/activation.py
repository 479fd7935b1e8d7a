"""The values of the names that an expression may read (in CEL, an activation), each computed on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from webhook.cel import CelError, CostBudget
from webhook.policy.engine.defaults import defaulted
from webhook.policy.engine.targets import Target
from webhook.policy.model.policy import BAYPLAN_VARIABLES, Expression, Policy


@dataclass(slots=True, eq=False)
class Activation(dict[str, Any]):
    """The names that an expression may read: the current object, the request, parameters, and all variables.

    Each mutation gets a new activation: the object has changed since the last one, and `variables` are
    computed again, as upstream does. The mapping contains the names that were read so far; another name is
    computed when it is read.
    """

    policy: Policy
    target: Target
    whole: Mapping[str, Any] | None
    """The object for which `gang`, `plan` and `cluster` are computed: the target or the object around it."""
    variables_of: Callable[[Mapping[str, Any] | None, str], Mapping[str, Any]]
    """Returns `gang`, `plan` and `cluster` of an object, for one of its PodSets."""
    authorizer: Any
    budget: CostBudget
    obj: Mapping[str, Any] | None
    """The value of `object`: the target as policies see it (a template as a Pod), with defaults."""
    params: Mapping[str, Any] | None
    variable_values: dict[str, Any] = field(default_factory=dict)
    """The values of the policy's `variables` that were read so far, or the errors in them."""

    def evaluate(self, expression: Expression, budget: CostBudget | None = None) -> Any:
        """Returns the value of an expression. Raises CelError for an error in it or an exceeded budget
        (by default the activation's own).
        """
        return expression.evaluate(self, budget or self.budget)

    def __missing__(self, name: str) -> Any:
        if name == "variables":  # not kept: it refers to the activation, and such a cycle is freed late
            return Variables(self)
        value = self[name] = self._value(name)
        return value

    def _value(self, name: str) -> Any:
        if name == "object":
            return self.obj
        if name == "oldObject":
            return None if self.target.old is None else defaulted(self.target.old)
        if name == "params":
            return self.params
        request = self.target.request
        if name == "request":
            return request.as_cel()
        if name == "namespaceObject":
            return request.namespace_object if request.namespace else None
        if name == "authorizer":
            return self.authorizer
        if name in BAYPLAN_VARIABLES:
            return self._bayplan_variable(name)
        raise KeyError(name)

    def _bayplan_variable(self, name: str) -> Any:
        try:
            # `variables_of` leaves out a name that has no value for this object; the variable is then null.
            return self.variables_of(self.whole, self.target.pod_set).get(name)
        except ValueError as error:
            raise CelError("evaluation", f"{name} is not available: {error}") from None


class Variables(Mapping[str, Any]):
    """The `variables` of a policy. Each is evaluated when it is first read; an error is kept, and raised
    again by each later read.
    """

    __slots__ = ("activation",)

    def __init__(self, activation: Activation) -> None:
        self.activation = activation

    def __getitem__(self, name: str) -> Any:
        values_read = self.activation.variable_values
        if name not in values_read:
            try:
                values_read[name] = self.activation.evaluate(self._expression(name))
            except CelError as error:
                values_read[name] = error
        value = values_read[name]
        if isinstance(value, CelError):
            raise value
        return value

    def _expression(self, name: str) -> Expression:
        for row in self.activation.policy.variables:
            if row.name == name:
                return row.expression
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return any(row.name == name for row in self.activation.policy.variables)

    def __iter__(self) -> Iterator[str]:
        return (row.name for row in self.activation.policy.variables)

    def __len__(self) -> int:
        return len(self.activation.policy.variables)
