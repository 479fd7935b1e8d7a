"""Pods apart, or together, over labels that are no level of the topology: by branch and bound over climbs.

A climb knows the topology's levels alone. So the gang is placed without such a rule first. Where its
placement breaks one, every placement that keeps it is in one of a few ways of barring nodes, each of which is
climbed in turn, the cheapest first; the first that breaks nothing is the best, for barring never makes a gang
cheaper. Of hosts that nothing tells apart, in one parent domain, one is tried.

Climbs are counted. Past their number the rest is tried depth first for any placement, and the answer says
that the search was not complete.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import replace

from planner.answer import Attempt
from planner.climb import Climb, Found
from planner.content import Content
from planner.match import NODE_NAME_FIELD
from planner.matching import Match
from planner.node import Node
from planner.order import natural
from planner.podgroup import Bar
from planner.request import Kind

CLIMBS = 256
_DIVES = 64
_WAYS = 48
"""Ways that are tried to mend one broken rule."""
CAUSE = "pod anti-affinity"

Kinds = tuple[Kind, ...]
_Open = tuple[tuple[int, int, int, int], Found, list[Attempt]]


def has_rules(kinds: Sequence[Kind]) -> bool:
    """Whether any kind has a rule over a label that is no level."""
    return any(kind.shuns_over or kind.together for kind in kinds)


def climb_by_rules(climb: Climb, kinds: Kinds, required: int) -> Found | None:
    """The best placement of these kinds inside one domain of the required level that keeps every rule."""
    found = _Rules(climb, required).best(kinds)
    if found is None and climb.attempts:
        _say_how_close(climb, kinds, required)
    return found


def _say_how_close(climb: Climb, kinds: Kinds, required: int) -> None:
    """The last attempt with the number of pods that keep the rules; of several kinds none is told."""
    attempts, complete = list(climb.attempts), climb.complete
    least, most = 0, attempts[-1].fits if len(kinds) == 1 else 0
    most = min(most, attempts[-1].wanted - 1)
    while least < most:
        middle = (least + most + 1) // 2
        fewer = replace(kinds[0], count=middle, parts=((kinds[0].parts[0][0], middle),))
        if _Rules(climb, required, CLIMBS // 8).best((fewer,)) is None:
            most = middle - 1
        else:
            least = middle
    climb.complete = complete
    climb.attempts[:] = [*attempts[:-1], replace(attempts[-1], fits=least, note=CAUSE)]


class _Rules:
    """One search. `left`: climbs that may still be made."""

    def __init__(self, climb: Climb, required: int, climbs: int = CLIMBS) -> None:
        self._climb, self._required, self._left = climb, required, climbs
        self._serial = 0
        self._values: dict[str, dict[str, list[int]]] = {}

    def best(self, kinds: Kinds) -> Found | None:
        """The cheapest that breaks no rule, None where there is none."""
        waiting = self._tried([kinds], 0)
        if not waiting:
            return None
        first = waiting[0][2]
        while waiting:
            ahead = self._left > 0
            key, found, attempts = heapq.heappop(waiting) if ahead else waiting.pop(_deepest(waiting))
            ways = self._ways(found)
            if ways is None:
                self._climb.attempts[:] = attempts
                return found if ahead else replace(found, exact=False)
            if self._left <= -_DIVES:
                break
            for made in self._tried(ways, -key[2] + 1):
                heapq.heappush(waiting, made)
        if self._left <= 0:
            self._climb.complete = False
        self._climb.attempts[:] = first
        return None

    def _tried(self, ways: Sequence[Kinds], depth: int) -> list[_Open]:
        made: list[_Open] = []
        for kinds in ways:
            self._left -= 1
            self._serial += 1
            found = self._climb.climb(kinds, self._required)
            if found is not None:
                host = self._climb.view.tree.topology.host_index
                key = (host - found.branch.level, found.cost, -depth, self._serial)
                made.append((key, found, list(self._climb.attempts)))
        return made

    # -- rules ---------------------------------------------------------------------------------------------

    def _ways(self, found: Found) -> list[Kinds] | None:
        """The ways out of the first rule that a placement breaks; None where it breaks none."""
        kinds = found.kinds
        for key in sorted({key for kind in kinds for key, _ in kind.shuns_over}):
            for value, there in self._by_value(found, key):
                for one, kind in enumerate(kinds):
                    shunned = {name for at, name in kind.shuns_over if at == key}
                    if not there[one]:
                        continue
                    if there[one] > 1 and shunned.intersection(kind.names):
                        return self._one_host(kinds, one, key, value)
                    for other in range(len(kinds)):
                        if other != one and there[other] and shunned.intersection(kinds[other].names):
                            return self._one_or_other(kinds, (one, other), key, value)
        for key, names in sorted({rule for kind in kinds for rule in kind.together}):
            used = [
                value
                for value, there in self._by_value(found, key)
                if any(n and set(k.names) & set(names) for n, k in zip(there, kinds, strict=True))
            ]
            if len(used) > 1:
                return self._one_domain(kinds, key, names, used)
        return None

    def _by_value(self, found: Found, key: str) -> Iterator[tuple[str, tuple[int, ...]]]:
        """By the label's values the number of pods of each kind there; a node without it is nowhere."""
        sums: dict[str, tuple[int, ...]] = {}
        for place, counts in found.placed:
            value = _value(self._node(place), key)
            if value:
                before = sums.get(value, (0,) * len(counts))
                sums[value] = tuple(map(int.__add__, before, counts))
        yield from sorted(sums.items(), key=lambda item: natural(item[0]))

    def _one_or_other(self, kinds: Kinds, pair: tuple[int, int], key: str, value: str) -> list[Kinds]:
        bar = Bar(key, frozenset((value,)), CAUSE)
        return [_with(kinds, (place,), bar) for place in pair]

    def _one_host(self, kinds: Kinds, one: int, key: str, value: str) -> list[Kinds]:
        """The kind's one pod in a domain is on one of its hosts, or anywhere else."""
        places = self._places(key).get(value, [])
        names = [self._node(place).name for place in places]
        ways: list[Kinds] = []
        seen: set[object] = set()
        for place, name in zip(places, names, strict=True):
            alike = self._alike(kinds, place)
            if alike not in seen and len(ways) < _WAYS:
                seen.add(alike)
                others = frozenset(names) - {name}
                ways.append(_with(kinds, (one,), Bar(NODE_NAME_FIELD, others, CAUSE)))
            elif alike not in seen:
                self._climb.complete = False
        return ways

    def _one_domain(self, kinds: Kinds, key: str, names: tuple[str, ...], used: list[str]) -> list[Kinds]:
        """All of these PodSets are in one domain of the label: in one of those that were used, or another."""
        values = [*used, *sorted(self._places(key).keys() - set(used), key=natural)]
        if len(values) > _WAYS:
            self._climb.complete = False
        where = tuple(at for at, kind in enumerate(kinds) if set(kind.names) & set(names))
        bars = (Bar(key, frozenset((value,)), CAUSE, inside=True) for value in values[:_WAYS])
        return [_with(kinds, where, bar) for bar in bars]

    # -- nodes ---------------------------------------------------------------------------------------------

    def _node(self, place: int) -> Node:
        return self._climb.view.tree.nodes[place]

    def _places(self, key: str) -> dict[str, list[int]]:
        """The nodes of each domain of the label, by their places in the tree."""
        if key not in self._values:
            found: dict[str, list[int]] = {}
            for place, node in enumerate(self._climb.view.tree.nodes):
                if value := _value(node, key):
                    found.setdefault(value, []).append(place)
            self._values[key] = found
        return self._values[key]

    def _alike(self, kinds: Kinds, place: int) -> tuple[object, ...]:
        """What tells a host apart from others: its parent, its content, who may be there, and the labels."""
        view = self._climb.view
        branch, content, match = view.tree.root, view.content, view.match(kinds)
        parent: object = branch
        while branch.children:
            at = branch.child_of(place)
            parent, branch = branch, branch.children[at]
            content, match = _inside(content, match, at)
        labels = {key for kind in kinds for key, _ in (*kind.shuns_over, *kind.together)}
        node = self._node(place)
        return (parent, content, match, tuple(_value(node, key) for key in sorted(labels)))


def _inside(content: Content, match: Match, at: int) -> tuple[Content, Match]:
    return content.children[at], match.children[at] if match.children else match


def _value(node: Node, key: str) -> str:
    return node.name if key == NODE_NAME_FIELD else node.labels.get(key, "")


def _with(kinds: Kinds, where: Sequence[int], bar: Bar) -> Kinds:
    """The kinds, some of them barred from more nodes."""
    return tuple(
        replace(kind, shape=replace(kind.shape, barred=(*kind.shape.barred, bar))) if at in where else kind
        for at, kind in enumerate(kinds)
    )


def _deepest(waiting: Sequence[_Open]) -> int:
    """The place of the one that most rules were mended for."""
    return min(range(len(waiting)), key=lambda at: (waiting[at][0][2], waiting[at][0]))
