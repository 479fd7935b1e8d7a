"""Match conditions: each is evaluated once for all policies that share it, as long as its inputs stay the
same.

The policies of a folder begin with the same conditions ("enabled", "requests GPUs"), and most policies do not
apply to an object, so their conditions are most of the cost. A condition that reads neither the object nor a
PodSet's values has the same result for all templates of an object. One that reads the parameters alone, as
the condition that switches a policy off does, has the same result for all requests.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from webhook.cel import CostBudget
from webhook.policy.engine.activation import Activation
from webhook.policy.model.policy import Expression


@dataclass(slots=True)
class _OfParameters:
    """Caches, for all requests, the values of conditions that read only the parameter object.

    Without this cache, evaluating them takes a sixteenth of the time of the decision on a pod.
    """

    values: dict[tuple[object, ...], tuple[Any, Any, int]] = field(default_factory=dict)
    """The parameter object, the condition's value and its cost, by `Expression.equality_key` and the `id` of
    the parameter object. The object is kept alive so that no other object gets the same `id`."""

    def evaluate(self, condition: Expression, activation: Activation, budget: CostBudget) -> Any:
        """Returns the value of a condition. Raises CelError; errors are not cached."""
        params = activation.params
        key = condition.equality_key, id(params)
        remembered = self.values.get(key)
        if remembered is None:
            if len(self.values) >= MAX_VALUES:
                self.values.clear()
            left = budget.left
            value = activation.evaluate(condition, budget)
            remembered = self.values[key] = params, value, left - budget.left
        else:  # the cost of a request does not depend on former requests
            budget.charge(remembered[2])
        return remembered[1]


MAX_VALUES = 4096
"""Maximum number of values; all are removed when it is reached. Parameters seldom change, and a set of
policies has about fifty conditions of this kind, so by then most values are of former parameters and
policies."""

_OF_PARAMETERS = _OfParameters()


@dataclass(slots=True)
class KnownConditions:
    """Caches the values of conditions in one pass over the policies. A value is reused only if all inputs
    that the condition reads are the same Python objects. A reused value takes its cost from the budget again,
    so that the cost of a policy does not depend on the policies before it.
    """

    values: dict[tuple[object, ...], tuple[tuple[Any, ...], Any, int]] = field(default_factory=dict)
    """The inputs, the value and its cost, by `Expression.equality_key` and the `id` of each input. The inputs
    are kept alive so that no other object gets the same `id`.
    """

    def evaluate(self, condition: Expression, activation: Activation, budget: CostBudget) -> Any:
        """Returns the value of a condition. Raises CelError for an error in it or an exceeded budget. Errors
        are not cached, because the label of an error names the one policy whose condition failed.
        """
        reads = condition.reads
        if reads.params_alone:
            return _OF_PARAMETERS.evaluate(condition, activation, budget)
        obj = shown = None
        if reads.target:
            # Equal templates share `activation.obj`, but each has its own old state, so both are in the key.
            obj, shown = activation.obj, activation.target.old
        whole = activation.whole if reads.bayplan else None
        params = activation.params if reads.params else None
        pod_set = activation.target.pod_set if reads.pod_set else None  # a name, or a stand-in for it
        key = condition.equality_key, id(obj), id(whole), id(params), id(shown), id(pod_set)
        remembered = self.values.get(key)
        if remembered is None:
            left = budget.left
            value = activation.evaluate(condition, budget)
            remembered = self.values[key] = (obj, whole, params, shown, pod_set), value, left - budget.left
        else:
            budget.charge(remembered[2])
        return remembered[1]
