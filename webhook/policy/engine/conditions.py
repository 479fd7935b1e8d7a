"""Match conditions, each evaluated once for all the policies that share it, as long as what it reads stays.

The policies of a folder begin with the same conditions ("switched on", "asks for GPUs"), and most of a
decision's policies do not apply: their conditions are most of what it costs. A condition that reads neither
the object nor anything that is a PodSet's own holds for all templates of an object or for none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from webhook.cel import CostBudget
from webhook.policy.engine.activation import Activation
from webhook.policy.model.policy import Expression


@dataclass(slots=True)
class KnownConditions:
    """What conditions came to in one pass. An entry serves while its inputs are the very same objects."""

    values: dict[tuple[object, ...], tuple[tuple[Any, ...], Any]] = field(default_factory=dict)
    """By meaning and the identity of the inputs, which are kept so that each identity stays theirs."""

    def evaluate(self, condition: Expression, activation: Activation, budget: CostBudget) -> Any:
        """The value of a condition. Raises CelError, each time for the policy whose condition it is."""
        reads = condition.reads
        obj = shown = None
        if reads.target:
            # Templates that are alike are shown as one object; of an update each is shown with its own past.
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
