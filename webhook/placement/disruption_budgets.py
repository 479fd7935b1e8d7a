"""PodDisruptionBudgets: which pods the eviction API would not evict now. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.manifests.requirements import selector_from
from planner.model.errors import Where
from planner.model.labels import Term
from planner.model.pod import BoundPod, selected


@dataclass(frozen=True, slots=True)
class Budget:
    """A PodDisruptionBudget. `terms`: its selector, None where it selects nothing. `allowed`: how many of its
    pods may be evicted now; 0 where its status does not say so yet."""

    namespace: str
    name: str
    terms: Term | None
    allowed: int

    @staticmethod
    def of(item: Mapping[str, Any]) -> Budget:
        """Raises `InputError` for a malformed selector."""
        metadata, selector = item["metadata"], (item.get("spec") or {}).get("selector")
        namespace = str(metadata.get("namespace") or "default")
        where = Where("", f"{namespace}/PodDisruptionBudget/{metadata['name']}", "spec.selector")
        terms = None if selector is None else selector_from(selector, where)
        allowed = int((item.get("status") or {}).get("disruptionsAllowed") or 0)
        return Budget(namespace, str(metadata["name"]), terms, allowed)

    def covers(self, pod: BoundPod) -> bool:
        """Whether the pod is one of its."""
        in_space = pod.name.startswith(f"{self.namespace}/")
        return in_space and self.terms is not None and selected(self.terms, pod.labels)


def protected(pods: Iterable[BoundPod], budgets: Sequence[Budget]) -> str:
    """Why budgets keep pods that are to be evicted together, as the end of a sentence; "" where they do not.

    Of a pod in several budgets the eviction API says that it does not support that.
    """
    covered: Counter[Budget] = Counter()
    for pod in pods:
        covering = [budget for budget in budgets if budget.covers(pod)]
        if len(covering) > 1:
            return f"is in {len(covering)} PodDisruptionBudgets, which the eviction API refuses"
        covered.update(covering)
    for budget, count in covered.items():
        if count > budget.allowed:
            now = f"allows {budget.allowed} of its {count} evictions now"
            return f"is protected by PodDisruptionBudget {budget.name}, which {now}"
    return ""
