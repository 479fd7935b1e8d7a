"""Finds the pods that the eviction API would refuse to evict because of PodDisruptionBudgets. Pure."""

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
    """A PodDisruptionBudget. `terms`: its selector, None if it selects nothing. `allowed`: how many of its
    pods may be evicted now (`status.disruptionsAllowed`); 0 if the status does not say.
    """

    namespace: str
    name: str
    terms: Term | None
    allowed: int

    @staticmethod
    def of(item: Mapping[str, Any]) -> Budget:
        """Reads a PodDisruptionBudget. Raises `InputError` for a malformed selector."""
        metadata, selector = item["metadata"], (item.get("spec") or {}).get("selector")
        namespace = str(metadata.get("namespace") or "default")
        where = Where("", f"{namespace}/PodDisruptionBudget/{metadata['name']}", "spec.selector")
        terms = None if selector is None else selector_from(selector, where)
        allowed = int((item.get("status") or {}).get("disruptionsAllowed") or 0)
        return Budget(namespace, str(metadata["name"]), terms, allowed)

    def covers(self, pod: BoundPod) -> bool:
        """Returns whether the budget covers the pod."""
        in_space = pod.name.startswith(f"{self.namespace}/")
        return in_space and self.terms is not None and selected(self.terms, pod.labels)


def refused(pods: Iterable[BoundPod], budgets: Sequence[Budget]) -> str:
    """Returns why the eviction API would never evict all of these pods, as the end of a sentence; "" if it
    may.

    The API refuses to evict a pod that several budgets cover.
    """
    covering = max((sum(budget.covers(pod) for budget in budgets) for pod in pods), default=0)
    return f"is in {covering} PodDisruptionBudgets, which the eviction API refuses" if covering > 1 else ""


def protected(pods: Iterable[BoundPod], budgets: Sequence[Budget]) -> str:
    """Returns why a budget does not allow to evict these pods together now, as the end of a sentence; "" if
    all budgets allow it.
    """
    covered = Counter(budget for pod in pods for budget in budgets if budget.covers(pod))
    for budget, count in covered.items():
        if count > budget.allowed:
            now = f"allows {budget.allowed} of its {count} evictions now"
            return f"is protected by PodDisruptionBudget {budget.name}, which {now}"
    return ""
