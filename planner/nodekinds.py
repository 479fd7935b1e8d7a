"""Nodes with the same devices, which claims look at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from planner.devices import labelled_devices
from planner.layouts import Layout, Layouts
from planner.match import PRODUCT
from planner.node import Node
from planner.selectors import Device


@dataclass(frozen=True, slots=True)
class Alike:
    """Nodes with the same devices: how many there are of each, the nodes' names, their GPU products, and
    their layout where slices tell it."""

    devices: Counter[Device]
    names: tuple[str, ...]
    products: frozenset[str]
    layout: Layout | None = None


def by_layout(nodes: Iterable[Node], layouts: Layouts) -> tuple[Alike, ...]:
    """The kinds of nodes by the devices that slices tell."""
    found: dict[Layout, list[Node]] = {}
    for node in nodes:
        if layout := layouts.of(node.name):
            found.setdefault(layout, []).append(node)
    return tuple(
        _alike(Counter(unit.device for unit in layout.units), there, layout)
        for layout, there in found.items()
    )


def by_labels(nodes: Iterable[Node]) -> tuple[Alike, ...]:
    """The kinds of nodes by the devices that labels tell."""
    found: dict[frozenset[tuple[Device, int]], list[Node]] = {}
    for node in nodes:
        if devices := labelled_devices(node):
            found.setdefault(frozenset(devices.items()), []).append(node)
    return tuple(_alike(Counter(dict(kinds)), there, None) for kinds, there in found.items())


def _alike(devices: Counter[Device], there: Sequence[Node], layout: Layout | None) -> Alike:
    products = frozenset(node.labels.get(PRODUCT, "") for node in there)
    return Alike(devices, tuple(node.name for node in there), products, layout)
