"""Pods apart, or together, over labels that are no level of the topology: by branch and bound over climbs.

A climb knows the topology's levels alone. So the gang is placed without such a rule first. Where its
placement breaks one, every placement that keeps it is in one of a few ways of barring nodes, each of which is
climbed in turn, the cheapest first; the first that breaks nothing is the best, for barring never makes a gang
cheaper. Of hosts that nothing tells apart, in one parent domain, one is tried.

Before that, a placement is sought by mending every broken rule at once, as its pods lie. Climbs are counted:
past their number that placement serves, and the answer says that it was not proved best.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import replace

from planner.answer import Attempt
from planner.climb import Climb, Found
from planner.content import Content
from planner.kinds import Kind
from planner.match import NODE_NAME_FIELD
from planner.matching import Match
from planner.node import Node
from planner.order import natural
from planner.podgroup import Bar

CLIMBS = 256
_LOOKS = 40_000
"""Climbs times nodes: in large clusters fewer climbs are made, though never less than this many."""
_LEAST = 6
MENDS = 64
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
    if found is None and not climb.attempts:
        climb.climb(kinds, required)
    if found is None:
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
        self._climb, self._required = climb, required
        self._left = max(_LEAST, min(climbs, _LOOKS // max(1, len(climb.view.tree.nodes))))
        self._serial = 0
        self._values: dict[str, dict[str, list[int]]] = {}

    def best(self, kinds: Kinds) -> Found | None:
        """The cheapest that breaks no rule, None where there is none."""
        waiting = [] if any(map(self._outnumbers, kinds)) else self._tried([kinds], 0)
        if not waiting:
            return None
        first = waiting[0]
        mended = self._mended(first)
        while waiting and self._left > 0:
            key, found, attempts = heapq.heappop(waiting)
            if mended is not None and mended[0][:2] <= key[:2]:
                return self._taken(mended)
            ways = self._ways(found)
            if ways is None:
                return self._taken((key, found, attempts))
            for made in self._tried(ways, -key[2] + 1):
                heapq.heappush(waiting, made)
        if waiting:
            self._climb.complete = False
        if mended is not None:
            return replace(self._taken(mended), exact=not waiting)
        self._climb.attempts[:] = first[2]
        return None

    def _outnumbers(self, kind: Kind) -> bool:
        """Whether there are more pods than domains of a label over which they must differ."""
        nodes = len(self._climb.view.tree.nodes)
        domains = (self._places(key) for key in kind.single)
        return any(sum(map(len, d.values())) == nodes and kind.count > len(d) for d in domains)

    def _taken(self, one: _Open) -> Found:
        self._climb.attempts[:] = one[2]
        return one[1]

    def _mended(self, first: _Open) -> _Open | None:
        """A placement that breaks no rule, found by mending what is broken as the pods lie; None for none."""
        one = first
        for _ in range(MENDS):
            kinds = self._as_they_lie(one[1])
            if kinds is None:
                return one
            tried = self._tried([kinds], 0)
            self._left += 1
            if not tried:
                return None
            one = tried[0]
        return None

    def _as_they_lie(self, found: Found) -> Kinds | None:
        """The kinds, each kept in a label's domain to the host that it is on; None where no rule is broken.

        Of kinds that shun each other the first stays, of those that belong together all go to the first.
        """
        ways = self._ways(found)
        if ways is None:
            return None
        kinds = ways[0]
        for key in sorted({key for kind in kinds for key in kind.single}):
            alone: dict[int, list[str]] = {}
            for place, counts in found.placed:
                names = [
                    self._node(at).name for at in self._places(key).get(_value(self._node(place), key), [])
                ]
                for one, count in enumerate(counts):
                    if count and key in kinds[one].single and not set(names) & set(alone.get(one, ())):
                        own = self._node(place).name
                        alone.setdefault(one, []).extend(name for name in names if name != own)
            for one, others in alone.items():
                kinds = _with(kinds, (one,), Bar(NODE_NAME_FIELD, frozenset(others), CAUSE))
        return kinds

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
        left = place
        while branch.children:
            at = branch.child_of(left)
            left -= branch.starts[at]
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
