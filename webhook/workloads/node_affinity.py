"""CEL functions that add terms to the node affinity that a pod requires or prefers. Plain JSON."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

Json = Any


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def require(affinity: Json, terms: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    """`nodeAffinity.require(affinity, terms)`: the affinity, which in addition requires one of the terms.

    Node selector terms are ORed and the requirements inside one ANDed (core/v1 NodeSelector), so every
    existing term is combined with each new one. A term that already implies a new one is unchanged, so the
    merge is idempotent; so is an empty term, because it matches no node. A combination that contradicts
    itself (`In` lists of one key without a common value) is left out while another remains.
    """
    merged: dict[str, Json] = copy.deepcopy(dict(affinity or {}))
    if not terms:
        return merged
    node = merged["nodeAffinity"] = dict(merged.get("nodeAffinity") or {})
    existing = list((node.get(REQUIRED) or {}).get("nodeSelectorTerms") or [])
    ours = [dict(term) for term in terms]
    joined: list[dict[str, Json]] = []
    for term in existing:
        if not _requirements(term) or any(_implies(term, other) for other in ours):
            joined.append(term)
        else:
            joined.extend(_join(term, other) for other in ours)
    possible = [term for term in joined if not _contradicts(term)]
    node[REQUIRED] = {"nodeSelectorTerms": (possible or joined) if existing else ours}
    return merged


def prefer(affinity: Json, terms: Sequence[Mapping[str, Json]], weight: int) -> dict[str, Json]:
    """`nodeAffinity.prefer(affinity, terms, weight)`: the affinity, with each term preferred once."""
    merged: dict[str, Json] = copy.deepcopy(dict(affinity or {}))
    if not terms:
        return merged
    node = merged["nodeAffinity"] = dict(merged.get("nodeAffinity") or {})
    preferences = list(node.get(PREFERRED) or [])
    stated = [entry.get("preference") for entry in preferences]
    preferences.extend({"weight": weight, "preference": dict(term)} for term in terms if term not in stated)
    node[PREFERRED] = preferences
    return merged


def _requirements(term: Mapping[str, Json]) -> list[tuple[str, Json]]:
    return [
        (kind, requirement)
        for kind in ("matchExpressions", "matchFields")
        for requirement in term.get(kind) or []
    ]


def _implies(term: Mapping[str, Json], other: Mapping[str, Json]) -> bool:
    """Returns whether every requirement of `other` follows from a requirement of `term`."""
    have = _requirements(term)
    return all(
        any(_narrower(mine, other_requirement) for mine in have) for other_requirement in _requirements(other)
    )


def _narrower(own: tuple[str, Json], other: tuple[str, Json]) -> bool:
    (kind, a), (other_kind, b) = own, other
    if kind != other_kind or a.get("key") != b.get("key"):
        return False
    if a.get("operator") == b.get("operator") == "In":
        return set(a.get("values") or []) <= set(b.get("values") or [])
    return dict(a) == dict(b)


def _join(term: Mapping[str, Json], other: Mapping[str, Json]) -> dict[str, Json]:
    joined = {key: list(value) if isinstance(value, list) else value for key, value in term.items()}
    for kind, requirement in _requirements(other):
        if (kind, requirement) not in _requirements(joined):
            joined.setdefault(kind, []).append(requirement)
    return joined


def _contradicts(term: Mapping[str, Json]) -> bool:
    allowed: dict[tuple[str, str], set[str]] = {}
    for kind, requirement in _requirements(term):
        if requirement.get("operator") == "In":
            values = set(requirement.get("values") or [])
            key = (kind, str(requirement.get("key")))
            allowed[key] = allowed.get(key, values) & values
    return any(not values for values in allowed.values())
