"""Match conditions: each is evaluated once for all policies that share it, as long as its inputs stay the
same.

The policies of a folder begin with the same conditions ("enabled", "requests GPUs"), and most policies do not
apply to an object, so their conditions are most of the cost. A condition that reads neither the object nor a
PodSet's values has the same result for all templates of an object.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from webhook.cel import CostBudget
from webhook.policy.engine.activation import Activation
from webhook.policy.model.policy import Expression


@dataclass(slots=True)
class KnownConditions:
    """The values of conditions in one pass over the policies. An entry is valid for the same inputs, compared
    by identity.
    """

    values: dict[tuple[object, ...], tuple[tuple[Any, ...], Any]] = field(default_factory=dict)
    """The inputs and the value, by the condition's meaning and the identities of the inputs. The inputs are
    kept alive so that no other object gets the same `id`.
    """

    def evaluate(self, condition: Expression, activation: Activation, budget: CostBudget) -> Any:
        """Returns the value of a condition. Raises CelError, which is not cached: its label names the
        policy's own condition.
        """
        reads = condition.reads
        obj = shown = None
        if reads.target:
            # `activation.obj` is one object for all equal templates, the old state of an update is not.
            obj, shown = activation.obj, activation.target.old
        whole = activation.whole if reads.bayplan else None
        params = activation.params if reads.params else None
        pod_set = activation.target.pod_set if reads.pod_set else None  # a name, or a stand-in for it
        key = condition.meaning, id(obj), id(whole), id(params), id(shown), id(pod_set)
        remembered = self.values.get(key)
        if remembered is None:
            value = activation.evaluate(condition, budget)
            remembered = self.values[key] = (obj, whole, params, shown, pod_set), value
        return remembered[1]
