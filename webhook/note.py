"""The annotation `bayplan.dev/placement`, read back: what a plan wrote onto an object or a template. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from planner.topology import Domain
from webhook.names import PLACEMENT


@dataclass(frozen=True, slots=True)
class Note:
    """A plan in short. `decision` "" where there is none; `domains` are held whole; `nodes`: the hosts that
    a gang of mode `nodes` is pinned to, by hostname (by name where a node has no such label)."""

    decision: str = ""
    topology: str = ""
    domains: tuple[Domain, ...] = ()
    nodes: frozenset[str] = frozenset()


def note_in(annotations: Mapping[str, Any]) -> Note:
    """What the annotation says; nothing where it does not read, for anybody can write there."""
    try:
        note = orjson.loads(str(annotations.get(PLACEMENT, "{}")))
        domains = tuple(tuple(str(value) for value in domain) for domain in note.get("reserves") or [])
        nodes = frozenset(str(name) for name in note.get("nodes") or [])
        return Note(str(note.get("decision", "")), str(note.get("topology", "")), domains, nodes)
    except (orjson.JSONDecodeError, AttributeError, TypeError):
        return Note()
