"""The values that a label has on the cluster's nodes, and which of them are spelled most like a text."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import islice

from planner.cluster.infrastructure import Infrastructure
from planner.cluster.plan_cache import DerivedSection
from planner.model.labels import NODE_NAME_FIELD
from planner.model.natural_order import natural
from planner.model.words import listed

_MAX_KEYS = 16
"""Labels whose values are remembered: what users select by is a handful."""


_MAX_COMPARED = 64
"""Texts on either side of the given text, in order of spelling, that are compared with it: a comparison takes
20 µs, and a label such as the hostname has as many values as there are nodes."""


_MAX_NODES_OF_KEYS = 1000
"""Nodes whose label keys are looked through for a similar key: nodes of one cluster have nearly the same."""


_ALIKE = 0.8
"""From this ratio of `SequenceMatcher` on a key may be a misspelt one: keys of one vendor share a prefix."""


_SHOWN = 3
"""Values that a message shows."""

_VALUES: DerivedSection[str, Mapping[str, int]] = DerivedSection("label values", max_keys=_MAX_KEYS)
"""By label key, how many nodes have each value."""


def values_of(base: Infrastructure, key: str) -> Mapping[str, int]:
    """How many nodes have each value of a label; the nodes' names for `metadata.name`."""
    return base.derived.get(_VALUES, key, lambda: _counted(base, key))


def _counted(base: Infrastructure, key: str) -> Mapping[str, int]:
    if key == NODE_NAME_FIELD:
        return dict.fromkeys(base.nodes, 1)
    return Counter(node.labels[key] for node in base.nodes.values() if key in node.labels)


def nearest(text: str, texts: Iterable[str]) -> list[str]:
    """Texts in order of likeness: those that contain the given one, then by spelling; of many only those next
    to it in the alphabet."""
    ordered = sorted(texts)
    place = bisect_left(ordered, text)
    near = ordered[max(0, place - _MAX_COMPARED) : place + _MAX_COMPARED]
    lowered = text.lower()

    def unlikeness(candidate: str) -> tuple[bool, float, object]:
        other = candidate.lower()
        return lowered not in other, -SequenceMatcher(None, lowered, other).ratio(), natural(candidate)

    return sorted((candidate for candidate in near if candidate != text), key=unlikeness)


def alike(text: str, other: str, ratio: float) -> bool:
    """Whether one text contains the other, or is spelled nearly like it."""
    return text in other or other in text or SequenceMatcher(None, text, other).ratio() >= ratio


def similar_key(base: Infrastructure, key: str) -> str:
    """The label key of some nodes that is spelled nearly like this one; "" for none."""
    nodes = islice(base.nodes.values(), _MAX_NODES_OF_KEYS)
    near = nearest(key, {name for node in nodes for name in node.labels})[:1]
    return near[0] if near and alike(key, near[0], _ALIKE) else ""


def values_words(base: Infrastructure, key: str, wanted: Sequence[str]) -> str:
    """Which values there are on how many nodes, those spelled like the first that is `wanted` first; "" where
    some node has one of these."""
    counts = values_of(base, key)
    if any(value in counts for value in wanted):
        return ""
    if not counts:
        other = similar_key(base, key)
        return "no node has this label" + (f"; some have {other}" if other else "")
    unique = all(count == 1 for count in counts.values())
    values = nearest("".join(wanted[:1]), counts)
    parts = [f"{value or '(empty)'}{'' if unique else f' on {counts[value]}'}" for value in values]
    return f"there {'is' if len(counts) == 1 else 'are'} {listed(parts, _SHOWN)}"
