"""Converts a picture to the JSON document of the page, and computes the difference of two documents. Pure.

A document has sections, and each section has entries by key. If an entry changes, it is sent again as a
whole. Each rack and each gang is a separate entry, so that a change of one of them is a small event.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TypeAlias

from planner.cluster.snapshot import Snapshot
from webhook.kube.gang_standing import GangStanding, holding
from webhook.report.fabric_map import FabricMap, MapRow, NodeCell, fabric_maps
from webhook.report.fabric_text import LETTERS, letters_of
from webhook.ui.picture import DecisionEntry, Picture

Entry: TypeAlias = Mapping[str, object]
Section: TypeAlias = Mapping[str, Entry]
Document: TypeAlias = Mapping[str, Section]

SECTIONS = ("page", "health", "racks", "gangs", "decisions", "policies")

MAX_DECISIONS = 500
"""The maximum number of decisions that are sent, the newest ones. Older ones are in Events, Reports and
logs.
"""


def document(picture: Picture) -> Document:
    """Returns the document of a picture for viewers who may see everything."""
    fabrics = fabric_maps(picture.standing.snapshot)
    racks = dict(_racks(fabrics, picture.standing.snapshot))
    newest = sorted(picture.decisions, key=lambda entry: (-entry.time, entry.id))[:MAX_DECISIONS]
    return {
        "page": {"": {"source": picture.source, "revisions": list(picture.revisions)}},
        "health": {
            line.name: {"place": index, "state": line.state, "message": line.message}
            for index, line in enumerate(picture.health)
        },
        "racks": racks,
        "gangs": dict(_gangs(picture, fabrics, racks)),
        "decisions": {entry.id: _decision(entry) for entry in newest},
        "policies": {
            policy.name: {
                "namespaces": {name: dict(counts) for name, counts in sorted(policy.namespaces.items())}
            }
            for policy in sorted(picture.policies, key=lambda policy: policy.name)
        },
    }


def changes(before: Document, after: Document) -> dict[str, dict[str, Entry | None]]:
    """Returns the entries that differ, by section and key; the value is None if the entry was removed.

    Sections without changes are omitted, so the result is empty if the documents are equal.
    """
    differences: dict[str, dict[str, Entry | None]] = {}
    for section in SECTIONS:
        old, new = before.get(section, {}), after.get(section, {})
        entries: dict[str, Entry | None] = {key: None for key in old if key not in new}
        entries |= {key: entry for key, entry in new.items() if old.get(key) != entry}
        if entries:
            differences[section] = entries
    return differences


def _racks(fabrics: tuple[FabricMap, ...], snapshot: Snapshot) -> Iterator[tuple[str, Entry]]:
    """Yields key and entry of each row of the maps; a row is a domain of any level, not only a rack.

    The topology itself is an additional row, with depth -1, before those of its domains.
    """
    for fabric in fabrics:
        whole = MapRow(fabric.title, -1, fabric.count)
        for index, row in enumerate((whole, *fabric.rows)):
            yield (
                rack_key(fabric, row),
                {
                    "place": index,
                    "topology": fabric.topology.name,
                    "depth": row.depth,
                    "title": row.title,
                    "level": row.count.level,
                    "domain": list(row.count.path),
                    "nodes": row.count.nodes,
                    "unusable": row.count.unusable,
                    "gpus": row.count.gpus,
                    "free": row.count.free,
                    "cells": [_cell(cell, snapshot) for cell in row.cells],
                },
            )


def rack_key(fabric: FabricMap, row: MapRow) -> str:
    """Returns the key of a row, `TOPOLOGY:/DOMAIN/…`, or `TOPOLOGY:` for the topology itself."""
    if row.depth < 0:
        return f"{fabric.topology.name}:"
    return f"{fabric.topology.name}:/{'/'.join(row.count.path)}"


def _cell(cell: NodeCell, snapshot: Snapshot) -> list[object]:
    """Returns a node as a list, which takes less space than an object: its name, state, GPUs, free GPUs,
    the gang that holds the whole node ("" for none), the gangs that hold or use part of it, and the gang
    that is drawn on it.
    """
    whole = snapshot.holders.get(cell.node, "")
    parts = [gang for gang in cell.count.holders if gang != whole or cell.state == "placed"]
    return [cell.node, cell.state, cell.count.gpus, cell.count.free, whole, parts, cell.gang]


def _gangs(
    picture: Picture, fabrics: tuple[FabricMap, ...], racks: Mapping[str, Entry]
) -> Iterator[tuple[str, Entry]]:
    letters = {
        gang: letter
        for fabric in reversed(fabrics)  # a gang in several maps has its letter of the first
        if len(fabric.gangs) <= len(LETTERS)
        for gang, letter in letters_of(fabric.gangs).items()
    }
    places: dict[str, list[str]] = {}
    for key, rack in racks.items():
        for name in _gangs_in(rack):
            places.setdefault(name, []).append(key)
    for gang in picture.standing.gangs:
        yield gang.name, _gang(gang, places.get(gang.name, []), letters.get(gang.name, ""))


def _gangs_in(rack: Entry) -> list[str]:
    """Returns the gangs that hold or use a node of the rack, without duplicates, in the order of the
    nodes.
    """
    cells = rack["cells"]
    assert isinstance(cells, list), "as `_racks` makes it"
    return list(dict.fromkeys(gang for cell in cells for gang in (cell[4], *cell[5]) if gang))


def _gang(gang: GangStanding, racks: list[str], letter: str) -> Entry:
    """Returns the entry of a gang: the fields of `bayplan why -o json`; the keys of its racks, and its
    letter on the map; and the place that it holds, or what it waits for.
    """
    held = gang.reservation
    entry = {**gang.to_json(), "racks": racks, "letter": letter}
    if held is not None:
        reserved = datetime.fromtimestamp(held.created, UTC).isoformat() if held.created else None
        entry |= {"place": holding(held), "reserved": reserved}
    if gang.state == "waiting":
        entry["waitsFor"] = gang.waits_for(wide=False)
    return entry


def _decision(entry: DecisionEntry) -> Entry:
    return {
        "time": entry.time,
        "name": entry.name,
        "kind": entry.kind,
        "message": entry.message,
        "warning": entry.warning,
        "policy": entry.policy,
    }
