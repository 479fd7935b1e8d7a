"""The climb: the finest level that has a domain for the whole gang, and the best domain of that level.

One domain of a finer level is always fewer domains than several, so the first level at which the gang fits
in one domain is where the optimum lies. In mode `domain` a domain must be clear of other gangs to be held;
above the reservable level only hosts whose reservable domain is clear may be used.

The planner's words: a reason, the numbers, and what would work, for a reader of kubectl's output.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.cluster.tree import Branch, Tree
from planner.model.answer import Attempt
from planner.model.pod_class import Kind
from planner.request.problem import Ask
from planner.search.domain_packing import Placed


@dataclass(frozen=True, slots=True)
class Found:
    """A placement: nodes with the number of pods of each kind, in the branch that was searched."""

    branch: Branch
    kinds: tuple[Kind, ...]
    placed: Placed
    cost: int
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Tried:
    """One topology's outcome: the tree that was searched, the request in it, and what was found."""

    tree: Tree
    asked: Ask
    found: Found | None
    attempts: tuple[Attempt, ...]
    complete: bool
