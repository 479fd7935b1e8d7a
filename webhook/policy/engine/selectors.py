"""Label selectors, as apimachinery matches them: every label and every expression must hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    """One of `matchExpressions`. NotIn and DoesNotExist also hold where the key is missing."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, Any]) -> bool:
        """Whether labels meet this requirement."""
        present = self.key in labels
        if self.operator == "Exists":
            return present
        if self.operator == "DoesNotExist":
            return not present
        inside = present and labels[self.key] in self.values
        return inside if self.operator == "In" else not inside


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """An empty selector matches everything."""

    match_labels: Mapping[str, str]
    match_expressions: tuple[LabelRequirement, ...] = ()

    def matches(self, labels: Mapping[str, Any]) -> bool:
        """Whether an object with these labels is selected."""
        return all(labels.get(key) == value for key, value in self.match_labels.items()) and all(
            requirement.matches(labels) for requirement in self.match_expressions
        )


EVERYTHING = LabelSelector({})
