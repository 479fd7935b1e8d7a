"""How past gangs ended, by leaf: nod-ai's historicalPerformance, an exponential moving average.

1 is a leaf in which every gang ended well, 0 one in which none did. A leaf without history counts as 1. So
without any history all leaves are equal and the weight has no effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from planner.cluster.snapshot import Snapshot
from planner.cluster.switch_graph import leaf_level
from planner.model.reservation import Reservation
from planner.model.topology import HOSTNAME, Domain

WEIGHT = 0.3
"""The share of the newest gang in the average: the last six gangs make up nine tenths of it."""


UNTRIED = 1.0
"""The score of a leaf that no gang has ended on: as good as one where all ended well."""


AS_GOOD = 0.9995
"""From here up a leaf counts as untried again, and is forgotten."""


MOST_LEAVES = 5_000
"""Leaves whose history is kept, so that one object can hold it; the best are forgotten first."""


History = Mapping[str, float]
"""By `key_of` a leaf, its average."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A gang that has ended: the leaves that it used, and whether it ended well."""

    leaves: tuple[str, ...]
    well: bool


def key_of(topology: str, path: Domain) -> str:
    """A leaf's key in the history: topology name and whole path, since names repeat across parents."""
    return "/".join((topology, *(value or "-" for value in path)))


def ended(snapshot: Snapshot, reservation: Reservation, *, well: bool) -> Ended:
    """The record of this reservation's gang; no leaf where its topology has none or no longer exists."""
    topology = next((t for t in snapshot.topologies if t.name == reservation.topology), None)
    if topology is None or topology.levels[0] == HOSTNAME:
        return Ended((), well)
    tree, level = snapshot.base.trees[topology.name], leaf_level(topology)
    names = (assignment.node for assignment in reservation.assignments if assignment.node in tree.places)
    leaves = (tree.ancestor(name, level) for name in names)
    return Ended(
        tuple(dict.fromkeys(key_of(topology.name, leaf.path) for leaf in leaves if leaf.has_name)), well
    )


def updated(history: History, endings: Iterable[Ended]) -> dict[str, float]:
    """The history after these gangs, in their order; leaves nearly as good as new ones are dropped."""
    scores = dict(history)
    for ending in endings:
        for leaf in ending.leaves:
            scores[leaf] = averaged(scores.get(leaf, UNTRIED), ending.well)
    worst = sorted(scores.items(), key=lambda item: (item[1], item[0]))[:MOST_LEAVES]
    return {leaf: round(value, 4) for leaf, value in sorted(worst) if value < AS_GOOD}


def averaged(before: float, ended_well: bool) -> float:
    """The moving average after one more gang, 0 to 1."""
    return (1 - WEIGHT) * before + WEIGHT * (1.0 if ended_well else 0.0)
