"""A tree as one gang sees it: what lies where, and what each domain holds, now or when the cluster is empty.

`now` is the cluster as it is; otherwise it is the cluster when empty: no bound pods, no reservations, no
cordons, every node ready. Costs look only at contents and never at the gang's selectors, so that a plan made
again within its own node affinity comes out the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.content import Content
from planner.cost import Weights, weights
from planner.fabric import Fabric
from planner.kinds import Kind
from planner.matching import Match, match_of
from planner.sharing import share_in
from planner.snapshot import Snapshot
from planner.tree import Branch, Tree


@dataclass(frozen=True, slots=True)
class View:
    """One tree at one moment (`now`) or when empty; `content` is that of the whole tree."""

    base: Fabric
    tree: Tree
    now: bool
    content: Content

    def match(self, kinds: Sequence[Kind]) -> Match:
        """Where these kinds of pods may be by the nodes' labels."""
        return match_of(self.base, self.tree, kinds)

    def weights(self, kinds: Sequence[Kind]) -> Weights:
        """What placements of these kinds cost."""
        worst = sum(weight for kind in kinds for weight, _ in kind.shape.preferences)
        worst += sum(1 for kind in kinds if share_in(kind.shape.requests))
        return weights(self.tree.topology, self.base.content(self.tree), worst)

    def start(self, path: Sequence[int]) -> int:
        """Which of the tree's nodes the first one of that domain is."""
        branch, start = self.tree.root, 0
        for place in path:
            start, branch = start + branch.starts[place], branch.children[place]
        return start

    def at(self, path: Sequence[int]) -> tuple[Branch, Content]:
        """The domain that is reached by these places among children, with its content."""
        branch, content = self.tree.root, self.content
        for place in path:
            branch, content = branch.children[place], content.children[place]
        return branch, content


def look(snapshot: Snapshot, tree: Tree, *, now: bool) -> View:
    """The view of a tree in a snapshot that does not hold the gang itself."""
    content = snapshot.content(tree) if now else snapshot.base.content(tree)
    return View(snapshot.base, tree, now, content)
