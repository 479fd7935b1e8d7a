"""A branch of a topology tree: a domain with the domains inside it. Immutable.

The functions that add or remove a host return another branch, which shares all parts that do not change.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from operator import attrgetter

from planner.model.natural_order import natural
from planner.model.topology import Domain

Place = tuple[str, ...]
"""A node's path in which each missing value is replaced by a marker: "\\0", the number of its level (from 1),
and the next finer value. Nodes with the same next finer value therefore share an unnamed branch.
"""


SortKey = tuple[int, int, object]
"""The order among siblings: named before unnamed, and values in natural order."""


_MAX_VALUES = 2**16
"""Maximum number of label values whose sort keys are cached, about 20 MB. A cluster of 60,000 nodes has about
as many values; in a larger cluster few values change at a time.
"""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Subtree:
    """A domain. `level` is -1 for the root. `key` is its sort key among siblings, `size` its number of nodes.

    `path`: the label values from the coarsest level down. `has_name`: False if the label of its own level is
    missing. A host has no children and has the name of a `node`.
    """

    level: int
    path: Domain
    key: SortKey
    has_name: bool
    size: int
    children: tuple[Subtree, ...] = ()
    node: str = ""
    _starts: tuple[int, ...] = ()
    """The value of `starts`, computed on first use: a wide root has thousands of entries, and most of the
    trees that are made between two plans are never searched.
    """

    def __len__(self) -> int:
        return self.size

    @property
    def starts(self) -> tuple[int, ...]:
        """The index, among the branch's nodes, of each child's first node."""
        if len(self._starts) != len(self.children):
            starts = tuple(accumulate([child.size for child in self.children[:-1]], initial=0))
            object.__setattr__(
                self, "_starts", starts
            )  # the only write to a frozen record: a memo that follows from its fields
        return self._starts

    def leaf(self, index: int) -> Subtree:
        """Returns the host with this index among the branch's nodes."""
        branch = self
        while branch.children:
            starts = branch._starts or branch.starts
            child_index = bisect_right(starts, index) - 1
            branch, index = branch.children[child_index], index - starts[child_index]
        return branch

    def leaves_at(self, indexes: Iterable[int]) -> Iterator[Subtree]:
        """Yields the hosts with these indexes. Descends from this branch only if a host has another parent
        than the previous host.
        """
        parent, start = self, self.size
        for index in indexes:
            if not 0 <= index - start < parent.size:
                parent, start = self.branch_above(index)
            yield parent.children[index - start]

    def branch_above(self, index: int) -> tuple[Subtree, int]:
        """Returns the branch directly above the host with this index, and the index of its first host."""
        branch, start = self, 0
        while branch.children[0].children:
            child_index = branch.child_of(index - start)
            branch, start = branch.children[child_index], start + branch.starts[child_index]
        return branch, start

    def domain_with_hosts(self, first: int, last: int) -> Subtree:
        """Returns the finest named domain in this branch that contains the hosts with both indexes."""
        branch, domain = self, self
        while branch.children:
            child_index = branch.child_of(first)
            start, child = branch.starts[child_index], branch.children[child_index]
            if last >= start + child.size:
                break
            branch, first, last = child, first - start, last - start
            domain = branch if branch.has_name else domain
        return domain

    def domain_at(self, index: int, level: int) -> tuple[Subtree, int]:
        """Returns the domain of the level that contains the host with this index, and the index after its
        last host.

        If the host is in no named domain of the level, the host itself is returned.
        """
        branch, start = self, 0
        while branch.children and not (branch.level == level and branch.has_name):
            child_index = branch.child_of(index - start)
            branch, start = branch.children[child_index], start + branch.starts[child_index]
        return branch, start + branch.size

    def leaves(self) -> Iterator[Subtree]:
        """Yields the hosts, in order."""
        if self.node:
            yield self
        for child in self.children:
            yield from child.leaves()

    def child_of(self, index: int) -> int:
        """Returns the index of the child that contains the host with this index."""
        return bisect_right(self.starts, index) - 1

    def find(self, key: SortKey) -> tuple[int, bool]:
        """Returns the index among the children at which this key is or would be inserted; and whether it is
        present.
        """
        index = bisect_left(self.children, key, key=_key_of)
        return index, index < len(self.children) and self.children[index].key == key

    def with_children(self, children: tuple[Subtree, ...], size: int | None = None) -> Subtree:
        """Returns the same domain with other children; `size`: their number of nodes, if it is known."""
        whole = sum([child.size for child in children]) if size is None else size
        return Subtree(self.level, self.path, self.key, self.has_name, whole, children)

    def with_child(self, index: int, child: Subtree | None, *, instead: bool) -> Subtree:
        """Returns the domain with `child` inserted at the index, or (`instead`) in place of the child there.

        With None, the child there is removed.
        """
        former = self.children[index].size if instead else 0
        new = (child,) if child else ()
        children = (*self.children[:index], *new, *self.children[index + instead :])
        return self.with_children(children, self.size - former + (child.size if child else 0))


