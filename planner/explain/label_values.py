"""The values of a label on the cluster's nodes, ordered by similarity to a text."""

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
"""Maximum number of label keys whose values are cached: pods select nodes by few keys."""


_MAX_COMPARED = 64
"""Number of texts before, and as many after, the given text in alphabetical order that are compared with it.
It is limited because a comparison takes 20 µs, and a label such as the hostname has one value per node.
"""


_MAX_NODES_SEARCHED = 1000
"""Maximum number of nodes whose label keys are searched for a similar key; nodes have nearly the same
keys.
"""


_ALIKE = 0.8
"""Minimum `SequenceMatcher` ratio between a misspelt label key and the key that it is taken for. It is high
because all keys of a vendor share a prefix.
"""


_SHOWN = 3
"""Maximum number of values in a message."""

_VALUES: DerivedSection[str, Mapping[str, int]] = DerivedSection("label values", max_keys=_MAX_KEYS)
"""Caches the number of nodes for each value of a label key. An entry is never stale: it belongs to one
`Infrastructure`, which is immutable.
"""


def values_of(base: Infrastructure, key: str) -> Mapping[str, int]:
    """Returns the number of nodes for each value of a label; for `metadata.name`, 1 for each node name."""
    return base.node_values.get(_VALUES, key, lambda: _counted(base, key))


def _counted(base: Infrastructure, key: str) -> Mapping[str, int]:
    if key == NODE_NAME_FIELD:
        return dict.fromkeys(base.nodes, 1)
    return Counter(node.labels[key] for node in base.nodes.values() if key in node.labels)


def nearest(text: str, texts: Iterable[str]) -> list[str]:
    """Returns the texts in descending order of similarity to `text`, without `text` itself; texts that
    contain `text` come first.

    Of a long list, only the texts near the given text in alphabetical order are returned.
    """
    ordered = sorted(texts)
    index = bisect_left(ordered, text)
    near = ordered[max(0, index - _MAX_COMPARED) : index + _MAX_COMPARED]
    lowered = text.lower()

    def unlikeness(candidate: str) -> tuple[bool, float, object]:
        other = candidate.lower()
        return lowered not in other, -SequenceMatcher(None, lowered, other).ratio(), natural(candidate)

    return sorted((candidate for candidate in near if candidate != text), key=unlikeness)


def is_similar(text: str, other: str, ratio: float) -> bool:
    """Returns whether one text contains the other or is spelled almost like it."""
    return text in other or other in text or SequenceMatcher(None, text, other).ratio() >= ratio


def similar_key(base: Infrastructure, key: str) -> str:
    """Returns the node label key that is spelled almost like this key; "" if no node has such a label."""
    nodes = islice(base.nodes.values(), _MAX_NODES_SEARCHED)
    near = nearest(key, {name for node in nodes for name in node.labels})[:1]
    return near[0] if near and is_similar(key, near[0], _ALIKE) else ""


def values_words(base: Infrastructure, key: str, wanted: Sequence[str]) -> str:
    """Returns text that lists the existing values of a label with node counts, the most similar to
    `wanted[0]` first.

    Returns "" if some node has one of the wanted values. If no node has the label, the text says so.
    """
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
