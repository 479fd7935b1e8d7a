"""Filters a document by what a viewer may see. Pure.

A viewer who may list the pods of a namespace sees its gangs with their nodes, the decisions in it, and its
counts of policies' results. A viewer who may list nodes sees all racks, and the health. Every viewer sees
the section `page`. Other entries, names and counts are not sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from planner.model.names import namespace_of
from webhook.ui.document import Document, Entry, Section

_NAME = re.compile(r"[^\s/,;:()]+/[A-Z]\w*/[^\s,;:()]+")
"""Matches NAMESPACE/KIND/NAME as a word in a text."""

HIDDEN = "a gang of another namespace"
"""Replaces the name of a gang that the viewer may not see."""


@dataclass(frozen=True)
class ViewerAccess:
    """What a viewer may list in the cluster.

    `nodes`: whether they may list nodes. `namespaces`: the namespaces whose pods they may list; None for all.
    """

    nodes: bool = True
    namespaces: frozenset[str] | None = None

    def sees(self, name: str) -> bool:
        """Reports whether the viewer may see the gang or object NAMESPACE/KIND/NAME."""
        return self.namespaces is None or namespace_of(name) in self.namespaces

    @property
    def is_whole(self) -> bool:
        """Whether the viewer may see everything."""
        return self.nodes and self.namespaces is None


ALL = ViewerAccess()


def namespaces_in(document: Document) -> frozenset[str]:
    """Returns the names of all namespaces that occur in a document."""
    of_policies = (name for entry in document["policies"].values() for name in _counts(entry))
    names = (str(entry["name"]) for section in ("gangs", "decisions") for entry in document[section].values())
    return frozenset((*map(namespace_of, names), *of_policies, *map(namespace_of, _holders(document)))) - {""}


def seen_by(access: ViewerAccess, document: Document) -> Document:
    """Returns the part of the document that the viewer may see."""
    if access.is_whole:
        return document
    names = _Names(access, (*document["gangs"], *_holders(document)))
    racks = _racks(access, document["racks"])
    return {
        "page": document["page"],
        "health": document["health"] if access.nodes else {},
        "racks": racks,
        "gangs": {
            name: names.in_entry({**entry, "racks": [key for key in _list(entry["racks"]) if key in racks]})
            for name, entry in document["gangs"].items()
            if access.sees(name)
        },
        "decisions": {
            key: names.in_entry(entry)
            for key, entry in document["decisions"].items()
            if access.sees(str(entry["name"]))
        },
        "policies": {
            key: {"namespaces": visible}
            for key, entry in document["policies"].items()
            if (visible := {name: count for name, count in _counts(entry).items() if access.sees(name)})
        },
    }


class _Names:
    """Removes the names of gangs that a viewer may not see from texts about other gangs."""

    def __init__(self, access: ViewerAccess, gangs: Iterable[str]) -> None:
        self._access = access
        # Most names match the pattern, which also finds gangs that no longer exist. Names chosen by users may
        # have any form, so they are searched literally.
        self._unusual = [gang for gang in gangs if not access.sees(gang) and not _NAME.fullmatch(gang)]

    def in_entry(self, entry: Entry) -> Entry:
        """Returns the entry with `HIDDEN` in place of such names, in its values and keys."""
        return {key: self._without(value) for key, value in entry.items()}

    def _without(self, value: Any) -> Any:
        match value:
            case str():
                for gang in self._unusual:
                    value = value.replace(gang, HIDDEN)
                return _NAME.sub(self._hidden, value) if "/" in value else value
            case list():
                return [self._without(item) for item in value]
            case dict():
                return {self._without(key): self._without(item) for key, item in value.items()}
        return value

    def _hidden(self, name: re.Match[str]) -> str:
        return name[0] if self._access.sees(name[0]) else HIDDEN


def _racks(access: ViewerAccess, racks: Section) -> Section:
    """Returns the racks that a viewer may see. Without permission to list nodes, they see only the nodes
    of their visible gangs, which the pods of these gangs show them anyway, and no counts of GPUs.
    """
    visible = {}
    for key, rack in racks.items():
        cells = [_cell(access, cell) for cell in _list(rack["cells"])]
        if access.nodes:
            visible[key] = {**rack, "cells": cells}
        elif own := [cell for cell in cells if cell[5]]:  # cell[5]: the visible gangs that use the node
            visible[key] = {
                **rack,
                "cells": own,
                "nodes": len(own),
                "unusable": None,
                "gpus": None,
                "free": None,
            }
    return visible


def _cell(access: ViewerAccess, cell: list[Any]) -> list[Any]:
    """Returns the cell (see `document._cell`) without the names of hidden gangs. It still shows that the
    node is in use.
    """
    node, state, gpus, free, whole, parts, gang = cell
    visible = [name for name in parts if access.sees(name)]
    mine = gang if gang and access.sees(gang) else ""
    return [node, state, gpus, free, whole if access.sees(whole) else HIDDEN if whole else "", visible, mine]


def _holders(document: Document) -> list[str]:
    cells = (cell for rack in document["racks"].values() for cell in _list(rack["cells"]))
    return list(dict.fromkeys(name for cell in cells for name in (cell[4], *cell[5]) if name))


def _counts(entry: Entry) -> Mapping[str, Any]:
    counts = entry["namespaces"]
    assert isinstance(counts, dict), "as `document` makes it"
    return counts


def _list(value: object) -> list[Any]:
    assert isinstance(value, list), "as `document` makes it"
    return value
