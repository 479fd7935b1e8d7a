"""The variables of one evaluation, each worked out when an expression first asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from webhook.cel import CelError, CostBudget
from webhook.policy.engine.defaults import defaulted
from webhook.policy.engine.model import FACTS, Expression, NamedExpression, Policy
from webhook.wire.request import AdmissionRequest


@dataclass(slots=True)
class Activation(Mapping[str, Any]):
    """What an expression sees: the object as it is now, the request, parameters, variables, facts.

    One is made for each mutation, because the object has changed then: `variables` are worked out anew, as
    upstream does.
    """

    policy: Policy
    request: AdmissionRequest
    facts: Callable[[], Mapping[str, Any]]
    authorizer: Any
    budget: CostBudget
    obj: Mapping[str, Any] | None
    old: Mapping[str, Any] | None
    params: Mapping[str, Any] | None
    cache: dict[str, Any] = field(default_factory=dict)

    def evaluate(self, expression: Expression, budget: CostBudget | None = None) -> Any:
        """The value of an expression. Raises CelError."""
        return expression.evaluate(self, budget or self.budget)

    def __getitem__(self, name: str) -> Any:
        if name not in self.cache:
            self.cache[name] = self._find(name)
        return self.cache[name]

    def _find(self, name: str) -> Any:
        if name == "object":
            return self.obj
        if name == "oldObject":
            return None if self.old is None else defaulted(self.old)
        if name == "params":
            return self.params
        if name == "request":
            return self.request.as_cel()
        if name == "namespaceObject":
            return self.request.namespace_object if self.request.namespace else None
        if name == "variables":
            return Variables(self)
        if name == "authorizer":
            return self.authorizer
        if name in FACTS:
            return self._fact(name)
        raise KeyError(name)

    def _fact(self, name: str) -> Any:
        try:
            # An object that needs no plan has none: `plan` is null then.
            return self.facts().get(name)
        except ValueError as error:
            raise CelError("evaluation", f"{name} is not available: {error}") from None

    def __iter__(self) -> Iterator[str]:
        names = ["object", "oldObject", "request", "params", "namespaceObject", "variables", "authorizer"]
        return iter([*names, *sorted(FACTS)])

    def __len__(self) -> int:
        return len(list(iter(self)))


class Variables(Mapping[str, Any]):
    """`variables`: each evaluated once, on first use; an error is kept and raised to every reader."""

    __slots__ = ("activation", "done", "named")

    def __init__(self, activation: Activation) -> None:
        self.activation = activation
        self.named: dict[str, NamedExpression] = {row.name: row for row in activation.policy.variables}
        self.done: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self.done:
            try:
                self.done[name] = self.activation.evaluate(self.named[name].expression)
            except CelError as error:
                self.done[name] = error
        value = self.done[name]
        if isinstance(value, CelError):
            raise value
        return value

    def __contains__(self, name: object) -> bool:
        return name in self.named

    def __iter__(self) -> Iterator[str]:
        return iter(self.named)

    def __len__(self) -> int:
        return len(self.named)
