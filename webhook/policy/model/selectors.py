"""Label selectors as in apimachinery: every label and every expression must match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.model.labels import Requirement, holds, selects


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A label selector; an empty one matches everything."""

    match_labels: Mapping[str, str] = field(hash=False)
    match_expressions: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, Any]) -> bool:
        """Returns whether an object with these labels is selected."""
        return selects(self.match_labels, labels) and all(
            holds(requirement, labels.get(requirement.key)) for requirement in self.match_expressions
        )


EVERYTHING = LabelSelector({})