_key_of: Callable[[Subtree], SortKey] = attrgetter("key")


def key_at(place: Place, branch: Subtree) -> SortKey:
    """Returns the sort key of the branch's child on the path to the place."""
    return sort_key(place[branch.level + 1])


def named_branch(branch: Subtree, domain: Domain) -> Subtree | None:
    """Returns the named branch of a domain, searched from this branch down; None if there is none."""
    depth = branch.level + 1
    if depth == len(domain):
        return branch if branch.has_name else None
    if value := domain[depth]:
        index, is_there = branch.find(sort_key(value))
        return named_branch(branch.children[index], domain) if is_there else None
    unnamed = (child for child in branch.children if not child.has_name)
    return next((inside for child in unnamed if (inside := named_branch(child, domain))), None)


def pruned(branch: Subtree, place: Place) -> Subtree | None:
    """Returns the branch without the host at this place, None if no host remains."""
    if branch.node:
        return None
    index, _ = branch.find(key_at(place, branch))
    rest = pruned(branch.children[index], place)
    return branch.with_child(index, rest, instead=True) if rest or len(branch.children) > 1 else None


def renewed(branch: Subtree, place: Place) -> Subtree:
    """Returns an equal branch with new objects on the path to the host at this place.

    Caches use the objects as keys, so that values computed for the former ones are not used again.
    """
    if branch.node:
        return replace(branch)
    index, _ = branch.find(key_at(place, branch))
    return branch.with_child(index, renewed(branch.children[index], place), instead=True)


def grafted(branch: Subtree, path: Domain, place: Place, name: str) -> Subtree | None:
    """Returns the branch with a host added at this place, None if a host is already there."""
    if branch.node:
        return None
    depth = branch.level + 1
    index, is_there = branch.find(sort_key(place[depth]))
    child = branch.children[index] if is_there else _chain(path, place, depth, name)
    if is_there:
        grown = grafted(child, path, place, name)
        if grown is None:
            return None
        child = grown
    return branch.with_child(index, child, instead=is_there)


def _chain(path: Domain, place: Place, depth: int, name: str) -> Subtree:
    """Returns a branch of the level `depth` that contains only the host of the node `name`."""
    host = len(path) - 1
    branch = Subtree(host, path, sort_key(place[host]), True, 1, node=name)
    for level in range(host - 1, depth - 1, -1):
        bare = Subtree(level, path[: level + 1], sort_key(place[level]), bool(path[level]), 0)
        branch = bare.with_children((branch,), 1)
    return branch


def place_at(path: Domain, host: int) -> Place:
    """Returns the place of a node with these label values; `host`: the index of the hostname level."""
    place = list(path)
    for level in range(host - 1, -1, -1):
        if not place[level]:
            place[level] = f"\0{level + 1}{place[level + 1]}"
    return tuple(place)


@lru_cache(maxsize=_MAX_VALUES)
def sort_key(value: str) -> SortKey:
    """Returns the sort key of a label value, or of the marker of a missing one, among siblings."""
    return (1 if value[:1] == "\0" else 0, 0, natural(value))
