"""The climb: the finest level that has a domain for the whole gang, and the best domain of that level.

One domain of a finer level is always fewer domains than several, so the first level at which the gang fits
in one domain is where the optimum lies. In mode `domain` a domain must be clear of other gangs to be held;
above the reservable level only hosts whose reservable domain is clear may be used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from planner.answer import Attempt
from planner.podgroup import ReserveMode
from planner.request import ROOT, Ask, Kind
from planner.search import Budget, BudgetEnded, Placed, Search
from planner.tree import Branch, Tree
from planner.view import View

_BEAMS = (24, 6)
_BEAM_BUDGET = 2_000_000


@dataclass(frozen=True, slots=True)
class Found:
    """A placement: nodes with the number of pods of each kind, in the branch that was searched."""

    branch: Branch
    kinds: tuple[Kind, ...]
    placed: Placed
    cost: int
    exact: bool = True


@dataclass(slots=True)
class Climb:
    """The climbs of one gang over one view. `attempts` tells what was tried, fine to coarse."""

    view: View
    asked: Ask
    mode: ReserveMode
    budget: Budget
    attempts: list[Attempt]
    complete: bool = True

    def climb(self, kinds: tuple[Kind, ...], required: int) -> Found | None:
        """The best placement with these kinds inside one domain of the `required` level (ROOT: anywhere)."""
        try:
            return self._climb(kinds, required, 0)
        except BudgetEnded:
            self.complete = False
        for beam in _BEAMS:
            self.budget.left = _BEAM_BUDGET
            with suppress(BudgetEnded):
                return self._climb(kinds, required, beam)
        return None

    def _climb(self, kinds: tuple[Kind, ...], required: int, beam: int) -> Found | None:
        searches: dict[bool, Search] = {}
        self.attempts.clear()
        for level in range(self.view.tree.topology.host_index, required - 1, -1):
            whole = self.mode != "domain" or level >= self.view.tree.topology.reservable_index
            if whole not in searches:
                usable = self._usable(whole)
                searches[whole] = Search(self.view, kinds, usable, self.budget, beam)
            found = self._best_of(searches[whole], level, kinds, required)
            if found is not None:
                return found if not beam else Found(found.branch, kinds, found.placed, found.cost, False)
        return None

    def _usable(self, whole: bool) -> Sequence[bool]:
        """Hosts that may be used: those not held by others; for several domains those in clear domains."""
        view, tree = self.view, self.view.tree
        if self.mode != "domain":
            return [not gang for gang in view.held]
        hosts = tree.levels[tree.topology.host_index]
        if whole:
            return [view.clear(host) for host in hosts]
        usable = [view.clear(host) for host in hosts]
        for branch in tree.levels[tree.topology.reservable_index]:
            if branch.named and not view.clear(branch):
                usable[branch.start : branch.end] = [False] * len(branch)
        return usable

    def _best_of(self, search: Search, level: int, kinds: tuple[Kind, ...], required: int) -> Found | None:
        best: tuple[tuple[int, ...], Branch] | None = None
        for branch in self._candidates(search, level, kinds, required):
            cost = search.cost(branch, None if best is None else best[0][0])
            if cost is None:
                continue
            key = self._key(search, branch, cost)
            if best is None or key < best[0]:
                best = (key, branch)
        if best is not None:
            self._note(level, best[1], search.counts.size(search.counts.full), kinds)
            return Found(best[1], kinds, search.place(best[1]), best[0][0])
        self._note_failure(search, level, kinds, required)
        return None

    def _candidates(
        self, search: Search, level: int, kinds: tuple[Kind, ...], required: int
    ) -> Iterator[Branch]:
        full = search.counts.full
        for branch in self._domains(search, level, kinds, required):
            if search.counts.covers(search.reach(branch), full) and _apart(kinds, branch):
                yield branch

    def _domains(
        self, search: Search, level: int, kinds: tuple[Kind, ...], required: int
    ) -> Iterator[Branch]:
        """Domains of the level that the constraints and the mode allow, whether or not the gang fits."""
        tree = self.view.tree
        together = {required, *(kind.required for kind in kinds), *(kind.slice_level for kind in kinds)}
        named = [above for above in together if ROOT < above <= level]
        whole = self.mode == "domain" and level >= tree.topology.reservable_index
        for branch in branches(tree, level):
            if all(branch.path[above] for above in named) and not (whole and not self.view.clear(branch)):
                yield branch

    def _key(self, search: Search, branch: Branch, cost: int) -> tuple[int, ...]:
        """The order among candidates: cost, the pristine domains around it, then the fullest around it."""
        around = ancestors(self.view.tree, branch)
        weights = search.weights
        opened = sum(weights.opened[b.level] for b in around if self.view.pristine(b))
        return (cost + opened, *(self.view.measure(b) for b in reversed(around)), branch.start)

    def _note(self, level: int, branch: Branch, fits: int, kinds: Sequence[Kind], note: str = "") -> None:
        wanted = sum(kind.count for kind in kinds)
        self.attempts.append(Attempt(self._key_of(level), branch.path, fits, wanted, note))

    def _key_of(self, level: int) -> str:
        return self.view.tree.topology.levels[level] if level > ROOT else ""

    def _note_failure(self, search: Search, level: int, kinds: tuple[Kind, ...], required: int) -> None:
        """Record how many pods the level's best domain holds."""
        size = search.counts.size
        branches_ = list(self._domains(search, level, kinds, required))
        if not branches_:
            self.attempts.append(
                Attempt(self._key_of(level), (), 0, sum(kind.count for kind in kinds), "no domain is free")
            )
            return
        nearest = max(branches_, key=lambda b: (size(search.reach(b)), -b.start))
        fits = size(search.reach(nearest)) if len(kinds) == 1 else search.fits(nearest)
        self._note(level, nearest, fits, kinds)


def branches(tree: Tree, level: int) -> Sequence[Branch]:
    """The branches of a level, in order; of ROOT the whole tree."""
    return tree.levels[level] if level > ROOT else (tree.root,)


def ancestors(tree: Tree, branch: Branch) -> list[Branch]:
    """The branches above a branch, coarse to fine, the root left out."""
    found: list[Branch] = []
    at = tree.root
    while at.level < branch.level - 1:
        at = next(child for child in at.children if child.start <= branch.start < child.end)
        found.append(at)
    return found


def _apart(kinds: Sequence[Kind], branch: Branch) -> bool:
    """Whether pods that must differ over a level can all be in this branch."""
    return not any(
        kind.count > 1 and any(level <= branch.level and branch.path[level] for level in kind.apart)
        for kind in kinds
    )
