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
from webhook.policy.engine.model import Expression


@dataclass(slots=True)
class KnownConditions:
    """What conditions came to in one pass. An entry serves while its inputs are the very same objects."""

    values: dict[tuple[object, ...], tuple[tuple[Any, ...], Any]] = field(default_factory=dict)

    def evaluate(self, condition: Expression, activation: Activation, budget: CostBudget) -> Any:
        """The value of a condition. Raises CelError, each time for the policy whose condition it is."""
        reads = condition.reads
        target = activation.target
        key = (
            *condition.meaning,
            target.path if reads.target else None,
            target.pod_set if reads.pod_set else None,
        )
        inputs = (
            activation.obj if reads.target else None,
            activation.whole if reads.bayplan else None,
            activation.params if reads.params else None,
        )
        remembered = self.values.get(key)
        if remembered is None or any(a is not b for a, b in zip(remembered[0], inputs, strict=True)):
            remembered = self.values[key] = inputs, activation.evaluate(condition, budget)
        return remembered[1]
